/**
 * The requests whose records are in one group: their ids, and where their records begin in the group's encoder.
 * Shard thread only; used again for the group after next.
 */
import type { GroupEncoder } from '../../src/log/group-encoder.ts'
import type { ErrorCode, ErrorDetails, Written } from '../../src/model/errors.ts'
import { RESULT_BYTES } from '../../src/model/requests.ts'
import type { PartitionLog } from '../../src/log/partition-log.ts'
import { write64 } from '../../src/wire/primitives/u64.ts'
import { ANSWER_BODY_AT, BATCHED_BYTES, REPLY_LAST, replyTypes } from '../../src/wire/shard/messages.ts'
import type { ReplyWriter } from './reply-writer.ts'

/** Of one request. */
export interface Duplicates {
  readonly duplicateCount: number
  readonly duplicateBytes: number
}

/** Of a request without a producer. */
export const noDuplicates: Duplicates = { duplicateCount: 0, duplicateBytes: 0 }

const oneDuplicate: Duplicates = { duplicateCount: 1, duplicateBytes: 0 }

export class GroupRequests {
  readonly #ids: number[] = []
  readonly #firsts: number[] = []
  readonly #counts: number[] = []
  readonly #duplicateCounts: number[] = []
  readonly #duplicateBytes: number[] = []
  /** Of a BATCH: the log of its partition; null: the request is a PRODUCE. */
  readonly #batchLogs: (PartitionLog | null)[] = []

  get count(): number {
    return this.#ids.length
  }

  /**
   * A request whose `count` records were gathered from index `first` on.
   * @param duplicates those of them that are in the log, or in a group under way, and their key and value bytes.
   */
  add(id: number, first: number, count: number, duplicates: Duplicates): void {
    this.#batchLogs.push(null)
    this.#duplicateCounts.push(duplicates.duplicateCount)
    this.#duplicateBytes.push(duplicates.duplicateBytes)
    this.#ids.push(id)
    this.#firsts.push(first)
    this.#counts.push(count)
  }

  /** A request that is one batch, gathered with that index. */
  addBatch(id: number, index: number, log: PartitionLog, isDuplicate: boolean): void {
    this.add(id, index, 1, isDuplicate ? oneDuplicate : noDuplicates)
    this.#batchLogs[this.#ids.length - 1] = log
  }

  /** Answers every request with the results that its encoder knows. */
  acknowledge(encoder: GroupEncoder, replies: ReplyWriter): void {
    for (let i = 0; i < this.#ids.length; i++) {
      const batchLog = this.#batchLogs[i] ?? null
      if (batchLog !== null) {
        this.#acknowledgeBatch(i, batchLog, encoder, replies)
        continue
      }
      const count = this.#counts[i] ?? 0
      replies.begin(replyTypes.produced, REPLY_LAST, this.#ids[i] ?? 0, ANSWER_BODY_AT + count * RESULT_BYTES)
      const { target, at } = replies
      target.writeUInt32BE(this.#duplicateCounts[i] ?? 0, at + 8)
      target.writeUInt32BE(this.#duplicateBytes[i] ?? 0, at + 12)
      target.writeUInt32BE(count, at + 16)
      encoder.records.writeResults(this.#firsts[i] ?? 0, count, target, at + ANSWER_BODY_AT)
    }
  }

  #acknowledgeBatch(i: number, log: PartitionLog, encoder: GroupEncoder, replies: ReplyWriter): void {
    const index = this.#firsts[i] ?? 0
    replies.begin(replyTypes.batched, REPLY_LAST, this.#ids[i] ?? 0, BATCHED_BYTES)
    const { target, at } = replies
    write64(target, at + 8, encoder.records.offset[index] ?? 0)
    write64(target, at + 16, log.startOffset)
    write64(target, at + 24, encoder.records.takesAppendTime(index) ? encoder.receiveMs : -1)
    target[at + 32] = encoder.records.isDuplicate(index) ? 1 : 0
  }

  /** Fails every request. One with duplicates may have records in the log that another request wrote: it is not told no. */
  failAll(replies: ReplyWriter, error: { code: ErrorCode; details: ErrorDetails; written: Written }): void {
    for (let i = 0; i < this.#ids.length; i++) {
      const written = error.written === 'no' && this.#duplicateCounts[i] !== 0 ? 'unknown' : error.written
      replies.fail(this.#ids[i] ?? 0, error.code, error.details, written)
    }
  }

  clear(): void {
    this.#ids.length = 0
    this.#firsts.length = 0
    this.#counts.length = 0
    this.#duplicateCounts.length = 0
    this.#duplicateBytes.length = 0
    this.#batchLogs.length = 0
  }
}
