/**
 * The manifests of all shards, and the jobs that change them, one at a time. Settler thread only.
 * What it keeps in memory is what is on disk: after any error a manifest is read anew.
 *
 * A commit whose last sync failed is in doubt: the manifest that is read anew may be the new one, which the shard was
 * never told. Then that manifest is committed once more, because a sync is never retried as a success (W6); the next
 * settle job tells the shard of everything; and until then no file is removed, for the shard may still read it.
 */
import { setImmediate as turn } from 'node:timers/promises'
import { systemClock } from '../../src/base/clock.ts'
import { DiskError, type Disk } from '../../src/disk/disk.ts'
import { commitManifest, loadManifest } from '../../src/log/manifest-file.ts'
import type { Manifest, ManifestPartition } from '../../src/log/manifest.ts'
import { placeOfHandle } from '../../src/log/settle/handle-place.ts'
import { SettleMemory } from '../../src/log/settle/settle-memory.ts'
import { isUnreadPack } from '../../src/log/settle/pack-reader.ts'
import { changeOf, type PartitionChange } from '../../src/log/settle/partition-change.ts'
import { replaceSegments, type Replacement } from '../../src/log/settle/replace.ts'
import { removeDue } from '../../src/log/settle/removals.ts'
import { settle, type SettleResult } from '../../src/log/settle/settle.ts'
import { isUnreadSlot } from '../../src/log/slot-scan.ts'
import { coldBaseOffsets } from '../../src/log/tiering.ts'
import { BrokerError } from '../../src/model/errors.ts'
import { limits } from '../../src/model/limits.ts'
import { packMessage, unpackMessage } from '../../src/wire/msgpack.ts'
import type { SettlerJob, SettlerReply, ShardPlace } from '../../src/wire/shard/settle.ts'
import { dueObjects, findCompactable, findTierable } from './find-partitions.ts'

export type ManifestJob = Extract<SettlerJob, { place: ShardPlace }>

/** Partitions and segments of one message to a shard: so many are taken in within about a millisecond. */
const PART_SEGMENTS = 500
/** Paths that a report names; beyond it files are closed as others push them out. */
const UNUSED_MAX = 1000

export class ManifestDesk {
  readonly #disk: Disk
  readonly #reply: (message: SettlerReply) => void
  readonly #isCancelled: (shard: number) => boolean
  readonly #manifests = new Map<number, Manifest>()
  /** Generation of each handle of a manifest that its shard was told: a change is told against it, anything else whole. */
  readonly #told = new Map<number, number>()
  /** Shards whose newest commit is in doubt. */
  readonly #doubtful = new Set<number>()
  /** Shards that do not know all of their manifest. */
  readonly #untold = new Set<number>()
  /** Made at the first job: a thread that only fills slots needs none. */
  #memory: SettleMemory | null = null
  /** Shard whose job runs; −1: none. */
  running = -1

  constructor(disk: Disk, reply: (message: SettlerReply) => void, isCancelled: (shard: number) => boolean) {
    this.#disk = disk
    this.#reply = reply
    this.#isCancelled = isCancelled
  }

  /** Partitions whose generation is kept in mind: no more than the manifests have. */
  get toldCount(): number {
    return this.#told.size
  }

  /** Nobody knows whether the newest commit is durable, and whether the shard was told of it. */
  doubt(shard: number): void {
    this.#doubtful.add(shard)
    this.#untold.add(shard)
  }

  /** The shard starts anew and reads its manifest itself; here it is read when it is next needed. */
  forget(shard: number): void {
    this.#untold.delete(shard)
    this.#drop(shard)
  }

