/**
 * Fetch: batches of many partitions, as they are stored, at once or when there is enough of them. Main thread; one FetchCall
 * a request. Sessions (KIP-227) are not kept: every answer has session 0, which says so.
 *
 * Its turn comes when all requests before it on its connection are answered.
 *
 *   round: reserve memory ─▶ read partition after partition, a few at a time ─▶ enough, an error, or time is over: answer
 *             ▲                                                        └─▶ else give the memory back and wait
 *             └──────────── one of the partitions has more, or the time is over ◀──────────────┘
 *
 * What a read may bring is taken from what the fetch may: one that brought less gives the rest to those after it. A batch is
 * never cut, so one may be larger than its share: it is kept if it still fits, if it is the first that came, or if its
 * partition was the first to be read, which is another one each time. So an answer is never empty without need, no partition
 * waits for ever, and memory is bounded by what was asked for and two batches.
 */
import type { BrokerError } from '../../../model/errors.ts'
import { limits } from '../../../model/limits.ts'
import { submitOutcomes, type Watch } from '../../../model/requests.ts'
import { fetch } from '../../../wire/kafka/apis/fetch.ts'
import { kafkaErrors } from '../../../wire/kafka/errors.ts'
import type { WriteOf } from '../../../wire/kafka/schema.ts'
import type { BufferPool } from '../../shared/buffer-pool.ts'
import { handlerOf, type KafkaCall, type KafkaHandler } from '../handler.ts'
import { epochFault } from '../leader-epoch.ts'
import { throttleMsOf, toldOf } from '../refusals.ts'
import { nameOfId } from '../topic-names.ts'
import { FetchedPartition, type PartitionOwner } from './fetched-partition.ts'
import { fetchBytesOf, reservedBytesOf } from './fetch-sizes.ts'

type Response = typeof fetch.response.fields
type Call = KafkaCall<typeof fetch.request.fields, Response>

/** The first version that names topics by their ids. */
const TOPIC_IDS_SINCE = 13
/** Epochs of a request that stands for itself: it opens a session, or has none. */
const WHOLE_EPOCHS: readonly number[] = [0, -1]
const TWO_32 = 2 ** 32

export const fetchHandler: KafkaHandler = handlerOf(fetch, call => {
  if (!WHOLE_EPOCHS.includes(call.body.sessionEpoch)) {
    return call.answer({ errorCode: kafkaErrors.FETCH_SESSION_ID_NOT_FOUND.code, responses: [] })
  }
  new FetchCall(call).start()
})

class FetchCall implements PartitionOwner {
  readonly pool: BufferPool
  readonly #call: Call
  /** In the order of the request. */
  readonly #partitions: readonly FetchedPartition[]
  /** Those that are to be read, beginning with another one each time. */
  readonly #readable: readonly FetchedPartition[]
  readonly #fetchBytes: number
  readonly #deadlineMs: number
  #nextIndex = 0
  #openCount = 0
  /** Bytes that were kept in this round, and that reads in progress may bring. */
  #keptBytes = 0
  #promisedBytes = 0
  #reservedBytes = 0
  #isOver: boolean
  #hasBegun = false
  #isDone = false
  #throttleMs = 0
  #watches: Watch[] = []
  #timer: NodeJS.Timeout | null = null

  constructor(call: Call) {
    this.#call = call
    this.pool = call.pool
    const { body, services, client } = call
    this.#partitions = partitionsOf(call, this)
    const readable = this.#partitions.filter(({ isRefused }) => !isRefused)
    const first = readable.length === 0 ? 0 : client.requestCount % readable.length
    this.#readable = [...readable.slice(first), ...readable.slice(0, first)]
    this.#fetchBytes = fetchBytesOf(services.settings, body.maxBytes)
    const waitMs = Math.min(body.maxWaitMs, limits.readWaitMsMax)
    this.#deadlineMs = services.clock.monotonicMs() + waitMs
    this.#isOver = waitMs <= 0 || readable.length === 0 || readable.length < this.#partitions.length
  }

