/** The codes of partitions, in the order in which a request named them, put back under its topics. Pure, any thread. */

interface NamedTopic {
  readonly name: string
  readonly partitions: readonly { readonly partitionIndex: number }[]
}

interface ToldTopic {
  readonly name: string
  readonly partitions: { readonly partitionIndex: number; readonly errorCode: number }[]
}

/** @param codes of all partitions of all topics, one after the other. */
export function codesOfPlaces(topics: readonly NamedTopic[], codes: readonly number[]): ToldTopic[] {
  let at = 0
  return topics.map(({ name, partitions }) => {
    const told = partitions.map(({ partitionIndex }) => ({ partitionIndex, errorCode: codes[at++] as number }))
    return { name, partitions: told }
  })
}
