/**
 * A change of the number of shards, as far as files go (durability, V7): everything of the present placement is settled,
 * then each shard of the next one gets a manifest, and packs with the extents that lay in packs. Pure over Disk; a
 * generator, so that its caller may do other work in between or stop it anywhere. Runs where the directory's lock is held
 * and no shard has its log open.
 *
 *   epoch e     journal/NNN · packs/NNN          settled, else as before: it counts until the caller's commit
 *   epoch e+1   journal/e2/NNN · packs/e2/NNN    fresh; means nothing before that commit
 *   topics/…    the segments' own files          stay where they are, whoever's manifest names them
 *
 * Invariants: nothing of epoch e + 1 is read here, so a run that was stopped is repeated from its beginning; on return
 * all of epoch e + 1 is durable; no receive time of the new shards is below one of the old (W8).
 */
import { assert } from '../base/assert.ts'
import type { Clock } from '../base/clock.ts'
import { DiskError, type Disk } from '../disk/disk.ts'
import { shardOf } from '../model/ids.ts'
import type { PlacedShards, PlacementProgress } from '../wire/shard/placement.ts'
import { makeJournalDirectory } from './journal-directory.ts'
import { commitManifest } from './manifest-file.ts'
import { emptyManifest, type Extent, type FileRemoval, type Manifest, type ManifestPartition } from './manifest.ts'
import { removeEpoch } from './placement-removal.ts'
import { BLOCK_ENTRY_BYTES } from './segment-blocks.ts'
import { SegmentFiles, packPath } from './segment-files.ts'
import { SettleOutput } from './settle/output.ts'
import type { SettleMemory } from './settle/settle-memory.ts'
import { settleAll } from './settle/settle-all.ts'
import type { HandlePlace } from './settle/settle.ts'
import { journalPath, type ShardOfEpoch } from './shard-place.ts'

/** A pack that is as large gets no more extents: a pack lives as long as the last of them. */
const PACK_BYTES = 256 * 1024 * 1024
/** Read at once of an old pack. */
const PIECE_BYTES = 1024 * 1024
/** Old packs open at once. */
const OPEN_FILES = 8

export interface PlacementChangeOptions {
  readonly disk: Disk
  /** Absolute. */
  readonly dataDirectory: string
  readonly from: PlacedShards
  /** Its epoch is the next one. */
  readonly to: PlacedShards
  /** By old shard: sequence of the newest slot known to have been durable; absent: none. */
  readonly newestSlots: ReadonlyMap<number, number>
  readonly placeOf: (handle: number) => HandlePlace
  readonly memory: SettleMemory
  readonly clock: Clock
  readonly drawSalt: () => Buffer
}

/**
 * Makes the files of the next placement.
 * @throws BrokerError NOT_READY where an operator must decide about an old shard; DiskError. The present placement counts
 * as before, and a repetition is harmless.
 */
export function* changePlacement(options: PlacementChangeOptions): Generator<PlacementProgress, void, undefined> {
  const { disk, dataDirectory, from, to } = options
  assert(to.placementEpoch === from.placementEpoch + 1, 'placements follow each other')
  removeEpoch(disk, dataDirectory, to.placementEpoch)
  const old: Manifest[] = []
  for (let shard = 0; shard < from.shardCount; shard++) old.push(yield* settleShard(options, shard))
  const files = new SegmentFiles(disk, dataDirectory, OPEN_FILES)
  try {
    for (let shard = 0; shard < to.shardCount; shard++) yield* writeShard(options, old, files, shard)
  } finally {
    files.closeAll()
  }
}

function* settleShard(
  options: PlacementChangeOptions,
  shard: number
): Generator<PlacementProgress, Manifest, undefined> {
  const { placementEpoch } = options.from
  yield { phase: 'settling', shard, doneBytes: 0, totalBytes: 0 }
  const steps = settleAll({
    ...options,
    shard,
    placementEpoch,
    directory: `${options.dataDirectory}/${journalPath({ shard, placementEpoch })}`,
    hasManifest: placementEpoch > 1,
    newestSlot: options.newestSlots.get(shard) ?? 0
  })
  for (;;) {
    const step = steps.next()
    if (step.done === true) return step.value.manifest
    yield { phase: 'settling', shard, ...step.value }
  }
}

