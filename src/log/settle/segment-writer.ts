/**
 * Writes the runs of one partition into segment files: the second half of a settle job. Settler thread, or a tool that
 * holds the lock.
 *
 *   a segment with little in it     extents in the job's pack file, shared by all partitions
 *   ownBytesMin and more            its own `.log`; what lay in packs is copied there first
 *   sealed, with its own `.log`     the `.log` is cut to its length; `.blocks`, `.index`, `.timeindex` beside it
 */
import { assert } from '../../base/assert.ts'
import { limits } from '../../model/limits.ts'
import type { DamagedRun } from '../../wire/shard/settle.ts'
import { entryKinds } from '../group-format.ts'
import { encodeOffsetIndex, encodeTimeIndex } from '../kafka-index.ts'
import type { DamagedRange, Extent } from '../manifest.ts'
import { BLOCK_ENTRY_BYTES, BlockBuilder, BlockTable } from '../segment-blocks.ts'
import { segmentPath } from '../segment-files.ts'
import type { SettleOutput, SettleStep } from './output.ts'
import { readPackedExtent, type PackedPiece } from './packed-extent.ts'
import type { PartitionDraft, SegmentDraft } from './partition-draft.ts'
import type { PlannedEntry } from './plan.ts'
import { RunReader } from './run-reader.ts'

export interface SegmentSizes {
  /** From so many bytes on they go to the segment's own log: below, its sync would cost more than a second copy. */
  readonly ownBytesMin: number
  /** Bytes after which others get a turn. */
  readonly turnBytes: number
}
export const segmentSizes: SegmentSizes = { ownBytesMin: 128 * 1024, turnBytes: 1024 * 1024 }

/** An extent whose block entries are not written yet. */
type NewExtent = Omit<Extent, 'blocksPack' | 'blocksPosition'>

export class SegmentWriter {
  readonly #output: SettleOutput
  readonly #reader: RunReader
  readonly #shard: number
  readonly #sizes: SegmentSizes
  readonly #builder = new BlockBuilder()
  #turnBytes = 0
  damagedRuns = 0
  /** The first of them, limits.damagedRunsReported at most. */
  readonly damaged: DamagedRun[] = []

  constructor(output: SettleOutput, reader: RunReader, shard: number, sizes = segmentSizes) {
    this.#output = output
    this.#reader = reader
    this.#shard = shard
    this.#sizes = sizes
  }

  /** Writes all runs of the partition, and completes the segments that are sealed. @throws DiskError */
  *write(draft: PartitionDraft): Generator<SettleStep, void, undefined> {
    for (const segment of draft.segments) {
      const runs = segment.runs.filter(
        ({ entry }) => entry.kind === entryKinds.run && entry.nextOffset > draft.startOffset
      )
      for (const run of segment.runs) if (run.entry.kind !== entryKinds.run) this.quarantine(draft, run)
      const newBytes = runs.reduce((sum, { entry }) => sum + entry.bytes, 0)
      // What lies in packs is always behind what lies in the log: it goes there together, with what is new.
      const packedBytes = segment.extents.reduce((sum, { pack, bytes }) => sum + (pack === 0 ? 0 : bytes), 0)
      const isEnough = newBytes + packedBytes >= this.#sizes.ownBytesMin
      if (isEnough || needsFiles(segment, newBytes)) yield* this.#writeOwn(draft, segment, runs)
      else if (runs.length > 0) yield* this.#writePacked(draft, segment, runs)
      segment.runs.length = 0
    }
  }

