/**
 * Between the broker and its engine: counts what went through, and settles quotas when the outcome is known. Main thread.
 * A small object or two a request, which live until its answer; nothing is done per record.
 */
import type { Quotas } from '../control/quotas.ts'
import type { BrokerError } from '../model/errors.ts'
import type { Principal } from '../model/principal.ts'
import type { LentAnswer, ProduceCaller, ReadCaller, ReadCost, RecordSource } from '../model/requests.ts'
import { RECORD_FIXED_BYTES } from '../wire/produce/ring-layout.ts'
import type { AppendCaller, EngineReadCaller } from './engine.ts'
import type { ProduceGate } from './produce-gate.ts'
import { passOnLent } from './read-answers.ts'
import type { TopicTraffic } from './traffic.ts'

/** Bytes of all keys, values and headers. @cost a look at each record where there are headers. */
export function payloadBytesOf(records: RecordSource): number {
  if (!records.hasHeaders) return records.ringBytes - RECORD_FIXED_BYTES * records.count
  let bytes = 0
  for (let i = 0; i < records.count; i++) bytes += records.payloadBytesOf(i)
  return bytes
}

/** What a produce took of whom, and where it is counted. */
export interface ProduceCost {
  readonly who: Principal
  /** Of the quota. */
  readonly bytes: number
  readonly counts: TopicTraffic
  /** It is entered when the produce is taken, and left when it is answered. */
  readonly gate: ProduceGate
}

/** A produce whose cost was taken: it is given back if nothing was written. */
export class MeteredProduce implements AppendCaller {
  readonly #caller: ProduceCaller
  readonly #quotas: Quotas
  readonly #cost: ProduceCost

  constructor(caller: ProduceCaller, quotas: Quotas, cost: ProduceCost) {
    this.#caller = caller
    this.#quotas = quotas
    this.#cost = cost
  }

  onProduced(bytes: Buffer, start: number, count: number, duplicates: number, duplicateBytes: number): void {
    const { bytes: cost, counts, gate } = this.#cost
    gate.leave()
    counts.producedRecords += count - duplicates
    counts.producedBytes += cost - duplicateBytes
    this.#caller.onProduced(bytes, start, count)
  }

  onProduceFailed(error: BrokerError): void {
    const { who, bytes, gate } = this.#cost
    gate.leave()
    if (error.written === 'no') this.#quotas.giveBackProduce(who, bytes)
    this.#caller.onProduceFailed(error)
  }

  onDispatched(): void {
    this.#caller.onDispatched?.()
  }
}

/**
 * A read: charged when its answer is complete, also if its client is gone by then, or when its caller says so; of several
 * readers, to each.
 */
export class MeteredRead implements EngineReadCaller, ReadCost {
  readonly #caller: ReadCaller
  readonly #readers: Principal | readonly Principal[]
  readonly #quotas: Quotas
  readonly #counts: TopicTraffic

  constructor(caller: ReadCaller, readers: Principal | readonly Principal[], quotas: Quotas, counts: TopicTraffic) {
    this.#caller = caller
    this.#readers = readers
    this.#quotas = quotas
    this.#counts = counts
  }

  onReadCounted(records: number, payloadBytes: number): void {
    if (this.#caller.onReadCost === undefined) this.charge(records, payloadBytes)
    else this.#caller.onReadCost(this, records, payloadBytes)
  }

  charge(records: number, payloadBytes: number): void {
    const counts = this.#counts
    const readers = this.#readers
    if (!isSeveral(readers)) {
      counts.consumedRecords += records
      counts.consumedBytes += payloadBytes
      this.#quotas.chargeConsume(readers, payloadBytes)
      return
    }
    counts.consumedRecords += records * readers.length
    counts.consumedBytes += payloadBytes * readers.length
    for (const who of readers) this.#quotas.chargeConsume(who, payloadBytes)
  }

  onReadChunk(bytes: Buffer, start: number, end: number, totalBytes: number, isLast: boolean): void {
    this.#caller.onReadChunk(bytes, start, end, totalBytes, isLast)
  }

  onReadLent(answer: LentAnswer): void {
    passOnLent(this.#caller, answer)
  }

  onReadFailed(error: BrokerError): void {
    this.#caller.onReadFailed(error)
  }
}

function isSeveral(readers: Principal | readonly Principal[]): readers is readonly Principal[] {
  return Array.isArray(readers)
}
