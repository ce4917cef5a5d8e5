/** Settling in tests: the same job as the settler thread runs, over any disk, to its end or to a step. */
import type { Disk } from '../../src/disk/disk.ts'
import { loadManifest } from '../../src/log/manifest-file.ts'
import type { SettleStep } from '../../src/log/settle/output.ts'
import { SettleMemory } from '../../src/log/settle/settle-memory.ts'
import type { SegmentSizes } from '../../src/log/settle/segment-writer.ts'
import { settle, type SettleJob, type SettleResult } from '../../src/log/settle/settle.ts'
import type { ShardLog } from '../../src/log/shard-log.ts'
import { testDirectory } from './log-harness.ts'

const memory = new SettleMemory()

export interface SettleChoices extends Partial<SettleJob> {
  /** Default: those of production. */
  readonly sizes?: SegmentSizes
  /** Written and synced as the settler thread does it. */
  readonly syncsLater?: boolean
}

export interface SettleOptions extends SettleChoices {
  readonly disk: Disk
  readonly log: ShardLog
}

/** A job over the sealed slots of a log, as a generator. */
export function* settleSteps(options: SettleOptions): Generator<SettleStep, SettleResult, undefined> {
  const { disk, log, sizes, syncsLater = false } = options
  const directories = { dataDirectory: '/data', journalDirectory: testDirectory }
  const place = { disk, ...directories, memory, syncsLater, ...(sizes && { sizes }) }
  return yield* settle(place, loadManifest(disk, testDirectory, 0, 1), {
    slots: [...log.sealedSlots],
    placeOf: handle => ({ kind: 'kept', directory: `topics/t~1/${handle}` }),
    startOffsets: new Map(),
    nowMs: 1_700_000_000_000,
    graceMs: 0,
    ...options
  })
}

/** Settles what is sealed, and lets the log adopt it and use the slots again. */
export function settleAll(disk: Disk, log: ShardLog, options: SettleChoices = {}): SettleResult {
  const steps = settleSteps({ disk, log, ...options })
  for (;;) {
    const step = steps.next()
    if (step.done !== true) continue
    log.adopt(step.value.changed)
    log.freeSlots(step.value.manifest.settledSequence)
    return step.value
  }
}

/** settleAll, written and synced off the thread. */
export async function settleAllLater(disk: Disk, log: ShardLog, options: SettleChoices = {}): Promise<SettleResult> {
  const steps = settleSteps({ disk, log, syncsLater: true, ...options })
  for (;;) {
    const step = steps.next()
    if (step.done !== true) {
      await step.value
      continue
    }
    log.adopt(step.value.changed)
    log.freeSlots(step.value.manifest.settledSequence)
    return step.value
  }
}
