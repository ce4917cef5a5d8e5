/** What the jobs of cold storage are given and what they answer. Manifest shapes travel packed, only log/ looks into them. */
import type { ColdSegment } from '../wire/shard/cold.ts'

/** Where cold storage and the local files are. */
export interface ColdPlace {
  /** Absolute. */
  readonly dataDirectory: string
  readonly coldStorageDir: string | null
  readonly coldStorage: string | null
  readonly coldStorageEndpoint: string | null
  readonly coldStorageRegion: string
  readonly coldStoragePathStyle: boolean
  /** Faults armed by a test (disk/fault-plan), or null. */
  readonly faults: string | null
}

export interface TierSegmentsValue {
  readonly place: ColdPlace
  readonly shard: number
  readonly placementEpoch: number
  /** A partition of the manifest, packed. */
  readonly partition: Uint8Array
  /** Of the segments to be moved, some of its oldest. */
  readonly baseOffsets: readonly number[]
}

export interface TierSegmentsResult {
  /** Packed (log/settle/replace): those that were stored and read back; null: none was. */
  readonly replacement: Uint8Array | null
  readonly segments: number
  readonly bytes: number
  /** Of the objects that were stored. */
  readonly keys: readonly string[]
  /** Why one could not be stored, in words for the log; null: all were. */
  readonly problem: string | null
  /** The store itself does not answer: others would fare no better. */
  readonly isUnavailable: boolean
}

export interface FetchSegmentValue {
  readonly place: ColdPlace
  readonly segment: ColdSegment
  /** Copies that make room, by name. */
  readonly evict: readonly string[]
}

export interface RemoveObjectsValue {
  readonly place: ColdPlace
  readonly keys: readonly string[]
}

export interface RemoveObjectsResult {
  readonly removed: readonly string[]
  readonly problem: string | null
}

export interface SweepColdValue {
  readonly place: ColdPlace
}

/** Why it could not be done, in words for a person; null: it was. */
export interface ColdResult {
  readonly problem: string | null
}