/** Gives one new shard its packs and its manifest. */
function* writeShard(
  options: PlacementChangeOptions,
  old: readonly Manifest[],
  files: SegmentFiles,
  shard: number
): Generator<PlacementProgress, void, undefined> {
  const { disk, dataDirectory, to } = options
  const place = { shard, placementEpoch: to.placementEpoch }
  const packs = new PackMove(options, files, place)
  const partitions = new Map<number, ManifestPartition>()
  const owned = old.flatMap(owner =>
    [...owner.partitions.values()]
      .filter(({ handle }) => shardOf(handle, to.shardCount) === shard)
      .map(partition => ({ owner, partition }))
  )
  const totalBytes = owned.reduce((sum, { partition }) => sum + packedBytes(partition), 0)
  let isDone = false
  try {
    for (const { owner, partition } of owned) {
      assert(!partitions.has(partition.handle), 'a partition has one owner')
      partitions.set(partition.handle, packs.move(owner, partition))
      yield { phase: 'writing', shard, doneBytes: packs.movedBytes, totalBytes }
    }
    packs.finish()
    isDone = true
  } finally {
    if (!isDone) packs.abandon()
  }
  const directory = `${dataDirectory}/${journalPath(place)}`
  makeJournalDirectory(disk, directory)
  commitManifest(disk, directory, {
    ...emptyManifest(shard, to.placementEpoch),
    commit: 1,
    receiveMsMax: Math.max(...old.map(({ receiveMsMax }) => receiveMsMax)),
    nextPack: packs.nextPack,
    partitions,
    removals: shard === 0 ? removalsOf(old) : []
  })
}

/** What the disk would not remove so far. One shard takes it all on: files are removed by their path. */
function removalsOf(old: readonly Manifest[]): FileRemoval[] {
  return old.flatMap(({ removals }) => removals)
}

function packedBytes({ segments }: ManifestPartition): number {
  return segments.flatMap(({ extents }) => extents).reduce((sum, { pack, bytes }) => sum + (pack === 0 ? 0 : bytes), 0)
}

/** Copies what lies in packs of old shards into packs of a new one, byte for byte: damage stays what it is, and is told. */
class PackMove {
  readonly #options: PlacementChangeOptions
  readonly #files: SegmentFiles
  readonly #shard: ShardOfEpoch
  readonly #piece = Buffer.allocUnsafeSlow(PIECE_BYTES)
  #output: SettleOutput
  nextPack = 1
  movedBytes = 0

  constructor(options: PlacementChangeOptions, files: SegmentFiles, shard: ShardOfEpoch) {
    this.#options = options
    this.#files = files
    this.#shard = shard
    this.#output = this.#begin()
  }

  /** The partition as the new manifest names it. */
  move(owner: ShardOfEpoch, partition: ManifestPartition): ManifestPartition {
    const segments = partition.segments.map(segment => ({
      ...segment,
      extents: segment.extents.map(extent => this.#moveExtent(owner, extent))
    }))
    return { ...partition, generation: partition.generation + 1, segments }
  }

  /** All packs are durable on return. */
  finish(): void {
    if (this.#output.hasPack) this.nextPack++
    this.#output.finish()
  }

  /** Takes the pack under way away; those before it go with the next run. */
  abandon(): void {
    this.#output.abandon()
  }

  #moveExtent(owner: ShardOfEpoch, extent: Extent): Extent {
    const { blockCount, pack, position, bytes, blocksPack, blocksPosition } = extent
    if (pack === 0 && blocksPack === 0) return extent
    if (this.#output.hasPack && this.#output.packPosition >= PACK_BYTES) {
      this.finish()
      this.#output = this.#begin()
    }
    const moved = pack === 0 ? {} : this.#copy(owner, pack, position, bytes)
    const blocks =
      blocksPack === 0 ? null : this.#copy(owner, blocksPack, blocksPosition, blockCount * BLOCK_ENTRY_BYTES)
    return {
      ...extent,
      ...moved,
      ...(blocks === null ? {} : { blocksPack: blocks.pack, blocksPosition: blocks.position })
    }
  }

  #copy(owner: ShardOfEpoch, pack: number, start: number, bytes: number): { pack: number; position: number } {
    const path = packPath(owner, pack)
    const file = this.#files.file(path)
    const position = this.#output.packPosition
    for (let done = 0; done < bytes;) {
      const length = Math.min(bytes - done, PIECE_BYTES)
      const read = file.read('pack.read', this.#piece, 0, length, start + done)
      if (read !== length) throw new DiskError('EIO', 'pack.read', `${file.path} ends before its committed length`)
      this.#output.appendPack(this.#piece, 0, length)
      done += length
    }
    this.movedBytes += bytes
    return { pack: this.#output.pack, position }
  }

  #begin(): SettleOutput {
    const { disk, dataDirectory, memory } = this.#options
    return new SettleOutput(disk, { dataDirectory, shard: this.#shard, pack: this.nextPack }, memory)
  }
}
