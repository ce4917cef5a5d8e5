/**
 * What the numbers were measured on, and what a process cost: read from /proc and node:os. Linux; where /proc is
 * missing the fields say so instead of guessing. Runs outside measured windows only.
 */
import { readFileSync, statfsSync } from 'node:fs'
import { availableParallelism, cpus, release, totalmem } from 'node:os'
import { resolve } from 'node:path'

export interface Machine {
  readonly cpu: string
  readonly cores: number
  readonly memoryBytes: number
  readonly kernel: string
  /** Type and device of the file system of the data directory, e.g. `ext4 on /dev/vda`. */
  readonly fileSystem: string
  readonly node: string
}

/** Describes this machine; `directory` chooses the file system. */
export function describeMachine(directory: string): Machine {
  return {
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: availableParallelism(),
    memoryBytes: totalmem(),
    kernel: release(),
    fileSystem: fileSystemOf(directory, readProc('/proc/self/mounts')),
    node: process.version
  }
}

/** The mount with the longest path that holds `directory`, from the text of /proc/self/mounts. */
export function fileSystemOf(directory: string, mounts: string): string {
  const path = `${resolve(directory)}/`
  let found = 'unknown'
  let foundLength = -1
  for (const line of mounts.split('\n')) {
    const [device, mountPoint, type] = line.split(' ')
    if (device === undefined || mountPoint === undefined || type === undefined) continue
    const prefix = mountPoint === '/' ? '/' : `${mountPoint}/`
    // A later mount on the same point hides the earlier one, hence >=.
    if (path.startsWith(prefix) && prefix.length >= foundLength) {
      found = `${type} on ${device}`
      foundLength = prefix.length
    }
  }
  return found
}

/** Magic numbers of file systems that live in memory: a sync there costs nothing, so durable numbers would lie. */
const memoryFileSystems: ReadonlySet<number> = new Set([0x01021994, 0x858458f6])

/** @throws Error if `directory` lies in memory. */
export function refuseMemoryFileSystem(directory: string): void {
  if (memoryFileSystems.has(statfsSync(directory).type)) {
    throw new Error(`${directory} is on a file system in memory: durable numbers need a disk (choose with --data-dir)`)
  }
}

/** Clock ticks per second of /proc/<pid>/stat: fixed at 100 in the kernel's interface on every Linux of ours. */
const TICKS_PER_SECOND = 100

/** User and system CPU seconds that a process used so far, all threads; null where /proc does not tell. */
export function processCpuSeconds(pid: number): number | null {
  const stat = readProc(`/proc/${pid}/stat`)
  return stat === '' ? null : parseCpuSeconds(stat)
}

/** CPU seconds of one line of /proc/<pid>/stat; the name in parentheses may hold anything, also spaces. */
export function parseCpuSeconds(stat: string): number | null {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  // Fields 14 and 15 of the line are 11 and 12 after the name and its state.
  const ticks = Number(fields[11]) + Number(fields[12])
  return Number.isFinite(ticks) ? ticks / TICKS_PER_SECOND : null
}

/** Text of a /proc file; empty where there is none (another system, or the process has ended). */
function readProc(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ESRCH')) return ''
    throw error
  }
}
