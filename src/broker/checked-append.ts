/**
 * A producer's append over several shards, in two steps (architecture, Requests over several shards): every shard judges
 * the sequences of its part; then all parts are written, or none. Main thread; one object a request.
 *
 *   CHECK to all ─▶ every answer ─▶ all content ─▶ PRODUCE to all ─▶ one answer
 *                                   └─ any refusal, any death: that is the answer, nothing was written
 *
 * What a check said stays true until the write: nobody else of that producer is submitted meanwhile (producer-lane.ts),
 * and what it had before was answered. So nothing is reserved in a shard, and nothing to release if it dies.
 */
import { assert } from '../base/assert.ts'
import type { ByteBudget } from '../base/byte-budget.ts'
import type { BrokerError } from '../model/errors.ts'
import { submitOutcomes, type SubmitOutcome } from '../model/requests.ts'
import type { PendingRequest } from '../shards/pending.ts'
import type { ProduceFrame } from '../shards/produce-frame.ts'
import type { ShardLink } from '../shards/shard-link.ts'
import type { ShardSet } from '../shards/shard-set.ts'
import { TWO_32, writeU32 } from '../wire/primitives/u64.ts'
import { CHECK_RUN_BYTES, PRODUCE_HEADER_BYTES, replyTypes } from '../wire/shard/messages.ts'
import type { AppendCaller, EngineAppend } from './engine.ts'
import { named, type LocalAppend } from './local-append.ts'
import { shardOfRecord } from './shard-parts.ts'

/** Consecutive sequences in one partition. */
interface SequenceRun {
  readonly partition: number
  readonly high: number
  readonly low: number
  count: number
}

export interface CheckedAppendParts {
  readonly shards: ShardSet
  readonly append: LocalAppend
  readonly oversized: ByteBudget
  /** Why nothing is to be written after all. */
  readonly lateRefusal: () => BrokerError | null
}

export class CheckedAppend {
  readonly #parts: CheckedAppendParts
  readonly #append: EngineAppend
  readonly #caller: AppendCaller
  /** By shard. */
  readonly #runs: ReadonlyMap<number, readonly SequenceRun[]>
  #unanswered = 0
  #refusal: BrokerError | null = null
  #heldBytes = 0

  constructor(parts: CheckedAppendParts, append: EngineAppend, caller: AppendCaller) {
    this.#parts = parts
    this.#append = append
    this.#caller = caller
    this.#runs = runsByShard(append, parts.shards.shardCount)
  }

  begin(): void {
    this.#repeat(() => this.#sendChecks())
  }

  /** Tries until rings have room. */
  #repeat(attempt: () => SubmitOutcome): void {
    const { shards } = this.#parts
    if (attempt() === submitOutcomes.full) shards.whenRoom(() => this.#repeat(attempt))
    else shards.publishSoon()
  }

  #sendChecks(): SubmitOutcome {
    const { shards } = this.#parts
    const links: ShardLink[] = []
    for (const shard of this.#runs.keys()) {
      const link = shards.link(shard)
      if (link === null) {
        // Not before the submit that led here has returned.
        queueMicrotask(() => this.#refuse(shards.refusal(shard)))
        return submitOutcomes.taken
      }
      links.push(link)
    }
    if (!this.#reserve(links)) return submitOutcomes.full
    this.#unanswered = links.length
    for (const link of links) this.#writeCheck(link, this.#runs.get(link.shard) ?? [])
    return submitOutcomes.taken
  }

  /** Room for all checks, or for none. */
  #reserve(links: readonly ShardLink[]): boolean {
    const { oversized } = this.#parts
    const bytesOf = (link: ShardLink): number => (this.#runs.get(link.shard)?.length ?? 0) * CHECK_RUN_BYTES
    const heldBytes = links
      .map(link => (PRODUCE_HEADER_BYTES + bytesOf(link) > link.frameBytesMax ? bytesOf(link) : 0))
      .reduce((sum, bytes) => sum + bytes, 0)
    if (heldBytes > 0 && !oversized.tryReserve(heldBytes)) return false
    const marks = links.map(link => link.requests.position())
    const taken = links.findIndex(link => !link.reserveProduce(bytesOf(link)))
    if (taken >= 0) {
      for (let i = 0; i < taken; i++) links[i]?.undoProduce(marks[i] ?? 0)
      oversized.release(heldBytes)
      return false
    }
    this.#heldBytes = heldBytes
    return true
  }

  #writeCheck(link: ShardLink, runs: readonly SequenceRun[]): void {
    const bytes = runs.length * CHECK_RUN_BYTES
    const frame: ProduceFrame = link.beginProduce(bytes)
    let at = frame.recordsAt
    for (const { partition, count, high, low } of runs) {
      writeU32(frame.buffer, at, partition)
      writeU32(frame.buffer, at + 4, count)
      writeU32(frame.buffer, at + 8, high)
      writeU32(frame.buffer, at + 12, low)
      at += CHECK_RUN_BYTES
    }
    const { topic, producer } = this.#append
    const { firstHandle } = topic
    const head = { type: 'check', flags: 0, firstHandle, count: runs.length, bytes, producer } as const
    link.endProduce(frame, head, this.#checkRequest())
  }

  #checkRequest(): PendingRequest {
    return {
      endPosition: -1,
      onReply: type => {
        assert(type === replyTypes.checked, 'a check is answered by its verdict')
        this.#checked()
      },
      onFailure: error => {
        this.#refusal ??= error
        this.#checked()
      }
    }
  }

  #checked(): void {
    if (--this.#unanswered > 0) return
    this.#parts.oversized.release(this.#heldBytes)
    if (this.#refusal !== null) return this.#refuse(this.#refusal)
    this.#repeat(() => {
      // Time went by since the request came: its key may not be one any more.
      const refusal = this.#parts.lateRefusal()
      if (refusal !== null) {
        this.#refuse(refusal)
        return submitOutcomes.taken
      }
      const outcome = this.#parts.append.append(this.#append, this.#caller)
      if (outcome === submitOutcomes.taken) this.#caller.onDispatched?.()
      return outcome
    })
  }

  #refuse(error: BrokerError): void {
    const { topic, records } = this.#append
    this.#caller.onDispatched?.()
    this.#caller.onProduceFailed(named(error, { topic: topic.name, producer: records.producerId ?? '' }))
  }
}

/** The sequences of the request, by shard; those of a partition in the order of the request. */
function runsByShard(append: EngineAppend, shardCount: number): Map<number, SequenceRun[]> {
  const { records, partitions } = append
  const byShard = new Map<number, SequenceRun[]>()
  const lastByPartition = new Map<number, SequenceRun>()
  for (let i = 0; i < records.count; i++) {
    const partition = partitions[i] ?? 0
    const high = records.sequenceHighOf(i)
    const low = records.sequenceLowOf(i)
    const last = lastByPartition.get(partition)
    if (last !== undefined && (high - last.high) * TWO_32 + low - last.low === last.count) {
      last.count++
      continue
    }
    const run = { partition, high, low, count: 1 }
    const shard = shardOfRecord(append, i, shardCount)
    const runs = byShard.get(shard)
    if (runs === undefined) byShard.set(shard, [run])
    else runs.push(run)
    lastByPartition.set(partition, run)
  }
  return byShard
}
