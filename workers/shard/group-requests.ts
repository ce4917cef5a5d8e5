/**
 * The requests whose records are in one group: their ids, and where their records begin in the group's encoder.
 * Shard thread only; used again for the group after next.
 */
import type { GroupEncoder } from '../../src/log/group-encoder.ts'
import type { ErrorCode, ErrorDetails, Written } from '../../src/model/errors.ts'
import { RESULT_BYTES } from '../../src/model/requests.ts'
import { REPLY_BODY_AT, REPLY_LAST, replyTypes } from '../../src/wire/shard/messages.ts'
import type { ReplyWriter } from './reply-writer.ts'

export class GroupRequests {
  readonly #ids: number[] = []
  readonly #firsts: number[] = []
  readonly #counts: number[] = []
  readonly #holdDuplicates: boolean[] = []

  get count(): number {
    return this.#ids.length
  }

  /** A request whose `count` records were gathered from index `first` on. @param holdsDuplicates some are in the log, or in a group under way. */
  add(id: number, first: number, count: number, holdsDuplicates: boolean): void {
    this.#holdDuplicates.push(holdsDuplicates)
    this.#ids.push(id)
    this.#firsts.push(first)
    this.#counts.push(count)
  }

  /** Answers every request with the results that its encoder knows. */
  acknowledge(encoder: GroupEncoder, replies: ReplyWriter): void {
    for (let i = 0; i < this.#ids.length; i++) {
      const count = this.#counts[i] ?? 0
      replies.begin(replyTypes.produced, REPLY_LAST, this.#ids[i] ?? 0, REPLY_BODY_AT + count * RESULT_BYTES)
      replies.target.writeUInt32BE(count, replies.at + 8)
      encoder.writeResults(this.#firsts[i] ?? 0, count, replies.target, replies.at + REPLY_BODY_AT)
    }
  }

  /** Fails every request. One with duplicates may have records in the log that another request wrote: it is not told no. */
  failAll(replies: ReplyWriter, error: { code: ErrorCode; details: ErrorDetails; written: Written }): void {
    for (let i = 0; i < this.#ids.length; i++) {
      const written = error.written === 'no' && this.#holdDuplicates[i] === true ? 'unknown' : error.written
      replies.fail(this.#ids[i] ?? 0, error.code, error.details, written)
    }
  }

  clear(): void {
    this.#ids.length = 0
    this.#firsts.length = 0
    this.#counts.length = 0
    this.#holdDuplicates.length = 0
  }
}
