/** Settling in tests: the same job as the settler thread runs, over any disk, to its end or to a step. */
import type { Disk } from '../../src/disk/disk.ts'
import { loadManifest } from '../../src/log/manifest-file.ts'
import { SettleMemory } from '../../src/log/settle/output.ts'
import { settle, type SettleJob, type SettleResult } from '../../src/log/settle/settle.ts'
import type { ShardLog } from '../../src/log/shard-log.ts'
import { testDirectory } from './log-harness.ts'

const memory = new SettleMemory()

export interface SettleOptions extends Partial<SettleJob> {
  readonly disk: Disk
  readonly log: ShardLog
}

/** A job over the sealed slots of a log, as a generator. */
export function* settleSteps(options: SettleOptions): Generator<undefined, SettleResult, undefined> {
  const { disk, log } = options
  const place = { disk, dataDirectory: '/data', journalDirectory: testDirectory, memory }
  return yield* settle(place, loadManifest(disk, testDirectory, 0, 1), {
    slots: log.sealedSlots.map(({ name, sequence }) => ({ name, sequence })),
    placeOf: handle => ({ kind: 'kept', directory: `topics/t~1/${handle}` }),
    startOffsets: new Map(),
    nowMs: 1_700_000_000_000,
    graceMs: 0,
    ...options
  })
}

/** Settles what is sealed, and lets the log adopt it and use the slots again. */
export function settleAll(disk: Disk, log: ShardLog, options: Partial<SettleJob> = {}): SettleResult {
  const steps = settleSteps({ disk, log, ...options })
  for (;;) {
    const step = steps.next()
    if (step.done !== true) continue
    log.adopt(step.value.changed)
    log.freeSlots(step.value.manifest.settledSequence)
    return step.value
  }
}
