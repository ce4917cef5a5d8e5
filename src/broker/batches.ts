/**
 * Batches that clients encoded: authorise → check the header → quota → producer → submit → count. Main thread. What goes to a
 * compacted topic is looked into on the way (keyed-batches.ts).
 *
 * A batch goes to one shard, so the ring keeps the order, and a producer's requests need no turns; they only must not meet
 * the forgetting of their producer.
 */
import { denialOf, authorise } from '../model/access.ts'
import type { AppendedBatch, BatchCaller, BatchSubmission, BatchUseCases, ReadAllowance } from '../model/batches.ts'
import { BrokerError } from '../model/errors.ts'
import type { Principal } from '../model/principal.ts'
import { submitOutcomes, type SubmitOutcome } from '../model/requests.ts'
import type { Topic } from '../model/topic.ts'
import type { Catalog } from '../control/catalog.ts'
import type { ProducerEntry } from '../control/producer-table.ts'
import type { Quotas } from '../control/quotas.ts'
import { clientBatchFault } from '../wire/batch/client-batch.ts'
import { BatchView } from '../wire/batch/view.ts'
import type { Engine } from './engine.ts'
import type { IdempotentProduce } from './idempotent-produce.ts'
import type { KeyedBatches } from './keyed-batches.ts'
import { batchSizeRefusal } from './message-limits.ts'
import type { ProduceCost } from './metering.ts'
import { hasPartition, noSuchPartition } from './partition-range.ts'
import type { ProduceGates } from './produce-gate.ts'
import type { Traffic } from './traffic.ts'
import type { ValidatedProduce } from './validated-produce.ts'

export interface BatchParts {
  readonly engine: Pick<Engine, 'appendBatch' | 'publishSoon'>
  readonly catalog: Pick<Catalog, 'topicNamed'>
  readonly idempotent: Pick<IdempotentProduce, 'joinBatch' | 'leaveBatch' | 'allocate'>
  readonly validation: Pick<ValidatedProduce, 'concerns'>
  readonly keyedBatches: Pick<KeyedBatches, 'concerns' | 'append'>
  readonly space: { readonly isLow: boolean }
  readonly quotas: Quotas
  readonly traffic: Traffic
  readonly gates: ProduceGates
  readonly maxRecordBytes: number
}

export class Batches implements BatchUseCases {
  readonly #parts: BatchParts
  /** Of the batch in hand. */
  readonly #view = new BatchView()

  constructor(parts: BatchParts) {
    this.#parts = parts
  }

