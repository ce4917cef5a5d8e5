/**
 * `verify` of a whole data directory: the store, then every shard. Reads only, and goes on behind whatever it finds.
 */
import { statSync } from 'node:fs'
import type { DataDirectory, ShardJournal } from './data-directory.ts'
import { Findings } from './findings.ts'
import { ShardCheck, type ShardCount } from './shard-check.ts'
import { surveySlots, type Survey } from './slot-survey.ts'

/** What there is, and what is wrong with it. */
export interface Verification {
  readonly path: string
  /** Live topics; null: the store could not be read. */
  readonly topics: number | null
  readonly storeBytes: number
  readonly shards: readonly ShardCount[]
  readonly findings: Findings
}

/** Hears how far the check has come. */
export type ProgressListener = (doneBytes: number, recordCount: number) => void

/** A directory whose slots were counted, to be checked next. */
export interface Plan {
  /** Of all slots that hold groups: what progress is counted against. */
  readonly totalBytes: number
  run(onProgress: ProgressListener): Verification
}

/** Looks at the store and at all slot headers. @throws StoreOpenError newer-format */
export function planVerification(directory: DataDirectory): Plan {
  const findings = new Findings()
  checkStore(directory, findings)
  checkJournals(directory, findings)
  const surveys = directory.journals.map(journal => {
    return { journal, survey: surveySlots(directory.disk, journal, newestSlotOf(directory, journal), findings) }
  })
  const slots = surveys.flatMap(({ survey }) => survey.slots)
  return {
    totalBytes: slots.reduce((sum, slot) => sum + slot.sizeBytes, 0),
    run: onProgress => runChecks(directory, surveys, findings, onProgress)
  }
}

/** What the store remembers of a shard's journal: its last slot may be missing, and no gap would tell. */
function newestSlotOf({ store }: DataDirectory, { shard }: ShardJournal): number {
  return store.image?.newestSlots.find(slot => slot.shard === shard)?.sequence ?? 0
}

function checkStore({ store, names, path }: DataDirectory, findings: Findings): void {
  const file = 'store.db'
  const isUnreadable = store.image === null
  const meaning = isUnreadable
    ? 'the broker does not start, and nothing names the topics of the records below'
    : 'the broker may refuse to start, or show topics and settings wrongly'
  const bytes =
    isUnreadable && store.bytes > 0 ? { startByte: 0, endByte: statSync(`${path}/${file}`).size } : undefined
  for (const problem of store.problems) findings.addDamage({ file, bytes, problem, meaning })
  for (const [first, second] of names.overlaps()) {
    const problem = `topics '${first}' and '${second}' claim the same partition handles`
    findings.addDamage({ file, problem, meaning: 'their records are mixed up' })
  }
}

/** The journal of a shard that is missing is made anew by a start, empty: so its loss must be said here. */
function checkJournals({ store, journals }: DataDirectory, findings: Findings): void {
  const { image } = store
  if (image === null || image.shardCount === null) return
  const found = new Set(journals.map(journal => journal.shard))
  for (let shard = 0; shard < image.shardCount; shard++) {
    // Before the first topic it may not have been made yet.
    if (found.has(shard) || image.nextHandle === 1) continue
    const file = `journal/${String(shard).padStart(3, '0')}`
    findings.addDamage({ file, problem: `the journal of shard ${shard} is missing`, meaning: 'its records are gone' })
  }
  for (const { shard, label } of journals) {
    if (shard < image.shardCount) continue
    const problem = `the store knows of ${image.shardCount} shard(s), numbered from 0`
    findings.addNote({ file: label, problem, meaning: 'the broker does not look at it' })
  }
}

function runChecks(
  directory: DataDirectory,
  surveys: readonly { readonly journal: ShardJournal; readonly survey: Survey }[],
  findings: Findings,
  onProgress: ProgressListener
): Verification {
  let doneBytes = 0
  let doneRecords = 0
  const shards = surveys.map(({ journal, survey }) => {
    const count: ShardCount = {
      shard: journal.shard,
      slots: 0,
      spares: survey.spareCount,
      groups: 0,
      batches: 0,
      records: 0,
      bytes: 0
    }
    const tell = (slotBytes: number): void => onProgress(doneBytes + slotBytes, doneRecords + count.records)
    const check = new ShardCheck({ directory, journal, findings, count, onProgress: tell })
    for (const slot of survey.slots) {
      check.check(slot)
      doneBytes += slot.sizeBytes
      tell(0)
    }
    doneRecords += count.records
    return count
  })
  const { store, path } = directory
  return { path, topics: store.image?.topics.length ?? null, storeBytes: store.bytes, shards, findings }
}
