/**
 * Settling: what sealed slots hold goes to segment files, and one commit of the manifest makes that count (S1). Pure over
 * Disk; a generator, so that its caller may do other work in between or stop it anywhere. Whatever moment it is stopped
 * at, the old manifest counts, or the new one, and both are whole.
 */
import { DiskError, type Disk } from '../../disk/disk.ts'
import type { DamagedRun, SlotToSettle } from '../../wire/shard/settle.ts'
import { commitManifest } from '../manifest-file.ts'
import type { Manifest, ManifestPartition } from '../manifest.ts'
import { SettleOutput, type SettleStep } from './output.ts'
import { PartitionDraft } from './partition-draft.ts'
import { planSettle, type SettlePlan } from './plan.ts'
import { removalsAfter, unusedFiles } from './removals.ts'
import { RunReader } from './run-reader.ts'
import type { SettleMemory } from './settle-memory.ts'
import { SegmentWriter, type SegmentSizes } from './segment-writer.ts'

/** Files synced at once: as many as a pool of four threads keeps busy. */
const SYNCS_MAX = 8

export interface SettlePlace {
  readonly disk: Disk
  /** True: the caller waits for the promises that the job yields. Else each file is synced where it is ended. */
  readonly syncsLater?: boolean
  /** Absolute. */
  readonly dataDirectory: string
  readonly journalDirectory: string
  readonly memory: SettleMemory
  /** Default: segmentSizes. */
  readonly sizes?: SegmentSizes
}

/** What a handle is. */
export type HandlePlace =
  /** Relative to the data directory; also for a handle that nobody knows: its data is kept (V4). */
  | { readonly kind: 'kept'; readonly directory: string }
  /** Its topic is deleted: nothing of it is settled. */
  | { readonly kind: 'dropped' }

export interface SettleJob {
  /** Sealed, in order; the first follows what is settled. */
  readonly slots: readonly SlotToSettle[]
  readonly placeOf: (handle: number) => HandlePlace
  /** Start offsets that are durable in slots behind these, by handle. */
  readonly startOffsets: ReadonlyMap<number, number>
  /** Unix ms. */
  readonly nowMs: number
  /** From the commit to the removal of files that it leaves unused. */
  readonly graceMs: number
  /** What the device does not read of slots and packs is put aside as damaged. Default: it ends the job. */
  readonly givesUpUnread?: boolean
}

export interface SettleResult {
  /** Committed: what counts now. */
  readonly manifest: Manifest
  readonly changed: readonly ManifestPartition[]
  /** True: an earlier commit of this job was never told to the shard, so `changed` is everything. */
  readonly isWhole: boolean
  /** Files that go after the grace. */
  readonly unused: readonly string[]
  /** Of the slots. */
  readonly readBytes: number
  readonly writtenBytes: number
  readonly damagedRuns: number
  /** The first of them. */
  readonly damaged: readonly DamagedRun[]
  /** False: files could not bypass the page cache. */
  readonly isDirect: boolean
}

/**
 * Settles slots and commits.
 * @throws DiskError: nothing was committed, unless it is of the point manifest.directory-sync: then it is not known.
 */
export function* settle(
  place: SettlePlace,
  manifest: Manifest,
  job: SettleJob
): Generator<SettleStep, SettleResult, undefined> {
  for (let wait = place.memory.landed; wait !== null; wait = place.memory.landed) yield wait
  const { settledSequence } = manifest
  const slots = job.slots.filter(({ sequence }) => sequence > settledSequence)
  const plan = planSettle(place.disk, place.journalDirectory, settledSequence, slots)
  const { dataDirectory, syncsLater = false } = place
  const { givesUpUnread = false } = job
  const at = { dataDirectory, shard: manifest, pack: manifest.nextPack, syncsLater, givesUpUnread }
  const output = new SettleOutput(place.disk, at, place.memory)
  const reader = new RunReader(givesUpUnread)
  const writer = new SegmentWriter(output, reader, manifest.shard, place.sizes)
  // A job that was committed, and whose shard was never told: it is told of all.
  const wasCommitted = slots.length < job.slots.length
  const resultOf = (counting: Manifest, changed: readonly ManifestPartition[]): SettleResult => ({
    manifest: counting,
    changed,
    isWhole: wasCommitted,
    unused: counting.removals.slice(manifest.removals.length).flatMap(({ path, isCold }) => (isCold ? [] : [path])),
    readBytes: reader.readBytes,
    writtenBytes: output.writtenBytes,
    damagedRuns: writer.damagedRuns,
    damaged: writer.damaged,
    isDirect: output.isDirect
  })
  let isDone = false
  try {
    const partitions = new Map(manifest.partitions)
    const changed: ManifestPartition[] = []
    for (const draft of draftsOf(manifest, plan, job, partitions)) {
      for (const run of draft.dropBeforeStart()) writer.quarantine(draft, run)
      yield* writer.write(draft)
      yield* output.awaitSyncs(SYNCS_MAX)
      const partition = draft.finish(job.nowMs)
      partitions.set(partition.handle, partition)
      changed.push(partition)
    }
    const hasPack = output.hasPack
    yield* output.awaitSyncs(0)
    output.finish()
    yield
    if (wasCommitted) changed.splice(0, changed.length, ...partitions.values())
    const hasChanged = plan.slots.length > 0 || changed.length > 0 || partitions.size < manifest.partitions.size
    if (!hasChanged || (wasCommitted && plan.slots.length === 0)) {
      isDone = true
      return resultOf(manifest, changed)
    }
    const committed = nextManifest(manifest, plan, partitions, job, hasPack)
    try {
      commitManifest(place.disk, place.journalDirectory, committed)
    } catch (error) {
      // Renamed, and perhaps durable: its files stay, and whoever goes on reads the manifest anew.
      isDone = error instanceof DiskError && error.point === 'manifest.directory-sync'
      throw error
    }
    isDone = true
    return resultOf(committed, changed)
  } finally {
    for (const { file } of plan.slots) file.close()
    if (!isDone) output.abandon()
  }
}

/** The partitions that change, one by one; those of deleted topics are taken out of `partitions`. */
function* draftsOf(
  manifest: Manifest,
  plan: SettlePlan,
  job: SettleJob,
  partitions: Map<number, ManifestPartition>
): Generator<PartitionDraft, void, undefined> {
  for (const handle of new Set([...plan.entries.keys(), ...manifest.partitions.keys()])) {
    const where = job.placeOf(handle)
    if (where.kind === 'dropped') {
      partitions.delete(handle)
      continue
    }
    const entries = plan.entries.get(handle) ?? []
    const old = manifest.partitions.get(handle)
    const startOffset = job.startOffsets.get(handle) ?? 0
    if (entries.length === 0 && startOffset <= (old?.startOffset ?? 0)) continue
    const draft = new PartitionDraft(handle, old?.directory ?? where.directory, old, startOffset)
    draft.apply(entries)
    yield draft
  }
}

function nextManifest(
  manifest: Manifest,
  plan: SettlePlan,
  partitions: Map<number, ManifestPartition>,
  job: SettleJob,
  hasPack: boolean
): Manifest {
  const removals = removalsAfter(manifest, unusedFiles(manifest, partitions), job.nowMs + job.graceMs)
  return {
    ...manifest,
    commit: manifest.commit + 1,
    settledSequence: plan.lastSequence,
    settledGroup: plan.slots.length === 0 ? manifest.settledGroup : plan.lastGroup,
    receiveMsMax: Math.max(manifest.receiveMsMax, plan.receiveMsMax),
    nextPack: manifest.nextPack + (hasPack ? 1 : 0),
    partitions,
    removals
  }
}
