/**
 * What main and the settler thread say to each other: structured clones over the thread's port. What a settle job made
 * of partitions travels on to the shard as bytes that main does not look into (manifest shapes, msgpack).
 */
import type { HandleRange } from '../../model/handles.ts'
import type { TierablePartition, TieredRange } from './cold.ts'

/** A slot to settle: its file in the journal's directory, and what tells its groups, which its header and footer say too. */
export interface SlotToSettle {
  readonly name: string
  readonly sequence: number
  /** Salted start of its checksums: no other slot has it, nor another use of the file. */
  readonly seed: number
  /** Of the slots before it. */
  readonly previousLastGroup: number
  /** That counts; 0: it has none. */
  readonly lastGroup: number
}

/** What a range of handles is. */
export interface TopicPlace extends HandleRange {
  /** Relative to the data directory: `topics/orders~17`. null: the topic is deleted, nothing of it is kept. */
  readonly directory: string | null
}

/** What a shard asks for. All may be empty: then what is deleted goes. */
export interface SettleWish {
  readonly slots: readonly SlotToSettle[]
  /** Start offsets above those that the manifest may know, by handle. */
  readonly startOffsets: readonly (readonly [handle: number, offset: number])[]
  /** Jobs in a row that ended because a slot or a pack could not be read. From limits.unreadJobsMax on what still cannot is given up. */
  readonly unreadJobs: number
}

/** Why nothing of a settle job counts. */
export interface SettleFailure {
  readonly problem: string
  /** The disk has no room. */
  readonly isFull: boolean
  /** The device failed to read a slot or a pack. */
  readonly isUnread: boolean
}

/** Offsets that a settle job put aside: their bytes are not what was written, or cannot be read. */
export interface DamagedRun {
  readonly handle: number
  readonly firstOffset: number
  /** Behind the last one. */
  readonly nextOffset: number
  /** False: not even the damaged bytes could be read, so none are kept. */
  readonly isKept: boolean
}

/** Where a shard's files are. */
export interface ShardPlace {
  readonly shard: number
  readonly placementEpoch: number
  /** Absolute. */
  readonly journalDirectory: string
  readonly dataDirectory: string
}

/** Whose slot is filled. */
export interface FillPlace {
  readonly shard: number
  /** Of its journal. */
  readonly directory: string
  /** Of the shard: they tell whether it is at work. */
  readonly counters: SharedArrayBuffer
}

export type SettlerJob =
  /** Fills a file with zeros (W9). */
  | (FillPlace & { readonly kind: 'fill'; readonly name: string; readonly bytes: number })
  | {
      readonly kind: 'settle'
      readonly place: ShardPlace
      readonly wish: SettleWish
      /** By first handle. */
      readonly topics: readonly TopicPlace[]
      readonly graceMs: number
    }
  /** Answers with partitions of these ranges that have sealed segments to compact. */
  | { readonly kind: 'find-compactable'; readonly place: ShardPlace; readonly ranges: readonly CompactedRange[] }
  /** Answers with partitions of these ranges that have segments for cold storage, and objects that are to go from there. */
  | { readonly kind: 'find-tierable'; readonly place: ShardPlace; readonly ranges: readonly TieredRange[] }
  /** Answers with the cold segments of a partition that end behind its present start. */
  | { readonly kind: 'find-cold'; readonly place: ShardPlace; readonly handle: number; readonly startOffset: number }
  /** These objects are gone. */
  | { readonly kind: 'forget-objects'; readonly place: ShardPlace; readonly keys: readonly string[] }
  /** Puts what a compaction made into the manifest. @property replacement packed (log/settle/replace). */
  | { readonly kind: 'replace'; readonly place: ShardPlace; readonly replacement: Uint8Array; readonly graceMs: number }
  /** Removes files that are due; what was committed before is adopted. */
  | { readonly kind: 'sweep'; readonly place: ShardPlace }
  /** A job of an earlier thread may be committed, and the shard was not told: as after a commit whose last sync failed. */
  | { readonly kind: 'doubt'; readonly shard: number }
  /** The shard died: its jobs end, and its manifest is read anew next time. Answered. */
  | { readonly kind: 'cancel'; readonly shard: number }

/** Partitions of a topic to be compacted. */
export interface CompactedRange {
  readonly firstHandle: number
  readonly partitionCount: number
  /** Share of its sealed bytes that were never compacted, from which on a partition is. 0: any. */
  readonly dirtyShareMin: number
}

/** A partition with sealed segments. */
export interface CompactablePartition {
  readonly handle: number
  /** Says which sealed segments it has: the same as before, nothing is new. */
  readonly key: string
  /** Of its sealed segments: a pass may write so much beside them. */
  readonly bytes: number
  /** The partition of the manifest, packed. */
  readonly partition: Uint8Array
}

/** What a settle job came to. */
export interface SettleReport {
  /** Slots up to this sequence are free. */
  readonly sequence: number
  /** Of slots. */
  readonly readBytes: number
  readonly writtenBytes: number
  readonly milliseconds: number
  readonly damagedRuns: number
  /** Of these the first limits.damagedRunsReported. */
  readonly damaged: readonly DamagedRun[]
  /** False: files could not bypass the page cache. */
  readonly isDirect: boolean
  /** When the next file is to be removed, Unix ms; null: none waits. */
  readonly nextRemovalMs: number | null
  /** Paths of files that go, relative to the data directory: whoever has them open closes them. */
  readonly unused: readonly string[]
}

export type SettlerReply =
  | {
      readonly kind: 'filled'
      readonly shard: number
      readonly name: string
      readonly bytes: number
      readonly problem: string | null
    }
  /** Some of the partitions that changed, packed (log/settle/partition-change). */
  | { readonly kind: 'settled-part'; readonly shard: number; readonly changes: Uint8Array }
  | { readonly kind: 'settled'; readonly shard: number; readonly report: SettleReport }
  /** @property partitions packed, one by one; null: the manifest could not be read. */
  | {
      readonly kind: 'compactable'
      readonly shard: number
      readonly partitions: readonly CompactablePartition[] | null
      readonly problem: string | null
    }
  | {
      readonly kind: 'tierable'
      readonly shard: number
      /** null: the manifest could not be read. */
      readonly partitions: readonly TierablePartition[] | null
      /** Keys of objects that nothing names any more, some of them. */
      readonly objects: readonly string[]
      readonly problem: string | null
    }
  | {
      readonly kind: 'cold'
      readonly shard: number
      /** Ascending; null: the manifest could not be read. */
      readonly baseOffsets: readonly number[] | null
      readonly problem: string | null
    }
  | { readonly kind: 'objects-forgotten'; readonly shard: number; readonly problem: string | null }
  /** A replacement ended. false: the partition is another by now. */
  | {
      readonly kind: 'replaced'
      readonly shard: number
      readonly isCommitted: boolean
      readonly unused: readonly string[]
      readonly nextRemovalMs: number | null
      readonly problem: string | null
    }
  | { readonly kind: 'settle-failed'; readonly shard: number; readonly failure: SettleFailure }
  | {
      readonly kind: 'swept'
      readonly shard: number
      readonly removed: number
      readonly nextRemovalMs: number | null
      readonly problem: string | null
    }
  | { readonly kind: 'cancelled'; readonly shard: number }

/** What the thread is started with. */
export interface SettlerStart {
  /** Faults armed by a test (disk/fault-plan), or null. */
  readonly faults: string | null
}
