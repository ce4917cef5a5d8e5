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

  /** There is no room, or the quota is used up: what makes room makes it go through. */
  get isFull(): boolean {
    return this.code === 'ENOSPC' || this.code === 'EDQUOT'
  }
}

/**
 * A direct file bypasses the page cache. There a position and a length are multiples of DIRECT_BLOCK_BYTES, and memory
 * is aligned to it (aligned-memory.ts); anything else is a bug of the caller. Only truncate takes any size.
 */
export interface DiskFile {
  readonly path: string
  /**
   * True while the file bypasses the page cache; false for ordinary files. A direct file turns false, for good, when
   * the file system refuses to do that, be it at a later call; that call and all others then do the same, buffered.
   */
  readonly isDirect: boolean
  /** Reads up to `length` bytes at `position` into target[targetStart…]. @returns bytes read; fewer only at the end of the file. */
  read(point: FaultPoint, target: Uint8Array, targetStart: number, length: number, position: number): number
  /** Writes all of source[start, end) at `position`, or throws DiskError. */
  write(point: FaultPoint, source: Uint8Array, start: number, end: number, position: number): void
  /**
   * The same off this thread. The memory is not changed and the file not closed before it has ended; no other call of
   * the file touches the same bytes meanwhile.
   * @fails DiskError
   */
  writeLater(point: FaultPoint, source: Uint8Array, start: number, end: number, position: number): Promise<void>
  /** fdatasync: on return everything written to this file is on disk, with the size needed to read it. */
  sync(point: FaultPoint): void
  /** The same off this thread, so that several files are synced at once. Not closed before it has ended. @fails DiskError */
  syncLater(point: FaultPoint): Promise<void>
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
  /** As open, bypassing the page cache where the file system does that: see DiskFile.isDirect. */
  openDirect(point: FaultPoint, path: string): DiskFile
  /** As create, bypassing the page cache where the file system does that: see DiskFile.isDirect. */
  createDirect(point: FaultPoint, path: string): DiskFile
  exists(path: string): boolean
  /** Size of a file in bytes, without opening it. */
  sizeOf(path: string): number
  /** Bytes that files below the directory `path` may still take. */
  freeBytes(path: string): number
  /** Names in a directory, sorted by code unit. */
  list(path: string): string[]
  makeDirectory(point: FaultPoint, path: string): void
  rename(point: FaultPoint, from: string, to: string): void
  remove(point: FaultPoint, path: string): void
  /** Takes an empty directory away; ENOTEMPTY if it is not. Durable only after syncDirectory of its parent. */
  removeDirectory(point: FaultPoint, path: string): void
  /** fsync of a directory: names made, moved and removed in it are durable on return. */
  syncDirectory(point: FaultPoint, path: string): void
}
