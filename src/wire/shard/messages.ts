/**
 * The messages between the main thread and a shard worker: layouts only, all integers big-endian.
 *
 * Requests ring and reads ring (main → shard), control lane (main → shard, msgpack), replies ring (shard → main).
 * A record travels in the ring layout of model/requests.ts.
 */
import type { Written } from '../../model/errors.ts'
import type { PartitionHandles } from '../../model/handles.ts'
import type { LeaderEpoch } from '../../model/leader-epochs.ts'
import type { CleanupPolicy } from '../../model/topic.ts'
import type { ColdSegment } from './cold.ts'
import type { SettleFailure, SettleReport, SettleWish } from './settle.ts'

/**
 * Requests ring.
 *
 *   PRODUCE   0 u8 type=1 · 1 u8 flags (1: records have headers, 2: the time of append counts) · 2 u16 0 · 4 u32 request id · 8 u32 first handle of the topic
 *             12 u32 record count · 16 u32 bytes of records · 20 u64 producer number, 0 none · 28 records
 *   CHECK     the same with type=5 and, for records, runs of 16 bytes: partition u32 · count u32 · first sequence i64.
 *             Answered by CHECKED, or FAILED as the PRODUCE of such records would be; stages nothing
 *   BATCH     0 u8 type=11 · 1 u8 flags (1: the time of append counts) · 2 u16 0 · 4 u32 request id · 8 u32 first handle
 *             12 u32 partition · 16 u32 bytes of the batch · 20 u64 producer number, 0 none · 28 one RecordBatch v2, whose
 *             header main has checked (wire/batch/client-batch.ts) and whose CRC nobody has
 *   OVERSIZED 0 u8 type=2 · 4 u32 request id · 8 u32 byte length; the message itself was posted before, as memory that
 *             moves with it, in the same order as the entries
 *
 * Reads ring.
 *
 *   READ      0 u8 type=3 · 1 u8 format · 2 u8 flags (1: from the start, if the offset is below it) · 3 u8 0
 *             4 u32 request id · 8 u32 handle · 12 u32 partition
 *             16 u32 offset, high half · 20 u32 low half · 24 u32 max records · 28 u32 max bytes      (32 bytes)
 *   DESCRIBE  0 u8 type=4 · 4 u32 request id · 8 u32 first handle · 12 u32 partition count            (16 bytes)
 *   PRODUCERS 0 u8 type=6 · 4 u32 request id: what each producer has, of all partitions                (8 bytes)
 *   OFFSETS   0 u8 type=7 · 1 u8 1: by time, 0: not · 4 u32 request id · 8 u32 first handle
 *             12 u32 partition, or ALL_PARTITIONS · 16 i64 time, Unix ms                              (24 bytes)
 *   PARTITIONS 0 u8 type=8 · 4 u32 request id · 8 u32 handle from which on: some partitions that have records,
 *             of all topics                                                                         (12 bytes)
 *   WATCH     0 u8 type=9 · 4 u32 request id · 8 u32 handle · 12 u32 partition · 16 u64 offset
 *             24 u32 least stored bytes at or above it: answered when there are as many                 (28 bytes)
 *   UNWATCH   0 u8 type=10 · 4 u32 request id of a WATCH: answered now, unless it was already              (8 bytes)
 */
export const requestTypes = {
  produce: 1,
  oversized: 2,
  read: 3,
  describe: 4,
  check: 5,
  producers: 6,
  offsets: 7,
  partitions: 8,
  watch: 9,
  unwatch: 10,
  batch: 11
} as const
export const PRODUCE_HEADER_BYTES = 28
/** Flags of a PRODUCE. */
export const PRODUCE_HAS_HEADERS = 1
export const PRODUCE_TAKES_APPEND_TIME = 2
/** Flag of a BATCH. */
export const BATCH_TAKES_APPEND_TIME = 1
export const CHECK_RUN_BYTES = 16
export const OVERSIZED_BYTES = 12
export const READ_BYTES = 32
/** A flag of READ. */
export const READ_FROM_START = 1
export const OFFSETS_BYTES = 24
export const UNWATCH_BYTES = 8
/** Above any partition: all of the topic that the shard has. */
export const ALL_PARTITIONS = 0xffff_ffff

