/** What main and the placement thread say to each other: one task a thread, progress through shared memory. */
import type { TopicPlace } from './settle.ts'

/** How many shards there are, and since which change. */
export interface PlacedShards {
  readonly shardCount: number
  readonly placementEpoch: number
}

export type PlacementTask =
  /** Makes the files of the placement `to` beside those of `from`. */
  | {
      readonly kind: 'change'
      readonly from: PlacedShards
      readonly to: PlacedShards
      /** By shard of `from`: newest slot known to have been durable. */
      readonly newestSlots: readonly (readonly [shard: number, sequence: number])[]
      /** By first handle. */
      readonly topics: readonly TopicPlace[]
    }
  /** Takes the files of an epoch away. @param shardCount null: whatever shards it has. */
  | { readonly kind: 'remove'; readonly placementEpoch: number; readonly shardCount: number | null }

/** workerData of the thread. */
export interface PlacementThreadStart {
  /** Absolute. */
  readonly dataDirectory: string
  readonly task: PlacementTask
  /** Written by the thread, read by main at any time. */
  readonly progress: SharedArrayBuffer
  /** Faults armed by a test (disk/fault-plan), or null. */
  readonly faults: string | null
}

export type PlacementReply =
  | { readonly kind: 'done' }
  /** Nothing that counts was changed. `problem` is a part of a sentence for an operator. */
  | { readonly kind: 'failed'; readonly problem: string }

/** What of a change is being done, to which shard: an old one while settling, a new one while writing. */
export interface PlacementProgress {
  readonly phase: 'settling' | 'writing'
  readonly shard: number
  readonly doneBytes: number
  readonly totalBytes: number
}

const FIELDS = 4

export function createPlacementProgress(): SharedArrayBuffer {
  return new SharedArrayBuffer(FIELDS * Float64Array.BYTES_PER_ELEMENT)
}

/** The fields are written one by one: a reader may see two of them a moment apart. */
export function writePlacementProgress(shared: SharedArrayBuffer, progress: PlacementProgress): void {
  const { phase, shard, doneBytes, totalBytes } = progress
  new Float64Array(shared).set([phase === 'settling' ? 0 : 1, shard, doneBytes, totalBytes])
}

export function readPlacementProgress(shared: SharedArrayBuffer): PlacementProgress {
  const [phase = 0, shard = 0, doneBytes = 0, totalBytes = 0] = new Float64Array(shared)
  return { phase: phase === 0 ? 'settling' : 'writing', shard, doneBytes, totalBytes }
}
