/**
 * The frame of one connection whose payload is being inflated. Main thread only, one owner: its connection. There is one
 * such frame at a time, and those behind it wait: they keep their order.
 *
 *   offer ──▶ ready                                  small: at once
 *         ──▶ working ──▶ ready                      large: a copy of it goes to the thread pool
 *                    └──▶ lacksMemory ──▶ working    it was more than it said: again, with room for the largest
 *
 * Invariants
 * - What is taken from the request memory follows what a stream says that it holds; what is allocated follows what it
 *   does hold. Memory of the thread pool's work is given back when that ends, also if the connection is gone before.
 * - What an inflated frame holds is charged until `clear` or `drop`.
 * - Of a frame whose key has to be asked about its topic, no more than a prefix is inflated before.
 */
import { assert } from '../../base/assert.ts'
import { denialOf } from '../../model/access.ts'
import { BrokerError } from '../../model/errors.ts'
import { limits } from '../../model/limits.ts'
import type { Principal } from '../../model/principal.ts'
import { FRAME_LENGTH_MIN, opcodes, type FrameHead } from '../../wire/es01/frame.ts'
import { NameReader, readTopic, topicEnds } from '../../wire/es01/names.ts'
import type { ByteShare } from '../shared/byte-share.ts'
import { chunkedBytes, claimedBytes, inflateLater, inflateNow, inflatePrefix, type Inflated } from './gzip.ts'
import type { GzipCounts } from './probe.ts'

/** Where requests are charged: the share of the client's address. */
export type RequestMemory = Pick<ByteShare, 'tryReserve' | 'release' | 'charge' | 'undo'>

/** What the inflaters of a gateway share. */
export interface InflaterHost {
  /** The most that a frame may say, and inflate to. */
  readonly frameLengthMax: number
  readonly counts: GzipCounts
  readonly names: NameReader
}

/** A frame that is with the thread pool, or will be. */
interface Job {
  readonly input: Buffer
  outputBytesMax: number
  chargedBytes: number
  isDropped: boolean
}

const NO_BYTES: Buffer = Buffer.alloc(0)

export class Inflater {
  readonly #host: InflaterHost
  readonly #memory: RequestMemory
  readonly #onDone: () => void
  #state: 'none' | 'working' | 'lacksMemory' | 'ready' = 'none'
  #head: FrameHead = { requestId: 0, opcode: 0 }
  /** The inflated payload, or why there is none; while ready. */
  #payload: Buffer | BrokerError = NO_BYTES
  #chargedBytes = 0
  /** The frame that was offered last, and will be again: its topic was looked at, and room for so much is needed. */
  #wanted: { readonly outputBytesMax: number } | null = null
  #job: Job | null = null

  /** @param onDone called when `state` may have changed, outside of any call. */
  constructor(host: InflaterHost, memory: RequestMemory, onDone: () => void) {
    this.#host = host
    this.#memory = memory
    this.#onDone = onDone
  }

  /** none: there is no frame. ready: `head` and `payload` are there. */
  get state(): 'none' | 'working' | 'lacksMemory' | 'ready' {
    return this.#state
  }

  get head(): FrameHead {
    return this.#head
  }

  get payload(): Buffer | BrokerError {
    return this.#payload
  }

