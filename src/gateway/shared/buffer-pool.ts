/**
 * Buffers that connections borrow while they have bytes in transit. Main thread only; one pool per gateway.
 * Re-use matters more than it looks: the first touch of fresh memory costs microseconds per page on virtual machines.
 * Invariants: a buffer is in the pool or with exactly one borrower; idle buffers together stay below idleBytesMax. Of memory
 * that is lent it only knows to whom it goes back.
 */
import { assert } from '../../base/assert.ts'

/** The sizes that are kept. A larger buffer is made for its borrower and left to the collector afterwards. */
const CLASSES = [8 * 1024, 64 * 1024, 256 * 1024, 1024 * 1024] as const

/** Sizes of buffers to ask for: an answer of a few results, a socket read, and the largest that is kept. */
export const bufferSizes = { small: CLASSES[0], read: CLASSES[1], largest: CLASSES[3] } as const

export class BufferPool {
  readonly #idle: Buffer[][] = CLASSES.map(() => [])
  readonly #idleBytesMax: number
  readonly #lent = new Map<Buffer, () => void>()
  #idleBytes = 0

  /** @param idleBytesMax what the pool keeps for the next borrower; the rest is given up. */
  constructor(idleBytesMax: number) {
    this.#idleBytesMax = idleBytesMax
  }

  get idleBytes(): number {
    return this.#idleBytes
  }

  /** @returns a buffer of at least that many bytes, contents undefined: the caller's until `give`. */
  take(bytes: number): Buffer {
    const size = poolSizeOf(bytes)
    const buffer = this.#idle[CLASSES.findIndex(known => known === size)]?.pop()
    if (buffer === undefined) return Buffer.allocUnsafeSlow(size)
    this.#idleBytes -= size
    return buffer
  }

  /** Has a buffer of others come back to them by `give`, as if it was the pool's own. */
  lend(buffer: Buffer, giveBack: () => void): void {
    assert(!this.#lent.has(buffer), 'memory is lent to one borrower at a time')
    this.#lent.set(buffer, giveBack)
  }

  /** Takes back what `take` gave, or was lent. The caller, and every socket it was handed to, is done with it. */
  give(buffer: Buffer): void {
    const giveBack = this.#lent.get(buffer)
    if (giveBack !== undefined) {
      this.#lent.delete(buffer)
      return giveBack()
    }
    assert(buffer.buffer instanceof ArrayBuffer, 'shared memory is never the pool’s own')
    const idle = this.#idle[CLASSES.findIndex(known => known === buffer.length)]
    if (idle === undefined || this.#idleBytes + buffer.length > this.#idleBytesMax) return
    assert(idle[idle.length - 1] !== buffer, 'a buffer came back to its pool twice')
    idle.push(buffer)
    this.#idleBytes += buffer.length
  }
}

/** @returns the length of the buffer that `take(bytes)` answers. */
export function poolSizeOf(bytes: number): number {
  for (const size of CLASSES) if (bytes <= size) return size
  return Math.ceil(bytes / 65_536) * 65_536
}
