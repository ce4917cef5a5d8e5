/**
 * The settler of a simulated life: one job at a time, step by step between what the shard does, with faults of its own.
 * What the settler thread does with a job is done here: adopt, free the slots, remove what is due.
 */
import assert from 'node:assert/strict'
import { DiskError } from '../../src/disk/disk.ts'
import type { FaultPoint } from '../../src/disk/faults.ts'
import { commitManifest, loadManifest } from '../../src/log/manifest-file.ts'
import { emptyManifest, type Manifest } from '../../src/log/manifest.ts'
import type { SettleStep } from '../../src/log/settle/output.ts'
import { SettleMemory } from '../../src/log/settle/settle-memory.ts'
import { removeDue } from '../../src/log/settle/removals.ts'
import { settle, type HandlePlace, type SettleResult } from '../../src/log/settle/settle.ts'
import type { ShardLog } from '../../src/log/shard-log.ts'
import { testDirectory, type ManualClock } from './log-harness.ts'
import type { InterruptibleDisk } from './log-interruptible-disk.ts'
import type { Dice } from './log-random.ts'

const KIB = 1024
/** Small, so that one job makes many writes; shared, because only one life is lived at a time. */
const memory = new SettleMemory(8 * KIB)

const fullPoints: readonly FaultPoint[] = [
  'segment.create',
  'segment.open',
  'segment.write',
  'segment.directory',
  'pack.create',
  'pack.write',
  'manifest.write',
  'manifest.rename'
]
const settleSyncPoints: readonly FaultPoint[] = [
  'segment.sync',
  'segment.truncate',
  'segment.directory-sync',
  'pack.sync',
  'manifest.sync',
  'manifest.directory-sync'
]
const directPoints: readonly FaultPoint[] = ['segment.create', 'segment.write', 'pack.create', 'pack.write']

export interface SettlerCounts {
  settles: number
  commits: number
  failedSettles: number
  bufferedSettles: number
  ownExtents: number
  packExtents: number
  reusedSlots: number
  removedFiles: number
}

export class LifeSettler {
  readonly counts: SettlerCounts = {
    settles: 0,
    commits: 0,
    failedSettles: 0,
    bufferedSettles: 0,
    ownExtents: 0,
    packExtents: 0,
    reusedSlots: 0,
    removedFiles: 0
  }
  readonly #dice: Dice
  readonly #clock: ManualClock
  readonly #placeOf: (handle: number) => HandlePlace
  readonly #ownBytesMin: number
  /** Of the process that is up. */
  #disk: InterruptibleDisk | null = null
  #manifest: Manifest = emptyManifest(0, 1)
  #steps: Generator<SettleStep, SettleResult, undefined> | null = null
  /** Slot files that were settled in this process, until they are found sealed again. */
  readonly #freed = new Set<string>()

  constructor(dice: Dice, clock: ManualClock, placeOf: (handle: number) => HandlePlace) {
    this.#dice = dice
    this.#clock = clock
    this.#placeOf = placeOf
    this.#ownBytesMin = dice.pick([1, 4 * KIB, 32 * KIB])
  }

  /** True while a job is under way. */
  get isBusy(): boolean {
    return this.#steps !== null
  }

  /** A process came up on that disk: what a job of the one before had under way is forgotten. */
  restart(disk: InterruptibleDisk): void {
    this.#steps = null
    this.#freed.clear()
    this.#disk = disk
    this.#manifest = loadManifest(disk, testDirectory, 0, 1)
  }

  /** Begins a job over the first of the sealed slots, or over none: start offsets alone. @param startOffsets durable. */
  begin(log: ShardLog, startOffsets: ReadonlyMap<number, number>): void {
    const slots = [...log.sealedSlots]
    for (const { name } of slots) if (this.#freed.delete(name)) this.counts.reusedSlots++
    const place = {
      disk: this.#upDisk,
      dataDirectory: '/data',
      journalDirectory: testDirectory,
      memory,
      sizes: { ownBytesMin: this.#ownBytesMin, turnBytes: 2 * KIB }
    }
    if (this.#dice.chance(0.25)) this.#armFault()
    this.counts.settles++
    this.#steps = settle(place, this.#manifest, {
      slots: slots.slice(0, this.#dice.chance(0.7) ? slots.length : this.#dice.below(slots.length + 1)),
      placeOf: this.#placeOf,
      startOffsets,
      nowMs: this.#clock.wallMs,
      graceMs: this.#dice.pick([0, 5000])
    })
  }

  /**
   * Lets the job run so many steps. @returns true if it committed: the log has adopted it.
   * @throws DiskError if it is not known whether it committed; whatever freeing slots throws.
   */
  advance(log: ShardLog, steps: number): boolean {
    for (let step = 0; step < steps && this.#steps !== null; step++) {
      const result = this.#step(this.#steps)
      if (result === null) continue
      this.#finish(log, result)
      return true
    }
    return false
  }

  #step(steps: Generator<SettleStep, SettleResult, undefined>): SettleResult | null {
    try {
      const step = steps.next()
      return step.done === true ? step.value : null
    } catch (error) {
      this.#steps = null
      if (!(error instanceof DiskError) || error.point === 'manifest.directory-sync') throw error
      // Nothing was committed: the slots are as they were, and the next job takes them up again.
      this.counts.failedSettles++
      return null
    }
  }

  #finish(log: ShardLog, { manifest, changed, isDirect }: SettleResult): void {
    this.#steps = null
    this.counts.commits++
    if (!isDirect) this.counts.bufferedSettles++
    for (const { segments } of changed) {
      for (const { extents } of segments) {
        for (const { pack } of extents) {
          if (pack === 0) this.counts.ownExtents++
          else this.counts.packExtents++
        }
      }
    }
    this.#manifest = manifest
    log.adopt(changed)
    for (const { name, sequence } of log.sealedSlots) {
      if (sequence <= manifest.settledSequence) this.#freed.add(name)
    }
    log.freeSlots(manifest.settledSequence)
  }

  /** Removes files that are due, and forgets them. */
  removeDue(): void {
    if (this.isBusy) return
    const { left, refused } = removeDue(this.#upDisk, '/data', this.#manifest.removals, this.#clock.wallMs)
    for (const error of refused) throw error
    const removed = this.#manifest.removals.length - left.length
    if (removed === 0) return
    this.counts.removedFiles += removed
    this.#manifest = { ...this.#manifest, commit: this.#manifest.commit + 1, removals: left }
    commitManifest(this.#upDisk, testDirectory, this.#manifest)
  }

  get #upDisk(): InterruptibleDisk {
    assert(this.#disk !== null, 'a process is up')
    return this.#disk
  }

  #armFault(): void {
    const dice = this.#dice
    const kind = dice.pick(['full', 'sync', 'direct'] as const)
    const points = { full: fullPoints, sync: settleSyncPoints, direct: directPoints }[kind]
    const code = ({ full: 'ENOSPC', sync: 'EIO', direct: 'EINVAL' } as const)[kind]
    const point = dice.pick(points)
    const firstCall = this.#upDisk.faults.callCount(point) + 1 + dice.below(3)
    this.#upDisk.faults.arm({ point, firstCall, lastCall: firstCall, fault: { kind: 'error', code } })
  }
}
