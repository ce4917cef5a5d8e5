/**
 * What an archive is to hold of a settled data directory: which files, made of which bytes. Looks at manifests only.
 *
 * Pack files hold many topics side by side, and what nothing names any more. So they are not copied: what the wanted
 * partitions have in them goes into packs of its own, one row of packs per shard and topic. A `.log` goes as far as its
 * manifest says and no further. So an archive has no byte of a topic that was left out, and a restore can leave out more.
 *
 *   old pack   ▕ a ▏▕ b ▏▕ gone ▏▕ a ▏          pack of topic a   ▕ a ▏▕ a ▏
 *                                        ─▶     pack of topic b   ▕ b ▏
 */
import type { Disk } from '../../disk/disk.ts'
import { encodeManifest } from '../../log/manifest-format.ts'
import type { Extent, Manifest, ManifestPartition, ManifestSegment } from '../../log/manifest.ts'
import { BLOCK_ENTRY_BYTES } from '../../log/segment-blocks.ts'
import { packPath, segmentPath, type SegmentFileKind } from '../../log/segment-files.ts'
import type { ShardOfEpoch } from '../../log/shard-place.ts'
import type { DumpFile, DumpPart } from './dump-pieces.ts'

/** A pack goes only when nothing in it is needed any more: so they do not grow without end. */
const PACK_BYTES_MAX = 256 * 1024 * 1024

/** A shard of which everything is settled. */
export interface SettledShard {
  readonly manifest: Manifest
  /** Of its journal, relative to the data directory: `journal/000`. */
  readonly label: string
}

/** Id of the topic that has a handle, null if none has; or that the handle is left out. */
export type TopicOf = (handle: number) => number | null | 'left out'

/**
 * All files of an archive but the store and the list, manifests first.
 * @throws DiskError if the directory cannot be looked at.
 */
export function planFiles(
  disk: Disk,
  dataDirectory: string,
  shards: readonly SettledShard[],
  topicOf: TopicOf
): DumpFile[] {
  const manifests: DumpFile[] = []
  const files: DumpFile[] = []
  for (const { manifest, label } of shards) {
    const plan = new ShardPlan(disk, dataDirectory, manifest)
    const partitions = new Map<number, ManifestPartition>()
    for (const [handle, partition] of [...manifest.partitions].sort(([a], [b]) => a - b)) {
      const topic = topicOf(handle)
      if (topic !== 'left out') partitions.set(handle, plan.add(partition, topic))
    }
    files.push(...plan.finish())
    const dumped = { ...manifest, nextPack: plan.nextPack, partitions, removals: [] }
    const bytes = encodeManifest(dumped)
    manifests.push({ path: `${label}/manifest`, topic: null, parts: [{ kind: 'made', bytes }] })
  }
  return [...manifests, ...files]
}

/** A pack that takes more. */
interface OpenPack {
  readonly number: number
  readonly parts: DumpPart[]
  bytes: number
}

class ShardPlan {
  readonly #disk: Disk
  readonly #dataDirectory: string
  readonly #shard: ShardOfEpoch
  /** Numbers of packs are never used again. */
  nextPack: number
  readonly #files: DumpFile[] = []
  readonly #packs = new Map<number | null, OpenPack>()

  constructor(disk: Disk, dataDirectory: string, manifest: Manifest) {
    this.#disk = disk
    this.#dataDirectory = dataDirectory
    this.#shard = manifest
    this.nextPack = manifest.nextPack
  }

