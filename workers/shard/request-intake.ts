/**
 * Takes PRODUCE, CHECK and BATCH messages into the group that is gathered, or refuses them; answers a CHECK. Shard thread
 * only. What it says no to has left no trace in the group.
 */
import { assert } from '../../src/base/assert.ts'
import { judgeBatch, type BatchSequences, type BatchVerdict } from '../../src/log/batch-sequences.ts'
import type { PartitionLog } from '../../src/log/partition-log.ts'
import { RequestSequences, type SequenceFault } from '../../src/log/request-sequences.ts'
import type { ShardLog } from '../../src/log/shard-log.ts'
import { limits } from '../../src/model/limits.ts'
import { BatchView, batchStatus, checkBatch, isWhole } from '../../src/wire/batch/view.ts'
import { readU64 } from '../../src/wire/primitives/u64.ts'
import {
  BATCH_TAKES_APPEND_TIME,
  PRODUCE_HAS_HEADERS,
  PRODUCE_HEADER_BYTES,
  PRODUCE_TAKES_APPEND_TIME,
  REPLY_HEADER_BYTES,
  REPLY_LAST,
  replyTypes,
  requestTypes
} from '../../src/wire/shard/messages.ts'
import { noDuplicates, type GroupRequests } from './group-requests.ts'
import type { ReplyWriter } from './reply-writer.ts'

export class RequestIntake {
  readonly #log: ShardLog
  readonly #replies: ReplyWriter
  readonly #sequences = new RequestSequences()
  readonly #batch = new BatchView()

  constructor(log: ShardLog, replies: ReplyWriter) {
    this.#log = log
    this.#replies = replies
  }

  /** @param source with the message at `at`; borrowed until the group is encoded. @param requests of that group. */
  take(source: Buffer, at: number, requests: GroupRequests): void {
    const requestId = source.readUInt32BE(at + 4)
    const topic = this.#log.table.topic(source.readUInt32BE(at + 8))
    if (topic === undefined) {
      // Deleted while the request was on its way: main knows the name.
      this.#replies.fail(requestId, 'TOPIC_NOT_FOUND', {}, 'no')
      return
    }
    const type = source[at]
    if (type === requestTypes.batch) {
      const partition = source.readUInt32BE(at + 12)
      assert(partition < topic.partitionCount, 'main checked the partition')
      return this.#takeBatch(source, at, topic.logs[partition] ?? topic.log(partition), requests)
    }
    const count = source.readUInt32BE(at + 12)
    const producer = readU64(source, at + 20)
    const body = at + PRODUCE_HEADER_BYTES
    if (type === requestTypes.check) {
      const fault = this.#sequences.checkRuns(topic, producer, source, body, count)
      if (fault === null) this.#replies.begin(replyTypes.checked, REPLY_LAST, requestId, REPLY_HEADER_BYTES)
      else this.#refuseSequence(requestId, fault)
      return
    }
    assert(type === requestTypes.produce, 'a request ring carries produce, check and batch frames only')
    const { encoder } = this.#log
    const flags = source[at + 1] as number
    const hasHeaders = (flags & PRODUCE_HAS_HEADERS) !== 0
    const takesAppendTime = (flags & PRODUCE_TAKES_APPEND_TIME) !== 0
    const records = { source, at: body, end: body + source.readUInt32BE(at + 16), count, hasHeaders, takesAppendTime }
    if (producer === 0) return requests.add(requestId, encoder.gather(topic, records), count, noDuplicates)
    // All of it is checked before any of it is staged.
    const fault = this.#sequences.check(topic, producer, records)
    if (fault !== null) return this.#refuseSequence(requestId, fault)
    requests.add(requestId, encoder.gather(topic, records, this.#sequences), count, this.#sequences)
  }

  #refuseSequence(requestId: number, { code, details }: SequenceFault): void {
    this.#replies.fail(requestId, code, details, 'no')
  }

  /** One batch as a client encoded it. Check and staging are one step: nothing comes between. */
  #takeBatch(source: Buffer, at: number, log: PartitionLog, requests: GroupRequests): void {
    const requestId = source.readUInt32BE(at + 4)
    const partition = source.readUInt32BE(at + 12)
    const bytes = source.readUInt32BE(at + 16)
    const producer = readU64(source, at + 20)
    const start = at + PRODUCE_HEADER_BYTES
    const end = start + bytes
    const batch = this.#batch
    if (checkBatch(source, start, end) !== batchStatus.ok) {
      this.#replies.fail(requestId, 'BATCH_CORRUPT', { problem: 'its checksum does not match' }, 'no')
      return
    }
    const status = batch.open(source, start, end)
    assert(isWhole(status) && batch.end === end, 'main checked the header of the batch')
    const count = batch.lastOffsetDelta + 1
    let sequences: BatchSequences | null = null
    if (producer !== 0) {
      const { producerEpoch: epoch, baseSequence: sequence } = batch
      const verdict = judgeBatch(log.producers.of(producer), { producer, epoch, sequence, count })
      if (verdict.kind === 'duplicate') {
        const index = this.#log.encoder.gatherDuplicateBatch(partition, verdict.baseOffset)
        return requests.addBatch(requestId, index, log, true)
      }
      if (verdict.kind !== 'next') return this.#refuseBatch(requestId, partition, verdict)
      sequences = verdict.sequences
    }
    const takesAppendTime = ((source[at + 1] as number) & BATCH_TAKES_APPEND_TIME) !== 0
    const given = { source, at: start, bytes, partition, recordCount: count, takesAppendTime }
    requests.addBatch(requestId, this.#log.encoder.gatherBatch(log, given, sequences), log, false)
  }

  #refuseBatch(
    requestId: number,
    partition: number,
    verdict: Exclude<BatchVerdict, { kind: 'next' | 'duplicate' }>
  ): void {
    const { producerId: producer, baseSequence: got, producerEpoch: epoch } = this.#batch
    if (verdict.kind === 'stale epoch') {
      this.#replies.fail(requestId, 'EPOCH_STALE', { producer, partition, epoch, known: verdict.epoch }, 'no')
      return
    }
    const { expected } = verdict
    const details = { producer, partition, expected, got, window: limits.producerWindow }
    if (verdict.kind === 'gap') this.#replies.fail(requestId, 'BATCH_OUT_OF_ORDER', details, 'no')
    else this.#replies.fail(requestId, 'BATCH_TOO_OLD', details, 'yes')
  }
}
