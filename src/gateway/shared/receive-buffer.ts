/**
 * The bytes of one connection that no frame has taken yet. Main thread only, one owner: its connection.
 *
 * A connection with nothing half-read owns no memory: all sockets then read into one shared landing area, and frames
 * that arrive whole are used where they lie. What is left of a frame that arrived in part moves to a buffer of the
 * connection's own, and from then on the socket reads into the tail of that, until it is empty again.
 *
 *   landing (shared):  [lead-in][ whole frame ][ whole frame ][ part ]          part moves once
 *   own:               [lead-in][ used │ pending ····· end │ room for the next read ]
 *                                      start               end
 *
 * Invariants
 * - An own buffer has the pool size above four times the pending bytes that have arrived, or above the last frame that
 *   this connection sent whole, at most; an announced length alone allocates nothing.
 * - Of a frame that needs more, no more than OWN_BYTES_FREE is read before memory for all of it was set aside. So it waits there or
 *   not at all, and frames in part never wait for each other.
 * - The kernel writes only where `nextTail` pointed last. An own buffer moves or goes back to the pool only while the
 *   socket does not point into it: during a read callback, or while the connection is paused.
 * - What is lent to the thread pool neither moves nor goes back to the pool before the loan ends, also if the connection is gone.
 * - Bytes of an own buffer above OWN_BYTES_FREE are part of what is set aside for the frame in front, or were to spare; but for the
 *   rest of a read that lies in one while its connection does not read.
 * - Frames never begin at byte 0, so a copy out of them is always of a strict sub-range (base/copy.ts).
 */
import { assert } from '../../base/assert.ts'
import type { BufferPool } from './buffer-pool.ts'
import { bufferSizes, poolSizeOf } from './buffer-pool.ts'
import type { AddressMemory } from './frame-memory.ts'
import type { Place } from './turn-room.ts'

/** Bytes before the first frame of a buffer. */
const LEAD_IN_BYTES = 8
/** What a connection may hold outside the request memory: the rest of one read, which has arrived and must lie somewhere. */
const OWN_BYTES_FREE = bufferSizes.read
/** What of it is not the lead-in. */
const FREE_CONTENT_BYTES = OWN_BYTES_FREE - LEAD_IN_BYTES
/** Bytes that the first read after a pause may bring: they may have to be moved behind the pending ones. */
const RESUME_BYTES = 8 * 1024
/** Growth per step, in multiples of what has arrived. */
const GROWTH = 4
/**
 * After a frame of this size the next one is expected to be large too. It is read in two steps, its head into the
 * landing area and the rest, exactly, to where it stays: one more read call, and no bytes that have to be moved.
 */
const LARGE_FRAME_BYTES = 32 * 1024
/** The head of such a frame: enough to know its length. */
const HEAD_BYTES = 16
const NO_BYTES: Buffer = Buffer.alloc(0)

/** What the receive buffers of a gateway share. `movedBytes` counts what was copied between them. */
export interface ReceiveShared {
  readonly pool: BufferPool
  readonly landing: Buffer
  movedBytes: number
}

/** Where the bytes of own buffers are counted. */
export type ReceiveMemory = Pick<AddressMemory, 'trySpare' | 'release' | 'ask' | 'leave'>

/** What was dropped while it was lent. */
interface LentAway {
  readonly buffer: Buffer
  readonly sparedBytes: number
  readonly place: Place | null
}

/** @returns the shared part for a gateway: its landing area is as large as one read. */
export function createReceiveShared(pool: BufferPool): ReceiveShared {
  return { pool, landing: Buffer.allocUnsafeSlow(bufferSizes.read), movedBytes: 0 }
}

