/**
 * The frame of one connection whose payload is being inflated. Main thread only, one owner: its connection. There is one
 * such frame at a time, and those behind it wait: they keep their order.
 *
 *   offer ──▶ ready                                  small: at once
 *         ──▶ waiting ──▶ working ──▶ ready          large: for room, and then on the thread pool
 *                ▲            └──▶ none ──┐          it was more than it said: offered again, it asks for room for the largest
 *                └────────────────────────┘
 *
 * Invariants
 * - What is taken of the room for inflating follows what a stream says that it holds; a stream that holds more is stopped.
 *   Room of the thread pool's work is given back when that ends, also if the connection is gone before.
 * - A frame is in front of what its connection received until it is ready: the thread pool reads it there.
 * - What an inflated frame holds is counted until `clear` or `drop`.
 * - Of a frame whose key has to be asked about its topic, no more than a prefix is inflated before.
 */
import { assert } from '../../base/assert.ts'
import { denialOf } from '../../model/access.ts'
import { BrokerError } from '../../model/errors.ts'
import { limits } from '../../model/limits.ts'
import type { Principal } from '../../model/principal.ts'
import { FRAME_LENGTH_MIN, opcodes, type FrameHead } from '../../wire/es01/frame.ts'
import { hasWholeTopic, NameReader, readTopic } from '../../wire/es01/names.ts'
import type { AddressMemory } from '../shared/frame-memory.ts'
import type { ReceiveBuffer } from '../shared/receive-buffer.ts'
import { claimedBytes, inflateLater, inflateNow, inflatePrefix, inflatingBytes, type Inflated } from './gzip.ts'
import type { Place, TurnRoom } from '../shared/turn-room.ts'
import type { GzipCounts } from './probe.ts'

/** What the inflaters of a gateway share. */
export interface InflaterHost {
  /** The most that a frame may say, and inflate to. */
  readonly frameLengthMax: number
  readonly counts: GzipCounts
  readonly names: NameReader
  /** It stands beside the request memory: a frame that came whole waits only for frames that are being inflated. */
  readonly room: TurnRoom
}

/** What an inflater has of its connection. */
export interface InflaterConnection {
  readonly remoteAddress: string
  /** Where the frames lie that are offered. */
  readonly receive: Pick<ReceiveBuffer, 'ownBytes' | 'lend' | 'endLoan'>
  /** Where it counts what was inflated at once and cannot be taken. */
  readonly memory: Pick<AddressMemory, 'charge' | 'release'>
  /** Called outside of any call: the frame in front is ready, and taken; or it is to be offered again. */
  readonly onChange: (isReady: boolean) => void
}

type State = 'none' | 'waiting' | 'working' | 'ready'

/** A frame that is with the thread pool. */
interface Job {
  readonly compressedBytes: number
  readonly outputBytesMax: number
  readonly place: Place
  isDropped: boolean
}

const NO_BYTES: Buffer = Buffer.alloc(0)

export class Inflater {
  readonly #host: InflaterHost
  readonly #connection: InflaterConnection
  #state: State = 'none'
  #head: FrameHead = { requestId: 0, opcode: 0 }
  /** The inflated payload, or why there is none; while ready. */
  #payload: Buffer | BrokerError = NO_BYTES
  #chargedBytes = 0
  /** Of the frame that was offered last, and will be again: its topic was looked at, and it may inflate to so much. */
  #wantedBytesMax: number | null = null
  /** Its place in the room, or that of what is ready. While working, the job has it. */
  #place: Place | null = null
  #job: Job | null = null

  constructor(host: InflaterHost, connection: InflaterConnection) {
    this.#host = host
    this.#connection = connection
  }

  /** none: there is no frame. ready: `head` and `payload` are there. */
  get state(): State {
    return this.#state
  }

  /** Is there a frame that need not be offered any more? */
  get hasTaken(): boolean {
    return this.#state === 'working' || this.#state === 'ready'
  }

  get head(): FrameHead {
    return this.#head
  }

  get payload(): Buffer | BrokerError {
    return this.#payload
  }

  /** Does it hold room while others wait for some? */
  get isInTheWay(): boolean {
    return this.#place?.isGranted === true && this.#host.room.isShort
  }