  submitBatch(who: Principal, batch: BatchSubmission, caller: BatchCaller): SubmitOutcome {
    const { engine, catalog, quotas, traffic, gates, keyedBatches } = this.#parts
    const denial = denialOf(who, 'produce', batch.topic)
    if (denial !== null) return refuse(caller, denial)
    const topic = catalog.topicNamed(batch.topic)
    if (topic === undefined) return refuse(caller, new BrokerError('TOPIC_NOT_FOUND', { topic: batch.topic }))
    const gate = gates.of(topic.id)
    if (gate.isClosed) return submitOutcomes.full
    const refusal = this.#refusalOf(who, topic, batch)
    if (refusal !== null) return refuse(caller, refusal)
    const bytes = batch.end - batch.start
    const limited = quotas.borrowProduce(who, bytes)
    if (limited !== null) return refuse(caller, limited)
    const { producerId: producer, recordCount } = this.#view
    const entry = producer < 0 ? null : this.#join(producer, who)
    if (entry instanceof BrokerError) {
      quotas.giveBackProduce(who, bytes)
      return refuse(caller, entry)
    }
    const cost = { who, bytes, recordCount, counts: traffic.of(topic.id), gate }
    const call = new BatchCall(this.#parts, caller, entry, cost)
    // Numbers begin at 1, so 0 says that there is none.
    const takesAppendTime = topic.config.message_timestamp_type === 'LogAppendTime'
    const given = { ...batch, topic, producer: entry?.number ?? 0, takesAppendTime }
    const outcome = keyedBatches.concerns(topic, batch.partition)
      ? keyedBatches.append(given, who, call)
      : engine.appendBatch(given, call)
    if (outcome === submitOutcomes.full) call.undo()
    else {
      gate.enter()
      engine.publishSoon()
    }
    return outcome
  }

  produceWaitMs(who: Principal): number {
    return this.#parts.quotas.produceWaitMs(who)
  }

  readAllowance(who: Principal): ReadAllowance | null {
    return this.#parts.quotas.readAllowance(who)
  }

  async allocateProducer(who: Principal): Promise<number> {
    authorise(who, 'take producer id')
    return this.#parts.idempotent.allocate(who)
  }

  #refusalOf(who: Principal, topic: Topic, { partition, bytes, start, end }: BatchSubmission): BrokerError | null {
    const { validation, space, maxRecordBytes } = this.#parts
    if (!hasPartition(topic, partition)) return noSuchPartition(topic, partition)
    if (validation.concerns(topic, who)) return new BrokerError('BATCH_NOT_VALIDATED', { topic: topic.name })
    if (space.isLow) return new BrokerError('DISK_FULL', {}, { written: 'no' })
    const tooLarge = batchSizeRefusal(topic, end - start, maxRecordBytes)
    if (tooLarge !== null) return tooLarge
    const fault = clientBatchFault(this.#view, bytes, start, end)
    return fault === null ? null : new BrokerError(fault.code, fault.details)
  }

  /** A number that no producer of Kafka's protocol has now might come to be another's. */
  #join(producer: number, who: Principal): ProducerEntry | BrokerError {
    const entry = this.#parts.idempotent.joinBatch(producer)
    if (entry === null) return new BrokerError('PRODUCER_UNKNOWN', { producer })
    if (entry.owner === who.keyId) return entry
    this.#parts.idempotent.leaveBatch(entry)
    return new BrokerError('PRODUCER_OWNED', { producer: entry.id })
  }
}

function refuse(caller: BatchCaller, error: BrokerError): SubmitOutcome {
  queueMicrotask(() => caller.onBatchFailed(error))
  return submitOutcomes.taken
}

interface BatchCost extends ProduceCost {
  readonly recordCount: number
}

/** A batch on its way: settles what was taken for it, and passes the answer on. */
class BatchCall implements BatchCaller {
  readonly #parts: Pick<BatchParts, 'quotas' | 'idempotent'>
  readonly #caller: BatchCaller
  readonly #entry: ProducerEntry | null
  readonly #cost: BatchCost

  constructor(
    parts: Pick<BatchParts, 'quotas' | 'idempotent'>,
    caller: BatchCaller,
    entry: ProducerEntry | null,
    cost: BatchCost
  ) {
    this.#parts = parts
    this.#caller = caller
    this.#entry = entry
    this.#cost = cost
  }

  /** Nothing of it is stored. */
  undo(): void {
    if (this.#entry !== null) this.#parts.idempotent.leaveBatch(this.#entry)
    this.#parts.quotas.giveBackProduce(this.#cost.who, this.#cost.bytes)
  }

  onBatchAppended(appended: AppendedBatch): void {
    this.#cost.gate.leave()
    if (appended.isDuplicate) this.undo()
    else {
      if (this.#entry !== null) this.#parts.idempotent.leaveBatch(this.#entry)
      this.#cost.counts.producedRecords += this.#cost.recordCount
      this.#cost.counts.producedBytes += this.#cost.bytes
    }
    this.#caller.onBatchAppended(appended)
  }

  onBatchFailed(error: BrokerError): void {
    this.#cost.gate.leave()
    if (error.written === 'no') this.undo()
    else if (this.#entry !== null) this.#parts.idempotent.leaveBatch(this.#entry)
    this.#caller.onBatchFailed(error)
  }
}
