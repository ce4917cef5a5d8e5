/**
 * The disk of production: node:fs, synchronous. Runs on the thread that made it (a shard worker, the settler, a tool),
 * which blocks in it by design.
 *
 * Invariants: every refusal leaves as a DiskError with errno and point; a write returns only when all bytes were taken;
 * files are made 0600 and directories 0700. It never retries a failed call and never syncs unasked.
 * A direct file (O_DIRECT) that the file system will not serve is opened once more without that, and the refused call
 * is done over: nothing of it was done.
 */
import {
  closeSync,
  constants,
  existsSync,
  fdatasync,
  fdatasyncSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmdirSync,
  statfsSync,
  statSync,
  unlinkSync,
  write,
  writeSync
} from 'node:fs'
import { assert } from '../base/assert.ts'
import { DIRECT_BLOCK_BYTES, assertDirect, halfWay } from './aligned-memory.ts'
import { DiskError } from './disk.ts'
import type { Disk, DiskFile } from './disk.ts'
import { faultError, plantedBug, refusesDirect } from './fault-plan.ts'
import type { Fault, FaultPlan } from './fault-plan.ts'
import type { FaultPoint } from './faults.ts'

const FILE_MODE = 0o600
const DIRECTORY_MODE = 0o700
/** Between two looks of a call that a test holds. */
const HOLD_LOOK_MS = 2
/** Errors by which a file system says that it does not do O_DIRECT. Alignment, their other cause, is asserted. */
const directRefusals: readonly unknown[] = ['EINVAL', 'ENOTSUP', 'EOPNOTSUPP']

