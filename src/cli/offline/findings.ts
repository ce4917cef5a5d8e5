/**
 * What `verify` has to say: damage, what was repaired, and notes about what is unfinished but not wrong. Owned by one run of the command.
 * Bounded: of very many findings the first are kept and the rest is counted.
 */
import type { PartitionName } from './partition-names.ts'

/** Findings of either kind that are kept: more than anyone reads, and a few megabytes. */
const KEPT_MAX = 10_000

/** One range of one file, or a fact about a file, a slot or a partition. */
export interface Finding {
  /** Relative to the data directory, with slashes. */
  readonly file: string
  /** In the file; the end is exclusive. null: not about certain bytes. */
  readonly startByte: number | null
  readonly endByte: number | null
  /** The partition whose records are concerned, or null if it is none in particular. */
  readonly partition: PartitionName | null
  /** Both inclusive; null unless certain offsets are concerned. */
  readonly firstOffset: number | null
  readonly lastOffset: number | null
  /** What is wrong. A sentence without a full stop, like `meaning`. */
  readonly problem: string
  /** What it means for whoever reads, or for the next start. */
  readonly meaning: string
}

/** Bytes [startByte, endByte) of a file. */
export interface ByteRange {
  readonly startByte: number
  readonly endByte: number
}

/** Whose records a finding is about. */
export interface OffsetRange {
  readonly partition: PartitionName
  readonly firstOffset: number
  readonly lastOffset: number
}

export interface FindingWords {
  readonly file: string
  readonly bytes?: ByteRange | undefined
  readonly offsets?: OffsetRange | undefined
  readonly problem: string
  readonly meaning: string
}

export class Findings {
  readonly damage: Finding[] = []
  readonly notes: Finding[] = []
  readonly repairs: Finding[] = []
  damageCount = 0
  noteCount = 0
  repairCount = 0

  /** Something on disk is not as it was written. */
  addDamage(words: FindingWords): void {
    this.damageCount++
    if (this.damage.length < KEPT_MAX) this.damage.push(findingOf(words))
  }

  /** Something that a kill or a power cut leaves, which the next start puts right. */
  addNote(words: FindingWords): void {
    this.noteCount++
    if (this.notes.length < KEPT_MAX) this.notes.push(findingOf(words))
  }

  /** Something on disk was not as it must be, and is now. */
  addRepair(words: FindingWords): void {
    this.repairCount++
    if (this.repairs.length < KEPT_MAX) this.repairs.push(findingOf(words))
  }
}

function findingOf({ file, bytes, offsets, problem, meaning }: FindingWords): Finding {
  return {
    file,
    startByte: bytes?.startByte ?? null,
    endByte: bytes?.endByte ?? null,
    partition: offsets?.partition ?? null,
    firstOffset: offsets?.firstOffset ?? null,
    lastOffset: offsets?.lastOffset ?? null,
    problem,
    meaning
  }
}