/**
 * Replies ring. All begin with: 0 u8 type · 1 u8 flags (1 = last of its request) · 2 u16 0 · 4 u32 request id
 *
 *   PRODUCED   8 u32 duplicates among them · 12 u32 key, value and header bytes of those
 *              16 u32 count · 20 results, RESULT_BYTES each (the payload of an ES01 0x81 frame starts at 16)
 *   FAILED     8 u16 error number · 10 u8 written (0 no, 1 yes, 2 unknown) · 11 u8 0 · 12 details, msgpack
 *   READ_CHUNK 8 u32 bytes of the whole answer · 12 u32 its records · 16 u32 their key and value bytes · 20 bytes
 *   READ_LENT  8, 12, 16 as in a READ_CHUNK · 20 the head of stored batches, 24 bytes · 44 entries: number of a shared chunk that
 *              is main's from here on u32 · bytes in it u32                                             (8 bytes each)
 *   DESCRIBED  8 entries: partition u32 · segment count u32 · start u64 · end u64 · size u64          (32 bytes each)
 *   ACK        8 payload, msgpack (answers a control message by its id)
 *   EVENT      8 a ShardEvent, msgpack; request id 0
 *   CHECKED    nothing more: all of a CHECK may be written
 *   PRODUCERS  8 entries: handle u32 · 0 u32 · producer number u64 · last sequence i64 · last offset u64 (32 bytes each)
 *   OFFSETS    8 entries: partition u32 · u32 1 if a record is that late · start u64 · end u64
 *              · offset of that record u64 · its timestamp i64                                         (40 bytes each)
 *   PARTITIONS 8 u32 handle to ask from next, NO_HANDLE: these were the last · 12 entries, by handle: handle u32
 *              · segment count u32 · start u64 · end u64 · size u64 · segments that retention dropped u64 · their bytes
 *              u64                                                                                     (48 bytes each)
 *   BATCHED    8 u64 base offset · 16 u64 start of the partition · 24 i64 time of append, −1: the records have their own
 *              32 u8 1: a duplicate, and that is the offset of its original                             (33 bytes)
 *   AVAILABLE  nothing more: there is as much to read as a WATCH asked for, or an UNWATCH ended it
 */
export const replyTypes = {
  produced: 1,
  failed: 2,
  readChunk: 3,
  described: 4,
  ack: 5,
  event: 6,
  checked: 7,
  producers: 8,
  offsets: 9,
  partitions: 10,
  available: 11,
  batched: 12,
  readLent: 13
} as const
export const REPLY_LAST = 1
export const REPLY_HEADER_BYTES = 8
/** Where the details of a FAILED begin. */
export const REPLY_BODY_AT = 12
/** Where the results of a PRODUCED begin, and the bytes of a READ_CHUNK. */
export const ANSWER_BODY_AT = 20
export const DESCRIBED_ENTRY_BYTES = 32
export const PRODUCER_ENTRY_BYTES = 32
export const OFFSETS_ENTRY_BYTES = 40
export const PARTITIONS_ENTRY_BYTES = 48
export const BATCHED_BYTES = 33
/** Of a READ_LENT. */
export const LENT_ENTRY_BYTES = 8
/** Above any handle. */
export const NO_HANDLE = 0xffff_ffff

const writtenByNumber: readonly Written[] = ['no', 'yes', 'unknown']

export function writtenNumber(written: Written): number {
  return writtenByNumber.indexOf(written)
}

/** Numbers this version does not know mean unknown: the cautious reading. */
export function writtenOf(number: number): Written {
  return writtenByNumber[number] ?? 'unknown'
}

/** What a shard needs to know of a topic. segmentBytes is the effective one, at most 2^31 − 1. */
export interface ShardTopic extends PartitionHandles {
  readonly segmentBytes: number
  /** Age at which a segment ends, up to 2^64 − 1. Absent: that of the broker. */
  readonly segmentMs?: number | bigint
  /** Absent: nothing is ever dropped. */
  readonly retention?: TopicRetention
}

/** What is dropped when, as configured: up to 2^64 − 1, null: no limit. */
export interface TopicRetention {
  readonly retentionMs: number | bigint | null
  readonly retentionBytes: number | bigint | null
  readonly cleanupPolicy: CleanupPolicy
}

