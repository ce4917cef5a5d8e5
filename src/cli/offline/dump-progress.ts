/** The progress of the stages of a dump or a restore: a bar on a terminal for each that is long. */
import type { CliIo } from '../io.ts'
import { openProgress, type Progress } from '../progress.ts'

/** Less is done before anyone looks. */
const PROGRESS_BYTES = 64 * 1024 * 1024

/** Hears of bytes that are done. */
export interface Stage {
  add(bytes: number): void
  /** One more file, or whatever is counted, is done. */
  count(): void
  /** There is so much to do, as turned out meanwhile. */
  total(bytes: number): void
}

/** Runs one stage under a bar, if there is much to do. */
export async function inStage<T>(
  io: CliIo,
  totalBytes: number,
  counted: string,
  action: (stage: Stage) => T | Promise<T>
): Promise<T> {
  const isShown = totalBytes >= PROGRESS_BYTES && io.stderr.isTTY === true
  const bar: Progress | null = isShown ? await openProgress(io.stderr, totalBytes, counted) : null
  let doneBytes = 0
  let count = 0
  try {
    return await action({
      add(bytes) {
        doneBytes += bytes
        bar?.update(doneBytes, count)
      },
      count() {
        count++
      },
      total: bytes => bar?.setTotal(bytes)
    })
  } finally {
    bar?.close()
  }
}
