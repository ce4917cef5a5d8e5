/** Texts of /proc and /sys, which not every system has or shows. Main thread. */
import { readFileSync } from 'node:fs'

/** @returns null where there is no such file, or none that may be read. */
export function readOptional(path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    // Another system, another kernel, a sandbox: the fact is unknown then, and said to be.
    if (error instanceof Error && 'code' in error) return null
    throw error
  }
}
