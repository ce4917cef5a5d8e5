/** A progress bar on stderr for long input. The library is loaded only when a bar is shown. */
import type { TextOutput } from './io.ts'

export interface Progress {
  /** @param doneBytes of the total. @param recordCount done so far. */
  update(doneBytes: number, recordCount: number): void
  setTotal(totalBytes: number): void
  /** Removes the bar. May be called twice. */
  close(): void
}

/** Shows the bar at once. The caller closes it, also after a failure. @param counted what recordCount counts. */
export async function openProgress(output: TextOutput, totalBytes: number, counted = 'records'): Promise<Progress> {
  const { default: library } = await import('cli-progress')
  const bar = new library.SingleBar({
    format: `{bar} {percentage}% | {records} ${counted} | {eta_formatted} left`,
    stream: output,
    clearOnComplete: true,
    hideCursor: true,
    barsize: 30
  })
  bar.start(totalBytes, 0, { records: 0 })
  return {
    update: (doneBytes, recordCount) => bar.update(doneBytes, { records: recordCount }),
    setTotal: bytes => bar.setTotal(bytes),
    close: () => bar.stop()
  }
}
