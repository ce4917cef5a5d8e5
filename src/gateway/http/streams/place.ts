/**
 * A place in a partition where followers wait: they share a watch, a read and its text. Main thread; owned by the hub.
 *
 *   watching ──available──▶ gathering ──microtask──▶ reading ──answer──▶ each follower gets its text, and goes on
 *      └── nobody follows it any more: the watches end
 *
 * Whoever comes while it reads has a place of its own. One watch for each caller, since a key that is revoked must hear
 * at once; the broker makes one of them all. The bytes of the answer are reserved from before the read until all have
 * their text; what a socket then keeps is charged by its stream.
 * It must never call a stream that is closed, and no failure of one stream may keep the text from the others.
 */
import { assert } from '../../../base/assert.ts'
import { BrokerError, toBrokerError } from '../../../model/errors.ts'
import type { Principal } from '../../../model/principal.ts'
import { submitOutcomes } from '../../../model/requests.ts'
import type { Broker, ReadCaller, ReadRequest, Watch, WatchCaller } from '../../../model/requests.ts'
import { writeEvents } from '../../../wire/json/event-text.ts'
import { FramesGather, RecordFrames } from '../../../wire/json/record-frames.ts'
import type { HttpProbe } from '../probe.ts'
import type { ReadAttempt, ReadLine, ReadWaiter } from '../reads/read-line.ts'
import type { ReplyHolding, ReplyMemory, ReplyParty } from '../reads/reply-memory.ts'
import type { Follower, Lender, ReadOutcome } from './follower.ts'

/** Followers that get their text before others get their turn: some milliseconds. */
const DELIVERED_AT_ONCE = 1_000
/** The same in bytes of text: a socket that tells only on a later turn that it took all counts as one that did not till then. */
const DELIVERED_BYTES_AT_ONCE = 4 * 1024 * 1024

/** What of the gateway's services streams use. */
export interface StreamServices {
  readonly broker: Broker
  readonly replyMemory: ReplyMemory
  readonly readLine: ReadLine
  readonly probe: HttpProbe
  readonly scheduleTurn: () => void
}

/** What the hub is to a place. */
export interface PlaceHost extends Lender {
  readonly services: StreamServices
  /** Nobody may come to it any more. */
  forgetPlace(place: Place): void
  /** Has the follower wait anew, after a while. */
  retryLater(follower: Follower, afterMs: number): void
  readonly retryMs: number
}

/** One caller's watch of a place. */
class PlaceWatch implements WatchCaller {
  followers = 0
  watch: Watch | null = null
  readonly who: Principal
  readonly #place: Place

  constructor(place: Place, who: Principal) {
    this.#place = place
    this.who = who
  }

  onAvailable(): void {
    this.#place.gather()
  }

  onWatchFailed(error: BrokerError): void {
    this.#place.failWatch(this, error)
  }
}

const frames = new RecordFrames()

export class Place implements ReadCaller, ReadWaiter, Lender {
  readonly key: string
  readonly lane: string
  readonly #host: PlaceHost
  readonly #read: ReadRequest
  readonly #watches = new Map<Principal, PlaceWatch>()
  #followers = new Set<Follower>()
  #isGathering = false
  /** For the answer, of the party of the stream that came first. null: none yet, or a stream has it now. */
  #holding: ReplyHolding | null = null
  #partyOfRead: ReplyParty | null = null
  readonly #gather = new FramesGather()

  constructor(host: PlaceHost, key: string, read: ReadRequest) {
    this.#host = host
    this.key = key
    this.#read = read
    this.lane = `${read.topic}/${read.partition}`
  }

