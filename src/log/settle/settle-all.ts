/**
 * Settles everything that a shard's journal holds: opens its log by the recovery rules, seals what is open, and runs settle
 * jobs until no slot is left. For a broker that stands still: a dump, or a change of the number of shards. Runs on the
 * thread that holds the directory's lock; nobody else may have the shard's log open, or its manifest.
 *
 *   recovery (V1 to V5) ─▶ seal ─▶ close ─▶ job · job · … ─▶ files that nothing names any more are removed
 *
 * Invariants: stopped anywhere, also by a power cut, the next start or the next call goes on where this one was, because
 * each job is one commit (S1). On return all records lie in segment files and packs, durable; the slot files stay, free.
 */
import { assert } from '../../base/assert.ts'
import type { RecoveryReport } from '../../wire/shard/messages.ts'
import { commitManifest, loadManifest } from '../manifest-file.ts'
import type { Manifest } from '../manifest.ts'
import type { SealedSlot } from '../sealed-slots.ts'
import { ShardLog, type ShardLogOptions } from '../shard-log.ts'
import type { SettleMemory } from './settle-memory.ts'
import { removeDue } from './removals.ts'
import { settle, type HandlePlace } from './settle.ts'

/** Slot bytes that one job takes: what a crash makes the next call do again. */
const JOB_BYTES = 1024 * 1024 * 1024
/** No group is encoded here, and a slot is opened for copies of groups in doubt at most: little will do. */
const ENCODE_BYTES = 64 * 1024
const SLOT_BYTES = 1024 * 1024

type LogPart =
  | 'disk'
  | 'directory'
  | 'dataDirectory'
  | 'shard'
  | 'placementEpoch'
  | 'hasManifest'
  | 'newestSlot'
  | 'clock'
  | 'drawSalt'

export interface SettleAllOptions extends Pick<ShardLogOptions, LogPart> {
  /** What each handle is; those of deleted topics are dropped, from the manifest too. */
  readonly placeOf: (handle: number) => HandlePlace
  /** May be used again for the next shard. */
  readonly memory: SettleMemory
}

/** How far it is, in bytes of slots that hold groups. `totalBytes` is 0 until recovery is through. */
export interface SettleAllProgress {
  readonly doneBytes: number
  readonly totalBytes: number
}

export interface SettleAllResult {
  /** Durable: what the shard is now. */
  readonly manifest: Manifest
  /** Sequence of the newest slot; 0: none ever. The store must never say a greater one. */
  readonly newestSlot: number
  readonly recovery: RecoveryReport
  /** Runs put aside because their bytes are damaged. */
  readonly damagedRuns: number
  readonly readBytes: number
  readonly writtenBytes: number
}

/**
 * Settles a shard, step by step.
 * @throws BrokerError NOT_READY where an operator must decide; DiskError. Call it again when the cause is gone.
 */
export function* settleAll(options: SettleAllOptions): Generator<SettleAllProgress, SettleAllResult, undefined> {
  const { disk, directory, dataDirectory, shard, placementEpoch, placeOf, memory, clock } = options
  const journal = recoverAndSeal(options)
  const totalBytes = journal.slots.reduce((sum, { usedBytes }) => sum + usedBytes, 0)
  let doneBytes = 0
  let manifest = loadManifest(disk, directory, shard, placementEpoch)
  const sums = { damagedRuns: 0, readBytes: 0, writtenBytes: 0 }
  const left = [...journal.slots]
  // At least once: deleted topics may have left something in the manifest.
  do {
    const steps = settle({ disk, dataDirectory, journalDirectory: directory, memory }, manifest, {
      slots: takeJob(left),
      placeOf,
      startOffsets: journal.startOffsets,
      nowMs: clock.nowMs(),
      graceMs: 0
    })
    let step = steps.next()
    try {
      for (; step.done !== true; step = steps.next()) yield { doneBytes, totalBytes }
    } finally {
      // Ends the job where it stands if nobody wants more of it: what it wrote is taken away.
      if (step.done !== true) steps.return(undefined as never)
    }
    const { settledSequence } = step.value.manifest
    assert(left.length === 0 || settledSequence > manifest.settledSequence, 'each job settles a slot at least')
    manifest = step.value.manifest
    sums.damagedRuns += step.value.damagedRuns
    sums.readBytes += step.value.readBytes
    sums.writtenBytes += step.value.writtenBytes
    while ((left[0]?.sequence ?? Number.POSITIVE_INFINITY) <= settledSequence) doneBytes += left.shift()?.usedBytes ?? 0
    yield { doneBytes, totalBytes }
  } while (left.length > 0)
  assert(manifest.settledSequence === journal.newestSlot, 'nothing is left in slots')
  manifest = removeUnused(options, manifest)
  return { manifest, newestSlot: journal.newestSlot, recovery: journal.recovery, ...sums }
}

interface RecoveredJournal {
  readonly slots: readonly SealedSlot[]
  readonly startOffsets: ReadonlyMap<number, number>
  readonly newestSlot: number
  readonly recovery: RecoveryReport
}

/** The log is closed again before anything is settled: its index of runs takes memory, and nobody reads it here. */
function recoverAndSeal(options: SettleAllOptions): RecoveredJournal {
  const log = new ShardLog({
    ...options,
    openFilesMax: 1,
    slotBytes: SLOT_BYTES,
    firstSlotBytes: SLOT_BYTES,
    encodeBufferBytes: ENCODE_BYTES
  })
  try {
    log.sealOpenSlot()
    const startOffsets = new Map<number, number>()
    for (const { handle, startOffset, settled } of log.table.recoveredLogs()) {
      if (startOffset > (settled?.startOffset ?? 0)) startOffsets.set(handle, startOffset)
    }
    return { slots: log.sealedSlots, startOffsets, newestSlot: log.newestSlot, recovery: log.report }
  } finally {
    log.close()
  }
}

/** The slots of the next job; they stay in `left` until it is committed. */
function takeJob(left: readonly SealedSlot[]): SealedSlot[] {
  const slots: SealedSlot[] = []
  let bytes = 0
  for (const slot of left) {
    if (slots.length > 0 && bytes + slot.usedBytes > JOB_BYTES) break
    slots.push(slot)
    bytes += slot.usedBytes
  }
  return slots
}

/** Nobody reads, so no grace is due. What the disk refuses to remove stays named, and is tried again by the broker. */
function removeUnused({ disk, directory, dataDirectory }: SettleAllOptions, manifest: Manifest): Manifest {
  if (manifest.removals.length === 0) return manifest
  const { left } = removeDue(disk, dataDirectory, manifest.removals, Number.POSITIVE_INFINITY)
  if (left.length === manifest.removals.length) return manifest
  const swept = { ...manifest, commit: manifest.commit + 1, removals: left }
  commitManifest(disk, directory, swept)
  return swept
}
