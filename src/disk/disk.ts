/**
 * The only door to data files. Synchronous: shard workers block in the disk by design.
 * real-disk.ts is node:fs; simulated-disk.ts keeps unsynced writes apart and loses them at a simulated power cut.
 *
 * Every call names the point at which it stands (`slot.write`, `slot.sync`, …), so that faults and kills can be armed
 * there. The points are listed in faults.ts.
 */
import type { FaultPoint } from './faults.ts'

/** What the disk refused. `code` is the errno name. The bytes of a failed write may be partly there. */
export class DiskError extends Error {
  override readonly name = 'DiskError'
  readonly code: string
  readonly point: FaultPoint
  constructor(code: string, point: FaultPoint, message: string, cause?: unknown) {
    super(message, { cause })
    this.code = code
    this.point = point
  }
}

export interface DiskFile {
  readonly path: string
  /** Reads up to `length` bytes at `position` into target[targetStart…]. @returns bytes read; fewer only at the end of the file. */
  read(point: FaultPoint, target: Uint8Array, targetStart: number, length: number, position: number): number
  /** Writes all of source[start, end) at `position`, or throws DiskError. */
  write(point: FaultPoint, source: Uint8Array, start: number, end: number, position: number): void
  /** fdatasync: on return everything written to this file is on disk, with the size needed to read it. */
  sync(point: FaultPoint): void
  sizeBytes(): number
  truncate(point: FaultPoint, sizeBytes: number): void
  close(): void
}

/** Paths are absolute. Files are made 0600, directories 0700. Errors are DiskError. */
export interface Disk {
  /** Opens an existing file for reading and writing. ENOENT if it is not there. */
  open(point: FaultPoint, path: string): DiskFile
  /** Makes a new empty file; EEXIST if it is there. Its name is durable only after syncDirectory. */
  create(point: FaultPoint, path: string): DiskFile
  exists(path: string): boolean
  /** Names in a directory, sorted by code unit. */
  list(path: string): string[]
  makeDirectory(point: FaultPoint, path: string): void
  rename(point: FaultPoint, from: string, to: string): void
  remove(point: FaultPoint, path: string): void
  /** fsync of a directory: names made, moved and removed in it are durable on return. */
  syncDirectory(point: FaultPoint, path: string): void
}