  /** @param isAvailable there is something to read: no need to watch. */
  add(follower: Follower, isAvailable: boolean): void {
    this.#followers.add(follower)
    if (isAvailable) this.gather()
    if (this.#isGathering) return
    const { who } = follower.stream
    let watch = this.#watches.get(who)
    if (watch === undefined) {
      watch = new PlaceWatch(this, who)
      this.#watches.set(who, watch)
      watch.watch = this.#host.services.broker.submitWatch(who, { ...this.#read, minBytes: 1 }, watch)
    }
    watch.followers++
  }

  /** It was waiting here. */
  remove(follower: Follower): void {
    if (!this.#followers.delete(follower) || this.#isGathering) return
    const watch = this.#watches.get(follower.stream.who)
    if (watch !== undefined && --watch.followers === 0) {
      watch.watch?.cancel()
      this.#watches.delete(watch.who)
    }
    if (this.#followers.size === 0) this.#host.forgetPlace(this)
  }

  /** There is something to read: whoever comes in the same turn shares the read. */
  gather(): void {
    if (this.#isGathering) return
    this.#isGathering = true
    this.#cancelWatches()
    queueMicrotask(() => {
      try {
        this.#begin()
      } catch (error) {
        this.onReadFailed(toBrokerError(error))
      }
    })
  }

  #cancelWatches(): void {
    for (const { watch } of this.#watches.values()) watch?.cancel()
    this.#watches.clear()
  }

  failWatch(failed: PlaceWatch, error: BrokerError): void {
    if (this.#watches.get(failed.who) !== failed) return
    this.#watches.delete(failed.who)
    const concerned = [...this.#followers].filter(({ stream }) => stream.who === failed.who)
    for (const follower of concerned) this.#followers.delete(follower)
    if (this.#followers.size === 0) this.#host.forgetPlace(this)
    for (const follower of concerned) {
      if (isPassing(error)) this.#host.retryLater(follower, this.#host.retryMs)
      else follower.stream.end(error)
    }
  }

  /** Who may read now takes part. */
  #begin(): void {
    this.#host.forgetPlace(this)
    const { broker } = this.#host.services
    const refusals = new Map<Principal, BrokerError | null>()
    for (const follower of this.#followers) {
      const { stream } = follower
      let refusal = refusals.get(stream.who)
      if (refusal === undefined) {
        refusal = broker.refusalOfRead(stream.who, this.#read)
        refusals.set(stream.who, refusal)
      }
      if (refusal === null && stream.claim(follower)) continue
      this.#followers.delete(follower)
      if (refusal === null) continue
      if (isPassing(refusal)) this.#postpone(follower, refusal)
      else stream.end(refusal)
    }
    const [first] = this.#followers
    if (first === undefined) return
    const { replyMemory, readLine } = this.#host.services
    this.#holding = replyMemory.open(first.stream.party)
    this.#partyOfRead = this.#holding.party
    readLine.enter(this)
  }

  get party(): ReplyParty {
    assert(this.#partyOfRead !== null, 'a place stands in line only with a holding')
    return this.#partyOfRead
  }

  attempt(): ReadAttempt {
    for (const follower of this.#followers) if (isOver(follower)) this.#drop(follower)
    const holding = this.#holding
    if (holding === null || this.#followers.size === 0) {
      this.#giveBack()
      return 'taken'
    }
    const reservation = holding.reserve(this.#read.maxBytes)
    if (reservation !== 'held') return reservation
    try {
      if (this.#submit(Math.min(this.#read.maxBytes, holding.readBytesMax))) return 'taken'
      holding.undo()
      return 'rings-full'
    } catch (error) {
      this.onReadFailed(toBrokerError(error))
      return 'taken'
    }
  }

  /** @returns false if the ring is full. */
  #submit(maxBytes: number): boolean {
    const { broker, scheduleTurn } = this.#host.services
    const readers = Array.from(this.#followers, ({ stream }) => stream.who)
    if (broker.submitSharedRead(readers, { ...this.#read, maxBytes }, this) === submitOutcomes.full) return false
    scheduleTurn()
    return true
  }

  onReadChunk(bytes: Buffer, start: number, end: number, totalBytes: number, isLast: boolean): void {
    try {
      this.#holding?.settle(totalBytes)
      const answer = this.#gather.add(bytes, start, end, totalBytes)
      // Borrowed until return, and the last of many followers get theirs later.
      if (answer !== null) this.#deliver(Buffer.from(answer))
    } catch (error) {
      if (isLast) this.onReadFailed(toBrokerError(error))
      else throw error
    }
  }

  onReadFailed(error: BrokerError): void {
    this.#gather.clear()
    this.#giveBack()
    for (const follower of this.#followers) {
      this.#followers.delete(follower)
      if (isPassing(error)) this.#postpone(follower, error)
      else if (!isOver(follower)) follower.stream.end(error)
    }
  }

  #deliver(answer: Buffer): void {
    frames.open(answer)
    const { nextOffset: next, count, highWatermark } = frames
    const events = count + (frames.skipped === null ? 0 : 1)
    const hasMoved = next !== this.#offset || count > 0
    const outcome: ReadOutcome = next >= BigInt(highWatermark) ? 'waits' : hasMoved ? 'more' : 'failed'
    const texts = new Map<string, Buffer>()
    const delivery: Delivery = { answer, texts, events, next, outcome, bytes: 0 }
    let delivered = 0
    for (const follower of this.#followers) {
      if (delivered++ === DELIVERED_AT_ONCE || delivery.bytes >= DELIVERED_BYTES_AT_ONCE) {
        setImmediate(() => this.#deliver(answer))
        return
      }
      this.#followers.delete(follower)
      this.#deliverTo(follower, delivery)
    }
    this.#giveBack()
  }

  #deliverTo(follower: Follower, delivery: Delivery): void {
    const { stream } = follower
    if (isOver(follower)) return this.#drop(follower)
    try {
      if (stream.who.isRevoked) throw new BrokerError('KEY_REVOKED')
      if (delivery.events > 0) {
        const text = textFor(follower, delivery)
        delivery.bytes += text.length
        stream.send(text, delivery.events, this)
      }
      follower.position = delivery.next
      follower.isFromStart = false
      this.#release(follower, delivery.outcome)
    } catch (error) {
      stream.end(toBrokerError(error))
    }
  }

  get #offset(): bigint {
    return (BigInt(this.#read.offsetHigh) << 32n) | BigInt(this.#read.offsetLow)
  }

  #release(follower: Follower, outcome: ReadOutcome): void {
    if (outcome === 'failed') this.#host.retryLater(follower, this.#host.retryMs)
    follower.stream.release(follower, outcome)
  }

  #postpone(follower: Follower, error: BrokerError): void {
    if (!isOver(follower)) this.#host.retryLater(follower, waitMsOf(error, this.#host.retryMs))
    follower.stream.release(follower, 'failed')
  }

  /** Nobody waits for it any more. */
  #drop(follower: Follower): void {
    this.#followers.delete(follower)
    follower.stream.release(follower, 'failed')
  }

  /** What is held for the answer serves the first socket of that party that keeps some of it; others need room of their own. */
  lend(party: string, bytes: number): ReplyHolding | null {
    const holding = this.#holding
    if (holding === null || holding.party.name !== party) return this.#host.lend(party, bytes)
    this.#holding = null
    holding.keep(bytes)
    return holding
  }

  #giveBack(): void {
    this.#holding?.close()
    this.#holding = null
  }
}

/** An answer on its way to its followers. */
interface Delivery {
  readonly answer: Buffer
  readonly texts: Map<string, Buffer>
  readonly events: number
  readonly next: bigint
  readonly outcome: ReadOutcome
  /** Sent so far. */
  bytes: number
}

/** Made once for all that get the same. */
function textFor(follower: Follower, { answer, texts }: Delivery): Buffer {
  const { key, shape } = follower.stream.shapeOf(follower)
  let text = texts.get(key)
  if (text === undefined) {
    text = writeEvents(answer, shape)
    texts.set(key, text)
  }
  return text
}

function isOver({ isGone, stream }: Follower): boolean {
  return isGone || stream.isClosed
}

/** What a stream waits out; all else ends it. */
function isPassing({ code, spec }: BrokerError): boolean {
  return spec.retry === 'same' && code !== 'STOPPING'
}

/** Of a quota: what it says. */
function waitMsOf({ code, details }: BrokerError, otherwiseMs: number): number {
  return code === 'RATE_LIMITED' ? Number(details['seconds']) * 1000 : otherwiseMs
}