interface OpenedFile {
  readonly descriptor: number
  readonly isDirect: boolean
}

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
    return this.#file(point, path, () => openBuffered(path))
  }

  create(point: FaultPoint, path: string): DiskFile {
    return this.#file(point, path, () => createBuffered(path))
  }

  openDirect(point: FaultPoint, path: string): DiskFile {
    return this.#directFile(point, path, openBuffered, openDirectly)
  }

  createDirect(point: FaultPoint, path: string): DiskFile {
    return this.#directFile(point, path, createBuffered, createDirectly)
  }

  exists(path: string): boolean {
    return existsSync(path)
  }

  sizeOf(path: string): number {
    return translated('segment.open', path, () => statSync(path).size)
  }

  freeBytes(path: string): number {
    return this.#perform('disk.free', path, () => {
      const { bavail, bsize } = statfsSync(path)
      return bavail * bsize
    })
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

  removeDirectory(point: FaultPoint, path: string): void {
    this.#perform(point, path, () => rmdirSync(path))
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
    return performUnder(strike(this.#faults, point), point, path, action)
  }

  #file(point: FaultPoint, path: string, open: () => OpenedFile): DiskFile {
    return new RealFile(path, this.#perform(point, path, open), point, this.#faults)
  }

  #directFile(
    point: FaultPoint,
    path: string,
    buffered: (path: string) => OpenedFile,
    direct: (path: string) => OpenedFile
  ): DiskFile {
    const fault = strike(this.#faults, point)
    const isRefused = refusesDirect(fault)
    const opened = performUnder(isRefused ? null : fault, point, path, () => (isRefused ? buffered : direct)(path))
    return new RealFile(path, opened, point, this.#faults)
  }
}

/** Bytes of a write: source[start, end) at `position`. */
interface Piece {
  readonly point: FaultPoint
  readonly source: Uint8Array
  readonly start: number
  readonly end: number
  readonly position: number
}

class RealFile implements DiskFile {
  readonly path: string
  /** Direct descriptors that were refused: closed with the file, because a write may be under way through one. */
  readonly #refused: number[] = []
  #descriptor: number
  #isDirect: boolean
  readonly #openPoint: FaultPoint
  readonly #faults: FaultPlan | null

  constructor(path: string, opened: OpenedFile, openPoint: FaultPoint, faults: FaultPlan | null) {
    this.path = path
    this.#descriptor = opened.descriptor
    this.#isDirect = opened.isDirect
    this.#openPoint = openPoint
    this.#faults = faults
  }

  get isDirect(): boolean {
    return this.#isDirect
  }

  read(point: FaultPoint, target: Uint8Array, targetStart: number, length: number, position: number): number {
    assert(targetStart >= 0 && length >= 0 && targetStart + length <= target.length, 'read outside of its target')
    if (this.#isDirect) assertDirect(target, targetStart, length, position)
    return performUnder(this.#strike(point), point, this.path, () => {
      let done = 0
      while (done < length) {
        const count = this.#unlessRefused(point, () =>
          readSync(this.#open(), target, targetStart + done, length - done, position + done)
        )
        done += count
        // Part of a block is the end of the file; asking a direct file for the rest of that block is an error.
        if (count === 0 || (this.#isDirect && count % DIRECT_BLOCK_BYTES !== 0)) break
      }
      return done
    })
  }

  write(point: FaultPoint, source: Uint8Array, start: number, end: number, position: number): void {
    const fault = this.#strikeWrite(point, source, start, end, position)
    if (fault === null) this.#writeFully(point, source, start, end, position)
    else this.#writeUnder(fault, { point, source, start, end, position })
  }

  async writeLater(point: FaultPoint, source: Uint8Array, start: number, end: number, position: number): Promise<void> {
    const fault = this.#strikeWrite(point, source, start, end, position)
    if (fault !== null) return this.#writeUnder(fault, { point, source, start, end, position })
    const taken = await this.#writeOnce({ point, source, start, end, position })
    // Rare: a disk that fills up took part of it, or refuses direct access. The rest is done where that is dealt with.
    if (taken < end - start) this.#writeFully(point, source, start + taken, end, position + taken)
  }

  #strikeWrite(point: FaultPoint, source: Uint8Array, start: number, end: number, position: number): Fault | null {
    assert(start >= 0 && start <= end && end <= source.length, 'write outside of its source')
    if (this.#isDirect) assertDirect(source, start, end - start, position)
    return this.#strike(point)
  }

  /** One call off this thread. @returns bytes taken, whole blocks of a direct file; 0 if direct access is refused. */
  #writeOnce({ point, source, start, end, position }: Piece): Promise<number> {
    const isDirect = this.#isDirect
    return new Promise((resolve, reject) => {
      write(this.#open(), source, start, end - start, position, (error, count) => {
        if (error === null) resolve(isDirect ? count - (count % DIRECT_BLOCK_BYTES) : count)
        else if (isDirect && isDirectRefusal(error)) resolve(0)
        else reject(toDiskError(error, point, this.path))
      })
    })
  }

  #writeUnder(fault: Fault, { point, source, start, end, position }: Piece): void {
    const middle = halfWay(start, end, this.#isDirect)
    if (fault.kind === 'short' || fault.kind === 'short-kill') this.#writeFully(point, source, start, middle, position)
    if (fault.kind === 'kill-after') this.#writeFully(point, source, start, end, position)
    if ('code' in fault) throw faultError(fault.code, point, this.path)
    if (fault.kind === 'bug') throw plantedBug(point)
    killProcess()
  }

  sync(point: FaultPoint): void {
    performUnder(strike(this.#faults, point), point, this.path, () => fdatasyncSync(this.#open()))
  }

  async syncLater(point: FaultPoint): Promise<void> {
    const fault = strike(this.#faults, point)
    if (fault !== null) return performUnder(fault, point, this.path, () => fdatasyncSync(this.#open()))
    const descriptor = this.#open()
    return new Promise((resolve, reject) => {
      fdatasync(descriptor, error => {
        if (error === null) resolve()
        else reject(toDiskError(error, point, this.path))
      })
    })
  }

  sizeBytes(): number {
    return translated(this.#openPoint, this.path, () => fstatSync(this.#open()).size)
  }

  truncate(point: FaultPoint, sizeBytes: number): void {
    performUnder(strike(this.#faults, point), point, this.path, () => ftruncateSync(this.#open(), sizeBytes))
  }

  close(): void {
    const descriptor = this.#open()
    this.#descriptor = -1
    for (const each of [descriptor, ...this.#refused]) translated(this.#openPoint, this.path, () => closeSync(each))
  }

  #open(): number {
    assert(this.#descriptor >= 0, 'file used after close')
    return this.#descriptor
  }

  /** The fault that strikes a read or a write; one that refuses a direct file is dealt with here. */
  #strike(point: FaultPoint): Fault | null {
    const fault = strike(this.#faults, point)
    if (!this.#isDirect || !refusesDirect(fault)) return fault
    translated(point, this.path, () => this.#becomeBuffered(point))
    return null
  }

  /** A disk that fills up in the middle takes fewer bytes first and refuses the rest at the next call: hence the loop. */
  #writeFully(point: FaultPoint, source: Uint8Array, start: number, end: number, position: number): void {
    let at = start
    while (at < end) {
      const count = translated(point, this.path, () =>
        this.#unlessRefused(point, () => writeSync(this.#open(), source, at, end - at, position + at - start))
      )
      if (count === 0) throw new DiskError('EIO', point, `the disk took no byte of a write to ${this.path}`)
      // Part of a block counts for nothing on a direct file: the next write must begin at a block again.
      const taken = this.#isDirect ? count - (count % DIRECT_BLOCK_BYTES) : count
      if (taken === 0) throw new DiskError('ENOSPC', point, `the disk took part of a block of ${this.path}`)
      at += taken
    }
  }

  /** Does a read or write; once more, buffered, if the file is direct and the file system will not do that. */
  #unlessRefused(point: FaultPoint, action: () => number): number {
    try {
      return action()
    } catch (error) {
      if (!this.#isDirect || !isDirectRefusal(error)) throw error
      this.#becomeBuffered(point, error)
      return action()
    }
  }

  /** Opens the file by name once more. @throws DiskError EINVAL if the name leads to another file by now. */
  #becomeBuffered(point: FaultPoint, cause?: unknown): void {
    const buffered = openBuffered(this.path).descriptor
    if (!isSameFile(this.#open(), buffered)) {
      closeSync(buffered)
      throw new DiskError('EINVAL', point, `direct access to ${this.path} is refused, and the file was moved`, cause)
    }
    this.#refused.push(this.#open())
    this.#descriptor = buffered
    this.#isDirect = false
  }
}

function openBuffered(path: string): OpenedFile {
  return { descriptor: openSync(path, 'r+'), isDirect: false }
}

function createBuffered(path: string): OpenedFile {
  return { descriptor: openSync(path, 'wx+', FILE_MODE), isDirect: false }
}

function openDirectly(path: string): OpenedFile {
  // Only Linux has the flag.
  if (!('O_DIRECT' in constants)) return openBuffered(path)
  try {
    return { descriptor: openSync(path, constants.O_RDWR | constants.O_DIRECT), isDirect: true }
  } catch (error) {
    if (!isDirectRefusal(error)) throw error
    return openBuffered(path)
  }
}

/** In two steps: a file system that refuses O_DIRECT may have made the file before it says so. */
function createDirectly(path: string): OpenedFile {
  closeSync(createBuffered(path).descriptor)
  try {
    return openDirectly(path)
  } catch (error) {
    unlinkSync(path)
    throw error
  }
}

function isDirectRefusal(error: unknown): boolean {
  return error instanceof Error && 'code' in error && directRefusals.includes(error.code)
}

function isSameFile(one: number, other: number): boolean {
  const [a, b] = [fstatSync(one, { bigint: true }), fstatSync(other, { bigint: true })]
  return a.ino === b.ino && a.dev === b.dev
}

/** Counts the call; one that is held waits here. @returns what else strikes it. */
function strike(faults: FaultPlan | null, point: FaultPoint): Exclude<Fault, { kind: 'hold' }> | null {
  const fault = faults?.strike(point) ?? null
  if (fault?.kind !== 'hold') return fault
  const bell = new Int32Array(new SharedArrayBuffer(4))
  // Nobody rings: the wait is the pause between two looks.
  while (existsSync(fault.while)) Atomics.wait(bell, 0, 0, HOLD_LOOK_MS)
  return null
}

function performUnder<T>(fault: Fault | null, point: FaultPoint, path: string, action: () => T): T {
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
