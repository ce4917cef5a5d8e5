/** The error codes within a response, for the counters. Pure, any thread. */
import { kafkaErrors } from '../../wire/kafka/errors.ts'

const nameOf: ReadonlyMap<number, string> = new Map(Object.entries(kafkaErrors).map(([name, { code }]) => [code, name]))

/** @returns the name of a code. */
export function errorName(code: number): string {
  return nameOf.get(code) ?? String(code)
}

/** @returns every errorCode other than NONE, at any depth. @cost a look at each value of the response. */
export function errorCodesOf(response: object): number[] {
  const codes: number[] = []
  collect(response, codes)
  return codes
}

function collect(value: object, codes: number[]): void {
  if (Buffer.isBuffer(value)) return
  for (const [name, field] of Object.entries(value) as [string, unknown][]) {
    if (name === 'errorCode' && typeof field === 'number' && field !== kafkaErrors.NONE.code) codes.push(field)
    else if (typeof field === 'object' && field !== null) collect(field, codes)
  }
}
