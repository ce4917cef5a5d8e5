/**
 * Chunks of shared memory that one thread fills and another uses: answers that are worth it go to the socket from where a
 * shard has put them.
 *
 *   taker (a shard):  take ─▶ fill ─▶ names it in a reply          keeper (main):  view ─▶ … ─▶ giveBack
 *
 * A chunk is free, or has one owner: the taker until the reply that names it is published, the keeper after that. Only the
 * taker makes it taken, only its owner makes it free. There is no waiting: who finds none free goes another way.
 */
import { assert } from '../base/assert.ts'
import { limits } from '../model/limits.ts'

const { lentChunkBytes: CHUNK_BYTES } = limits
/** Chunks begin on a page, as copies of whole pages are cheapest: a word of state for each stands before the first. */
const PAGE_BYTES = 4096
const FREE = 0
const TAKEN = 1

/** Memory of `count` chunks. What is not used is never touched. */
export function createLentChunks(count: number): SharedArrayBuffer {
  return new SharedArrayBuffer(chunksAt(count) + count * CHUNK_BYTES)
}

function chunksAt(count: number): number {
  return Math.ceil((count * Int32Array.BYTES_PER_ELEMENT) / PAGE_BYTES) * PAGE_BYTES
}

/** What both ends have. */
class Chunks {
  readonly count: number
  protected readonly states: Int32Array
  readonly #views: Buffer[]

  constructor(memory: SharedArrayBuffer) {
    this.count = Math.floor(memory.byteLength / CHUNK_BYTES)
    const at = chunksAt(this.count)
    assert(memory.byteLength === at + this.count * CHUNK_BYTES, 'this memory is not one of chunks')
    this.states = new Int32Array(memory, 0, this.count)
    this.#views = Array.from({ length: this.count }, (_, i) => Buffer.from(memory, at + i * CHUNK_BYTES, CHUNK_BYTES))
  }

  /** The bytes of a chunk; always the same buffer. */
  view(chunk: number): Buffer {
    const view = this.#views[chunk]
    assert(view !== undefined, 'a chunk that there is')
    return view
  }

  /** Of chunks that have an owner. */
  get takenBytes(): number {
    let bytes = 0
    for (let chunk = 0; chunk < this.count; chunk++) {
      if (Atomics.load(this.states, chunk) === TAKEN) bytes += CHUNK_BYTES
    }
    return bytes
  }

  /** @param chunk the caller's, and no longer. */
  giveBack(chunk: number): void {
    // Partner: the load in take(). What its owner did with the bytes comes before: the taker's next fill is seen by nobody but the next owner.
    const before = Atomics.compareExchange(this.states, chunk, TAKEN, FREE)
    assert(before === TAKEN, 'a chunk was given back twice')
  }
}

/** The end of the thread that fills them. */
export class ChunkTaker extends Chunks {
  /** @returns the first free chunk, the caller's from here on; −1: none is. */
  take(): number {
    for (let chunk = 0; chunk < this.count; chunk++) {
      // Partner: the exchange in giveBack(), of either end.
      if (Atomics.load(this.states, chunk) !== FREE) continue
      // Nobody else makes a chunk taken; its owner-to-be learns of it by the ring, whose publish comes after.
      Atomics.store(this.states, chunk, TAKEN)
      return chunk
    }
    return -1
  }
}

/** The other end. */
export class ChunkKeeper extends Chunks {}
