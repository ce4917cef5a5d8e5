/**
 * The clock of an open loop: wakes the main thread on a grid. A thread of its own, because timers of Node fire on whole
 * milliseconds and an early wake by spinning would take the core that the broker needs.
 * It sends no requests and knows nothing of them.
 */
import { parentPort, workerData } from 'node:worker_threads'

/** What the worker is asked for. */
export interface TickTask {
  /** First tick, in ms since the Unix epoch (performance.timeOrigin + performance.now()). */
  readonly startMs: number
  readonly intervalMs: number
}

/** Time to sleep until the next tick of the grid after `nowMs`, above 0. */
export function untilNextTick(task: TickTask, nowMs: number): number {
  if (nowMs < task.startMs) return task.startMs - nowMs
  const ticks = Math.floor((nowMs - task.startMs) / task.intervalMs) + 1
  return task.startMs + ticks * task.intervalMs - nowMs
}

if (parentPort !== null) {
  const task: TickTask = workerData
  // Nobody ever notifies this word: the wait is a sleep with a finer grain than a timer. It ends with the thread.
  const never = new Int32Array(new SharedArrayBuffer(4))
  for (;;) {
    Atomics.wait(never, 0, 0, untilNextTick(task, performance.timeOrigin + performance.now()))
    parentPort.postMessage(0)
  }
}
