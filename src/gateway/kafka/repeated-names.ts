/**
 * What a request names more than once, topics or settings: none of it is changed, since nobody can say which of the two is
 * meant. A question about some topics is one question. Pure, any thread.
 */
import { kafkaErrors } from '../../wire/kafka/errors.ts'
import type { Told } from './refusals.ts'

/** What is said of each topic. */
export const repeatedTopic: Told = {
  errorCode: kafkaErrors.INVALID_REQUEST.code,
  errorMessage: 'the request names this topic more than once'
}

/** @returns the names that are there more than once, in one pass: a request may have a hundred thousand. */
export function repeatedNames(entries: readonly { readonly name: string }[]): ReadonlySet<string> {
  const seen = new Set<string>()
  const repeated = new Set<string>()
  for (const { name } of entries) (seen.has(name) ? repeated : seen).add(name)
  return repeated
}

/** @returns each topic once, with the partitions of all its entries: what is looked up for a topic is looked up once. */
export function mergedTopics<Partition>(
  entries: readonly (readonly [name: string, partitions: readonly Partition[]])[]
): ReadonlyMap<string, readonly Partition[]> {
  const merged = new Map<string, Partition[]>()
  for (const [name, partitions] of entries) {
    const known = merged.get(name)
    if (known === undefined) merged.set(name, [...partitions])
    else for (const partition of partitions) known.push(partition)
  }
  return merged
}
