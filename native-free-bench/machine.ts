/**
 * What the numbers were measured on, and what a process cost: read from /proc and node:os. Linux; where /proc is
 * missing the fields say so instead of guessing. Runs outside measured windows only.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync, readdirSync, statSync, statfsSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { describeHost, type Host } from '../src/client/load/host.ts'

export interface Machine extends Host {
  /** Type and device of the file system of the data directory, e.g. `ext4 on /dev/vda`. */
  readonly fileSystem: string
}

/** Describes this machine; `directory` chooses the file system. */
export function describeMachine(directory: string): Machine {
  return { ...describeHost(), fileSystem: fileSystemOf(directory, readProc('/proc/self/mounts')) }
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

/** Memory of a process that lies in RAM, all threads; null where /proc does not tell. */
export function residentBytes(pid: number): number | null {
  return parseResidentBytes(readProc(`/proc/${pid}/status`))
}

/** VmRSS of the text of /proc/<pid>/status, which the kernel writes in KiB; null if there is none. */
export function parseResidentBytes(status: string): number | null {
  const match = /^VmRSS:\s+(\d+) kB$/m.exec(status)
  return match === null ? null : Number(match[1]) * 1024
}

/** Open files and sockets of a process of ours; null where /proc does not tell. */
export function openDescriptors(pid: number): number | null {
  try {
    return readdirSync(`/proc/${pid}/fd`).length
  } catch (error) {
    if (isMissing(error)) return null
    throw error
  }
}

/** The kernel counts sectors of this size, whatever the device has. */
const SECTOR_BYTES = 512

/**
 * Bytes that were ever written to the device below `directory`, by anybody; null where the file system has no single
 * device that the kernel counts (overlays, some volume managers).
 */
export function deviceBytesWritten(directory: string): number | null {
  const { dev } = statSync(directory)
  return parseDeviceBytes(readProc(`/sys/dev/block/${deviceNumber(dev)}/stat`))
}

/** `major:minor` of a device number as Linux packs it into 32 bits. */
export function deviceNumber(dev: number): string {
  const major = (dev >>> 8) & 0xfff
  const minor = (dev & 0xff) | ((dev >>> 12) & 0xfff00)
  return `${major}:${minor}`
}

/** Bytes written, of the text of a block device's stat file: its seventh field, in sectors. */
export function parseDeviceBytes(stat: string): number | null {
  const sectors = stat.trim().split(/\s+/)[6]
  return sectors === undefined ? null : Number(sectors) * SECTOR_BYTES
}

/** Free bytes for us on the file system of `directory`. */
export function freeBytes(directory: string): number {
  const { bavail, bsize } = statfsSync(directory)
  return bavail * bsize
}

/**
 * Writes out all dirty pages and makes the kernel forget clean ones, of the whole machine. Needs root.
 * @param path the kernel's switch. @returns why it could not be done, or null when it was.
 */
export function dropCaches(path = '/proc/sys/vm/drop_caches'): string | null {
  // Only clean pages can be dropped.
  spawnSync('sync')
  try {
    writeFileSync(path, '3\n', { flag: 'r+' })
    return null
  } catch (error) {
    if (error instanceof Error && 'code' in error) return `caches were not dropped (${String(error.code)} at ${path})`
    throw error
  }
}

/**
 * Writes out all dirty pages and makes the kernel forget those of the files below a directory: what anybody may do.
 * @returns why it could not be done, or null when it was.
 */
export function dropFileCaches(directory: string): string | null {
  spawnSync('sync')
  const found = spawnSync('find', [
    directory,
    '-type',
    'f',
    '-exec',
    'dd',
    'if={}',
    'iflag=nocache',
    'count=0',
    'status=none',
    ';'
  ])
  if (found.error !== undefined) return `file caches were not dropped (${found.error.message})`
  return found.status === 0
    ? null
    : `file caches were not dropped (${found.stderr.toString().trim().split('\n', 1)[0]})`
}

/** Text of a /proc file; empty where there is none (another system, or the process has ended). */
function readProc(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (isMissing(error)) return ''
    throw error
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ESRCH')
}
