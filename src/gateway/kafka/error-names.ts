/** Names of error codes, for the counters. Pure, any thread. */
import { kafkaErrors } from '../../wire/kafka/errors.ts'

const nameOf: ReadonlyMap<number, string> = new Map(Object.entries(kafkaErrors).map(([name, { code }]) => [code, name]))

/** @returns the name of a code. */
export function errorName(code: number): string {
  return nameOf.get(code) ?? String(code)
}
