/**
 * `verify` of a whole data directory: the store, then every shard, what it has settled first. Goes on behind whatever it
 * finds.
 */
import { statSync } from 'node:fs'
import type { Decisions } from '../../log/decisions.ts'
import type { Manifest } from '../../log/manifest.ts'
import type { DataDirectory, ShardJournal } from './data-directory.ts'
import { journalPath } from '../../log/shard-place.ts'
import { Findings } from './findings.ts'
import { readShardDecisions, readShardManifest } from './manifest-reading.ts'
import { SettledCheck, settledBytes } from './settled-check.ts'
import { ShardCheck, type ShardCount } from './shard-check.ts'
import { surveySlots, type Survey } from './slot-survey.ts'
import { noteFiles } from './stray-files.ts'

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

/** A directory whose slots and extents were counted, to be checked next. */
export interface Plan {
  /** Of all slots that hold groups, and of all that is settled: what progress is counted against. */
  readonly totalBytes: number
  run(onProgress: ProgressListener): Verification
}

/** What is to be checked of one shard. */
interface ShardPlan {
  readonly journal: ShardJournal
  readonly survey: Survey
  readonly manifest: Manifest | null
  readonly manifestBytes: number
  readonly decisions: Decisions
}

/**
 * Looks at the store, the manifests and all slot headers.
 * @param repairs files that can be made again from the log are written anew; the directory is writable then.
 * @throws StoreOpenError newer-format
 */
export function planVerification(directory: DataDirectory, repairs = false): Plan {
  const findings = new Findings()
  checkStore(directory, findings)
  checkJournals(directory, findings)
  const shards = directory.journals.map(journal => planShard(directory, journal, findings))
  const manifests = shards.flatMap(({ manifest }) => (manifest === null ? [] : [manifest]))
  // Of a manifest that cannot be read nobody knows which files it names.
  if (manifests.length === shards.length) noteFiles(directory.path, manifests, findings)
  let totalBytes = 0
  for (const { survey, manifest } of shards) {
    totalBytes += survey.slots.reduce((sum, slot) => sum + slot.sizeBytes, settledBytes(manifest))
  }
  return { totalBytes, run: onProgress => runChecks({ directory, repairs, shards, findings, onProgress }) }
}

function planShard(directory: DataDirectory, journal: ShardJournal, findings: Findings): ShardPlan {
  const { manifest, problem, file, bytes } = readShardManifest(directory.disk, journal)
  if (problem !== null) {
    const meaning = 'a start refuses this shard; what is settled of it was not checked'
    findings.addDamage({ file, bytes: bytes === 0 ? undefined : { startByte: 0, endByte: bytes }, problem, meaning })
  }
  const decided = readShardDecisions(directory.disk, journal)
  if (decided.problem !== null) {
    const decisionFile = `${journal.label}/decisions.json`
    findings.addDamage({ file: decisionFile, problem: decided.problem, meaning: 'a start refuses this shard' })
  }
  const known = {
    newestSlot: newestSlotOf(directory, journal),
    settledSequence: manifest === null ? null : manifest.settledSequence,
    decisions: decided.decisions
  }
  const survey = surveySlots(directory.disk, journal, known, findings)
  return { journal, survey, manifest, manifestBytes: bytes, decisions: decided.decisions }
}

/** What the store remembers of a shard's journal: its last slot may be missing, and no gap would tell. */
export function newestSlotOf({ store }: DataDirectory, { shard }: ShardJournal): number {
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
  const { shardCount, placementEpoch } = image
  const found = new Set(journals.map(journal => journal.shard))
  for (let shard = 0; shard < shardCount; shard++) {
    // Before the first topic it may not have been made yet.
    if (found.has(shard) || image.nextHandle === 1) continue
    const file = journalPath({ shard, placementEpoch })
    findings.addDamage({ file, problem: `the journal of shard ${shard} is missing`, meaning: 'its records are gone' })
  }
  for (const { shard, label } of journals) {
    if (shard < shardCount) continue
    const problem = `the store knows of ${shardCount} shard(s), numbered from 0`
    findings.addNote({ file: label, problem, meaning: 'the broker does not look at it' })
  }
}

interface CheckParts {
  readonly directory: DataDirectory
  readonly repairs: boolean
  readonly shards: readonly ShardPlan[]
  readonly findings: Findings
  readonly onProgress: ProgressListener
}

function runChecks({ directory, repairs, shards: plans, findings, onProgress }: CheckParts): Verification {
  const files = { disk: directory.disk, dataDir: directory.path, repairs }
  let doneBytes = 0
  let doneRecords = 0
  const shards = plans.map(({ journal, survey, manifest, manifestBytes, decisions }) => {
    const count: ShardCount = {
      shard: journal.shard,
      slots: 0,
      spares: survey.spareCount,
      groups: 0,
      segments: 0,
      batches: 0,
      records: 0,
      undecodable: 0,
      bytes: manifestBytes
    }
    const tell = (bytes: number): void => onProgress(doneBytes + bytes, doneRecords + count.records)
    const parts = { directory, journal, findings, count, onProgress: tell }
    if (manifest !== null) new SettledCheck(parts, manifest, files).check()
    doneBytes += settledBytes(manifest)
    const check = new ShardCheck(parts, manifest, decisions)
    for (const slot of survey.slots) {
      check.check(slot)
      doneBytes += slot.sizeBytes
      tell(0)
    }
    doneRecords += count.records
    noteUndecodable(count, journal, findings)
    return count
  })
  const { store, path } = directory
  return { path, topics: store.image?.topics.length ?? null, storeBytes: store.bytes, shards, findings }
}

/** They are as a client of Kafka's protocol sent them. */
function noteUndecodable({ undecodable }: ShardCount, { label }: ShardJournal, findings: Findings): void {
  if (undecodable === 0) return
  const problem = `the records of ${undecodable} batch(es) of this shard cannot be decoded; their checksums are right`
  const meaning = 'a client sent them so: Kafka clients get them as they are, readers of records pass over them'
  findings.addNote({ file: label, problem, meaning })
}
