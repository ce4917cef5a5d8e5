/**
 * One fetch under way: batches of many partitions, as they are stored, at once or when there is enough of them. Main thread.
 *
 *   round: the key's turn, memory ─▶ read what is ready, a few at a time ─▶ enough, an error, or time is over: answer
 *             ▲        └─▶ it does not come in time: an empty answer   └─▶ else give the memory back and wait
 *             └──────────── a partition has more, or the time is over ◀──────────────┘
 *
 * A round reads what is ready alone. What was read and dropped by an earlier one counts as it was; once there is enough in
 * all it is read again. The key is charged for what the answer brings, and keeps its turn until then.
 *
 * What a read may bring is taken from what the fetch may: one that brought less gives the rest to those after it. A batch is
 * never cut, so one may be larger than its share: it is kept if it still fits, if it is the first that came, or if its
 * partition was the first to be read, which is another one each time. So an answer is never empty without need, no partition
 * waits for ever, and memory is bounded by what was asked for and two batches.
 */
import type { BrokerError } from '../../../model/errors.ts'
import { limits } from '../../../model/limits.ts'
import { submitOutcomes } from '../../../model/requests.ts'
import type { fetch } from '../../../wire/kafka/apis/fetch.ts'
import { kafkaErrors } from '../../../wire/kafka/errors.ts'
import type { BufferPool } from '../../shared/buffer-pool.ts'
import type { FetchSession, SessionCall } from '../fetch-session.ts'
import type { KafkaCall } from '../handler.ts'
import { toldOf } from '../refusals.ts'
import { FetchResponses } from './fetch-responses.ts'
import { PARTITIONS_A_TURN, fetchBytesOf, reservedBytesOf } from './fetch-sizes.ts'
import type { FetchedPartition, PartitionReader } from './fetched-partition.ts'

/** A call of Fetch. */
export type Call = KafkaCall<typeof fetch.request.fields, typeof fetch.response.fields>

/** The first version whose clients know zstd (KIP-110). */
const ZSTD_SINCE = 10

export class FetchCall implements PartitionReader, SessionCall {
  readonly pool: BufferPool
  readonly hidesZstd: boolean
  readonly #call: Call
  readonly #session: FetchSession
  /** The answer has every partition, else those with news. */
  readonly #isWhole: boolean
  readonly #onLong: (answering: Promise<void>) => void
  readonly #minBytes: number
  readonly #deadlineMs: number
  /** All that it has read, for its ends alone too. */
  readonly #touched = new Set<FetchedPartition>()
  /** Of this round. */
  #queue: readonly FetchedPartition[] = []
  #first: FetchedPartition | undefined
  #nextIndex = 0
  readonly #open = new Set<FetchedPartition>()
  #fetchBytes = 0
  /** Bytes that were kept in this round, and that reads in progress may bring. */
  #keptBytes = 0
  #promisedBytes = 0
  #reservedBytes = 0
  #isOver: boolean
  /** Reads that were sent in this round of the event loop, and whether the next one waits: for another round, or for room. */
  #sentCount = 0
  #isResting = false
  /** A round is under way, or waits for its turn. */
  #isReading = false
  #isDone = false
  #endTurn: (() => void) | null = null
  /** Stops waiting for the turn; null: it does not. */
  #giveUpTurn: (() => void) | null = null
  #timer: NodeJS.Timeout | null = null
  #lateTimer: NodeJS.Timeout | null = null
  /** What a partition brought had no place in the answer: what is left of it is too little for a batch. */
  #isCrowded = false
  /** What others have brought is not to wait for reads that take so long. */
  #isLate = false

  /**
   * @param session nobody else uses it; its id is 0 if it is to end with this fetch.
   * @param onLong hears of an answer that is written in turns: what it is given rejects on a bug in that.
   */
  constructor(call: Call, session: FetchSession, isWhole: boolean, onLong: (answering: Promise<void>) => void) {
    const { body, services, pool, version } = call
    this.#call = call
    this.#session = session
    this.#isWhole = isWhole
    this.#onLong = onLong
    this.pool = pool
    this.hidesZstd = version < ZSTD_SINCE
    this.#minBytes = Math.min(body.minBytes, fetchBytesOf(services.settings, body.maxBytes))
    const waitMs = Math.min(body.maxWaitMs, limits.readWaitMsMax)
    this.#deadlineMs = services.clock.monotonicMs() + waitMs
    this.#isOver = waitMs <= 0 || session.partitions.size === 0 || session.faulted.size > 0
  }

