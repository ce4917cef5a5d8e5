/**
 * The files of settled data: their names, and the handles of those that are read. Owned by the thread that made it.
 * Handles are bounded: the one unused for longest is closed first.
 */
import type { Disk, DiskFile } from '../disk/disk.ts'
import { packDirectory, type ShardOfEpoch } from './shard-place.ts'

/** What stands behind the base offset in the name of a segment's file. */
export type SegmentFileKind = '.log' | '.blocks' | '.index' | '.timeindex'
export const segmentFileKinds: readonly SegmentFileKind[] = ['.log', '.blocks', '.index', '.timeindex']

/** What a segment's file names are made of. */
export interface SegmentName {
  readonly baseOffset: number
  readonly compaction: number
}

/** Directory of a segment's files, relative to the data directory. */
export function segmentDirectory(partitionDirectory: string, { compaction }: SegmentName): string {
  return compaction === 0 ? partitionDirectory : `${partitionDirectory}/c${compaction}`
}

/** Name of one of a segment's files. */
export function segmentFileName(baseOffset: number, kind: SegmentFileKind): string {
  return `${String(baseOffset).padStart(20, '0')}${kind}`
}

/** Path of one of a segment's files, relative to the data directory. */
export function segmentPath(partitionDirectory: string, segment: SegmentName, kind: SegmentFileKind): string {
  return `${segmentDirectory(partitionDirectory, segment)}/${segmentFileName(segment.baseOffset, kind)}`
}

/** Key of one of a segment's objects in cold storage: its path without the first folder, which is that of all topics. */
export function objectKey(partitionDirectory: string, segment: SegmentName, kind: SegmentFileKind): string {
  const path = segmentPath(partitionDirectory, segment, kind)
  return path.slice(path.indexOf('/') + 1)
}

/** Name that the copy of a cold segment has in the cache: handles are never used twice, so it means one segment for ever. */
export function cachedName(handle: number, { baseOffset, compaction }: SegmentName): string {
  return `${handle}-${String(baseOffset).padStart(20, '0')}-c${compaction}`
}

/** Path of a pack file, relative to the data directory. */
export function packPath(shard: ShardOfEpoch, pack: number): string {
  return `${packDirectory(shard)}/${String(pack).padStart(8, '0')}.pack`
}

export class SegmentFiles {
  readonly dataDirectory: string
  readonly #disk: Disk
  readonly #openMax: number
  /** By path, least recently used first. */
  readonly #open = new Map<string, DiskFile>()

  /** @param openMax handles kept at once. */
  constructor(disk: Disk, dataDirectory: string, openMax: number) {
    this.#disk = disk
    this.dataDirectory = dataDirectory
    this.#openMax = openMax
  }

  get openCount(): number {
    return this.#open.size
  }

  /** @param path relative to the data directory. @throws DiskError */
  file(path: string): DiskFile {
    let file = this.#open.get(path)
    if (file !== undefined) {
      this.#open.delete(path)
      this.#open.set(path, file)
      return file
    }
    while (this.#open.size >= this.#openMax) this.#closeOldest()
    file = this.#disk.open('segment.open', `${this.dataDirectory}/${path}`)
    this.#open.set(path, file)
    return file
  }

  /** @param path relative to the data directory. */
  exists(path: string): boolean {
    return this.#open.has(path) || this.#disk.exists(`${this.dataDirectory}/${path}`)
  }

  /** Closes what is open of those files: they are about to go. */
  forget(paths: ReadonlySet<string>): void {
    for (const path of paths) {
      this.#open.get(path)?.close()
      this.#open.delete(path)
    }
  }

  closeAll(): void {
    for (const file of this.#open.values()) file.close()
    this.#open.clear()
  }

  #closeOldest(): void {
    for (const [path, file] of this.#open) {
      this.#open.delete(path)
      file.close()
      return
    }
  }
}