  #drop(shard: number): void {
    this.#manifests.delete(shard)
    this.#told.clear()
  }

  /** Runs a job to its end, in turns. Refusals of the disk are answers; only bugs are thrown. */
  async run(job: ManifestJob): Promise<void> {
    const { shard } = job.place
    this.running = shard
    try {
      if (job.kind === 'settle') await this.#settle(job)
      else if (job.kind === 'replace') this.#replace(job)
      else if (job.kind === 'sweep') this.#sweep(job.place)
      else if (job.kind === 'forget-objects') this.#forgetObjects(job)
      else this.#find(job)
    } catch (error) {
      this.#drop(shard)
      if (error instanceof DiskError && error.point === 'manifest.directory-sync') {
        this.#doubtful.add(shard)
        // A sweep changes nothing that a shard knows of.
        if (job.kind !== 'sweep') this.#untold.add(shard)
      }
      this.#reply(failureOf(job, error))
    } finally {
      this.running = -1
    }
  }

  async #settle({ place, wish, topics, graceMs }: Extract<ManifestJob, { kind: 'settle' }>): Promise<void> {
    const startMs = systemClock.monotonicMs()
    const { shard } = place
    this.#memory ??= new SettleMemory()
    const before = this.#manifest(place)
    const steps = settle({ ...place, disk: this.#disk, memory: this.#memory, syncsLater: true }, before, {
      slots: wish.slots,
      placeOf: handle => placeOfHandle(topics, handle),
      startOffsets: new Map(wish.startOffsets),
      nowMs: systemClock.nowMs(),
      graceMs,
      givesUpUnread: wish.unreadJobs >= limits.unreadJobsMax
    })
    for (;;) {
      const step = steps.next()
      if (step.done === true) {
        this.#manifests.set(shard, step.value.manifest)
        this.#report(before, step.value, systemClock.monotonicMs() - startMs)
        return
      }
      await (step.value ?? turn())
      if (!this.#isCancelled(shard)) continue
      // Ends the job where it stands: what it wrote is taken away.
      steps.return(undefined as never)
      return
    }
  }

  #report(before: Manifest, result: SettleResult, milliseconds: number): void {
    const { shard } = before
    const changes = this.#untold.has(shard)
      ? [...result.manifest.partitions.values()].map(now => this.#changeOf(undefined, now, false))
      : result.changed.map(now => this.#changeOf(result.isWhole ? undefined : before, now, false))
    for (const part of partsOf(changes)) this.#reply({ kind: 'settled-part', shard, changes: part })
    this.#untold.delete(shard)
    for (const handle of before.partitions.keys())
      if (!result.manifest.partitions.has(handle)) this.#told.delete(handle)
    const { manifest, readBytes, writtenBytes, damagedRuns, damaged, isDirect } = result
    const unused = result.unused.slice(0, UNUSED_MAX)
    const report = { readBytes, writtenBytes, damagedRuns, damaged, isDirect, unused, milliseconds }
    const nextRemovalMs = nextRemovalOf(manifest)
    this.#reply({ kind: 'settled', shard, report: { ...report, sequence: manifest.settledSequence, nextRemovalMs } })
  }

  #replace({ place, replacement, graceMs }: Extract<ManifestJob, { kind: 'replace' }>): void {
    const { shard } = place
    const before = this.#manifest(place)
    const wanted = unpackMessage(Buffer.from(replacement), 0, replacement.length) as Replacement
    const done = replaceSegments({ ...place, disk: this.#disk }, before, wanted, {
      nowMs: systemClock.nowMs(),
      graceMs
    })
    const after = done?.manifest ?? before
    this.#manifests.set(shard, after)
    const partition = done?.manifest.partitions.get(wanted.handle)
    if (partition !== undefined) {
      const changes = packMessage([this.#changeOf(before, partition, true)])
      this.#reply({ kind: 'settled-part', shard, changes })
    }
    const unused = (done?.unused ?? []).slice(0, UNUSED_MAX)
    const nextRemovalMs = nextRemovalOf(after)
    this.#reply({ kind: 'replaced', shard, isCommitted: done !== null, unused, nextRemovalMs, problem: null })
  }

  /** A question that changes nothing. */
  #find(job: Extract<ManifestJob, { kind: 'find-compactable' | 'find-tierable' | 'find-cold' }>): void {
    const { shard } = job.place
    const manifest = this.#manifest(job.place)
    if (job.kind === 'find-compactable') {
      const partitions = findCompactable(manifest, job.ranges)
      this.#reply({ kind: 'compactable', shard, partitions, problem: null })
    } else if (job.kind === 'find-tierable') {
      const nowMs = systemClock.nowMs()
      const partitions = findTierable(manifest, job.ranges, nowMs)
      this.#reply({ kind: 'tierable', shard, partitions, objects: dueObjects(manifest, nowMs), problem: null })
    } else {
      const partition = manifest.partitions.get(job.handle)
      const baseOffsets = partition === undefined ? [] : coldBaseOffsets(partition, job.startOffset)
      this.#reply({ kind: 'cold', shard, baseOffsets, problem: null })
    }
  }

  #forgetObjects({ place, keys }: Extract<ManifestJob, { kind: 'forget-objects' }>): void {
    const gone = new Set(keys)
    const manifest = this.#manifest(place)
    const removals = manifest.removals.filter(({ path, isCold }) => isCold !== true || !gone.has(path))
    if (removals.length < manifest.removals.length) {
      const after = { ...manifest, commit: manifest.commit + 1, removals }
      commitManifest(this.#disk, place.journalDirectory, after)
      this.#manifests.set(place.shard, after)
    }
    this.#reply({ kind: 'objects-forgotten', shard: place.shard, problem: null })
  }

  #changeOf(before: Manifest | undefined, now: ManifestPartition, isCompaction: boolean): PartitionChange {
    const old = before?.partitions.get(now.handle)
    const isKnown = old !== undefined && this.#told.get(now.handle) === old.generation
    this.#told.set(now.handle, now.generation)
    return changeOf(isKnown ? old : undefined, now, isCompaction)
  }

  #sweep(place: ShardPlace): void {
    const manifest = this.#manifest(place)
    if (this.#untold.has(place.shard)) {
      const problem = 'the shard is not told yet of a commit that was in doubt'
      return this.#reply({ kind: 'swept', shard: place.shard, removed: 0, nextRemovalMs: null, problem })
    }
    const { left, refused } = removeDue(this.#disk, place.dataDirectory, manifest.removals, systemClock.nowMs())
    const removed = manifest.removals.length - left.length
    let after = manifest
    if (removed > 0) {
      after = { ...manifest, commit: manifest.commit + 1, removals: left }
      commitManifest(this.#disk, place.journalDirectory, after)
      this.#manifests.set(place.shard, after)
    }
    const problem = refused[0]?.message ?? null
    this.#reply({ kind: 'swept', shard: place.shard, removed, nextRemovalMs: nextRemovalOf(after), problem })
  }

  #manifest({ shard, placementEpoch, journalDirectory }: ShardPlace): Manifest {
    let manifest = this.#manifests.get(shard)
    if (manifest === undefined) {
      manifest = loadManifest(this.#disk, journalDirectory, shard, placementEpoch)
      if (this.#doubtful.has(shard)) {
        manifest = { ...manifest, commit: manifest.commit + 1 }
        commitManifest(this.#disk, journalDirectory, manifest)
        this.#doubtful.delete(shard)
      }
      this.#manifests.set(shard, manifest)
    }
    return manifest
  }
}

/** What a shard is told of partitions, in messages that it takes in one by one. */
function partsOf(changes: readonly PartitionChange[]): Uint8Array[] {
  const parts: Uint8Array[] = []
  let from = 0
  let segments = 0
  changes.forEach(({ partition }, i) => {
    segments += 1 + partition.segments.length
    if (segments < PART_SEGMENTS && i + 1 < changes.length) return
    parts.push(packMessage(changes.slice(from, i + 1)))
    from = i + 1
    segments = 0
  })
  return parts
}

function failureOf(job: ManifestJob, error: unknown): SettlerReply {
  const { shard } = job.place
  const problem = problemOf(error)
  switch (job.kind) {
    case 'settle': {
      const isFull = error instanceof DiskError && error.isFull
      return {
        kind: 'settle-failed',
        shard,
        failure: { problem, isFull, isUnread: isUnreadSlot(error) || isUnreadPack(error) }
      }
    }
    case 'replace':
      return { kind: 'replaced', shard, isCommitted: false, unused: [], nextRemovalMs: null, problem }
    case 'sweep':
      return { kind: 'swept', shard, removed: 0, nextRemovalMs: null, problem }
    case 'find-compactable':
      return { kind: 'compactable', shard, partitions: null, problem }
    case 'find-tierable':
      return { kind: 'tierable', shard, partitions: null, objects: [], problem }
    case 'find-cold':
      return { kind: 'cold', shard, baseOffsets: null, problem }
    case 'forget-objects':
      return { kind: 'objects-forgotten', shard, problem }
  }
}

/** Of files: objects are somebody else's. */
function nextRemovalOf({ removals }: Manifest): number | null {
  const least = removals.reduce((sum, { dueMs, isCold }) => (isCold ? sum : Math.min(sum, dueMs)), Infinity)
  return least === Infinity ? null : least
}

function problemOf(error: unknown): string {
  if (error instanceof DiskError) return error.message
  // A manifest that cannot be read: its problem is in words already.
  if (error instanceof BrokerError) return String(error.details['problem'] ?? error.message)
  throw error
}
