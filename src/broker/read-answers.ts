/** The answers of reads, from the replies of a shard to whoever asked. Main thread. */
import { BrokerError } from '../model/errors.ts'
import type { LentAnswer, ReadCaller } from '../model/requests.ts'
import type { PendingRequest } from '../shards/pending.ts'
import type { ShardLink } from '../shards/shard-link.ts'
import { STORED_BATCHES_AT } from '../wire/batch/stored-batches.ts'
import { ANSWER_BODY_AT, replyTypes } from '../wire/shard/messages.ts'
import { assert } from '../base/assert.ts'
import type { EngineReadCaller } from './engine.ts'

/** Passes an answer on as it lies in the reply ring, or in the chunks that it names. */
export class EngineReadRequest implements PendingRequest {
  endPosition = -1
  readonly #caller: EngineReadCaller
  readonly #topic: string
  readonly #link: Pick<ShardLink, 'lentParts'>

  constructor(caller: EngineReadCaller, topic: string, link: Pick<ShardLink, 'lentParts'>) {
    this.#caller = caller
    this.#topic = topic
    this.#link = link
  }

  onReply(type: number, bytes: Buffer, start: number, end: number, isLast: boolean): void {
    const totalBytes = bytes.readUInt32BE(start + 8)
    if (isLast) this.#caller.onReadCounted(bytes.readUInt32BE(start + 12), bytes.readUInt32BE(start + 16))
    const at = start + ANSWER_BODY_AT
    if (type === replyTypes.readLent) {
      assert(isLast, 'what is lent is a whole answer')
      passOnLent(this.#caller, {
        bytes,
        headAt: at,
        totalBytes,
        parts: this.#link.lentParts(bytes, at + STORED_BATCHES_AT, end)
      })
      return
    }
    assert(type === replyTypes.readChunk, 'a read is answered by chunks')
    this.#caller.onReadChunk(bytes, at, end, totalBytes, isLast)
  }

  onFailure(error: BrokerError): void {
    // A shard knows handles, not names.
    const named = error.code === 'TOPIC_NOT_FOUND' ? new BrokerError(error.code, { topic: this.#topic }) : error
    this.#caller.onReadFailed(named)
  }
}

/** To callers that only look at what they are given it comes as any other answer, and is given back for them. */
export function passOnLent(caller: ReadCaller, answer: LentAnswer): void {
  if (caller.onReadLent !== undefined) return caller.onReadLent(answer)
  const { bytes, headAt, totalBytes, parts } = answer
  try {
    caller.onReadChunk(bytes, headAt, headAt + STORED_BATCHES_AT, totalBytes, false)
    for (const [i, part] of parts.entries())
      caller.onReadChunk(part.bytes, 0, part.length, totalBytes, i === parts.length - 1)
  } finally {
    for (const part of parts) part.giveBack()
  }
}
