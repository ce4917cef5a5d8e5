/** What the answer to a fetch says of its partitions. Main thread. */
import type { fetch } from '../../../wire/kafka/apis/fetch.ts'
import type { WriteOf } from '../../../wire/kafka/schema.ts'
import type { FetchedPartition } from './fetched-partition.ts'

type ToldTopic = WriteOf<typeof fetch.response.fields>['responses'][number]
type ToldPartition = ToldTopic['partitions'][number]

export class FetchResponses {
  /** The buffers of the records in it. */
  readonly chunkOf = new Map<Buffer, Buffer>()
  readonly #topics = new Map<string, { topic: string; topicId: string; partitions: ToldPartition[] }>()

  /** By topic, in the order in which they were added first. */
  get topics(): ToldTopic[] {
    return [...this.#topics.values()]
  }

  /** Tells of a partition; its records become the answer's. */
  add(partition: FetchedPartition): void {
    const { topic, uuid: topicId } = partition.place
    const key = `${topicId} ${topic}`
    let told = this.#topics.get(key)
    if (told === undefined) {
      told = { topic, topicId, partitions: [] }
      this.#topics.set(key, told)
    }
    told.partitions.push(toldPartition(partition, this.chunkOf))
    partition.noteTold()
  }
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
