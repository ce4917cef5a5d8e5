/** What a shard worker is started with: its workerData. Plain values, shared memory, and two ports. */
import type { MessagePort } from 'node:worker_threads'

export interface ShardStart {
  readonly shard: number
  readonly placementEpoch: number
  /** Absolute path of this shard's journal. */
  readonly directory: string
  /** Absolute path of the data directory. */
  readonly dataDirectory: string
  /** Handles of settled files that this shard may keep open. */
  readonly openFilesMax: number
  /** Sequence of the newest slot known to be durable; 0: none. */
  readonly newestSlot: number
  readonly slotBytes: number
  readonly firstSlotBytes: number
  readonly fillAheadBytes: number
  readonly settling: SettlingSettings
  readonly cleaning: CleaningSettings
  /** Of key, value and headers of a record that reads are answered out of a compressed batch. */
  readonly recordBytesMax: number
  readonly flushEveryRecords: number
  readonly flushIntervalMs: number
  readonly rings: ShardRings
  /** Shard → main: rung when main has raised its asleep flag. */
  readonly doorbell: MessagePort
  /** Main → shard: memory of frames too large for the ring, read synchronously when the ring names one. */
  readonly oversized: MessagePort
  /** Main → shard: what settle jobs changed, read synchronously when a control message says so. */
  readonly changes: MessagePort
  /** Faults armed by a test (disk/fault-plan), or null. */
  readonly faults: string | null
}

/** When a shard has its sealed slots settled, and how much it may leave unsettled. */
export interface SettlingSettings {
  /** Bytes of slots in use, this shard's share. */
  readonly budgetBytes: number
  /** After so long without a group, what is sealed is settled. */
  readonly idleMs: number
  /** A sealed slot is settled after it at the latest. */
  readonly ageMs: number
}

/** When a shard drops what has had its time. */
export interface CleaningSettings {
  /** Between two retention passes. */
  readonly intervalMs: number
  /** Age at which a segment ends however small it is. */
  readonly segmentMs: number
  /** What has had its time goes to cold storage: start offsets stay, and somebody else does it. */
  readonly isTiered: boolean
}

/** Shared memory of one incarnation of a shard. */
export interface ShardRings {
  readonly requests: SharedArrayBuffer
  readonly reads: SharedArrayBuffer
  readonly control: SharedArrayBuffer
  readonly replies: SharedArrayBuffer
  /** Chunks in which large answers lie until they are sent (ring/lent-chunks). */
  readonly lent: SharedArrayBuffer
  readonly bell: SharedArrayBuffer
  /** Jobs for the writer thread, once there is one. */
  readonly cell: SharedArrayBuffer
  /** The encode buffer. */
  readonly encoded: SharedArrayBuffer
  readonly asleep: SharedArrayBuffer
  readonly counters: SharedArrayBuffer
}
