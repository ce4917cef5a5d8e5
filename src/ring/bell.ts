/**
 * How one side of a ring wakes the other. Rings carry the bytes; what is here only ends a sleep, and may ring too often
 * but never too seldom.
 *
 *   to a shard   one bell word per shard. Senders: publish to a ring, then add to the word and notify. The shard: read the
 *                word, drain every ring, wait on the value it read. What was published after the drain changed the word.
 *   to main      one asleep flag for all shards, and a message port per shard. A shard: publish, then post to the port only
 *                if it takes the flag down. Main: raise the flag, look at every ring once more, and only then return to its
 *                event loop.
 *
 * Invariant of both: the sleeper declares itself (bell read, flag raised) before its last look at the rings, the sender
 * looks at the declaration after its publish. All four are sequentially consistent, so at least one sees the other.
 * A wake-up costs its sender about 17 µs on a virtual machine: publish many frames, then ring once.
 */
import { assert } from '../base/assert.ts'

/** The word stands in the middle of this, so that no neighbour in memory shares its cache line. */
const MEMORY_BYTES = 256
const WORD = 32

/** Makes the shared memory of one bell. One per shard; every sender and the shard build a Bell over it. */
export function createBell(): SharedArrayBuffer {
  return new SharedArrayBuffer(MEMORY_BYTES)
}

/** Both faces of a bell: any thread may ring(); only the thread that sleeps on it may read() and wait(). */
export class Bell {
  readonly #words: Int32Array

  constructor(memory: SharedArrayBuffer) {
    assert(memory.byteLength === MEMORY_BYTES, 'this memory is not a bell')
    this.#words = new Int32Array(memory)
  }

  /** Wakes the sleeper, or keeps it from falling asleep. Call it after publish(), once for all rings published to. */
  ring(): void {
    // Partner: the load in read() and the compare in wait(). Comes after the tail's store in publish(): a sleeper that
    // reads the new value finds the frames, one that read the old value is refused by wait().
    Atomics.add(this.#words, WORD, 1)
    // Partner: the sleeper in wait(). One sleeper per bell.
    Atomics.notify(this.#words, WORD, 1)
  }

  /** The value to wait on. Read it before draining, or a frame published in between sleeps with the shard. */
  read(): number {
    // Partner: the add in ring(). Comes before the loads of the tails in the drain that follows.
    return Atomics.load(this.#words, WORD)
  }

  /**
   * Blocks the thread until the bell rings, at once if it rang since read() returned `value`.
   *
   * @param timeoutMs until the nearest deadline of the sleeper, finite: nobody sleeps for ever.
   * @returns false if the time passed without a ring.
   */
  wait(value: number, timeoutMs: number): boolean {
    assert(timeoutMs >= 0 && Number.isFinite(timeoutMs), 'a wait needs a finite time')
    // Partner: the add and the notify in ring(). The compare and the falling asleep are one step.
    return Atomics.wait(this.#words, WORD, value, timeoutMs) !== 'timed-out'
  }
}

/** Makes the shared memory of main's asleep flag, down. One for all shards. */
export function createAsleepFlag(): SharedArrayBuffer {
  return new SharedArrayBuffer(MEMORY_BYTES)
}

/** Main's face of the flag. */
export class AsleepFlag {
  readonly #words: Int32Array

  constructor(memory: SharedArrayBuffer) {
    assert(memory.byteLength === MEMORY_BYTES, 'this memory is not an asleep flag')
    this.#words = new Int32Array(memory)
  }

  /**
   * Declares that main is about to sleep. After it look at every ring once more, and try again to reserve wherever room was
   * asked for: what happened before the flag was up rang no doorbell. If there is something to do, lower() and do it.
   */
  raise(): void {
    // Partner: the load and the exchange in Doorbell.ring(). Comes before the loads of the tails in the last look.
    Atomics.store(this.#words, WORD, 1)
  }

  /** Declares that main is awake and will look at the rings before it sleeps: no doorbells needed. For the start of a drain. */
  lower(): void {
    // Partner: the exchange in Doorbell.ring(). If that one came first, a doorbell for nothing is on its way; it does no harm.
    if (Atomics.load(this.#words, WORD) === 1) Atomics.store(this.#words, WORD, 0)
  }
}

/** What Doorbell needs of a MessagePort. */
export interface DoorbellPort {
  postMessage(message: number): void
}

/** A shard's face of main's flag, with the port that reaches main's event loop. */
export class Doorbell {
  readonly #words: Int32Array
  readonly #port: DoorbellPort

  constructor(flagMemory: SharedArrayBuffer, port: DoorbellPort) {
    assert(flagMemory.byteLength === MEMORY_BYTES, 'this memory is not an asleep flag')
    this.#words = new Int32Array(flagMemory)
    this.#port = port
  }

  /**
   * Wakes main if it sleeps. Call it after publish() on the reply ring, or after a release() that returned true.
   *
   * @returns whether a message was posted.
   */
  ring(): boolean {
    // Partner: the store in AsleepFlag.raise(). Comes after the tail's store in publish(): if this load misses the flag,
    // main raised it later and its last look finds the frames. The load comes first because main is mostly awake; of
    // several shards that see the flag, the exchange lets one post.
    if (Atomics.load(this.#words, WORD) === 0 || Atomics.exchange(this.#words, WORD, 0) === 0) return false
    this.#port.postMessage(0)
    return true
  }
}
