/**
 * Gives memory back to the system when a thread has nothing to do. V8 collects when a heap grows, so a thread that goes
 * quiet after a burst keeps the burst's garbage for good; a shard that sleeps in a bell never gets to its own idle work.
 *
 * On the thread it is made on. Invariants: never while there was work within QUIET_MS; once per quiet time, and only if
 * the heap has grown since the last collection, so that rare requests do not pay for each other.
 */
import { performance } from 'node:perf_hooks'
import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** Without work for so long, a thread counts as idle. */
const QUIET_MS = 5000
/** Less than this is not worth a collection (tens of milliseconds of a large heap). */
const GROWN_BYTES_MIN = 6 * 1024 * 1024
/** Share of a quiet time that an event loop may be busy and still counts as idle. */
const BUSY_SHARE_MAX = 0.02

/** What the heap is and does; tests give their own. */
export interface HeapDoor {
  /** Bytes that the heap takes of the system. */
  totalBytes(): number
  /** Collects all garbage and gives free pages back. Blocks the thread. */
  collect(): void
}

/** The heap of this thread. */
export function openHeap(): HeapDoor {
  // Node's own way to a collector that scripts can call; the flag only makes the function appear in new contexts. It is
  // never taken back: flags belong to the process, and another thread may be between these two lines.
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as (options: object) => void
  return {
    totalBytes: () => getHeapStatistics().total_heap_size,
    collect: () => collect({ type: 'major', execution: 'sync', flavor: 'last-resort' })
  }
}

export class IdleMemory {
  readonly #heap: HeapDoor
  #quietFromMs: number
  #collectedBytes: number
  #isDue = false

  /** @param nowMs monotonic, as in all calls. */
  constructor(heap: HeapDoor, nowMs: number) {
    this.#heap = heap
    this.#quietFromMs = nowMs
    this.#collectedBytes = heap.totalBytes()
  }

  /** There was work. @cost two assignments. */
  noteWork(nowMs: number): void {
    this.#quietFromMs = nowMs
    this.#isDue = true
  }

  /** When `turn` has something to look at; Infinity: only after more work. */
  get dueMs(): number {
    return this.#isDue ? this.#quietFromMs + QUIET_MS : Infinity
  }

  /** Collects if the thread has been quiet for long enough and that is worth it. */
  turn(nowMs: number): void {
    if (nowMs < this.dueMs) return
    this.#isDue = false
    if (this.#heap.totalBytes() < this.#collectedBytes + GROWN_BYTES_MIN) return
    this.#heap.collect()
    this.#collectedBytes = this.#heap.totalBytes()
  }
}

/** For a thread with an event loop: looks by itself, and keeps no process alive. @returns what ends it. */
export function collectWhenIdle(): () => void {
  const memory = new IdleMemory(openHeap(), performance.now())
  let before = performance.eventLoopUtilization()
  const timer = setInterval(() => {
    const now = performance.eventLoopUtilization()
    if (performance.eventLoopUtilization(now, before).utilization > BUSY_SHARE_MAX) memory.noteWork(performance.now())
    before = now
    memory.turn(performance.now())
  }, QUIET_MS / 2)
  timer.unref()
  return () => clearInterval(timer)
}
