/**
 * What is in memory of segment files: block tables, and the piece read last. One per shard, shared by its readers,
 * because a turn uses one at a time. Every byte in the piece was checked (R2).
 *
 * A segment in cold storage is read from its copy in the cache, which others fetch and take away as they like: where there
 * is none, or a bad one, ColdSegmentAbsent is thrown, and asking again later is all that is to do.
 */
import { assert } from '../base/assert.ts'
import { batchBytesAt, batchStatus, checkBatch } from '../wire/batch/view.ts'
import { cachedPath } from '../wire/shard/cold.ts'
import { rebuildExtent, type RebuiltBlocks } from './extent-blocks.ts'
import { DiskError, type DiskFile } from '../disk/disk.ts'
import { ColdSegmentAbsent, coldSegmentOf } from './cold-segment.ts'
import type { Extent, ManifestPartition, ManifestSegment } from './manifest.ts'
import { BLOCK_ENTRY_BYTES, BlockTable } from './segment-blocks.ts'
import { cachedName, packPath, segmentPath, type SegmentFiles } from './segment-files.ts'
import type { ShardOfEpoch } from './shard-place.ts'

/** Bytes of one piece, unless a single block is larger. */
const PIECE_BYTES = 256 * 1024
/** Block tables kept, in bytes; one is kept whatever its size. */
const TABLES_BYTES_MAX = 8 * 1024 * 1024
/** Of one of them, its key and objects. */
const TABLE_BYTES = 512
/** Extents whose greatest timestamp is kept when their table is not: about a MiB, for searches by time. */
const TIMESTAMPS_MAX = 4096

/** An extent with what is needed to find and read it. */
export interface ExtentPlace {
  readonly path: string
  readonly partition: ManifestPartition
  readonly segment: ManifestSegment
  readonly extent: Extent
  readonly table: BlockTable
  /** Made again from the batches: a block of it that is not whole is damaged. */
  readonly isRebuilt: boolean
  /** Bytes of the extent that its blocks tell of: less than all if they had to be made again and a batch was damaged. */
  readonly coveredBytes: number
}

interface KeptTable {
  readonly table: BlockTable
  readonly isRebuilt: boolean
}

export class SettledWindow {
  readonly files: SegmentFiles
  readonly #shard: ShardOfEpoch
  /** By file and position, least recently used first. */
  readonly #tables = new Map<string, KeptTable>()
  #tablesBytes = 0
  /** Greatest timestamps, by the same keys, oldest first. */
  readonly #timestamps = new Map<string, number>()
  buffer = Buffer.allocUnsafeSlow(0)
  #path = ''
  /** The piece is bytes [start, start + length) of the file. */
  #start = 0
  #length = 0
  #diskBytes = 0
  /** Names of copies that were used since somebody looked. */
  readonly usedCopies = new Set<string>()

  constructor(files: SegmentFiles, shard: ShardOfEpoch) {
    this.files = files
    this.#shard = shard
  }

