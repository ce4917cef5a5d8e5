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
 * - The kernel writes only where `nextTail` pointed last. An own buffer moves or goes back to the pool only while the
 *   socket does not point into it: during a read callback, or while the connection is paused.
 * - What is lent to the thread pool neither moves nor goes back to the pool before the loan ends, also if the connection is gone.
 * - Bytes of an own buffer above OWN_BYTES_FREE are charged to the shared budget.
 * - Frames never begin at byte 0, so a copy out of them is always of a strict sub-range (base/copy.ts).
 */
import { assert } from '../../base/assert.ts'
import type { ByteBudget } from '../../base/byte-budget.ts'
import type { BufferPool } from './buffer-pool.ts'
import { bufferSizes, poolSizeOf } from './buffer-pool.ts'

/** Bytes before the first frame of a buffer. */
const LEAD_IN_BYTES = 8
/** What a connection may hold outside the budget: the rest of one read, which has arrived and must lie somewhere. */
const OWN_BYTES_FREE = bufferSizes.read
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
  readonly budget: ByteBudget
  readonly landing: Buffer
  movedBytes: number
}

/** Where the bytes of own buffers are charged. */
export type ReceiveBudget = Pick<ByteBudget, 'tryReserve' | 'release'>

/** @returns the shared part for a gateway: its landing area is as large as one read. */
export function createReceiveShared(pool: BufferPool, budget: ByteBudget): ReceiveShared {
  return { pool, budget, landing: Buffer.allocUnsafeSlow(bufferSizes.read), movedBytes: 0 }
}

export class ReceiveBuffer {
  /** Where the pending bytes lie: bytes[start, end). `start` is moved by the parser alone. */
  bytes: Buffer = NO_BYTES
  start = 0
  end = 0
  /** Length of the unit that begins at `start` (a frame, a hello), as far as it is known. Set by the parser. */
  expectedBytes = 0
  /** Length of the last frame taken: a connection that has shown one gets room for another at once. Set by the parser. */
  shownBytes = 0
  readonly #shared: ReceiveShared
  readonly #budget: ReceiveBudget
  #own: Buffer | null = null
  #chargedBytes = 0
  #tailIsOwn = false
  #isLent = false
  /** What was dropped while it was lent, and goes back when the loan ends. */
  #lentAway: { readonly buffer: Buffer; readonly chargedBytes: number } | null = null
  readonly #landingTail: Buffer
  readonly #resumeTail: Buffer
  readonly #headTail: Buffer

  /** @param budget what is held is charged to; a share of the shared one, or that itself. */
  constructor(shared: ReceiveShared, budget: ReceiveBudget = shared.budget) {
    this.#shared = shared
    this.#budget = budget
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

  /** Bytes that are charged to the budget. */
  get chargedBytes(): number {
    return this.#chargedBytes
  }

  /** Where the socket puts its next read. @param isPaused no read follows until the connection resumes. */
  nextTail(isPaused: boolean): Uint8Array {
    this.#tailIsOwn = !isPaused && this.#own !== null
    const isLarge = this.shownBytes >= LARGE_FRAME_BYTES
    if (isPaused) return this.#resumeTail
    if (this.#own === null) return isLarge ? this.#headTail : this.#landingTail
    assert(this.end < this.#own.length, 'a reading connection has room for its next read')
    const frameEnd = this.start + this.expectedBytes
    const readEnd = isLarge && frameEnd > this.end ? Math.min(frameEnd, this.#own.length) : this.#own.length
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

  /** Keeps what is pending in memory of the connection's own; gives that memory back when nothing is. */
  settle(): void {
    if (this.start === this.end) {
      this.discard()
    } else if (this.#own === null) {
      const reach = Math.min(this.expectedBytes, this.#reachOf(this.pendingBytes))
      if (!this.#tryMove(Math.max(this.pendingBytes, reach))) this.#move(this.pendingBytes)
    }
  }

  /**
   * Makes sure that there is room for the next read. To be called after `settle`, before the socket reads on.
   * @param isPaused is the socket paused? Its first read then lands elsewhere and is moved.
   * @returns false if the budget does not allow it: the connection must not read until bytes were released.
   */
  tryRoom(isPaused: boolean): boolean {
    const own = this.#own
    if (own === null) return true
    const held = this.pendingBytes
    const missing = Math.max(1, this.expectedBytes - held)
    const readBytes = Math.min(bufferSizes.read, Math.max(RESUME_BYTES, GROWTH * held))
    const wanted = isPaused ? RESUME_BYTES : Math.min(missing, readBytes)
    if (!this.#tryCharge(own.length)) return false
    if (own.length - this.end >= wanted) return true
    const canCompact = LEAD_IN_BYTES + held + wanted <= own.length
    const isLarge = own.length >= bufferSizes.largest
    if (canCompact && (isLarge || held <= own.length / GROWTH)) {
      this.#compact()
      return true
    }
    // Under load a larger buffer saves moves: it takes several frames before what is left of the last must move again.
    const reach = Math.min(this.#reachOf(held), Math.max(this.expectedBytes, bufferSizes.largest - LEAD_IN_BYTES))
    if (this.#tryMove(Math.max(held + wanted, reach))) return true
    if (!canCompact) return this.#tryMove(held + wanted)
    this.#compact()
    return true
  }

  /** Drops what is pending and gives up all memory and charge; what is lent, when it comes back. */
  discard(): void {
    this.bytes = NO_BYTES
    this.start = 0
    this.end = 0
    const buffer = this.#own
    if (buffer === null) return
    const chargedBytes = this.#chargedBytes
    this.#own = null
    this.#tailIsOwn = false
    this.#chargedBytes = 0
    if (this.#isLent) this.#lentAway = { buffer, chargedBytes }
    else this.#free(buffer, chargedBytes)
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
    if (away !== null) this.#free(away.buffer, away.chargedBytes)
  }

  #free(buffer: Buffer, chargedBytes: number): void {
    this.#shared.pool.give(buffer)
    if (chargedBytes > 0) this.#budget.release(chargedBytes)
  }

  /** Bytes for which room may be made when so many have arrived. */
  #reachOf(pendingBytes: number): number {
    return Math.max(GROWTH * pendingBytes, this.shownBytes)
  }

  #chargeOf(length: number): number {
    return Math.max(0, length - OWN_BYTES_FREE)
  }

  #tryCharge(length: number): boolean {
    const more = this.#chargeOf(length) - this.#chargedBytes
    if (more <= 0) return true
    if (!this.#budget.tryReserve(more)) return false
    this.#chargedBytes += more
    return true
  }

  #tryMove(contentBytes: number): boolean {
    if (!this.#tryCharge(poolSizeOf(LEAD_IN_BYTES + contentBytes))) return false
    this.#move(contentBytes)
    return true
  }

  /** Moves the pending bytes to a buffer that holds at least `contentBytes`. The charge is the caller's matter. */
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
