/**
 * The append of a client's own batch on the local engine: one message to the shard of its partition, and its answer. Main
 * thread. One small object a request, which lives until the answer.
 */
import { assert } from '../base/assert.ts'
import type { ByteBudget } from '../base/byte-budget.ts'
import { copyBytes } from '../base/copy.ts'
import type { BatchCaller } from '../model/batches.ts'
import { BrokerError } from '../model/errors.ts'
import { handleOf } from '../model/handles.ts'
import { shardOf } from '../model/ids.ts'
import { submitOutcomes, type SubmitOutcome } from '../model/requests.ts'
import type { PendingRequest } from '../shards/pending.ts'
import type { ShardSet } from '../shards/shard-set.ts'
import { readI64, readU64 } from '../wire/primitives/u64.ts'
import { BATCH_TAKES_APPEND_TIME, PRODUCE_HEADER_BYTES, replyTypes } from '../wire/shard/messages.ts'
import type { EngineBatch } from './engine.ts'

/** @param oversized budget of memory for frames too large for a ring, until their shard has answered. */
export function appendBatch(
  shards: ShardSet,
  oversized: ByteBudget,
  { topic, partition, bytes: source, start, end, takesAppendTime, producer }: EngineBatch,
  caller: BatchCaller
): SubmitOutcome {
  const handle = handleOf(topic, partition)
  const link = shards.linkOf(handle)
  if (link === null) {
    const refusal = shards.refusal(shardOf(handle, shards.shardCount))
    queueMicrotask(() => caller.onBatchFailed(refusal))
    return submitOutcomes.taken
  }
  const bytes = end - start
  const held = PRODUCE_HEADER_BYTES + bytes > link.frameBytesMax ? bytes : 0
  if (held > 0 && !oversized.tryReserve(held)) return submitOutcomes.full
  if (!link.reserveProduce(bytes)) {
    oversized.release(held)
    return submitOutcomes.full
  }
  const frame = link.beginProduce(bytes)
  copyBytes(source, start, end, frame.buffer, frame.recordsAt)
  const flags = takesAppendTime ? BATCH_TAKES_APPEND_TIME : 0
  const head = { type: 'batch', flags, firstHandle: topic.firstHandle, count: partition, bytes, producer } as const
  link.endProduce(frame, head, new BatchRequest(caller, topic.name, oversized, held))
  return submitOutcomes.taken
}

class BatchRequest implements PendingRequest {
  endPosition = 0
  readonly #caller: BatchCaller
  readonly #topic: string
  readonly #oversized: ByteBudget
  readonly #heldBytes: number

  constructor(caller: BatchCaller, topic: string, oversized: ByteBudget, heldBytes: number) {
    this.#caller = caller
    this.#topic = topic
    this.#oversized = oversized
    this.#heldBytes = heldBytes
  }

  onReply(type: number, bytes: Buffer, start: number): void {
    assert(type === replyTypes.batched, 'a batch is answered by where it is')
    this.#oversized.release(this.#heldBytes)
    this.#caller.onBatchAppended({
      baseOffset: readU64(bytes, start + 8),
      logStartOffset: readU64(bytes, start + 16),
      appendTimeMs: readI64(bytes, start + 24),
      isDuplicate: bytes[start + 32] === 1
    })
  }

  onFailure({ code, details, written }: BrokerError): void {
    this.#oversized.release(this.#heldBytes)
    // A shard knows numbers, not names.
    this.#caller.onBatchFailed(new BrokerError(code, { ...details, topic: this.#topic }, { written }))
  }
}
