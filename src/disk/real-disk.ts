/**
 * The disk of production: node:fs, synchronous. Runs on the thread that made it (a shard worker, the settler, a tool),
 * which blocks in it by design.
 *
 * Invariants: every refusal leaves as a DiskError with errno and point; a write returns only when all bytes were taken;
 * files are made 0600 and directories 0700. It never retries a failed call and never syncs unasked.
 */
import {
  closeSync,
  existsSync,
  fdatasyncSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  unlinkSync,
  writeSync
} from 'node:fs'
import { assert } from '../base/assert.ts'
import { DiskError } from './disk.ts'
import type { Disk, DiskFile } from './disk.ts'
import { faultError, plantedBug } from './fault-plan.ts'
import type { FaultPlan } from './fault-plan.ts'
import type { FaultPoint } from './faults.ts'

const FILE_MODE = 0o600
const DIRECTORY_MODE = 0o700

/**
 * The file system as a Disk.
 * @param faults armed by crash tests; absent in production.
 */
export function createRealDisk(faults?: FaultPlan): Disk {
  return new RealDisk(faults ?? null)
}

class RealDisk implements Disk {
  readonly #faults: FaultPlan | null

  constructor(faults: FaultPlan | null) {
    this.#faults = faults
  }

  open(point: FaultPoint, path: string): DiskFile {
    return new RealFile(
      path,
      this.#perform(point, path, () => openSync(path, 'r+')),
      point,
      this.#faults
    )
  }

  create(point: FaultPoint, path: string): DiskFile {
    return new RealFile(
      path,
      this.#perform(point, path, () => openSync(path, 'wx+', FILE_MODE)),
      point,
      this.#faults
    )
  }

  exists(path: string): boolean {
    return existsSync(path)
  }

  list(path: string): string[] {
    return translated('journal.directory', path, () => readdirSync(path).sort())
  }

  makeDirectory(point: FaultPoint, path: string): void {
    this.#perform(point, path, () => mkdirSync(path, DIRECTORY_MODE))
  }

  rename(point: FaultPoint, from: string, to: string): void {
    this.#perform(point, from, () => renameSync(from, to))
  }

  remove(point: FaultPoint, path: string): void {
    this.#perform(point, path, () => unlinkSync(path))
  }

  syncDirectory(point: FaultPoint, path: string): void {
    this.#perform(point, path, () => {
      const descriptor = openSync(path, 'r')
      try {
        fsyncSync(descriptor)
      } finally {
        closeSync(descriptor)
      }
    })
  }

  #perform<T>(point: FaultPoint, path: string, action: () => T): T {
    return performUnderFaults(this.#faults, point, path, action)
  }
}

class RealFile implements DiskFile {
  readonly path: string
  #descriptor: number
  readonly #openPoint: FaultPoint
  readonly #faults: FaultPlan | null

  constructor(path: string, descriptor: number, openPoint: FaultPoint, faults: FaultPlan | null) {
    this.path = path
    this.#descriptor = descriptor
    this.#openPoint = openPoint
    this.#faults = faults
  }

  read(point: FaultPoint, target: Uint8Array, targetStart: number, length: number, position: number): number {
    assert(targetStart >= 0 && length >= 0 && targetStart + length <= target.length, 'read outside of its target')
    return performUnderFaults(this.#faults, point, this.path, () => {
      let done = 0
      while (done < length) {
        const count = readSync(this.#open(), target, targetStart + done, length - done, position + done)
        if (count === 0) break
        done += count
      }
      return done
    })
  }

  write(point: FaultPoint, source: Uint8Array, start: number, end: number, position: number): void {
    assert(start >= 0 && start <= end && end <= source.length, 'write outside of its source')
    const fault = this.#faults?.strike(point) ?? null
    if (fault === null) return this.#writeFully(point, source, start, end, position)
    const middle = start + ((end - start) >> 1)
    if (fault.kind === 'short' || fault.kind === 'short-kill') this.#writeFully(point, source, start, middle, position)
    if (fault.kind === 'kill-after') this.#writeFully(point, source, start, end, position)
    if ('code' in fault) throw faultError(fault.code, point, this.path)
    if (fault.kind === 'bug') throw plantedBug(point)
    killProcess()
  }

  sync(point: FaultPoint): void {
    performUnderFaults(this.#faults, point, this.path, () => fdatasyncSync(this.#open()))
  }

  sizeBytes(): number {
    return translated(this.#openPoint, this.path, () => fstatSync(this.#open()).size)
  }

  truncate(point: FaultPoint, sizeBytes: number): void {
    performUnderFaults(this.#faults, point, this.path, () => ftruncateSync(this.#open(), sizeBytes))
  }

  close(): void {
    const descriptor = this.#open()
    this.#descriptor = -1
    translated(this.#openPoint, this.path, () => closeSync(descriptor))
  }

  #open(): number {
    assert(this.#descriptor >= 0, 'file used after close')
    return this.#descriptor
  }

  /** A disk that fills up in the middle takes fewer bytes first and refuses the rest at the next call: hence the loop. */
  #writeFully(point: FaultPoint, source: Uint8Array, start: number, end: number, position: number): void {
    const descriptor = this.#open()
    let at = start
    while (at < end) {
      let count = 0
      try {
        count = writeSync(descriptor, source, at, end - at, position + at - start)
      } catch (error) {
        throw toDiskError(error, point, this.path)
      }
      if (count === 0) throw new DiskError('EIO', point, `the disk took no byte of a write to ${this.path}`)
      at += count
    }
  }
}

function performUnderFaults<T>(faults: FaultPlan | null, point: FaultPoint, path: string, action: () => T): T {
  const fault = faults?.strike(point) ?? null
  if (fault === null) return translated(point, path, action)
  if ('code' in fault) throw faultError(fault.code, point, path)
  if (fault.kind === 'bug') throw plantedBug(point)
  if (fault.kind === 'kill-after') translated(point, path, action)
  return killProcess()
}

function translated<T>(point: FaultPoint, path: string, action: () => T): T {
  try {
    return action()
  } catch (error) {
    throw toDiskError(error, point, path)
  }
}

/** Only what the operating system refused becomes a DiskError; a bug stays a bug. */
function toDiskError(error: unknown, point: FaultPoint, path: string): unknown {
  if (!(error instanceof Error) || !('syscall' in error) || !('code' in error)) return error
  return new DiskError(String(error.code), point, `${String(error.code)} at ${point} of ${path}`, error)
}

/** The kill −9 of a crash test: no handler, no flush, no exit code of ours. */
function killProcess(): never {
  process.kill(process.pid, 'SIGKILL')
  // The signal is delivered before the system call returns to a live thread; blocking covers the other case.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
  throw new DiskError('EINTR', 'slot.open', 'the process outlived SIGKILL')
}