  get #outputBytesMax(): number {
    return this.#host.frameLengthMax - FRAME_LENGTH_MIN
  }

  /**
   * Takes the frame whose payload is bytes[start, end), borrowed until return.
   * @param ownBytes what this connection itself holds of the memory: that does not stand in its way.
   * @returns false if there is no memory for it: offer it again when some was released.
   */
  offer(who: Principal, head: FrameHead, bytes: Buffer, range: readonly [number, number], ownBytes: number): boolean {
    assert(this.#state === 'none', 'one frame is inflated at a time')
    const [start, end] = range
    this.#head = head
    // Of the others nothing is read, and a key that is revoked is told so whatever it sent.
    const isRead = head.opcode === opcodes.produce || head.opcode === opcodes.consume
    if (!isRead || who.isRevoked) return this.#finish(NO_BYTES)
    if (this.#wanted === null) {
      const verdict = this.#look(who, bytes, start, end)
      if (typeof verdict !== 'number') return this.#finish(verdict)
      this.#wanted = { outputBytesMax: verdict }
    }
    const { outputBytesMax } = this.#wanted
    const job = { input: bytes.subarray(start, end), outputBytesMax, chargedBytes: 0, isDropped: false }
    if (!this.#tryReserve(job, ownBytes)) return false
    this.#wanted = null
    this.#start({ ...job, input: Buffer.from(job.input) })
    return true
  }

  /** Goes on with a frame that lacks memory, if there is some. */
  tryAgain(ownBytes: number): void {
    const job = this.#job
    assert(this.#state === 'lacksMemory' && job !== null, 'there is a frame that lacks memory')
    if (this.#tryReserve(job, ownBytes)) this.#start(job)
  }

  /** The frame that is ready cannot be taken yet: it stays, and counts. */
  keep(): void {
    if (this.#chargedBytes > 0 || this.#payload instanceof BrokerError || this.#payload.length === 0) return
    this.#chargedBytes = this.#payload.length
    this.#memory.charge(this.#chargedBytes)
  }

  /** The frame was taken, or answered. */
  clear(): void {
    this.#state = 'none'
    this.#payload = NO_BYTES
    const charged = this.#chargedBytes
    this.#chargedBytes = 0
    if (charged > 0) this.#memory.release(charged)
  }

  /** The connection takes nothing more. */
  drop(): void {
    const job = this.#job
    this.#job = null
    this.#wanted = null
    if (job !== null) {
      job.isDropped = true
      if (this.#state === 'lacksMemory') this.#memory.release(job.chargedBytes)
    }
    this.clear()
  }

  /** @returns the payload, why there will be none, or the bound of what is to be inflated elsewhere. */
  #look(who: Principal, bytes: Buffer, start: number, end: number): Buffer | BrokerError | number {
    const claim = claimedBytes(bytes, start, end)
    const isSmall = end - start <= limits.gzipAtOnceBytesMax && claim <= limits.gzipInflatedAtOnceBytesMax
    // The whole of such a frame is no more than the prefix that would be looked at.
    const isPrefix = isSmall && end - start <= limits.gzipPrefixBytes
    if (!who.isAdmin && !isPrefix) {
      const refusal = this.#refusalOf(who, bytes, start, end)
      if (refusal !== null) return refusal
    }
    if (!isSmall) return Math.min(claim, this.#outputBytesMax)
    const inflated = inflateNow(bytes, start, end, Math.min(limits.gzipInflatedAtOnceBytesMax, this.#outputBytesMax))
    this.#count(end - start, inflated, limits.gzipInflatedAtOnceBytesMax)
    if (inflated !== 'tooLarge') return inflated
    if (!who.isAdmin && isPrefix) return this.#refusalOf(who, bytes, start, end) ?? this.#outputBytesMax
    return this.#outputBytesMax
  }

  /** Looks at the topic alone. @returns why this frame is refused for it, or null. */
  #refusalOf(who: Principal, bytes: Buffer, start: number, end: number): BrokerError | null {
    for (let prefixBytes: number = limits.gzipPrefixBytes; ; prefixBytes *= 2) {
      const prefixEnd = Math.min(end, start + prefixBytes)
      const plain = inflatePrefix(bytes, start, prefixEnd)
      this.#count(prefixEnd - start, plain, 0)
      assert(plain !== 'tooLarge', 'a prefix is inflated without a bound')
      if (plain instanceof BrokerError) return plain
      const topic = readTopic(plain, 0, plain.length, this.#host.names)
      if (topic !== null) return denialOf(who, this.#head.opcode === opcodes.produce ? 'produce' : 'consume', topic)
      if (topicEnds(plain)) return new BrokerError('FRAME_INVALID', { problem: 'topic is not UTF-8' })
      if (prefixEnd === end) return new BrokerError('FRAME_INVALID', { problem: 'the payload ends inside topic' })
      if (prefixBytes >= limits.gzipPrefixBytesMax) {
        const problem = `its first ${limits.gzipPrefixBytesMax} bytes do not tell the topic`
        return new BrokerError('GZIP_INVALID', { problem })
      }
    }
  }

  /** The copy of what came, and the output twice: in pieces as it is made, and then as a whole. */
  #tryReserve(job: Job, ownBytes: number): boolean {
    const heldBytes = ownBytes + job.chargedBytes
    const neededBytes = job.input.length + 2 * chunkedBytes(job.outputBytesMax)
    this.#memory.undo(heldBytes)
    const isReserved = this.#memory.tryReserve(ownBytes + neededBytes)
    if (isReserved) job.chargedBytes = neededBytes
    else this.#memory.charge(heldBytes)
    return isReserved
  }

  #start(job: Job): void {
    this.#state = 'working'
    this.#job = job
    const outputBytesMax = Math.min(chunkedBytes(job.outputBytesMax), this.#outputBytesMax)
    inflateLater(job.input, outputBytesMax, inflated => this.#ended(job, outputBytesMax, inflated))
  }

  #ended(job: Job, outputBytesMax: number, inflated: Inflated): void {
    this.#count(job.input.length, inflated, outputBytesMax)
    const isToldLess = inflated === 'tooLarge' && outputBytesMax < this.#outputBytesMax
    let keptBytes = 0
    if (!job.isDropped && isToldLess) keptBytes = job.input.length
    if (!job.isDropped && Buffer.isBuffer(inflated)) keptBytes = chunkedBytes(inflated.length)
    const releasedBytes = job.chargedBytes - keptBytes
    job.chargedBytes = keptBytes
    this.#memory.release(releasedBytes)
    if (job.isDropped) return
    if (isToldLess) {
      job.outputBytesMax = this.#outputBytesMax
      this.#state = 'lacksMemory'
    } else {
      this.#job = null
      this.#chargedBytes = keptBytes
      this.#finish(inflated)
    }
    this.#onDone()
  }

  #finish(inflated: Inflated): true {
    this.#state = 'ready'
    this.#wanted = null
    this.#payload =
      inflated === 'tooLarge' ? new BrokerError('INFLATED_TOO_LARGE', { limit: this.#outputBytesMax }) : inflated
    return true
  }

  #count(compressedBytes: number, inflated: Inflated, outputBytesMax: number): void {
    const { counts } = this.#host
    counts.inCompressedBytes += compressedBytes
    if (inflated === 'tooLarge') counts.inPlainBytes += outputBytesMax
    else if (!(inflated instanceof BrokerError)) counts.inPlainBytes += inflated.length
  }
}
