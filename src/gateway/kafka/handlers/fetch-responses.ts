/** What the answer to a fetch says of its partitions. Main thread. */
import type { fetch } from '../../../wire/kafka/apis/fetch.ts'
import type { WriteOf } from '../../../wire/kafka/schema.ts'
import type { FetchedPartition } from './fetched-partition.ts'

type ToldTopic = WriteOf<typeof fetch.response.fields>['responses'][number]
type ToldPartition = ToldTopic['partitions'][number]

/** Tells of partitions, by topic; their records become the answer's. @param chunkOf learns the buffers of those. */
export function fetchResponses(partitions: readonly FetchedPartition[], chunkOf: Map<Buffer, Buffer>): ToldTopic[] {
  const topics = new Map<string, { topic: string; topicId: string; partitions: ToldPartition[] }>()
  for (const partition of partitions) {
    const { topic, uuid: topicId } = partition.place
    const key = `${topicId} ${topic}`
    let told = topics.get(key)
    if (told === undefined) {
      told = { topic, topicId, partitions: [] }
      topics.set(key, told)
    }
    told.partitions.push(toldPartition(partition, chunkOf))
    partition.noteTold()
  }
  return [...topics.values()]
}

/** There are no transactions, so all up to the high watermark is stable, and nothing was aborted. */
function toldPartition(partition: FetchedPartition, chunkOf: Map<Buffer, Buffer>): ToldPartition {
  const { place, errorCode, highWatermark, logStartOffset } = partition
  return {
    partitionIndex: place.partition,
    errorCode,
    highWatermark,
    lastStableOffset: highWatermark,
    logStartOffset,
    abortedTransactions: [],
    records: partition.takeRecords(chunkOf)
  }
}