  start(): void {
    this.#session.begin(this)
    this.#call.onClosing(() => {
      this.hurry()
      this.#giveUpTurn?.()
    })
    this.#round(this.#session.someQuiet(limits.kafkaFetchReadsMax))
  }

  onMore(): void {
    if (!this.#isReading) this.#round()
  }

  /** It waits no more: whatever there is is the answer. */
  hurry(): void {
    this.#isOver = true
    if (this.#isReading || this.#isDone) return
    // Who waits for anything at all would have heard of it: then what is known is the answer.
    if (this.#session.ready.size > 0 || this.#hasDropped()) this.#readAll()
    else this.#answer()
  }

  accept(partition: FetchedPartition, bytes: number): boolean {
    const isKept = this.#keptBytes === 0 || partition === this.#first || this.#keptBytes + bytes <= this.#fetchBytes
    if (!isKept) {
      this.#isCrowded = true
      return false
    }
    this.#keptBytes += bytes
    // It is here already, so it is delivered in any case; if the memory has room, the excess counts.
    const excess = reservedBytesOf(this.#keptBytes) - this.#reservedBytes
    if (excess > 0 && this.#call.replies.reserveMore(excess)) this.#reservedBytes += excess
    return true
  }

  settled(partition: FetchedPartition, error: BrokerError | null): void {
    this.#open.delete(partition)
    this.#promisedBytes -= partition.shareBytes
    if (error !== null) this.#noteError(partition, error)
    else this.#noteRead(partition)
    this.#readOn()
  }

  #noteRead(partition: FetchedPartition): void {
    this.#touched.add(partition)
    // One that has more than an answer may bring of it would never have enough, however long it waits.
    this.#isOver ||= partition.isCut || partition.isFull
    if (partition.errorCode !== kafkaErrors.NONE.code) this.#noteFailed(partition, null)
    else if (partition.shareBytes > 0) this.#session.noteRead(partition)
  }

  /** Over its quota a client is told to wait, not that something is wrong. */
  #noteError(partition: FetchedPartition, error: BrokerError): void {
    const isTold = error.code !== 'RATE_LIMITED'
    if (isTold) this.#touched.add(partition)
    this.#noteFailed(partition, isTold ? this.#codeOf(error) : null)
  }

  #noteFailed(partition: FetchedPartition, errorCode: number | null): void {
    this.#isOver = true
    this.#session.noteFailed(partition, errorCode)
  }

  /** Who names topics by id hears of the id. */
  #codeOf(error: BrokerError): number {
    if (error.code === 'TOPIC_NOT_FOUND' && this.#session.isById) return kafkaErrors.UNKNOWN_TOPIC_ID.code
    return toldOf(error).errorCode
  }

  /** @param others to be read for their ends. */
  #round(others: readonly FetchedPartition[] = []): void {
    this.#isReading = true
    const { who, services } = this.#call
    const isLimited = services.broker.batches.readAllowance(who) !== null
    if (!isLimited) return this.#begin(others)
    const leftMs = this.#deadlineMs - services.clock.monotonicMs()
    let isWaiting = true
    const giveUp = services.readTurns.take(who.keyId, Math.max(limits.fetchTurnWaitMsMin, leftMs), {
      onTurn: end => {
        isWaiting = false
        this.#giveUpTurn = null
        this.#endTurn = end
        this.#begin(others)
      },
      onLate: () => {
        this.#giveUpTurn = null
        this.#answerNothing()
      }
    })
    if (isWaiting) this.#giveUpTurn = giveUp
  }

  #begin(others: readonly FetchedPartition[]): void {
    const { who, services, body, replies } = this.#call
    const allowance = services.broker.batches.readAllowance(who)
    if (allowance !== null && allowance.waitMs > 0) return this.#answerNothing()
    const roomBytes = allowance?.roomBytes ?? Infinity
    this.#fetchBytes = Math.min(fetchBytesOf(services.settings, body.maxBytes), Math.max(1, roomBytes))
    const reserved = reservedBytesOf(this.#fetchBytes)
    if (replies.reserve(reserved) !== 'held') {
      this.#leaveTurn()
      return replies.whenReleased(() => this.#round(others))
    }
    this.#reservedBytes = reserved
    const ready = [...this.#session.ready]
    this.#first = ready[0]
    // One of the others may have become ready while this waited for its turn or for memory.
    this.#queue = [...new Set([...others, ...ready])]
    this.#nextIndex = 0
    this.#keptBytes = 0
    this.#isCrowded = false
    for (const partition of this.#queue) partition.forget()
    const leftMs = this.#deadlineMs - services.clock.monotonicMs()
    this.#lateTimer ??= setTimeout(() => this.#onLate(), Math.max(limits.kafkaFetchLateMs, leftMs))
    this.#readOn()
  }

  #onLate(): void {
    this.#isLate = true
    if (this.#open.size > 0) this.#readOn()
  }

  /** Reads of cold storage most likely: they go on for the next fetch. Their ends have their place behind all others. */
  #leaveOutLate(): void {
    const { aheadRoom } = this.#call.services
    const late = [...this.#open].filter(partition => partition.leaveOut(aheadRoom))
    for (const partition of late) {
      this.#open.delete(partition)
      this.#promisedBytes -= partition.shareBytes
    }
    this.#queue = [...this.#queue, ...late]
    this.#isOver = true
  }

  /** Sends reads while there is something to be read and some of the fetch left, and ends the round after the last. */
  #readOn(): void {
    const isLate = this.#isLate && this.#keptBytes > 0
    if (isLate) this.#leaveOutLate()
    const queue = this.#queue
    while (this.#nextIndex < queue.length && this.#open.size < limits.kafkaFetchReadsMax) {
      if (this.#isResting) return
      if (this.#sentCount >= PARTITIONS_A_TURN) return this.#rest()
      const leftBytes = isLate || this.#isCrowded ? 0 : this.#fetchBytes - this.#keptBytes - this.#promisedBytes
      // What is on its way may bring less than it was promised.
      if (leftBytes <= 0 && this.#open.size > 0) return
      // The others come first next time; of an answer with all partitions each has at least its ends.
      if (leftBytes <= 0 && !this.#isWhole) break
      const partition = queue[this.#nextIndex] as FetchedPartition
      const isReady = this.#session.ready.has(partition)
      const shareBytes = isReady ? Math.max(0, Math.min(leftBytes, Math.max(1, partition.place.maxBytes))) : 0
      if (!this.#read(partition, shareBytes)) return
      this.#nextIndex++
    }
    if (this.#open.size === 0) this.#endRound()
  }

  /** Others have their turn before it goes on. */
  #rest(): void {
    this.#isResting = true
    const { requestTurns, broker } = this.#call.services
    requestTurns.whenNext(() => {
      this.#isResting = false
      this.#sentCount = 0
      this.#readOn()
      broker.turn()
    })
  }

  /** @returns false if there is no room for it: it is tried again then. */
  #read(partition: FetchedPartition, shareBytes: number): boolean {
    const { broker } = this.#call.services
    this.#promisedBytes += shareBytes
    this.#sentCount++
    this.#open.add(partition)
    if (partition.read(broker, this.#call.who, this, shareBytes) !== submitOutcomes.full) return true
    this.#promisedBytes -= shareBytes
    // It stays open meanwhile, so that nobody else ends the round; and whoever settles meanwhile does not send it a second time.
    this.#isResting = true
    broker.whenRoom(() => {
      this.#isResting = false
      this.#open.delete(partition)
      this.#readOn()
    })
    return false
  }

  #endRound(): void {
    this.#isOver ||= this.#call.services.clock.monotonicMs() >= this.#deadlineMs
    const isEnough = this.#isOver || this.#seenBytes() >= this.#minBytes
    if (isEnough && !this.#hasDropped()) return this.#answer()
    this.#leaveTurn()
    if (isEnough) this.#readAll()
    else this.#wait()
  }

  #leaveTurn(): void {
    const end = this.#endTurn
    this.#endTurn = null
    end?.()
  }

  #seenBytes(): number {
    let sum = 0
    for (const { bytes } of this.#session.seen) sum += bytes
    return sum
  }

  #hasDropped(): boolean {
    return [...this.#session.seen].some(({ isDropped }) => isDropped)
  }

  #readAll(): void {
    this.#dropRecords()
    this.#session.readAgain()
    this.#round()
  }

  #dropRecords(): void {
    for (const partition of this.#touched) partition.dropRecords()
    this.#call.replies.release(this.#reservedBytes)
    this.#reservedBytes = 0
  }

  /** Nothing is held while it waits. */
  #wait(): void {
    this.#isReading = false
    this.#dropRecords()
    const { who, services } = this.#call
    const { broker, clock } = services
    this.#timer ??= setTimeout(() => this.hurry(), Math.max(0, this.#deadlineMs - clock.monotonicMs()))
    const { seen, ready } = this.#session
    // If there is to be that much more in all, one of them must have its share of it; or one that is quiet begins.
    const missingBytes = this.#minBytes - this.#seenBytes()
    const moreBytes = Math.max(1, Math.ceil(missingBytes / Math.max(1, seen.size)))
    this.#session.noteDropped()
    for (const partition of seen) partition.watch(broker, who, partition.bytes + moreBytes)
    for (const partition of this.#queue)
      if (!partition.isWatched && !ready.has(partition)) partition.watch(broker, who, 1)
    // What came while others were read.
    if (ready.size > 0) this.#round()
  }

  /** Over the quota of its key, or its turn did not come: nothing is held, and nothing is said of any partition. */
  #answerNothing(): void {
    this.#isDone = true
    if (this.#isWhole) this.#call.services.fetchSessions.close(this.#session)
    this.#finish(new FetchResponses())
  }

  #answer(): void {
    if (this.#isDone) return
    this.#isDone = true
    const { partitions, faulted } = this.#session
    if (this.#call.who.isRevoked) this.#dropRecords()
    const told = this.#isWhole
      ? [...partitions.values()]
      : [...faulted, ...this.#touched].filter(({ isNews }) => isNews)
    if (told.length > PARTITIONS_A_TURN) return this.#onLong(this.#tellInTurns(told))
    const responses = new FetchResponses()
    for (const partition of told) responses.add(partition)
    this.#finish(responses)
  }

  async #tellInTurns(told: readonly FetchedPartition[]): Promise<void> {
    const responses = new FetchResponses()
    for (const [i, partition] of told.entries()) {
      if (i > 0 && i % PARTITIONS_A_TURN === 0) await this.#call.services.requestTurns.next()
      responses.add(partition)
    }
    const answer = this.#end(responses)
    if (answer !== null) await this.#call.answerInTurns(answer.body, answer.enclosed)
  }

  #finish(responses: FetchResponses): void {
    const answer = this.#end(responses)
    if (answer === null) return
    this.#call.answer(answer.body, answer.enclosed)
    if (responses.chunkOf.size > 0) this.#readAhead()
  }

  /** It is over. @returns what its client is told; null: nothing, its key was revoked. */
  #end({ topics: responses, chunkOf }: FetchResponses) {
    const call = this.#call
    const { broker, clock } = call.services
    this.#leaveTurn()
    for (const timer of [this.#timer, this.#lateTimer]) if (timer !== null) clearTimeout(timer)
    const { id: sessionId } = this.#session
    this.#session.endCall(broker, call.who, this.#touched, clock.monotonicMs())
    if (call.who.isRevoked) {
      for (const chunk of chunkOf.values()) call.pool.give(chunk)
      call.replies.release(this.#reservedBytes)
      call.close('keyRevoked')
      return null
    }
    const throttleTimeMs = broker.batches.readAllowance(call.who)?.waitMs ?? 0
    call.mute(throttleTimeMs)
    const enclosed = { reservedBytes: this.#reservedBytes, chunkOf }
    return { body: { throttleTimeMs, sessionId, responses }, enclosed }
  }

  /** While its client works on this. Not for a key with a quota, which reads in its turns. */
  #readAhead(): void {
    const { pool, hidesZstd } = this
    const { who, services, body } = this.#call
    const { broker, settings, aheadRoom: room } = services
    if (broker.batches.readAllowance(who) !== null) return
    this.#session.readAhead({ broker, who, pool, hidesZstd, room }, fetchBytesOf(settings, body.maxBytes))
  }
}
