/**
 * Waits until a fresh broker has its slots filled: the load is to meet filled slots, and no filler beside it.
 * Believes the broker's log where it speaks of filled slots; else looks at the blocks of the data directory, which a
 * broker without clients grows for no other reason. Main thread, outside measured windows.
 */
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'

export interface FillWatch {
  readonly wantedBytes: number
  readonly timeoutMs: number
  /** What the broker says; 0 while it says nothing. */
  readonly reportedBytes: () => number
  /** What lies on disk. */
  readonly allocatedBytes: () => number
}

/** How often is looked. */
const LOOK_MS = 50
/** No growth for so long means that the filler is done (it works without pauses, a piece of 1 MiB takes milliseconds). */
const QUIET_MS = 500
/** Below the wanted size the patience is longer: the filler may not have begun. A broker fills whole slots, so it may end there. */
const QUIET_BELOW_MS = 2000

/** @returns bytes filled: at least `wantedBytes`, or what there was when the filling had ended or the time was over. */
export async function watchFill(watch: FillWatch): Promise<number> {
  const end = performance.now() + watch.timeoutMs
  let lastBytes = -1
  let grewAtMs = performance.now()
  for (;;) {
    const reported = watch.reportedBytes()
    if (reported >= watch.wantedBytes) return reported
    const allocated = watch.allocatedBytes()
    const now = performance.now()
    if (allocated !== lastBytes) grewAtMs = now
    lastBytes = allocated
    const isQuiet = now - grewAtMs >= (allocated >= watch.wantedBytes ? QUIET_MS : QUIET_BELOW_MS)
    if (isQuiet || now >= end) return Math.max(reported, allocated)
    await new Promise(resolve => setTimeout(resolve, LOOK_MS))
  }
}

/** Bytes that the files below a folder take on disk. Files that vanish meanwhile count as nothing. */
export function allocatedBytes(folder: string): number {
  let bytes = 0
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    const stat = statSync(join(folder, name), { throwIfNoEntry: false })
    if (stat?.isFile() === true) bytes += stat.blocks * 512
  }
  return bytes
}
