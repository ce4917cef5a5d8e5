/**
 * Questions for the offsets of partitions, by time or not: works on the oldest, a step at a time, beside the reads. Shard
 * thread only. Bounded in number (offsetQuestionsMax) and in time a turn; answers are small and leave in frames as they fill.
 */
import { DiskError } from '../../src/disk/disk.ts'
import { ColdSegmentAbsent } from '../../src/log/cold-segment.ts'
import type { PartitionLog } from '../../src/log/partition-log.ts'
import type { ShardLog } from '../../src/log/shard-log.ts'
import { TimeLookup } from '../../src/log/time-lookup.ts'
import { limits } from '../../src/model/limits.ts'
import { readI64, write64 } from '../../src/wire/primitives/u64.ts'
import {
  ALL_PARTITIONS,
  OFFSETS_ENTRY_BYTES,
  REPLY_HEADER_BYTES,
  REPLY_LAST,
  replyTypes
} from '../../src/wire/shard/messages.ts'
import type { ColdWaits } from './cold-waits.ts'
import type { ReplyWriter } from './reply-writer.ts'

/** Time that these questions get between two groups, beside the reads. */
const TURN_MS = 1
const ENTRIES_PER_FRAME = Math.floor(limits.replyChunkBytes / OFFSETS_ENTRY_BYTES)

/** One question in progress. */
class OffsetsTask {
  readonly requestId: number
  readonly firstHandle: number
  /** ALL_PARTITIONS: all that have a log here. */
  readonly partition: number
  /** null: only where the partitions begin and end. */
  readonly timestampMs: number | null
  /** Partitions that are left, the next one last; null: the task has not begun. */
  left: number[] | null = null
  lookup: TimeLookup | null = null
  /** When its time to wait for cold storage is over, monotonic ms; null: it has not waited. */
  coldEndMs: number | null = null
  /** Entries that were not sent. */
  readonly entries: Buffer[] = []

  constructor(buffer: Buffer, at: number) {
    this.requestId = buffer.readUInt32BE(at + 4)
    this.firstHandle = buffer.readUInt32BE(at + 8)
    this.partition = buffer.readUInt32BE(at + 12)
    this.timestampMs = buffer[at + 1] === 0 ? null : readI64(buffer, at + 16)
  }
}

export class OffsetQueue {
  readonly #log: ShardLog
  readonly #replies: ReplyWriter
  readonly #monotonicMs: () => number
  readonly #coldWaits: ColdWaits
  readonly #tasks: OffsetsTask[] = []
  /** Tasks that wait for cold storage. */
  #parkedCount = 0

  constructor(log: ShardLog, replies: ReplyWriter, shared: { monotonicMs: () => number; coldWaits: ColdWaits }) {
    this.#log = log
    this.#replies = replies
    this.#monotonicMs = shared.monotonicMs
    this.#coldWaits = shared.coldWaits
  }

  /** Takes an OFFSETS message, or refuses it when too many wait; its bytes are borrowed until return. */
  take(buffer: Buffer, at: number): void {
    const task = new OffsetsTask(buffer, at)
    const limit = limits.offsetQuestionsMax
    if (this.#tasks.length + this.#parkedCount < limit) this.#tasks.push(task)
    else this.#replies.fail(task.requestId, 'OVERLOADED', { what: 'the number of questions for offsets', limit }, 'no')
  }

  /** One turn. @returns whether questions are still waiting. */
  run(): boolean {
    const startMs = this.#monotonicMs()
    for (let task = this.#tasks[0]; task !== undefined; task = this.#tasks[0]) {
      if (this.#step(task)) this.#tasks.shift()
      if (this.#monotonicMs() - startMs >= TURN_MS) break
    }
    return this.#tasks.length > 0
  }

  /** @returns true when the task is answered, or put aside. */
  #step(task: OffsetsTask): boolean {
    const topic = this.#log.table.topic(task.firstHandle)
    if (topic === undefined) {
      // Dropped, maybe since the last turn.
      this.#replies.fail(task.requestId, 'TOPIC_NOT_FOUND', {}, 'no')
      return true
    }
    task.left ??= partitionsOf(topic.logs, task.partition)
    const partition = task.left.at(-1)
    const log = partition === undefined ? undefined : topic.logs[partition]
    if (partition === undefined || log === undefined) {
      this.#send(task, REPLY_LAST)
      return true
    }
    try {
      if (!this.#isFound(task, log)) return false
    } catch (error) {
      if (error instanceof ColdSegmentAbsent) {
        this.#park(task, partition, error)
        return true
      }
      // A disk that refuses a read says nothing about what was written: this request fails, the shard goes on.
      if (!(error instanceof DiskError)) throw error
      this.#replies.fail(task.requestId, 'READ_FAILED', { partition, errno: error.code }, 'no')
      this.#replies.log('error', 'the disk refused a read', { handle: log.handle, cause: error.message })
      return true
    }
    task.entries.push(entryOf(partition, log, task.lookup))
    task.lookup = null
    task.left.pop()
    if (task.entries.length === ENTRIES_PER_FRAME) this.#send(task, 0)
    return false
  }

  /** Its next step needs a segment that is in cold storage. */
  #park(task: OffsetsTask, partition: number, absent: ColdSegmentAbsent): void {
    this.#parkedCount++
    this.#coldWaits.park(absent, {
      endMs: task.coldEndMs,
      resume: endMs => {
        this.#parkedCount--
        task.coldEndMs = endMs
        this.#tasks.push(task)
      },
      refuse: problem => {
        this.#parkedCount--
        this.#replies.fail(task.requestId, 'COLD_UNAVAILABLE', { partition, problem }, 'no')
      }
    })
  }

  #isFound(task: OffsetsTask, log: PartitionLog): boolean {
    if (task.timestampMs === null) return true
    task.lookup ??= new TimeLookup(this.#log.window, log, task.timestampMs)
    return task.lookup.step()
  }

  #send({ requestId, entries }: OffsetsTask, flags: number): void {
    const bytes = REPLY_HEADER_BYTES + entries.length * OFFSETS_ENTRY_BYTES
    this.#replies.begin(replyTypes.offsets, flags, requestId, bytes)
    let at = this.#replies.at + REPLY_HEADER_BYTES
    for (const entry of entries) at += entry.copy(this.#replies.target, at)
    entries.length = 0
  }
}

/** Those asked for, last one first; of all, those that have a log here: the others are empty, or another shard's. */
function partitionsOf(logs: readonly (PartitionLog | undefined)[], wanted: number): number[] {
  if (wanted !== ALL_PARTITIONS) return [wanted]
  const partitions: number[] = []
  logs.forEach((_, partition) => partitions.push(partition))
  return partitions.reverse()
}

function entryOf(partition: number, log: PartitionLog, lookup: TimeLookup | null): Buffer {
  const entry = Buffer.alloc(OFFSETS_ENTRY_BYTES)
  const found = lookup?.found ?? null
  entry.writeUInt32BE(partition, 0)
  entry.writeUInt32BE(found === null ? 0 : 1, 4)
  write64(entry, 8, log.startOffset)
  write64(entry, 16, log.highWatermark)
  write64(entry, 24, found?.offset ?? 0)
  write64(entry, 32, found?.timestampMs ?? 0)
  return entry
}
