/** Pools for tests, closed when the test ends, and jobs that run for as long as a test wants. */
import type { TestContext } from 'node:test'
import type { BackgroundJobs } from '../../../src/background/jobs.ts'
import { BackgroundPool } from '../../../src/background/pool.ts'
import type { PoolOptions } from '../../../src/background/pool.ts'
import type { Logger } from '../../../src/base/logger.ts'
import type { TestJobs } from './jobs-entry.ts'

export interface LoggedPool<Jobs extends BackgroundJobs | TestJobs> {
  readonly pool: BackgroundPool<Jobs>
  /** Fields and text of every line at level error. */
  readonly errors: string[]
}

function open<Jobs extends BackgroundJobs | TestJobs>(t: TestContext, options: Partial<PoolOptions>): LoggedPool<Jobs> {
  const errors: string[] = []
  const error = (fields: object, message: string): void => void errors.push(`${message} ${JSON.stringify(fields)}`)
  const logger: Logger = { debug() {}, info() {}, warn() {}, error }
  const pool = new BackgroundPool<Jobs>({ threadsMax: 2, jobsMax: 64, logger, ...options })
  t.after(() => pool.close())
  return { pool, errors }
}

/** A pool with the jobs of the broker. */
export function openPool(t: TestContext, options: Partial<PoolOptions> = {}): LoggedPool<BackgroundJobs> {
  return open(t, options)
}

/** A pool with the jobs of jobs-entry.ts, or of another entry beside it. */
export function openTestPool(
  t: TestContext,
  options: Partial<PoolOptions> = {},
  entry = './jobs-entry.ts'
): LoggedPool<TestJobs> {
  return open(t, { entry: new URL(entry, import.meta.url), ...options })
}

/** Jobs `hold` that were given these cells run until release(). */
export class Gate {
  readonly cells = new Int32Array(new SharedArrayBuffer(8))

  get startedCount(): number {
    return Atomics.load(this.cells, 1)
  }

  /** Partner: the jobs, which wait on cell 0 as long as it is 0. */
  release(): void {
    Atomics.store(this.cells, 0, 1)
    Atomics.notify(this.cells, 0)
  }
}