  /**
   * Finds the extent's file and its blocks; made again from its batches where the entries are missing or bad.
   * @throws ColdSegmentAbsent, DiskError
   */
  place(partition: ManifestPartition, segment: ManifestSegment, extent: Extent): ExtentPlace {
    const path = this.#pathOf(partition, segment, extent.pack, '.log')
    const key = keyOf(path, extent)
    const known = this.#tables.get(key)
    if (known !== undefined) {
      this.#tables.delete(key)
      this.#tables.set(key, known)
      return placed(path, partition, segment, extent, known)
    }
    const loaded = this.#loadTable(partition, segment, extent)
    if (loaded === null && segment.cold !== undefined) throw this.#badCopy(path, partition, segment, extent)
    const kept =
      loaded === null
        ? { table: this.#rebuild(path, partition, segment, extent).table, isRebuilt: true }
        : { table: loaded, isRebuilt: false }
    this.#keep(key, kept)
    return placed(path, partition, segment, extent, kept)
  }

  /**
   * A block did not check: if the batches themselves are whole and are those that must stand there, it was an entry that
   * is bad, and blocks made again take its place.
   * @returns null: the bytes are bad. @cost reads the extent, unless the block's own batches tell. @throws DiskError
   */
  rebuilt(partition: ManifestPartition, place: ExtentPlace, i: number): ExtentPlace | null {
    const { path, segment, extent } = place
    // After a compaction nothing but the entries vouches for offsets.
    if (place.isRebuilt || segment.compaction > 0 || !this.#hasWholeBatches(place, i)) return null
    const { table, isComplete } = this.#rebuild(path, partition, segment, extent)
    if (!isComplete) return null
    const key = keyOf(path, extent)
    const old = this.#tables.get(key)
    if (old !== undefined) this.#drop(key, old)
    this.#timestamps.delete(key)
    const kept = { table, isRebuilt: true }
    this.#keep(key, kept)
    return placed(path, partition, segment, extent, kept)
  }

  /**
   * Greatest timestamp of the extent as its blocks have it, ms; TIMESTAMP_NONE if it has no record. Known for many more
   * extents than tables are kept of.
   */
  timestampMax(partition: ManifestPartition, segment: ManifestSegment, extent: Extent): number {
    const key = keyOf(this.#pathOf(partition, segment, extent.pack, '.log'), extent)
    const known = this.#timestamps.get(key)
    if (known !== undefined) return known
    if (segment.cold !== undefined) return segment.cold.timestampMax
    const greatest = this.place(partition, segment, extent).table.greatestTimestamp()
    this.#timestamps.set(key, greatest)
    for (const oldest of this.#timestamps.keys()) {
      if (this.#timestamps.size <= TIMESTAMPS_MAX) break
      this.#timestamps.delete(oldest)
    }
    return greatest
  }

  /**
   * Index in `buffer` of the first byte of block i, which was checked; −1: its bytes are damaged.
   * @throws DiskError, ColdSegmentAbsent: also where the bytes of a copy are damaged.
   */
  load(place: ExtentPlace, i: number): number {
    const { table } = place
    const position = filePosition(place, i)
    const end = position + table.bytes(i)
    if (place.path === this.#path && position >= this.#start && end <= this.#start + this.#length) {
      return position - this.#start
    }
    let last = i
    while (last + 1 < table.count && filePosition(place, last + 1) + table.bytes(last + 1) - position <= PIECE_BYTES)
      last++
    const wanted = filePosition(place, last) + table.bytes(last) - position
    if (wanted > this.buffer.length) this.buffer = Buffer.allocUnsafeSlow(Math.max(wanted, PIECE_BYTES))
    this.#path = place.path
    this.#start = position
    // Nothing counts as present if the read is refused.
    this.#length = 0
    const file = this.#fileOf(place.path, place.partition, place.segment, place.extent)
    const read = file.read('segment.read', this.buffer, 0, wanted, position)
    this.#diskBytes += read
    for (let block = i; block <= last; block++) {
      const start = filePosition(place, block) - position
      const blockEnd = start + table.bytes(block)
      if (blockEnd > read) break
      if (!table.check(block, this.buffer, start)) break
      this.#length = blockEnd
    }
    if (this.#length >= table.bytes(i)) return 0
    if (place.segment.cold === undefined) return -1
    // What lies in cold storage was whole when it got there.
    throw this.#badCopy(place.path, place.partition, place.segment, place.extent)
  }

  /** What the copy is read by is closed: its successor is another file of that name. */
  #badCopy(path: string, partition: ManifestPartition, segment: ManifestSegment, extent: Extent): ColdSegmentAbsent {
    this.forget([path, this.#pathOf(partition, segment, 0, '.blocks')])
    return absent(partition, segment, extent, true)
  }

  /** The open file. @throws ColdSegmentAbsent if it is a copy that is not here. */
  #fileOf(path: string, partition: ManifestPartition, segment: ManifestSegment, extent: Extent): DiskFile {
    if (segment.cold === undefined) return this.files.file(path)
    this.usedCopies.add(cachedName(partition.handle, segment))
    try {
      return this.files.file(path)
    } catch (error) {
      if (!(error instanceof DiskError) || error.code !== 'ENOENT') throw error
      throw absent(partition, segment, extent, false)
    }
  }

  /** Bytes read since the last call. */
  takeDiskBytes(): number {
    const bytes = this.#diskBytes
    this.#diskBytes = 0
    return bytes
  }

  /** Forgets what was read of files that are about to go. @cost one pass over what is kept, however many they are. */
  forget(paths: readonly string[]): void {
    if (paths.length === 0) return
    const going = new Set(paths)
    this.files.forget(going)
    for (const [key, table] of this.#tables) if (going.has(pathOfKey(key))) this.#drop(key, table)
    for (const key of this.#timestamps.keys()) if (going.has(pathOfKey(key))) this.#timestamps.delete(key)
    if (going.has(this.#path)) this.#length = 0
  }

  #pathOf(partition: ManifestPartition, segment: ManifestSegment, pack: number, kind: '.log' | '.blocks'): string {
    if (segment.cold !== undefined) return cachedPath(cachedName(partition.handle, segment), kind)
    return pack === 0 ? segmentPath(partition.directory, segment, kind) : packPath(this.#shard, pack)
  }

  #loadTable(partition: ManifestPartition, segment: ManifestSegment, extent: Extent): BlockTable | null {
    const path = this.#pathOf(partition, segment, extent.blocksPack, '.blocks')
    if (segment.cold === undefined && !this.files.exists(path)) return null
    const file = this.#fileOf(path, partition, segment, extent)
    const entries = Buffer.allocUnsafe(extent.blockCount * BLOCK_ENTRY_BYTES)
    const read = file.read('segment.read', entries, 0, entries.length, extent.blocksPosition)
    this.#diskBytes += read
    if (read !== entries.length) return null
    const table = new BlockTable(entries, segment.baseOffset)
    const from = extent.pack === 0 ? extent.position : 0
    return table.isPlausible(extent.nextOffset, from + extent.bytes, from) ? table : null
  }

  /** Blocks as the batches themselves give them; they end where one is not whole. */
  #rebuild(path: string, partition: ManifestPartition, segment: ManifestSegment, extent: Extent): RebuiltBlocks {
    const file = this.files.file(path)
    const read = (target: Buffer, length: number, position: number): number => {
      const count = file.read('segment.read', target, 0, length, position)
      this.#diskBytes += count
      return count
    }
    return rebuildExtent(read, partition, segment, extent)
  }

  /** True if the batches of block i have whole checksums: a cheap first look. */
  #hasWholeBatches(place: ExtentPlace, i: number): boolean {
    const position = filePosition(place, i)
    const bytes = Buffer.allocUnsafe(place.table.bytes(i))
    const read = this.files.file(place.path).read('segment.read', bytes, 0, bytes.length, position)
    this.#diskBytes += read
    for (let at = 0; at < read; at += batchBytesAt(bytes, at)) {
      if (checkBatch(bytes, at, read) !== batchStatus.ok) return false
    }
    return read === bytes.length
  }

  #keep(key: string, kept: KeptTable): void {
    this.#tables.set(key, kept)
    this.#tablesBytes += memoryOf(kept)
    for (const [oldest, old] of this.#tables) {
      if (this.#tablesBytes <= TABLES_BYTES_MAX || oldest === key) return
      this.#drop(oldest, old)
    }
  }

  #drop(key: string, kept: KeptTable): void {
    this.#tables.delete(key)
    this.#tablesBytes -= memoryOf(kept)
  }
}

/** What a kept table costs: of many small ones the objects weigh more than the entries. */
function memoryOf({ table }: KeptTable): number {
  return TABLE_BYTES + table.count * BLOCK_ENTRY_BYTES
}

/** Two extents never have one: bytes of a file are written once. */
function keyOf(path: string, { position, bytes }: Extent): string {
  return `${path}:${position}:${bytes}`
}

/** No path that a manifest may name has a colon. */
function pathOfKey(key: string): string {
  return key.slice(0, key.indexOf(':'))
}

function placed(
  path: string,
  partition: ManifestPartition,
  segment: ManifestSegment,
  extent: Extent,
  kept: KeptTable
): ExtentPlace {
  const { table, isRebuilt } = kept
  const last = table.count - 1
  const from = extent.pack === 0 ? extent.position : 0
  const coveredBytes = last < 0 ? 0 : table.position(last) + table.bytes(last) - from
  return { path, partition, segment, extent, table, isRebuilt, coveredBytes }
}

function absent(
  partition: ManifestPartition,
  segment: ManifestSegment,
  extent: Extent,
  isBad: boolean
): ColdSegmentAbsent {
  const { cold } = segment
  assert(cold !== undefined, 'only what is in cold storage can be absent')
  return new ColdSegmentAbsent(coldSegmentOf(partition, segment, extent, cold), isBad)
}

/** Position of a block in its file: positions in a pack count from the extent. */
function filePosition({ extent, table }: ExtentPlace, i: number): number {
  return extent.pack === 0 ? table.position(i) : extent.position + table.position(i)
}