/** Control lane. `id` is answered by an ACK, or by FAILED. */
export type ControlMessage =
  | { readonly kind: 'open'; readonly id: number; readonly topics: readonly ShardTopic[] }
  /** Its settings and its partitions, which never become fewer, as they are from now on. */
  | { readonly kind: 'configure'; readonly id: number; readonly topic: ShardTopic }
  | { readonly kind: 'drop'; readonly id: number; readonly topic: PartitionHandles }
  /** Spare slots asked for that will not come, in bytes: the shard may ask again. */
  | { readonly kind: 'slots-failed'; readonly id: number; readonly bytes: number }
  | {
      readonly kind: 'slots-filled'
      readonly id: number
      readonly files: readonly { readonly name: string; readonly bytes: number }[]
    }
  /** Part of what a settle job changed: it was posted to the port of changes before. */
  | { readonly kind: 'settled-part'; readonly id: number }
  /** All parts were sent: the slots are free. */
  | { readonly kind: 'settled'; readonly id: number; readonly report: SettleReport }
  | { readonly kind: 'settle-failed'; readonly id: number; readonly failure: SettleFailure }
  /** Some of the producers that exist; all are told before `opened`. Data of others is of producers that were forgotten. */
  | { readonly kind: 'producers-known'; readonly id: number; readonly numbers: readonly number[] }
  | { readonly kind: 'producers-forgotten'; readonly id: number; readonly numbers: readonly number[] }
  /** All topics are opened: the shard answers with an `unclaimed` event if it holds data of others (V4). */
  | { readonly kind: 'opened'; readonly id: number }
  /** A retention pass: acknowledged when start offsets have moved, durably. */
  | { readonly kind: 'run-retention'; readonly id: number }
  /** Records below the offset go: acknowledged, with the start of the partition as a number, when that is durable. */
  | { readonly kind: 'delete-records'; readonly id: number; readonly handle: number; readonly offset: number }
  /** A copy of a cold segment is here (`problem` null), or why it is not: answers fetch-wanted. */
  | { readonly kind: 'fetched'; readonly id: number; readonly name: string; readonly problem: string | null }
  /** Files that the settler is about to remove, relative to the data directory. */
  | { readonly kind: 'files-unused'; readonly id: number; readonly paths: readonly string[] }
  /** All that was written so far is to be settled: acknowledged when it is. */
  | { readonly kind: 'settle-all'; readonly id: number }
  /** Ends the thread after what is in progress: seals the open slot, then acknowledges. */
  | { readonly kind: 'stop'; readonly id: number }

/** What a shard says unasked. */
export type ShardEvent =
  /** Of some of its partitions that have epochs above 0; all are told before it says that it has recovered. */
  | { readonly kind: 'leader-epochs'; readonly found: readonly PartitionEpochs[] }
  | { readonly kind: 'recovered'; readonly report: RecoveryReport }
  /** A field `handle` is told as topic and partition: a shard knows no names. */
  | {
      readonly kind: 'log'
      readonly level: 'debug' | 'info' | 'warn' | 'error'
      readonly message: string
      readonly fields: Record<string, unknown>
    }
  /** Data of handles that no open topic has: kept. Deleted topics are among them. */
  | { readonly kind: 'unclaimed'; readonly handles: readonly number[] }
  /** A slot of that sequence is durable. */
  | { readonly kind: 'slot-opened'; readonly sequence: number }
  /** Groups are large: asks for a writer thread (workers/shard/writer-entry). */
  | { readonly kind: 'writer-wanted' }
  /** Asks for the copy of a cold segment; isBad: for a new one. Answered by `fetched`. */
  | { readonly kind: 'fetch-wanted'; readonly segment: ColdSegment; readonly isBad: boolean }
  /** Copies that were read of late, by name. */
  | { readonly kind: 'copies-used'; readonly names: readonly string[] }
  /** Asks for a settle job; one at a time. */
  | { readonly kind: 'settle-wanted'; readonly wish: SettleWish }
  /** Asks the filler for a file of this many zero bytes under this name. */
  | { readonly kind: 'slots-wanted'; readonly files: readonly { readonly name: string; readonly bytes: number }[] }
  /** The shard ends itself because its disk can no longer be trusted; it restarts through recovery. */
  | { readonly kind: 'poisoned'; readonly cause: string }

/** What a shard says of segments in cold storage. */
export type ColdEvent = Extract<ShardEvent, { kind: 'fetch-wanted' | 'copies-used' }>

export interface PartitionEpochs {
  readonly handle: number
  readonly epochs: readonly LeaderEpoch[]
}

/** What recovery found, for the log and for readiness. */
export interface RecoveryReport {
  readonly slots: number
  readonly groups: number
  readonly scannedBytes: number
  readonly cutGroups: number
  readonly copiedGroups: number
  readonly quarantinedRuns: number
  readonly milliseconds: number
}
