/**
 * The manifest of a stopped broker's shard and the decisions about it, as the offline tools read them: what a start would
 * refuse is said and not thrown, so that the rest can still be looked at. Reads only.
 */
import type { Disk } from '../../disk/disk.ts'
import { Decisions, readDecisions } from '../../log/decisions.ts'
import { MANIFEST_VERSION } from '../../log/manifest-format.ts'
import { manifestPath, readManifest } from '../../log/manifest-file.ts'
import { emptyManifest, type Manifest } from '../../log/manifest.ts'
import { hasPacksAlone, lostManifestProblem } from '../../log/lost-manifest.ts'
import { decodeSlotHeader } from '../../log/slot-format.ts'
import { readHeaderBlocks } from '../../log/slot-scan.ts'
import { BrokerError } from '../../model/errors.ts'
import { StoreOpenError } from '../../store/store-open-error.ts'
import type { ShardJournal } from './data-directory.ts'

export interface ManifestReading {
  /** An empty one if the shard has none yet; null: it is damaged or lost, and what it said is not known. */
  readonly manifest: Manifest | null
  readonly problem: string | null
  /** Relative to the data directory. */
  readonly file: string
  readonly bytes: number
}

/** @throws StoreOpenError newer-format; DiskError. */
export function readShardManifest(disk: Disk, journal: ShardJournal): ManifestReading {
  const file = `${journal.label}/manifest`
  const verdict = readManifest(disk, journal.directory)
  if (verdict === null && journal.placementEpoch > 1) {
    return { manifest: null, problem: 'the manifest is missing: this shard began with one', file, bytes: 0 }
  }
  if (verdict === null && isLost(disk, journal)) {
    return { manifest: null, problem: lostManifestProblem(journal.label), file, bytes: 0 }
  }
  if (verdict === null) return { manifest: emptyManifest(journal.shard, 0), problem: null, file, bytes: 0 }
  const bytes = disk.sizeOf(manifestPath(journal.directory))
  switch (verdict.kind) {
    case 'newer':
      throw new StoreOpenError(
        'newer-format',
        `${file} was written by a newer version (manifest format ${verdict.version}; this one reads up to ${MANIFEST_VERSION})`
      )
    case 'damaged':
      return { manifest: null, problem: `the manifest is damaged: ${verdict.problem}`, file, bytes }
    case 'manifest': {
      const { manifest } = verdict
      if (manifest.shard === journal.shard) return { manifest, problem: null, file, bytes }
      const problem = `it says that it belongs to shard ${manifest.shard}, and lies in the journal of shard ${journal.shard}`
      return { manifest: null, problem, file, bytes }
    }
  }
}

/** True if slots that nobody gave up are not there, and only the manifest can have said that they are settled. */
function isLost(disk: Disk, journal: ShardJournal): boolean {
  const { directory, label } = journal
  if (!hasPacksAlone(disk, directory.slice(0, -label.length - 1), directory, journal)) return false
  const { decisions } = readShardDecisions(disk, journal)
  const sequences = disk.list(directory).flatMap(name => sequenceOf(disk, directory, name))
  let expected = decisions.behind(1)
  for (const sequence of sequences.sort((a, b) => a - b)) {
    if (decisions.skipsSlot(sequence)) continue
    if (sequence !== expected) return true
    expected = decisions.behind(expected + 1)
  }
  // What lies in packs was in slots.
  return expected === decisions.behind(1)
}

/** Of a slot file with a readable header: its sequence; else nothing. */
function sequenceOf(disk: Disk, directory: string, name: string): number[] {
  if (!name.endsWith('.slot')) return []
  const file = disk.open('slot.open', `${directory}/${name}`)
  try {
    const verdict = decodeSlotHeader(readHeaderBlocks(file))
    return verdict.kind === 'header' ? [verdict.header.sequence] : []
  } finally {
    file.close()
  }
}

/** What an operator decided about a shard, or why it cannot be read; then nothing counts as decided. */
export interface DecisionReading {
  readonly decisions: Decisions
  readonly problem: string | null
}

/** @throws DiskError */
export function readShardDecisions(disk: Disk, { directory }: ShardJournal): DecisionReading {
  try {
    return { decisions: readDecisions(disk, directory), problem: null }
  } catch (error) {
    if (!(error instanceof BrokerError)) throw error
    return { decisions: new Decisions([]), problem: String(error.details['problem']) }
  }
}
