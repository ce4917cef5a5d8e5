/**
 * Reads where all partitions begin and end, and what they take, from the shards. Main thread. Each shard is asked for some
 * partitions at a time and for the next ones when it has answered, all shards side by side: neither main nor a shard is
 * held up for more than a millisecond, however many there are.
 */
import { assert } from '../base/assert.ts'
import { BrokerError } from '../model/errors.ts'
import { endOf, handleOf, rangesOf, type HandleRange } from '../model/handles.ts'
import { shardOf } from '../model/ids.ts'
import type { PartitionFigures } from '../model/metrics.ts'
import type { Topic } from '../model/topic.ts'
import type { PendingRequest } from '../shards/pending.ts'
import type { ShardLink } from '../shards/shard-link.ts'
import type { ShardSet } from '../shards/shard-set.ts'
import { readU64 } from '../wire/primitives/u64.ts'
import { NO_HANDLE, PARTITIONS_ENTRY_BYTES, REPLY_BODY_AT, replyTypes } from '../wire/shard/messages.ts'

/** What is asked of the shards. */
export interface AskedShards extends Pick<ShardSet, 'shardCount' | 'refusal' | 'publishSoon' | 'whenRoom'> {
  link(shard: number): Pick<ShardLink, 'ask'> | null
}

/**
 * @param topics live ones, by first handle. Those that are created or deleted meanwhile are not told of, or with what they had.
 * @returns when every shard has answered, or is known to be down.
 */
export async function readPartitionFigures(shards: AskedShards, topics: readonly Topic[]): Promise<PartitionFigures> {
  const figures = emptyFigures(topics)
  const ranges = placedRanges(figures)
  const asked = Array.from({ length: shards.shardCount }, (_, shard) =>
    new ShardReading(shards, shard, figures, ranges).run()
  )
  const answered = await Promise.allSettled(asked)
  const down = new Set<number>()
  answered.forEach((result, shard) => {
    if (result.status === 'fulfilled') return
    if (!(result.reason instanceof BrokerError)) throw result.reason
    down.add(shard)
  })
  if (down.size > 0) forgetShards(figures, down, shards.shardCount)
  return figures
}

/** Of partitions without records. */
function emptyFigures(topics: readonly Topic[]): PartitionFigures {
  const places = new Float64Array(topics.length)
  let count = 0
  topics.forEach(({ partitionCount }, i) => {
    places[i] = count
    count += partitionCount
  })
  return {
    topics,
    places,
    isKnown: new Uint8Array(count).fill(1),
    startOffset: new Float64Array(count),
    endOffset: new Float64Array(count),
    sizeBytes: new Float64Array(count),
    segmentCount: new Float64Array(count).fill(1),
    retiredSegments: new Float64Array(count),
    retiredBytes: new Float64Array(count)
  }
}

/** Nothing is known of the partitions of shards that are down. */
function forgetShards({ topics, places, isKnown }: PartitionFigures, down: Set<number>, shardCount: number): void {
  topics.forEach((topic, i) => {
    const place = places[i] ?? 0
    for (let partition = 0; partition < topic.partitionCount; partition++)
      if (down.has(shardOf(handleOf(topic, partition), shardCount))) isKnown[place + partition] = 0
  })
}

/** The answers of one shard, one after the other, into the columns. */
class ShardReading {
  readonly #shards: AskedShards
  readonly #shard: number
  readonly #figures: PartitionFigures
  readonly #ranges: readonly PlacedRange[]
  /** Range that the last entry was of: entries come by handle. */
  #rangeIndex = 0

  /** @param ranges of the figures, those of all shards. */
  constructor(shards: AskedShards, shard: number, figures: PartitionFigures, ranges: readonly PlacedRange[]) {
    this.#shards = shards
    this.#shard = shard
    this.#figures = figures
    this.#ranges = ranges
  }

  /** @fails BrokerError: the shard is down, or died meanwhile. */
  async run(): Promise<void> {
    for (let handle = 0; handle !== NO_HANDLE;) handle = await this.#ask(handle)
  }

  /** @returns the handle to ask from next. */
  #ask(from: number): Promise<number> {
    return new Promise((resolve, reject) => {
      const request: PendingRequest = {
        endPosition: -1,
        onReply: (type, bytes, start, end) => {
          assert(type === replyTypes.partitions, 'a question for partitions is answered by entries')
          for (let at = start + REPLY_BODY_AT; at < end; at += PARTITIONS_ENTRY_BYTES) this.#take(bytes, at)
          resolve(bytes.readUInt32BE(start + REPLY_BODY_AT - 4))
        },
        onFailure: reject
      }
      const send = (): void => {
        // Looked up at each attempt: a shard that died while this waited has another link, or none.
        const link = this.#shards.link(this.#shard)
        if (link === null) reject(this.#shards.refusal(this.#shard))
        else if (link.ask({ type: 'partitions', numbers: [from] }, request)) this.#shards.publishSoon()
        else this.#shards.whenRoom(send)
      }
      send()
    })
  }

  #take(bytes: Buffer, at: number): void {
    const figures = this.#figures
    const place = this.#placeOf(bytes.readUInt32BE(at))
    if (place < 0) return
    figures.segmentCount[place] = bytes.readUInt32BE(at + 4)
    figures.startOffset[place] = readU64(bytes, at + 8)
    figures.endOffset[place] = readU64(bytes, at + 16)
    figures.sizeBytes[place] = readU64(bytes, at + 24)
    figures.retiredSegments[place] = readU64(bytes, at + 32)
    figures.retiredBytes[place] = readU64(bytes, at + 40)
  }

  /** @returns its place in the columns, or −1: it was made meanwhile. */
  #placeOf(handle: number): number {
    for (; this.#rangeIndex < this.#ranges.length; this.#rangeIndex++) {
      const range = this.#ranges[this.#rangeIndex] as PlacedRange
      if (handle < range.firstHandle) return -1
      if (handle < endOf(range)) return range.place + handle - range.firstHandle
    }
    return -1
  }
}

/** Partitions whose handles, and places in the columns, are in a row. */
interface PlacedRange extends HandleRange {
  readonly place: number
}

/** All of the topics', by handle. */
function placedRanges({ topics, places }: PartitionFigures): PlacedRange[] {
  const ranges = topics.flatMap((topic, i) =>
    rangesOf(topic).map(range => ({ ...range, place: (places[i] as number) + range.firstPartition }))
  )
  return ranges.sort((a, b) => a.firstHandle - b.firstHandle)
}