export class ReceiveBuffer {
  /** Where the pending bytes lie: bytes[start, end). `start` is moved by the parser alone. */
  bytes: Buffer = NO_BYTES
  start = 0
  end = 0
  /** Length of the unit that begins at `start` (a frame, a hello), as far as it is known. Set by the parser. */
  expectedBytes = 0
  /** Length of the last frame taken: a connection that has shown one gets room for another at once. */
  #shownBytes = 0
  readonly #shared: ReceiveShared
  readonly #memory: ReceiveMemory
  readonly #onRoom: () => void
  #own: Buffer | null = null
  #sparedBytes = 0
  /** Of the frame in front: memory for all of it, or its turn to get that. */
  #place: Place | null = null
  /** The frame that the place is for was taken. */
  #isPlaceOver = false
  #tailIsOwn = false
  #isLent = false
  #lentAway: LentAway | null = null
  readonly #landingTail: Buffer
  readonly #resumeTail: Buffer
  readonly #headTail: Buffer

  /** @param memory of the client's address. @param onRoom called when `tryRoom` may succeed that did not. It must not come back here. */
  constructor(shared: ReceiveShared, memory: ReceiveMemory, onRoom: () => void) {
    this.#shared = shared
    this.#memory = memory
    this.#onRoom = onRoom
    this.#landingTail = shared.landing.subarray(LEAD_IN_BYTES)
    this.#resumeTail = shared.landing.subarray(LEAD_IN_BYTES, LEAD_IN_BYTES + RESUME_BYTES)
    this.#headTail = shared.landing.subarray(LEAD_IN_BYTES, LEAD_IN_BYTES + HEAD_BYTES)
  }

  get pendingBytes(): number {
    return this.end - this.start
  }

  /** Bytes held outside the shared landing area. */
  get ownBytes(): number {
    return this.#own?.length ?? 0
  }

  /** Request memory that is set aside for this connection. */
  get heldBytes(): number {
    return this.#sparedBytes + this.#grantedBytes
  }