  start(): void {
    this.#call.onClosing(() => this.#endWait())
    this.#call.whenFirst(() => this.#round())
  }

  accept(partition: FetchedPartition, bytes: number): boolean {
    const isKept =
      this.#keptBytes === 0 || partition === this.#readable[0] || this.#keptBytes + bytes <= this.#fetchBytes
    if (!isKept) return false
    this.#keptBytes += bytes
    // It is here already, so it is delivered in any case; if the memory has room, the excess counts.
    const excess = reservedBytesOf(this.#keptBytes) - this.#reservedBytes
    if (excess > 0 && this.#call.replies.reserveMore(excess)) this.#reservedBytes += excess
    return true
  }

  settled(partition: FetchedPartition, error: BrokerError | null): void {
    this.#openCount--
    this.#promisedBytes -= partition.shareBytes
    if (error !== null) this.#noteError(partition, error)
    this.#readOn()
  }

  /** Over its quota a client is told to wait, not that something is wrong. */
  #noteError(partition: FetchedPartition, error: BrokerError): void {
    this.#isOver = true
    const throttleMs = throttleMsOf(error)
    if (throttleMs > 0) this.#throttleMs = Math.max(this.#throttleMs, throttleMs)
    else partition.errorCode = codeOf(this.#call, error)
  }

  #round(): void {
    if (this.#isDone) return
    this.#hasBegun = true
    const reserved = reservedBytesOf(this.#fetchBytes)
    if (this.#call.replies.reserve(reserved) !== 'held') {
      this.#call.replies.whenReleased(() => this.#round())
      return
    }
    this.#reservedBytes = reserved
    this.#keptBytes = 0
    this.#nextIndex = 0
    for (const partition of this.#readable) partition.forget()
    this.#readOn()
  }

  /** Sends reads while there is something to be read and some of the fetch left, and ends the round after the last. */
  #readOn(): void {
    while (this.#nextIndex < this.#readable.length && this.#openCount < limits.kafkaFetchReadsMax) {
      const leftBytes = this.#fetchBytes - this.#keptBytes - this.#promisedBytes
      // What is on its way may bring less than it was promised.
      if (leftBytes <= 0 && this.#openCount > 0) return
      const partition = this.#readable[this.#nextIndex] as FetchedPartition
      const shareBytes = Math.max(0, Math.min(leftBytes, Math.max(1, partition.place.maxBytes)))
      if (!this.#read(partition, shareBytes)) return
      this.#nextIndex++
    }
    if (this.#openCount === 0) this.#endRound()
  }

  /** @returns false if there is no room for it: it is tried again then. */
  #read(partition: FetchedPartition, shareBytes: number): boolean {
    const { broker } = this.#call.services
    partition.shareBytes = shareBytes
    this.#promisedBytes += shareBytes
    this.#openCount++
    const outcome = broker.submitRead(this.#call.who, partition.readOf(shareBytes), partition)
    if (outcome !== submitOutcomes.full) return true
    this.#promisedBytes -= shareBytes
    // It stays open meanwhile, so that nobody else ends the round.
    broker.whenRoom(() => {
      this.#openCount--
      this.#readOn()
    })
    return false
  }

  #endRound(): void {
    const { body, services } = this.#call
    this.#isOver ||= services.clock.monotonicMs() >= this.#deadlineMs
    const hasError = this.#readable.some(({ isRefused }) => isRefused)
    if (this.#isOver || hasError || this.#seenBytes() >= body.minBytes) this.#answer()
    else this.#wait()
  }

  #seenBytes(): number {
    return this.#readable.reduce((sum, { bytes }) => sum + bytes, 0)
  }

  /** Nothing is held while it waits: what was read is read again. */
  #wait(): void {
    for (const partition of this.#readable) partition.dropRecords()
    this.#releaseReserved()
    const { broker, clock } = this.#call.services
    this.#timer ??= setTimeout(() => this.#endWait(), this.#deadlineMs - clock.monotonicMs())
    // If there is to be that much more in all, one of them must have its share of it.
    const missingBytes = Math.max(1, this.#call.body.minBytes - this.#seenBytes())
    const moreBytes = Math.ceil(missingBytes / this.#readable.length)
    const watcher = {
      onAvailable: () => this.#goOn(),
      // Where too many wait already, the time alone ends it.
      onWatchFailed: (error: BrokerError) => (error.code === 'OVERLOADED' ? undefined : this.#hurry())
    }
    this.#watches = this.#readable.map(({ place: { topic, topicId, partition, offset }, bytes }) =>
      broker.submitWatch(
        this.#call.who,
        {
          topic,
          ...(topicId !== undefined && { topicId }),
          partition,
          offsetHigh: Math.floor(offset / TWO_32),
          offsetLow: offset % TWO_32,
          minBytes: bytes + moreBytes
        },
        watcher
      )
    )
  }

  #goOn(): void {
    if (this.#watches.length === 0) return
    for (const watch of this.#watches.splice(0)) watch.cancel()
    this.#round()
  }

  /** The time is over. Who waits for anything at all would have heard of it: then what is known is the answer. */
  #endWait(): void {
    if (!this.#hasBegun) return this.#answer()
    if (this.#watches.length === 0 || this.#call.body.minBytes > 1) return this.#hurry()
    for (const watch of this.#watches.splice(0)) watch.cancel()
    this.#answer()
  }

  /** It waits no more: whatever there is is the answer. */
  #hurry(): void {
    this.#isOver = true
    this.#goOn()
  }

  #releaseReserved(): void {
    this.#call.replies.release(this.#reservedBytes)
    this.#reservedBytes = 0
  }

  #answer(): void {
    const call = this.#call
    this.#isDone = true
    if (this.#timer !== null) clearTimeout(this.#timer)
    if (call.who.isRevoked) {
      for (const partition of this.#readable) partition.dropRecords()
      this.#releaseReserved()
      return call.close('keyRevoked')
    }
    call.mute(this.#throttleMs)
    const chunkOf = new Map<Buffer, Buffer>()
    let at = 0
    const responses = call.body.topics.map(({ topic, topicId, partitions }) => ({
      topic,
      topicId,
      partitions: partitions.map(() => toldPartition(this.#partitions[at++] as FetchedPartition, chunkOf))
    }))
    call.answer({ throttleTimeMs: this.#throttleMs, responses }, { reservedBytes: this.#reservedBytes, chunkOf })
  }
}

type ToldPartition = WriteOf<Response>['responses'][number]['partitions'][number]

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

function partitionsOf(call: Call, owner: PartitionOwner): FetchedPartition[] {
  const { version, body, who, services } = call
  const found: FetchedPartition[] = []
  for (const { topic, topicId: uuid, partitions } of body.topics) {
    const isById = version >= TOPIC_IDS_SINCE
    const name = isById ? nameOfId(services, who, uuid) : topic
    const topicId = (isById && services.topicIds.idOf(uuid)) || undefined
    for (const { partition, fetchOffset: offset, partitionMaxBytes: maxBytes, currentLeaderEpoch } of partitions) {
      const place = { topic: name ?? '', topicId, partition, offset, maxBytes }
      const fault = name === null ? kafkaErrors.UNKNOWN_TOPIC_ID.code : faultOf(partition, offset, currentLeaderEpoch)
      found.push(new FetchedPartition(owner, place, fault))
    }
  }
  return found
}

function faultOf(partition: number, offset: number, epoch: number): number {
  if (partition < 0) return kafkaErrors.UNKNOWN_TOPIC_OR_PARTITION.code
  return offset < 0 ? kafkaErrors.OFFSET_OUT_OF_RANGE.code : epochFault(epoch)
}

/** Who names topics by id hears of the id. */
function codeOf({ version }: Call, error: BrokerError): number {
  if (error.code === 'TOPIC_NOT_FOUND' && version >= TOPIC_IDS_SINCE) return kafkaErrors.UNKNOWN_TOPIC_ID.code
  return toldOf(error).errorCode
}
