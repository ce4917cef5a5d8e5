/**
 * A produce that cannot be dispatched yet: its records are copied, because those of the gateway are lent for one call only.
 * Main thread. Owns the copy and its share of the budget until the caller has heard.
 */
import type { ByteBudget } from '../base/byte-budget.ts'
import { packRecords, ScannedRecords, TABLE_ENTRY_BYTES } from '../background/scanned-records.ts'
import { BrokerError } from '../model/errors.ts'
import type { Principal } from '../model/principal.ts'
import type { AppendCaller, EngineAppend } from './engine.ts'

export class HeldProduce implements AppendCaller {
  /** Who it is held for. */
  readonly who: Principal
  readonly #caller: AppendCaller
  readonly #budget: ByteBudget
  readonly #bytes: number
  readonly #held: ScannedRecords
  readonly #append: Omit<EngineAppend, 'producer'>
  /** Called with its outcome, before the caller hears. */
  onDone: (error: BrokerError | null) => void = () => undefined
  #isDispatched = false

  private constructor(append: EngineAppend, who: Principal, caller: AppendCaller, budget: ByteBudget) {
    this.who = who
    this.#caller = caller
    this.#budget = budget
    this.#bytes = heldBytes(append)
    this.#held = new ScannedRecords(packRecords(append.records))
    const partitions = append.partitions.slice(0, append.records.count)
    this.#append = { topic: append.topic, records: this.#held, partitions }
  }

  /** @returns null if the budget has no room: try again when it has. */
  static tryHold(append: EngineAppend, who: Principal, caller: AppendCaller, budget: ByteBudget): HeldProduce | null {
    return budget.tryReserve(heldBytes(append)) ? new HeldProduce(append, who, caller, budget) : null
  }

  /** The request, under that producer number. */
  as(producer: number): EngineAppend {
    return { ...this.#append, producer }
  }

  /** Key id of who it is held for. */
  get owner(): string {
    return this.who.keyId
  }

  /** Why it is not dispatched any more. Nothing of it was written. */
  lateRefusal(): BrokerError | null {
    return this.who.isRevoked ? new BrokerError('KEY_REVOKED') : null
  }

  get producerId(): string {
    return this.#held.producerId ?? ''
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

  #done(error: BrokerError | null): void {
    this.onDispatched()
    this.#held.free()
    this.#budget.release(this.#bytes)
    this.onDone(error)
  }
}

/** Records, their table, and their partitions. */
function heldBytes({ records }: EngineAppend): number {
  return records.ringBytes + (2 * records.count + 1) * TABLE_ENTRY_BYTES
}
