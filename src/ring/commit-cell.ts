/**
 * One job at a time from a shard to the thread that writes its groups, and the outcome back. Shared memory; numbers only.
 *
 *   shard: job fields → asked + 1 → notify      writer: reads job → works → outcome fields → done + 1 → notify, bell
 *
 * A job is given only when the one before is done, so the fields have one writer at a time.
 */
import { assert } from '../base/assert.ts'
import { Bell } from './bell.ts'

/** Words of 4 bytes; those that threads wait on stand on cache lines of their own. */
const ASKED = 16
const DONE = 32
const READY = 48
const SLOT = 64
const START = 65
const END = 66
const OUTCOME = 67
/** Numbers of 8 bytes. */
const POSITION = 36
const WRITE_NS = 37
const SYNC_NS = 38
const MEMORY_BYTES = 512

/** No wait is without an end; nothing depends on it. */
const WAIT_MS = 10_000

export function createCommitCell(): SharedArrayBuffer {
  return new SharedArrayBuffer(MEMORY_BYTES)
}

/** The shard's end. */
export class CommitCell {
  readonly #words: Int32Array
  readonly #numbers: Float64Array
  #asked = 0

  constructor(memory: SharedArrayBuffer) {
    assert(memory.byteLength === MEMORY_BYTES, 'this memory is not a commit cell')
    this.#words = new Int32Array(memory)
    this.#numbers = new Float64Array(memory)
  }

  /** The writer thread waits for jobs. */
  get isReady(): boolean {
    // Partner: the store in CommitWorker.ready().
    return Atomics.load(this.#words, READY) === 1
  }

  /** Gives the job: bytes [start, end) of the encode memory, to `position` of that slot file, written and synced. */
  ask(slotNumber: number, start: number, end: number, position: number): void {
    assert(this.isDone, 'one job at a time')
    this.#words[SLOT] = slotNumber
    this.#words[START] = start
    this.#words[END] = end
    this.#numbers[POSITION] = position
    this.#asked = (this.#asked + 1) | 0
    // Partner: the load and the wait in CommitWorker.next(). Release: the fields before it are seen with it.
    Atomics.store(this.#words, ASKED, this.#asked)
    Atomics.notify(this.#words, ASKED, 1)
  }

  /** The job given last, if any, has an outcome. */
  get isDone(): boolean {
    // Partner: the store in CommitWorker.finish(). Acquire: the outcome is seen with it.
    return Atomics.load(this.#words, DONE) === this.#asked
  }

  /** Blocks until the job has an outcome: at most as long as the disk takes. */
  wait(): void {
    for (;;) {
      const done = Atomics.load(this.#words, DONE)
      if (done === this.#asked) return
      // Partner: the notify in finish(). The compare and the falling asleep are one step.
      Atomics.wait(this.#words, DONE, done, WAIT_MS)
    }
  }

  /** Of the job that is done: 0 written and synced, else what the writer passed to finish(). */
  get outcome(): number {
    return this.#words[OUTCOME] as number
  }

  get writeNs(): number {
    return this.#numbers[WRITE_NS] as number
  }

  get syncNs(): number {
    return this.#numbers[SYNC_NS] as number
  }
}

/** The writer thread's end. */
export class CommitWorker {
  readonly #words: Int32Array
  readonly #numbers: Float64Array
  readonly #bell: Bell
  #done = 0

  constructor(memory: SharedArrayBuffer, bell: SharedArrayBuffer) {
    this.#words = new Int32Array(memory)
    this.#numbers = new Float64Array(memory)
    this.#bell = new Bell(bell)
  }

  /** Declares that next() is about to be called. */
  ready(): void {
    // Partner: the load in CommitCell.isReady.
    Atomics.store(this.#words, READY, 1)
  }

  /** Blocks until there is a job. Its fields are valid until finish(). */
  next(): void {
    // Partner: the store in CommitCell.ask(). Acquire: the fields of the job are seen with it.
    while (Atomics.load(this.#words, ASKED) === this.#done) Atomics.wait(this.#words, ASKED, this.#done, WAIT_MS)
  }

  get slotNumber(): number {
    return this.#words[SLOT] as number
  }

  get start(): number {
    return this.#words[START] as number
  }

  get end(): number {
    return this.#words[END] as number
  }

  get position(): number {
    return this.#numbers[POSITION] as number
  }

  /** Tells the outcome and wakes the shard, whichever word it waits on. */
  finish(outcome: number, writeNs: number, syncNs: number): void {
    this.#words[OUTCOME] = outcome
    this.#numbers[WRITE_NS] = writeNs
    this.#numbers[SYNC_NS] = syncNs
    this.#done = (this.#done + 1) | 0
    // Partner: the loads in CommitCell.isDone and wait(). Release: the outcome before it is seen with it.
    Atomics.store(this.#words, DONE, this.#done)
    Atomics.notify(this.#words, DONE, 1)
    this.#bell.ring()
  }
}
