/**
 * Batches of clients for compacted topics, whose records must have keys: the only ones that are looked into before they
 * are written. Main thread.
 *
 *   small ─▶ looked into at once ───────────────────────────────┬─▶ the engine
 *   large, or behind one that waits ─▶ copied                   │
 *     └─▶ its turn in the line of its partition                 │
 *           └─▶ checkRecordKeys, in another thread ─────────────┤
 *                                                               └─▶ no key, or no way to tell: refused
 *
 * Invariants: the batches of a partition leave in the order in which they came; a copy is counted from when it is made
 * until the engine has it. What was written before the topic was compacted stays as it is. It must never inflate on
 * this thread more than limits.inflatedAtOnceBytesMax.
 */
import type { BatchJobs } from '../background/jobs.ts'
import type { BackgroundPool } from '../background/pool.ts'
import type { ByteBudget } from '../base/byte-budget.ts'
import { unreachable } from '../base/assert.ts'
import { copyBytes } from '../base/copy.ts'
import { freeMemory } from '../base/free-memory.ts'
import type { BatchCaller } from '../model/batches.ts'
import { BrokerError } from '../model/errors.ts'
import { limits } from '../model/limits.ts'
import type { Principal } from '../model/principal.ts'
import { submitOutcomes, type SubmitOutcome } from '../model/requests.ts'
import type { Topic } from '../model/topic.ts'
import { keyVerdictOn, type KeyVerdict } from '../wire/batch/batch-keys.ts'
import { codecOf } from '../wire/batch/client-batch.ts'
import type { Engine, EngineBatch } from './engine.ts'
import { lateRefusalOf } from './late-refusal.ts'

export interface KeyedBatchParts {
  readonly catalog: { topicNamed(name: string): Topic | undefined }
  readonly engine: Pick<Engine, 'appendBatch' | 'whenRoom' | 'turn'>
  readonly pool: Pick<BackgroundPool<BatchJobs>, 'run'>
  /** Bytes of copies. */
  readonly held: ByteBudget
}

/** A batch that waits, in memory of its own. */
interface Waiting {
  readonly batch: Omit<EngineBatch, 'bytes' | 'start' | 'end'>
  readonly who: Principal
  readonly caller: BatchCaller
  /** Empty while another thread has it. */
  memory: ArrayBuffer
  readonly bytes: number
}

export class KeyedBatches {
  readonly #parts: KeyedBatchParts
  /** Of a partition, in the order of arrival. The first is at work. */
  readonly #lines = new Map<string, Waiting[]>()

  constructor(parts: KeyedBatchParts) {
    this.#parts = parts
  }

  /** True for a batch that must come here: of a compacted topic, or behind one that is here still. */
  concerns(topic: Topic, partition: number): boolean {
    return (
      topic.config.cleanup_policy !== 'delete' || (this.#lines.size > 0 && this.#lines.has(lineKeyOf(topic, partition)))
    )
  }

  /**
   * As Engine.appendBatch. @fails as there, and RECORD_WITHOUT_KEY, BATCH_INVALID; after a wait also TOPIC_NOT_FOUND,
   * FORBIDDEN
   */
  append(batch: EngineBatch, who: Principal, caller: BatchCaller): SubmitOutcome {
    const { topic, partition } = batch
    const line = this.#lines.get(lineKeyOf(topic, partition))
    if (line !== undefined) return this.#wait(line, batch, who, caller)
    const verdict = this.#verdictAtOnce(batch)
    if (verdict === null) return this.#wait([], batch, who, caller)
    const refusal = refusalOf(verdict, topic)
    if (refusal === null) return this.#parts.engine.appendBatch(batch, caller)
    queueMicrotask(() => caller.onBatchFailed(refusal))
    return submitOutcomes.taken
  }

  /** @returns null: that takes too long here, or its limit here was too low. */
  #verdictAtOnce({ bytes, start, end }: EngineBatch): KeyVerdict | null {
    const { inflateAtOnceBytesMax, inflatedAtOnceBytesMax: inflatedMax } = limits
    const isCompressed = codecOf(bytes, start) !== 0
    if (end - start > (isCompressed ? inflateAtOnceBytesMax : inflatedMax)) return null
    const verdict = keyVerdictOn(bytes, start, end, inflatedMax)
    return isCompressed && verdict.kind === 'undecodable' ? null : verdict
  }

  #wait(line: Waiting[], given: EngineBatch, who: Principal, caller: BatchCaller): SubmitOutcome {
    const { bytes: source, start, end, ...batch } = given
    const bytes = end - start
    if (line.length >= limits.keyedBatchLineMax || !this.#parts.held.tryReserve(bytes)) return submitOutcomes.full
    const { buffer: memory } = Buffer.allocUnsafeSlow(bytes)
    copyBytes(source, start, end, Buffer.from(memory), 0)
    line.push({ batch, who, caller, memory, bytes })
    if (line.length === 1) {
      const key = lineKeyOf(batch.topic, batch.partition)
      this.#lines.set(key, line)
      void this.#work(key, line)
    }
    return submitOutcomes.taken
  }

  async #work(key: string, line: Waiting[]): Promise<void> {
    for (let first = line[0]; first !== undefined; first = line[0]) {
      const refusal = await this.#refusalOf(first)
      if (refusal !== null) first.caller.onBatchFailed(refusal)
      else await this.#dispatch(first)
      line.shift()
      freeMemory(first.memory)
      this.#parts.held.release(first.bytes)
      if (line.length === 0) this.#lines.delete(key)
      // Delivers what was refused, and lets those try again that found no room.
      this.#parts.engine.turn()
    }
  }

  async #refusalOf(waiting: Waiting): Promise<BrokerError | null> {
    const { batch, who } = waiting
    const { catalog, pool } = this.#parts
    try {
      const { memory } = waiting
      const result = await pool.run('checkRecordKeys', { batch: memory }, { moves: [memory] })
      waiting.memory = result.batch
      return refusalOf(result.verdict, batch.topic) ?? lateRefusalOf(catalog, who, batch.topic)
    } catch (error) {
      if (!(error instanceof BrokerError)) throw error
      return error
    }
  }

  /** Resolves when it is on its ring, or refused. */
  #dispatch({ batch, who, caller, memory, bytes: end }: Waiting): Promise<void> {
    const { engine, catalog } = this.#parts
    const bytes = Buffer.from(memory)
    return new Promise(resolve => {
      const attempt = (): void => {
        const refusal = lateRefusalOf(catalog, who, batch.topic)
        if (refusal !== null) caller.onBatchFailed(refusal)
        else if (engine.appendBatch({ ...batch, bytes, start: 0, end }, caller) === submitOutcomes.full)
          return engine.whenRoom(attempt)
        resolve()
      }
      attempt()
    })
  }
}

function lineKeyOf({ id }: Topic, partition: number): string {
  return `${id} ${partition}`
}

function refusalOf(verdict: KeyVerdict, { name: topic }: Topic): BrokerError | null {
  switch (verdict.kind) {
    case 'keyed':
    // The shard says so: it computes the checksum of every batch.
    case 'damaged':
      return null
    case 'keyless':
      return new BrokerError('RECORD_WITHOUT_KEY', { index: verdict.index, topic })
    case 'undecodable':
      return new BrokerError('BATCH_INVALID', {
        problem: `its records cannot be decoded, or would have more than ${limits.inflatedBatchBytesMax} bytes, and topic '${topic}' is compacted`
      })
    default:
      return unreachable(verdict)
  }
}