  get #grantedBytes(): number {
    return this.#place?.isGranted === true ? this.#place.bytes : 0
  }

  /** Where the socket puts its next read. @param isPaused no read follows until the connection resumes. */
  nextTail(isPaused: boolean): Uint8Array {
    this.#tailIsOwn = !isPaused && this.#own !== null
    const isLarge = this.#shownBytes >= LARGE_FRAME_BYTES
    if (isPaused) return this.#resumeTail
    if (this.#own === null) return isLarge ? this.#headTail : this.#landingTail
    assert(this.end < this.#own.length, 'a reading connection has room for its next read')
    const frameEnd = this.start + this.expectedBytes
    // What is set aside is for one frame: no more is read into it.
    const isExact = (isLarge || this.#place !== null) && frameEnd > this.end
    const readEnd = isExact ? Math.min(frameEnd, this.#own.length) : this.#own.length
    return this.#own.subarray(this.end, readEnd)
  }

  /** The socket has put that many bytes where nextTail pointed. */
  landed(bytes: number): void {
    if (this.#tailIsOwn) this.end += bytes
    else this.arrived(this.#shared.landing, LEAD_IN_BYTES, LEAD_IN_BYTES + bytes)
  }

  /** Bytes arrived in memory that is only lent until `settle`: the landing area, or a chunk of a stream. */
  arrived(chunk: Buffer, start: number, end: number): void {
    if (this.#own === null) {
      assert(this.pendingBytes === 0, 'lent bytes were settled before the next ones arrive')
      this.bytes = chunk
      this.start = start
      this.end = end
      return
    }
    if (this.end + (end - start) > this.#own.length) this.#move(this.pendingBytes + end - start)
    this.#shared.movedBytes += end - start
    this.end += chunk.copy(this.bytes, this.end, start, end)
  }

  /** The frame in front, which is whole, is taken. */
  taken(): void {
    this.start += this.expectedBytes
    this.#shownBytes = this.expectedBytes
    this.#isPlaceOver = true
  }

  /** Keeps what is pending in memory of the connection's own; gives that memory back when nothing is. */
  settle(): void {
    if (this.start === this.end) return this.discard()
    // What is lent stays where it is, and so does what was set aside for it.
    if (this.#isPlaceOver && !this.#isLent) this.#endPlace()
    if (this.#own !== null) return
    const mayReach = this.#tryPlace(this.#shownBytes)
    const reach = Math.min(this.expectedBytes, this.#reachOf(this.pendingBytes))
    if (!mayReach || !this.#tryMove(Math.max(this.pendingBytes, reach))) this.#move(this.pendingBytes)
  }

  /**
   * Makes sure that there is room for the next read. To be called after `settle`, before the socket reads on.
   * @param isPaused is the socket paused? Its first read then lands elsewhere and is moved.
   * @returns false if memory for the whole frame has to be waited for: the connection must not read before `onRoom`.
   */
  tryRoom(isPaused: boolean): boolean {
    if (this.#own === null) return true
    const leastBytes = isPaused ? RESUME_BYTES : 1
    const mayRead = this.#tryPlace(leastBytes)
    if (!mayRead || !this.#tryCover(this.#own.length)) this.#shrink()
    if (mayRead) this.#makeRoom(this.#own, leastBytes)
    return mayRead
  }

  /** What is set aside or free is enough for the least. */
  #makeRoom(own: Buffer, leastBytes: number): void {
    const held = this.pendingBytes
    const missing = Math.max(1, this.expectedBytes - held)
    const readBytes = Math.min(bufferSizes.read, Math.max(RESUME_BYTES, GROWTH * held))
    const wanted = leastBytes > 1 ? leastBytes : Math.min(missing, readBytes, this.#reachMaxBytes - held)
    if (own.length - this.end >= wanted) return
    const canCompact = LEAD_IN_BYTES + held + wanted <= own.length
    const isLarge = own.length >= bufferSizes.largest
    if (canCompact && (isLarge || held <= own.length / GROWTH)) return this.#compact()
    // Under load a larger buffer saves moves: it takes several frames before what is left of the last must move again.
    const reach = Math.min(this.#reachOf(held), Math.max(this.expectedBytes, bufferSizes.largest - LEAD_IN_BYTES))
    if (this.#tryMove(Math.max(held + wanted, reach))) return
    if (canCompact) return this.#compact()
    assert(this.#tryMove(held + wanted), 'what is set aside is enough for the frame')
  }

  /** Drops what is pending and gives up all memory and charge; what is lent, when it comes back. */
  discard(): void {
    this.bytes = NO_BYTES
    this.start = 0
    this.end = 0
    this.#isPlaceOver = false
    const buffer = this.#own
    if (buffer === null) return
    const away = { buffer, sparedBytes: this.#sparedBytes, place: this.#place }
    this.#own = null
    this.#tailIsOwn = false
    this.#sparedBytes = 0
    this.#place = null
    if (this.#isLent) this.#lentAway = away
    else this.#free(away)
  }

  /**
   * Lends bytes[start, end) of what is pending to another thread, until `endLoan`. They stay where they are meanwhile: the
   * connection neither takes them nor reads on. Out of the landing area, which others use, it is a copy.
   */
  lend(start: number, end: number): Buffer {
    assert(!this.#isLent, 'one part is lent at a time')
    if (this.#own === null) return Buffer.from(this.bytes.subarray(start, end))
    this.#isLent = true
    return this.bytes.subarray(start, end)
  }

  /** Nobody else reads what was lent any more. */
  endLoan(): void {
    this.#isLent = false
    const away = this.#lentAway
    this.#lentAway = null
    if (away !== null) this.#free(away)
  }

  #free({ buffer, sparedBytes, place }: LentAway): void {
    this.#shared.pool.give(buffer)
    if (sparedBytes > 0) this.#memory.release(sparedBytes)
    if (place !== null) this.#memory.leave(place)
  }

  /** What a buffer for the frame in front takes of the request memory, with what may be read behind it after a pause. */
  get #frameChargeBytes(): number {
    return chargeOf(poolSizeOf(LEAD_IN_BYTES + this.expectedBytes + RESUME_BYTES))
  }

  /**
   * Asks for memory for the frame in front, if so many bytes more of it need that.
   * @returns false if it has to be waited for.
   */
  #tryPlace(moreBytes: number): boolean {
    if (this.#place === null) {
      const isWhole = this.pendingBytes >= this.expectedBytes
      if (isWhole || this.pendingBytes + moreBytes <= FREE_CONTENT_BYTES || this.#frameChargeBytes === 0) return true
      this.#place = this.#memory.ask(this.#frameChargeBytes, this.#onRoom)
    }
    return this.#place.isGranted
  }

  /** What is behind the frame that was taken has no part in what was set aside for that. */
  #endPlace(): void {
    this.#isPlaceOver = false
    const place = this.#place
    if (place === null) return
    this.#place = null
    this.#shrink()
    // What is still large is the rest of one read: it lies here whether there is memory to spare or not.
    this.#tryCover(this.ownBytes)
    this.#memory.leave(place)
  }

  /** Moves what is pending to a buffer as small as can be. */
  #shrink(): void {
    const isLarge = this.#own !== null && chargeOf(this.#own.length) > 0
    if (isLarge && poolSizeOf(LEAD_IN_BYTES + this.pendingBytes) < this.ownBytes) this.#move(this.pendingBytes)
  }

  /** Bytes for which room may be made when so many have arrived. */
  #reachOf(pendingBytes: number): number {
    return Math.min(Math.max(GROWTH * pendingBytes, this.#shownBytes), this.#reachMaxBytes)
  }

  /** Of a frame for which memory is to be set aside, before it is. */
  get #reachMaxBytes(): number {
    return this.#place === null && this.#frameChargeBytes > 0 ? FREE_CONTENT_BYTES : Infinity
  }

  /** @returns false if so much is neither set aside for the frame in front nor to spare. */
  #tryCover(length: number): boolean {
    const more = chargeOf(length) - this.#grantedBytes - this.#sparedBytes
    if (more <= 0) return true
    if (!this.#memory.trySpare(more)) return false
    this.#sparedBytes += more
    return true
  }

  #tryMove(contentBytes: number): boolean {
    if (!this.#tryCover(poolSizeOf(LEAD_IN_BYTES + contentBytes))) return false
    this.#move(contentBytes)
    return true
  }

  /** Moves the pending bytes to a buffer that holds at least `contentBytes`. That it is covered is the caller's matter. */
  #move(contentBytes: number): void {
    assert(!this.#isLent, 'what is lent stays where it is')
    const target = this.#shared.pool.take(LEAD_IN_BYTES + contentBytes)
    const held = this.pendingBytes
    this.bytes.copy(target, LEAD_IN_BYTES, this.start, this.end)
    this.#shared.movedBytes += held
    if (this.#own !== null) this.#shared.pool.give(this.#own)
    this.#own = target
    this.bytes = target
    this.start = LEAD_IN_BYTES
    this.end = LEAD_IN_BYTES + held
    const surplus = Math.min(this.#sparedBytes, this.heldBytes - chargeOf(target.length))
    if (surplus <= 0) return
    this.#sparedBytes -= surplus
    this.#memory.release(surplus)
  }

  #compact(): void {
    assert(!this.#isLent, 'what is lent stays where it is')
    const held = this.pendingBytes
    this.bytes.copy(this.bytes, LEAD_IN_BYTES, this.start, this.end)
    this.#shared.movedBytes += held
    this.start = LEAD_IN_BYTES
    this.end = LEAD_IN_BYTES + held
  }
}

/** @returns what a buffer of that length takes of the request memory. */
function chargeOf(length: number): number {
  return Math.max(0, length - OWN_BYTES_FREE)
}
