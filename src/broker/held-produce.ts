/**
 * A produce that cannot be dispatched yet: its records are copied, because those of the gateway are lent for one call only.
 * Main thread. Owns the copy and its share of the budget until the caller has heard.
 */
import type { ByteBudget } from '../base/byte-budget.ts'
import { assert } from '../base/assert.ts'
import type { PackedRecords } from '../background/record-validation.ts'
import { packRecords, ScannedRecords, TABLE_ENTRY_BYTES } from '../background/scanned-records.ts'
import { BrokerError } from '../model/errors.ts'
import type { Principal } from '../model/principal.ts'
import type { Topic } from '../model/topic.ts'
import type { AppendCaller, EngineAppend } from './engine.ts'

export class HeldProduce implements AppendCaller {
  /** Who it is held for. */
  readonly who: Principal
  readonly topic: Topic
  /** What it holds of the budget. */
  readonly bytes: number
  readonly #caller: AppendCaller
  readonly #budget: ByteBudget
  readonly #partitions: Uint32Array
  #packed: PackedRecords
  #held: ScannedRecords
  /** Called with its outcome, before the caller hears. */
  onDone: (error: BrokerError | null) => void = () => undefined
  #isDispatched = false

  private constructor(append: EngineAppend, who: Principal, caller: AppendCaller, budget: ByteBudget) {
    this.who = who
    this.topic = append.topic
    this.bytes = heldBytes(append)
    this.#caller = caller
    this.#budget = budget
    this.#partitions = append.partitions.slice(0, append.records.count)
    const packed = packRecords(append.records)
    const { memory } = packed
    assert(memory !== null, 'records that are held were counted before')
    this.#packed = { ...packed, memory }
    this.#held = new ScannedRecords(this.#packed)
  }

  /** @returns null if the budget has no room: try again when it has. */
  static tryHold(append: EngineAppend, who: Principal, caller: AppendCaller, budget: ByteBudget): HeldProduce | null {
    return budget.tryReserve(heldBytes(append)) ? new HeldProduce(append, who, caller, budget) : null
  }

  /** The request, under that producer number. */
  as(producer: number): EngineAppend {
    return { topic: this.topic, records: this.#held, partitions: this.#partitions, producer }
  }

  /** The records for another thread: here nothing may be asked of them until takeBack(). Their memory stays in the budget. */
  lend(): PackedRecords {
    return this.#packed
  }

  /** Its memory is here again, as it was lent. */
  takeBack(memory: ArrayBuffer): void {
    this.#packed = { ...this.#packed, memory }
    this.#held = new ScannedRecords(this.#packed)
  }

  /** Key id of who it is held for. */
  get owner(): string {
    return this.who.keyId
  }

  /** Why it is not dispatched any more. Nothing of it was written. */
  lateRefusal(): BrokerError | null {
    return this.who.isRevoked ? new BrokerError('KEY_REVOKED') : null
  }

  /** True if its sequences count. */
  get hasProducer(): boolean {
    return this.#packed.producerId !== null
  }

  get producerId(): string {
    return this.#packed.producerId ?? ''
  }

  /** It is on all its rings, or refused. Told once, however often it is said. */
  onDispatched(): void {
    if (this.#isDispatched) return
    this.#isDispatched = true
    this.#caller.onDispatched?.()
  }

  onProduced(bytes: Buffer, start: number, count: number, duplicates: number, duplicateBytes: number): void {
    this.#done(null)
    this.#caller.onProduced(bytes, start, count, duplicates, duplicateBytes)
  }

  onProduceFailed(error: BrokerError): void {
    this.#done(error)
    this.#caller.onProduceFailed(error)
  }

  /** Memory that another thread had and that did not come back is no more. */
  #done(error: BrokerError | null): void {
    this.onDispatched()
    this.#held.free()
    this.#budget.release(this.bytes)
    this.onDone(error)
  }
}

/** What a request holds while it is held: records, their table, and their partitions. */
export function heldBytes({ records }: Pick<EngineAppend, 'records'>): number {
  return records.ringBytes + (2 * records.count + 1) * TABLE_ENTRY_BYTES
}