  get #outputBytesMax(): number {
    return this.#host.frameLengthMax - FRAME_LENGTH_MIN
  }

  /**
   * Takes the frame in front, whose payload is bytes[start, end). While it waits, offer it again after `onChange`.
   * @param bytes those of the connection's receive buffer.
   */
  offer(who: Principal, head: FrameHead, bytes: Buffer, start: number, end: number): void {
    assert(this.#state === 'none' || this.#state === 'waiting', 'one frame is inflated at a time')
    this.#head = head
    // Of the others nothing is read, and a key that is revoked is told so whatever it sent.
    const isRead = head.opcode === opcodes.produce || head.opcode === opcodes.consume
    if (!isRead || who.isRevoked) {
      this.#leaveRoom()
      return this.#finish(NO_BYTES)
    }
    if (this.#wantedBytesMax === null) {
      const verdict = this.#look(who, bytes, start, end)
      if (typeof verdict !== 'number') return this.#finish(verdict)
      this.#wantedBytesMax = verdict
    }
    this.#place ??= this.#ask(this.#wantedBytesMax, end - start)
    if (this.#place.isGranted) this.#start(start, end, this.#wantedBytesMax, this.#place)
    else this.#state = 'waiting'
  }

  /** The frame that is ready cannot be taken yet: it stays, and counts. */
  keep(): void {
    const isCounted = this.#chargedBytes > 0 || this.#place !== null
    if (isCounted || this.#payload instanceof BrokerError || this.#payload.length === 0) return
    this.#chargedBytes = this.#payload.length
    this.#connection.memory.charge(this.#chargedBytes)
  }

  /** The frame was taken, or answered. */
  clear(): void {
    this.#state = 'none'
    this.#payload = NO_BYTES
    this.#leaveRoom()
    const charged = this.#chargedBytes
    this.#chargedBytes = 0
    if (charged > 0) this.#connection.memory.release(charged)
  }

  /** The connection takes nothing more. */
  drop(): void {
    const job = this.#job
    this.#job = null
    this.#wantedBytesMax = null
    if (job !== null) job.isDropped = true
    this.clear()
  }

  /** @returns the payload, why there will be none, or the bound of what is to be inflated elsewhere. */
  #look(who: Principal, bytes: Buffer, start: number, end: number): Buffer | BrokerError | number {
    const claim = claimedBytes(bytes, start, end)
    const isSmall = end - start <= limits.inflateAtOnceBytesMax && claim <= limits.inflatedAtOnceBytesMax
    // The whole of such a frame is no more than the prefix that would be looked at.
    const isPrefix = isSmall && end - start <= limits.gzipPrefixBytes
    if (!who.isAdmin && !isPrefix) {
      const refusal = this.#refusalOf(who, bytes, start, end)
      if (refusal !== null) return refusal
    }
    // One that says it holds less is given as much as would be inflated at once.
    if (!isSmall) return Math.min(Math.max(claim, limits.inflatedAtOnceBytesMax), this.#outputBytesMax)
    const inflated = inflateNow(bytes, start, end, Math.min(limits.inflatedAtOnceBytesMax, this.#outputBytesMax))
    this.#count(end - start, inflated, limits.inflatedAtOnceBytesMax)
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
      assert(plain !== 'tooLarge', 'deflate makes no more of a prefix')
      if (plain instanceof BrokerError) return plain
      const topic = readTopic(plain, 0, plain.length, this.#host.names)
      if (topic !== null) return denialOf(who, this.#head.opcode === opcodes.produce ? 'produce' : 'consume', topic)
      if (hasWholeTopic(plain)) return new BrokerError('FRAME_INVALID', { problem: 'topic is not UTF-8' })
      if (prefixEnd === end) return new BrokerError('FRAME_INVALID', { problem: 'the payload ends inside topic' })
      if (prefixBytes >= limits.gzipPrefixBytesMax) {
        const problem = `its first ${limits.gzipPrefixBytesMax} bytes do not tell the topic`
        return new BrokerError('GZIP_INVALID', { problem })
      }
    }
  }

  #ask(outputBytesMax: number, compressedBytes: number): Place {
    const { receive, remoteAddress, onChange } = this.#connection
    // What lies in memory of others is lent as a copy.
    const copiedBytes = receive.ownBytes === 0 ? compressedBytes : 0
    return this.#host.room.ask(remoteAddress, inflatingBytes(outputBytesMax) + copiedBytes, () => onChange(false))
  }

  #leaveRoom(): void {
    const place = this.#place
    this.#place = null
    if (place !== null) this.#host.room.leave(place)
  }

  #start(start: number, end: number, outputBytesMax: number, place: Place): void {
    const job: Job = { compressedBytes: end - start, outputBytesMax, place, isDropped: false }
    this.#state = 'working'
    this.#job = job
    this.#wantedBytesMax = null
    this.#place = null
    inflateLater(this.#connection.receive.lend(start, end), outputBytesMax, inflated => this.#ended(job, inflated))
  }

  #ended(job: Job, inflated: Inflated): void {
    const { outputBytesMax, place, isDropped } = job
    this.#count(job.compressedBytes, inflated, outputBytesMax)
    this.#connection.receive.endLoan()
    if (isDropped || !Buffer.isBuffer(inflated)) {
      this.#host.room.leave(place)
    } else {
      this.#place = place
      // All of the memory that it lies in, also where it is less than it said.
      this.#host.room.keep(place, Math.min(place.bytes, inflated.buffer.byteLength))
    }
    if (isDropped) return
    this.#job = null
    if (inflated === 'tooLarge' && outputBytesMax < this.#outputBytesMax) {
      this.#state = 'none'
      this.#wantedBytesMax = this.#outputBytesMax
    } else {
      this.#finish(inflated)
    }
    this.#connection.onChange(this.#state === 'ready')
  }

  #finish(inflated: Inflated): void {
    this.#state = 'ready'
    this.#wantedBytesMax = null
    this.#payload =
      inflated === 'tooLarge' ? new BrokerError('INFLATED_TOO_LARGE', { limit: this.#outputBytesMax }) : inflated
  }

  #count(compressedBytes: number, inflated: Inflated, outputBytesMax: number): void {
    const { counts } = this.#host
    counts.inCompressedBytes += compressedBytes
    if (inflated === 'tooLarge') counts.inPlainBytes += outputBytesMax
    else if (!(inflated instanceof BrokerError)) counts.inPlainBytes += inflated.length
  }
}
