/** An entry of the background pool with jobs that a test controls, and jobs that end their thread in every way. */
import { threadId } from 'node:worker_threads'
import type { Task } from '../../../src/background/jobs.ts'

export type TestJobs = {
  readonly echo: { readonly value: unknown; readonly result: unknown }
  /** Runs until cell 0 is not 0; adds to cell 1 when it starts. Answers with its thread. */
  readonly hold: { readonly value: Int32Array; readonly result: number }
  /** Never ends by itself, and hears nothing. */
  readonly spin: { readonly value: Int32Array; readonly result: never }
  /** Takes memory until there is none. */
  readonly swell: { readonly value: null; readonly result: never }
  readonly throw: { readonly value: string; readonly result: never }
  readonly exit: { readonly value: null; readonly result: never }
  /** Throws where nothing can catch it, while the job is still in progress. */
  readonly crash: { readonly value: null; readonly result: never }
}

/** More than any test waits. */
const HOLD_MS_MAX = 30_000

export function run({ job, value }: Task): unknown {
  switch (job) {
    case 'echo':
      return value
    case 'hold': {
      const cells = value as Int32Array
      // Partner: the test, which stores to cell 0 and notifies; it reads cell 1 to see that the job runs.
      Atomics.add(cells, 1, 1)
      Atomics.wait(cells, 0, 0, HOLD_MS_MAX)
      return threadId
    }
    case 'spin': {
      const cells = value as Int32Array
      Atomics.add(cells, 1, 1)
      for (;;) Atomics.load(cells, 0)
    }
    case 'swell': {
      const held: object[] = []
      for (;;) held.push(new Array(1024).fill(held.length))
    }
    case 'throw':
      throw new TypeError(String(value))
    case 'exit':
      return process.exit(7)
    case 'crash':
      setImmediate(() => {
        throw new RangeError('nobody catches this')
      })
      return new Promise(() => {})
    default:
      throw new Error(`no job ${job}`)
  }
}
