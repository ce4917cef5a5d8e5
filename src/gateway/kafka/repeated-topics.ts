/** Topics that a request names more than once: none of them is changed, since nobody can say which of the two is meant. Pure, any thread. */
import { kafkaErrors } from '../../wire/kafka/errors.ts'
import type { Told } from './refusals.ts'

/** What is said of each. */
export const repeatedTopic: Told = {
  errorCode: kafkaErrors.INVALID_REQUEST.code,
  errorMessage: 'the request names this topic more than once'
}

/** @returns the names that are there more than once, in one pass: a request may have a hundred thousand. */
export function repeatedNames(topics: readonly { readonly name: string }[]): ReadonlySet<string> {
  const seen = new Set<string>()
  const repeated = new Set<string>()
  for (const { name } of topics) (seen.has(name) ? repeated : seen).add(name)
  return repeated
}
