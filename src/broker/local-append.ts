/**
 * An append on the local engine: one ring message for each shard involved, room in all of them before any is written,
 * and one answer to the caller. Main thread.
 *
 * What can refuse a request over several shards is checked before (checked-append.ts), so all messages go out together or
 * none does. A shard that fails afterwards makes the whole answer `written: unknown`, unless none wrote.
 */
import { assert } from '../base/assert.ts'
import type { ByteBudget } from '../base/byte-budget.ts'
import { BrokerError } from '../model/errors.ts'
import { handleOf } from '../model/handles.ts'
import { shardOf } from '../model/ids.ts'
import { RESULT_BYTES, submitOutcomes, type RecordSource, type SubmitOutcome } from '../model/requests.ts'
import type { Topic } from '../model/topic.ts'
import type { PendingRequest } from '../shards/pending.ts'
import { recordFlags, type ProduceFrame } from '../shards/produce-frame.ts'
import type { ShardLink } from '../shards/shard-link.ts'
import type { ShardSet } from '../shards/shard-set.ts'
import { ANSWER_BODY_AT, PRODUCE_HEADER_BYTES, replyTypes } from '../wire/shard/messages.ts'
import type { AppendCaller, EngineAppend } from './engine.ts'
import { hasOneShard, shardOfRecord } from './shard-parts.ts'

interface Part {
  link: ShardLink
  bytes: number
  count: number
  frame: ProduceFrame | null
  at: number
  /** requests.position() before the reservation. */
  mark: number
}

export class LocalAppend {
  readonly #shards: ShardSet
  /** Memory of frames too large for a ring, until their shard has answered. */
  readonly #oversized: ByteBudget
  /** By shard: the part of the request in hand. */
  readonly #parts: (Part | null)[]

  constructor(shards: ShardSet, oversized: ByteBudget) {
    this.#shards = shards
    this.#oversized = oversized
    this.#parts = new Array<Part | null>(shards.shardCount).fill(null)
  }