  *#writePacked(
    draft: PartitionDraft,
    segment: SegmentDraft,
    runs: readonly PlannedEntry[]
  ): Generator<SettleStep, void, undefined> {
    const output = this.#output
    const position = output.packPosition
    this.#builder.reset()
    this.#builder.begin(segment.baseOffset)
    const written = yield* this.#copyRuns(draft, runs, 0, (bytes, start, end) => output.appendPack(bytes, start, end))
    if (written.bytes === 0) return
    const extent = { pack: output.pack, position, ...written }
    segment.extents = [...segment.extents, this.#keepBlocks(extent)]
  }

  *#writeOwn(
    draft: PartitionDraft,
    segment: SegmentDraft,
    runs: readonly PlannedEntry[]
  ): Generator<SettleStep, void, undefined> {
    const output = this.#output
    const old = segment.extents.filter(({ pack }) => pack === 0)
    const packed = segment.extents.filter(({ pack }) => pack !== 0)
    const committed = old.reduce((sum, extent) => Math.max(sum, extent.position + extent.bytes), 0)
    this.#builder.reset()
    yield* output.awaitMemory()
    output.beginLog(segmentPath(draft.directory, segment, '.log'), committed)
    const append = (bytes: Buffer, start: number, end: number): void => output.appendLog(bytes, start, end)
    const added: NewExtent[] = []
    for (const extent of packed) {
      const moved = this.#movePacked(draft, segment, extent)
      if (moved !== null) added.push(moved)
      yield* this.#turn(extent.bytes)
    }
    const before = this.#builder.count
    this.#builder.begin(segment.baseOffset)
    const position = output.logPosition
    const written = yield* this.#copyRuns(draft, runs, position, append)
    if (written.bytes > 0) added.push({ pack: 0, position, ...written, blockCount: this.#builder.count - before })
    if (old.length === 0 && added.length === 0) {
      // Nothing of it is whole: all is in quarantine.
      output.dropLog()
      segment.extents = []
      return
    }
    output.endLog(segment.isSealed)
    if (segment.isSealed) this.#completeFiles(draft, segment, old, added)
    else segment.extents = [...old, ...this.#keepAll(added)]
  }

  /** Copies what is whole of an extent out of a pack into the log at hand. null: nothing is. */
  #movePacked(draft: PartitionDraft, segment: SegmentDraft, extent: Extent): NewExtent | null {
    const output = this.#output
    const packed = readPackedExtent(output, draft.witness, segment, extent)
    const before = this.#builder.count
    this.#builder.begin(segment.baseOffset)
    const position = output.logPosition
    let bytes = 0
    let first: PackedPiece | null = null
    let nextOffset = 0
    for (const piece of packed.pieces) {
      if (!piece.isWhole) {
        this.#keepDamaged(draft, piece, packed.bytes.subarray(piece.start, piece.end))
        continue
      }
      this.#builder.add(packed.bytes, piece.start, piece.end, position + bytes)
      output.appendLog(packed.bytes, piece.start, piece.end)
      bytes += piece.end - piece.start
      first ??= piece
      nextOffset = piece.nextOffset
    }
    this.#builder.close()
    if (first === null) return null
    return {
      pack: 0,
      position,
      bytes,
      baseOffset: first.firstOffset,
      nextOffset,
      blockCount: this.#builder.count - before
    }
  }

  /** Appends the runs that are whole and adds them to the builder; the others are put aside. */
  *#copyRuns(
    draft: PartitionDraft,
    runs: readonly PlannedEntry[],
    position: number,
    append: (bytes: Buffer, start: number, end: number) => void
  ): Generator<SettleStep, Pick<Extent, 'bytes' | 'baseOffset' | 'nextOffset' | 'blockCount'>, undefined> {
    const reader = this.#reader
    const before = this.#builder.count
    let bytes = 0
    let baseOffset = -1
    let nextOffset = 0
    for (let i = 0; i < runs.length; i++) {
      const run = runs[i] as PlannedEntry
      const { entry, slot } = run
      const at = reader.read(runs, i)
      if (at < 0 || !reader.isWhole(entry, at, slot.seed)) {
        this.#putAside(draft, run, at)
        continue
      }
      this.#builder.add(reader.buffer, at, at + entry.bytes, position + bytes)
      append(reader.buffer, at, at + entry.bytes)
      bytes += entry.bytes
      if (baseOffset < 0) baseOffset = entry.baseOffset
      nextOffset = entry.nextOffset
      yield* this.#turn(entry.bytes)
    }
    this.#builder.close()
    return { bytes, baseOffset, nextOffset, blockCount: this.#builder.count - before }
  }

  /** Its bytes are kept as they are, in a file of their own; its offsets are never served (V2). @throws DiskError */
  quarantine(draft: PartitionDraft, run: PlannedEntry): void {
    this.#putAside(draft, run, this.#reader.read([run], 0))
  }

  /** @param at where the reader has the run; −1: nothing of it can be read, so nothing can be kept. */
  #putAside(draft: PartitionDraft, { entry }: PlannedEntry, at: number): void {
    const bytes = at < 0 ? null : this.#reader.buffer.subarray(at, at + entry.bytes)
    this.#keepDamaged(draft, { firstOffset: entry.baseOffset, nextOffset: entry.nextOffset }, bytes)
  }

  #keepDamaged(
    draft: PartitionDraft,
    { firstOffset, nextOffset }: Pick<DamagedRange, 'firstOffset' | 'nextOffset'>,
    bytes: Buffer | null
  ): void {
    const { handle } = draft
    const name = `quarantine/${this.#shard}-${handle}-${String(firstOffset).padStart(20, '0')}.bytes`
    const path = bytes === null ? null : name
    if (bytes !== null) this.#output.writeFile(name, bytes, 'quarantine')
    draft.addDamaged({ firstOffset, nextOffset, path })
    if (this.damagedRuns++ >= limits.damagedRunsReported) return
    this.damaged.push({ handle, firstOffset, nextOffset, isKept: path !== null })
  }

  /** Puts the entries of the extent just written into the pack. */
  #keepBlocks(extent: NewExtent): Extent {
    return this.#keepAll([extent])[0] as Extent
  }

  #keepAll(extents: readonly NewExtent[]): Extent[] {
    if (extents.length === 0) return []
    const entries = this.#builder.entries
    let blocksPosition = this.#output.packPosition
    this.#output.appendPack(entries, 0, entries.length)
    return extents.map(extent => {
      const kept = { ...extent, blocksPack: this.#output.pack, blocksPosition }
      blocksPosition += extent.blockCount * BLOCK_ENTRY_BYTES
      return kept
    })
  }

  /** The segment gets no more records: its blocks, and Kafka's indexes beside its log. */
  #completeFiles(
    draft: PartitionDraft,
    segment: SegmentDraft,
    old: readonly Extent[],
    added: readonly NewExtent[]
  ): void {
    const parts = old.map(extent => {
      const entries = Buffer.allocUnsafe(extent.blockCount * BLOCK_ENTRY_BYTES)
      this.#output.readPack(extent.blocksPack, entries, extent.blocksPosition)
      return entries
    })
    const entries = Buffer.concat([...parts, this.#builder.entries])
    const blocks = new BlockTable(entries, segment.baseOffset)
    const path = (kind: '.blocks' | '.index' | '.timeindex'): string => segmentPath(draft.directory, segment, kind)
    const all = [...old, ...added]
    const first = all[0]
    const last = all.at(-1)
    assert(first !== undefined && last !== undefined, 'a segment with files has batches')
    // Entries that a disk garbled are no ground for indexes; readers make them again from the batches.
    const isSound = blocks.isPlausible(last.nextOffset, last.position + last.bytes)
    this.#output.writeFile(path('.blocks'), entries)
    this.#output.writeFile(path('.index'), isSound ? encodeOffsetIndex(blocks) : Buffer.alloc(0))
    this.#output.writeFile(path('.timeindex'), isSound ? encodeTimeIndex(blocks) : Buffer.alloc(0))
    segment.extents = [
      {
        pack: 0,
        position: 0,
        bytes: last.position + last.bytes,
        baseOffset: first.baseOffset,
        nextOffset: last.nextOffset,
        blockCount: blocks.count,
        blocksPack: 0,
        blocksPosition: 0
      }
    ]
  }

  *#turn(bytes: number): Generator<SettleStep, void, undefined> {
    this.#turnBytes += bytes
    if (this.#turnBytes < this.#sizes.turnBytes) return
    this.#turnBytes = 0
    yield
  }
}

/** Sealed, with its own log, and something of it is not where it stays. */
function needsFiles({ isSealed, extents }: SegmentDraft, newBytes: number): boolean {
  if (!isSealed || !extents.some(({ pack }) => pack === 0)) return false
  return newBytes > 0 || extents.some(({ pack, blocksPack }) => pack !== 0 || blocksPack !== 0)
}
