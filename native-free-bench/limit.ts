/**
 * Runs the bare write + fdatasync loop on a file that lives as long as the run, so that its blocks are written before
 * (recycled) in every round. The file lies beside the broker's data: same disk, same file system.
 */
import { Worker } from 'node:worker_threads'
import { siblingModule } from '../src/base/module-url.ts'
import type { LimitTask } from './limit-worker.ts'
import type { WindowSums } from './meter.ts'

/** Of the size of the slots that a broker writes, so that no cache below us favours the loop; filled in some seconds. */
export const LIMIT_FILE_BYTES = 1024 * 1024 * 1024

/** The usual second size: what one write and one sync carry well. */
export const LIMIT_LARGE_BYTES = 1024 * 1024
/** The size of the latency baseline: one page. */
export const LIMIT_SMALL_BYTES = 4096

/** Makes and fills the file. */
export async function prepareLimit(path: string, fileBytes = LIMIT_FILE_BYTES): Promise<void> {
  await runWorker({ path, fileBytes, writeBytes: 0, warmUpMs: 0, windowMs: 0, fill: true })
}

/** A probe of the disk: long enough for hundreds of syncs on a calm one. */
const PROBE_MS = 150
/** A disk counts as calm from this share of the best probe of the run on. */
const CALM_SHARE = 0.6
/** A disk that is not calm by then will not become so. */
const CALM_TIMEOUT_MS = 15_000

/**
 * Waits until the disk has digested what was written before (filled slots, an earlier case): a disk with a cache or a
 * quota is several times slower for seconds after it took gigabytes. Asked before every window alike, with a broker
 * or without, so it favours none.
 */
export class DiskCalm {
  readonly #path: string
  #bestBytesPerSecond = 0

  /** @param path a file made by prepareLimit. */
  constructor(path: string) {
    this.#path = path
  }

  /** @returns the share of the best probe so far that the last probe reached: CALM_SHARE at least, or the time was over. */
  async wait(): Promise<number> {
    const end = performance.now() + CALM_TIMEOUT_MS
    for (;;) {
      const { bytes, seconds } = await measureLimit(this.#path, LIMIT_LARGE_BYTES, { warmUpMs: 0, windowMs: PROBE_MS })
      this.#bestBytesPerSecond = Math.max(this.#bestBytesPerSecond, bytes / seconds)
      const share = bytes / seconds / this.#bestBytesPerSecond
      if (share >= CALM_SHARE || performance.now() >= end) return share
    }
  }

  /** What a reader must know of a window that opened at `share`. */
  static notes(share: number): string[] {
    if (share >= CALM_SHARE) return []
    return [`a window opened while the disk reached only ${(share * 100).toFixed(0)} % of its best in this run`]
  }
}

/** One window of the loop with `writeBytes` per sync. */
export async function measureLimit(
  path: string,
  writeBytes: number,
  times: { readonly warmUpMs: number; readonly windowMs: number },
  fileBytes = LIMIT_FILE_BYTES
): Promise<WindowSums> {
  const sums = await runWorker({ path, fileBytes, writeBytes, ...times, fill: false })
  if (sums === null) throw new Error('the loop measured nothing')
  return sums
}

function runWorker(task: LimitTask): Promise<WindowSums | null> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(siblingModule(import.meta.url, './limit-worker'), { workerData: task })
    let result: WindowSums | null = null
    worker.once('message', (message: WindowSums | null) => {
      result = message
    })
    worker.once('error', reject)
    worker.once('exit', code => {
      if (code === 0) resolve(result)
      else reject(new Error(`the loop of write and sync ended with code ${code}`))
    })
  })
}