  /** Takes a partition's files in. @returns it as the archive's manifest has it. */
  add(partition: ManifestPartition, topic: number | null): ManifestPartition {
    const segments = partition.segments.map(segment => this.#addSegment(partition, segment, topic))
    const damaged = partition.damaged.map(range => {
      const isKept = range.path !== null && this.#addWhole(range.path, topic)
      return isKept ? range : { ...range, path: null }
    })
    return { ...partition, segments, damaged }
  }

  finish(): readonly DumpFile[] {
    for (const topic of [...this.#packs.keys()]) this.#endPack(topic)
    return this.#files
  }

  #addSegment(partition: ManifestPartition, segment: ManifestSegment, topic: number | null): ManifestSegment {
    // Its bytes stay where they are: what is restored needs the same cold storage.
    if (segment.cold !== undefined) return segment
    const own = segment.extents.filter(({ pack }) => pack === 0)
    const path = (kind: SegmentFileKind): string => segmentPath(partition.directory, segment, kind)
    if (own.length > 0) {
      const logBytes = own.reduce((end, { position, bytes }) => Math.max(end, position + bytes), 0)
      this.#addFile(path('.log'), topic, logBytes)
      const blocksEnd = own.reduce((end, extent) => Math.max(end, ownBlocksEnd(extent)), 0)
      if (blocksEnd > 0) this.#addIfWhole(path('.blocks'), topic, blocksEnd)
      // Made anew from the blocks where they are missing; while a segment grows it has none.
      if (segment.isSealed) for (const kind of ['.index', '.timeindex'] as const) this.#addWhole(path(kind), topic)
    }
    return { ...segment, extents: segment.extents.map(extent => this.#addPacked(extent, topic)) }
  }

  #addPacked(extent: Extent, topic: number | null): Extent {
    let { pack, position, blocksPack, blocksPosition } = extent
    if (pack !== 0) [pack, position] = this.#pack(topic, { pack, position, byteCount: extent.bytes })
    if (blocksPack !== 0) {
      const byteCount = extent.blockCount * BLOCK_ENTRY_BYTES
      const place = { pack: blocksPack, position: blocksPosition, byteCount }
      ;[blocksPack, blocksPosition] = this.#pack(topic, place)
    }
    return { ...extent, pack, position, blocksPack, blocksPosition }
  }

  /** @returns number of the topic's pack, and where in it the bytes come to lie. */
  #pack(topic: number | null, place: { pack: number; position: number; byteCount: number }): [number, number] {
    let open = this.#packs.get(topic)
    if (open !== undefined && open.bytes > 0 && open.bytes + place.byteCount > PACK_BYTES_MAX) {
      this.#endPack(topic)
      open = undefined
    }
    if (open === undefined) {
      open = { number: this.nextPack++, parts: [], bytes: 0 }
      this.#packs.set(topic, open)
    }
    const { position, byteCount } = place
    const at = open.bytes
    open.parts.push({ kind: 'range', path: packPath(this.#shard, place.pack), position, byteCount })
    open.bytes += byteCount
    return [open.number, at]
  }

  #endPack(topic: number | null): void {
    const open = this.#packs.get(topic)
    if (open === undefined) return
    this.#packs.delete(topic)
    this.#files.push({ path: packPath(this.#shard, open.number), topic, parts: open.parts })
  }

  #addFile(path: string, topic: number | null, byteCount: number): void {
    this.#files.push({ path, topic, parts: [{ kind: 'range', path, position: 0, byteCount }] })
  }

  /** A file that a reader can do without. */
  #addIfWhole(path: string, topic: number | null, byteCount: number): void {
    const absolute = `${this.#dataDirectory}/${path}`
    if (this.#disk.exists(absolute) && this.#disk.sizeOf(absolute) >= byteCount) this.#addFile(path, topic, byteCount)
  }

  /** @returns false: it is not there. */
  #addWhole(path: string, topic: number | null): boolean {
    const absolute = `${this.#dataDirectory}/${path}`
    if (!this.#disk.exists(absolute)) return false
    this.#addFile(path, topic, this.#disk.sizeOf(absolute))
    return true
  }
}

function ownBlocksEnd({ blocksPack, blocksPosition, blockCount }: Extent): number {
  return blocksPack === 0 ? blocksPosition + blockCount * BLOCK_ENTRY_BYTES : 0
}