  append(append: EngineAppend, caller: AppendCaller): SubmitOutcome {
    return hasOneShard(append, this.#shards.shardCount)
      ? this.#appendToOne(append, caller)
      : this.#appendToMany(append, caller)
  }

  #appendToOne({ topic, records, partitions, producer }: EngineAppend, caller: AppendCaller): SubmitOutcome {
    const handle = handleOf(topic, partitions[0] ?? 0)
    const link = this.#shards.linkOf(handle)
    if (link === null) return refuse(caller, this.#shards.refusal(shardOf(handle, this.#shards.shardCount)))
    const held = this.#oversizedBytes(link, records.ringBytes)
    if (held > 0 && !this.#oversized.tryReserve(held)) return submitOutcomes.full
    const mark = link.requests.position()
    if (!link.reserveProduce(records.ringBytes)) {
      this.#oversized.release(held)
      return submitOutcomes.full
    }
    const frame = link.beginProduce(records.ringBytes)
    try {
      const end = records.writeAll(partitions, frame.buffer, frame.recordsAt)
      assert(end === frame.recordsAt + records.ringBytes, 'records take the room they said')
    } catch (error) {
      // A bug must not leave a half-written frame for the next publish.
      link.undoProduce(mark)
      this.#oversized.release(held)
      throw error
    }
    const request = new OneShardAppend(asked(caller, topic, records), this.#oversized, held)
    const { count, ringBytes: bytes, hasHeaders } = records
    const flags = recordFlags(hasHeaders, topic.config.message_timestamp_type)
    link.endProduce(frame, { type: 'produce', flags, firstHandle: topic.firstHandle, count, bytes, producer }, request)
    return submitOutcomes.taken
  }

  #appendToMany(append: EngineAppend, caller: AppendCaller): SubmitOutcome {
    const { topic, records, partitions, producer } = append
    this.#parts.fill(null)
    const shardByRecord = new Uint16Array(records.count)
    for (let i = 0; i < records.count; i++) {
      const shard = shardOfRecord(append, i, this.#shards.shardCount)
      shardByRecord[i] = shard
      let part = this.#parts[shard] ?? null
      if (part === null) {
        const link = this.#shards.link(shard)
        if (link === null) return refuse(caller, this.#shards.refusal(shard))
        part = { link, bytes: 0, count: 0, frame: null, at: 0, mark: 0 }
        this.#parts[shard] = part
      }
      part.bytes += records.ringBytesOf(i)
      part.count++
    }
    const parts = this.#parts.filter(part => part !== null)
    const held = this.#reserveAll(parts)
    if (held < 0) return submitOutcomes.full
    try {
      this.#writeParts(records, partitions, shardByRecord, parts)
    } catch (error) {
      for (const part of parts) part.link.undoProduce(part.mark)
      this.#oversized.release(held)
      throw error
    }
    const merge = new ManyShardsAppend(asked(caller, topic, records), shardByRecord, parts.length, () =>
      this.#oversized.release(held)
    )
    for (const { link, frame, count, bytes } of parts) {
      const flags = recordFlags(records.hasHeaders, topic.config.message_timestamp_type)
      const head = { type: 'produce', flags, firstHandle: topic.firstHandle, count, bytes, producer } as const
      link.endProduce(frame as ProduceFrame, head, merge.part(link.shard))
    }
    return submitOutcomes.taken
  }

  /** Writes every record into the frame of its shard. */
  #writeParts(
    records: RecordSource,
    partitions: Uint32Array,
    shardOfRecord: Uint16Array,
    parts: readonly Part[]
  ): void {
    for (const part of parts) {
      part.frame = part.link.beginProduce(part.bytes)
      part.at = part.frame.recordsAt
    }
    for (let i = 0; i < records.count; i++) {
      const part = this.#parts[shardOfRecord[i] as number] as Part
      part.at = records.writeRecord(i, partitions[i] as number, (part.frame as ProduceFrame).buffer, part.at)
    }
    for (const part of parts) {
      const end = (part.frame as ProduceFrame).recordsAt + part.bytes
      assert(part.at === end, 'records take the room they said')
    }
  }

  /** Room in all rings and for all large frames, or for none. @returns bytes of large frames held, or −1. */
  #reserveAll(parts: readonly Part[]): number {
    // In one sum: the budget lets one request pass that is above it, and a request must not wait for itself.
    const held = parts.reduce((sum, part) => sum + this.#oversizedBytes(part.link, part.bytes), 0)
    if (held > 0 && !this.#oversized.tryReserve(held)) return -1
    for (let i = 0; i < parts.length; i++) {
      const part = parts[i] as Part
      part.mark = part.link.requests.position()
      if (part.link.reserveProduce(part.bytes)) continue
      for (let j = 0; j < i; j++) (parts[j] as Part).link.undoProduce((parts[j] as Part).mark)
      this.#oversized.release(held)
      return -1
    }
    return held
  }

  /** Bytes that a part takes of the memory for large frames: 0 if it fits the ring. */
  #oversizedBytes(link: ShardLink, recordsBytes: number): number {
    return PRODUCE_HEADER_BYTES + recordsBytes > link.frameBytesMax ? recordsBytes : 0
  }
}

function refuse(caller: AppendCaller, error: BrokerError): SubmitOutcome {
  queueMicrotask(() => caller.onProduceFailed(error))
  return submitOutcomes.taken
}

/** Who asked, and under which names: a shard knows numbers. */
interface Asked {
  readonly caller: AppendCaller
  readonly topic: string
  readonly producer: string
}

function asked(caller: AppendCaller, topic: Topic, records: RecordSource): Asked {
  return { caller, topic: topic.name, producer: records.producerId ?? '' }
}

function failAsked({ caller, ...names }: Asked, error: BrokerError): void {
  caller.onProduceFailed(named(error, names))
}

/** The error of a shard with the names that it does not know. */
export function named(error: BrokerError, { topic, producer }: { topic: string; producer: string }): BrokerError {
  const { code, details, written } = error
  return new BrokerError(code, { ...details, topic, producer }, { written })
}

/** The results are passed on as they lie in the reply ring. */
class OneShardAppend implements PendingRequest {
  endPosition = 0
  readonly #asked: Asked
  readonly #oversized: ByteBudget
  readonly #heldBytes: number

  constructor(asked: Asked, oversized: ByteBudget, heldBytes: number) {
    this.#asked = asked
    this.#oversized = oversized
    this.#heldBytes = heldBytes
  }

  onReply(type: number, bytes: Buffer, start: number): void {
    assert(type === replyTypes.produced, 'a produce is answered by results')
    this.#oversized.release(this.#heldBytes)
    const { caller } = this.#asked
    const count = bytes.readUInt32BE(start + 16)
    caller.onProduced(
      bytes,
      start + ANSWER_BODY_AT,
      count,
      bytes.readUInt32BE(start + 8),
      bytes.readUInt32BE(start + 12)
    )
  }

  onFailure(error: BrokerError): void {
    this.#oversized.release(this.#heldBytes)
    failAsked(this.#asked, error)
  }
}

/** Waits for every shard involved, then answers once, with results in the order of the request. */
class ManyShardsAppend {
  readonly #asked: Asked
  readonly #shardOfRecord: Uint16Array
  readonly #release: () => void
  readonly #results = new Map<number, Buffer>()
  #waiting: number
  #failure: BrokerError | null = null
  #mayHaveWritten = false
  #duplicates = 0
  #duplicateBytes = 0

  constructor(asked: Asked, shardOfRecord: Uint16Array, partCount: number, release: () => void) {
    this.#asked = asked
    this.#shardOfRecord = shardOfRecord
    this.#waiting = partCount
    this.#release = release
  }

  part(shard: number): PendingRequest {
    return {
      endPosition: 0,
      onReply: (type, bytes, start, end) => {
        assert(type === replyTypes.produced, 'a produce is answered by results')
        this.#results.set(shard, Buffer.from(bytes.subarray(start + ANSWER_BODY_AT, end)))
        this.#duplicates += bytes.readUInt32BE(start + 8)
        this.#duplicateBytes += bytes.readUInt32BE(start + 12)
        this.#mayHaveWritten = true
        this.#answered()
      },
      onFailure: error => {
        this.#failure ??= error
        if (error.written !== 'no') this.#mayHaveWritten = true
        this.#answered()
      }
    }
  }

  #answered(): void {
    if (--this.#waiting > 0) return
    this.#release()
    if (this.#failure === null) return this.#merge()
    const written = this.#mayHaveWritten ? 'unknown' : 'no'
    const { code, details } = this.#failure
    failAsked(this.#asked, new BrokerError(code, details, { written }))
  }

  #merge(): void {
    const count = this.#shardOfRecord.length
    const merged = Buffer.allocUnsafe(count * RESULT_BYTES)
    const taken = new Map<number, number>()
    for (let i = 0; i < count; i++) {
      const shard = this.#shardOfRecord[i] as number
      const from = taken.get(shard) ?? 0
      this.#results.get(shard)?.copy(merged, i * RESULT_BYTES, from, from + RESULT_BYTES)
      taken.set(shard, from + RESULT_BYTES)
    }
    this.#asked.caller.onProduced(merged, 0, count, this.#duplicates, this.#duplicateBytes)
  }
}
