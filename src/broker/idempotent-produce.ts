/**
 * Produces with a producer id: whose it is, its number, and its turn. Main thread. Of producers of Kafka's protocol, whose
 * batches need no turn (batches.ts), only that they come, and that they are not forgotten meanwhile.
 *
 *   known id, free lane, one shard ─▶ to the engine at once, like any produce
 *   new id                         ─▶ held ─▶ its row committed ─▶ to the engine
 *   several shards, or a taken lane ─▶ held ─▶ its turn ─▶ to the engine
 *
 * A producer's row is committed before its number reaches a shard: the journal never has a number that the store does not
 * know. It is claimed when records were written under it, or may have been; a refused one is given up again (spec D32).
 */
import type { ByteBudget } from '../base/byte-budget.ts'
import type { Clock } from '../base/clock.ts'
import type { Logger } from '../base/logger.ts'
import { isOfBatches, type ProducerEntry, type ProducerTable } from '../control/producer-table.ts'
import { BrokerError, toBrokerError } from '../model/errors.ts'
import type { Principal } from '../model/principal.ts'
import { submitOutcomes, type RecordSource, type SubmitOutcome } from '../model/requests.ts'
import type { Store } from '../store/store.ts'
import type { AppendCaller, Engine, EngineAppend } from './engine.ts'
import { HeldProduce } from './held-produce.ts'
import { ProducerLane } from './producer-lane.ts'

export interface IdempotentParts {
  readonly table: ProducerTable
  readonly store: Store
  readonly engine: Engine
  readonly clock: Clock
  readonly logger: Logger
  /** Bytes of held requests. */
  readonly held: ByteBudget
}

export class IdempotentProduce {
  readonly #parts: IdempotentParts
  readonly #lanes = new Map<ProducerEntry, ProducerLane>()
  /** Numbers that the shards are about to be told to drop. */
  readonly #toDrop: number[] = []
  #dropping: Promise<void> | null = null

  constructor(parts: IdempotentParts) {
    this.#parts = parts
  }

  /**
   * Submits a request whose sequences have their form. @param append with any producer number; it is looked up here.
   * @throws BrokerError PRODUCER_OWNED, NAME_INVALID, PRODUCERS_TOO_MANY
   */
  submit(append: EngineAppend, id: string, who: Principal, caller: AppendCaller): SubmitOutcome {
    const { table, engine, clock, held } = this.#parts
    const owner = who.keyId
    const entry = table.withId(id)
    if (entry !== undefined) {
      checkOwner(entry, owner)
      table.use(entry, clock.nowMs())
      const lane = this.#laneOf(entry)
      if (entry.owner === owner && engine.hasOneOwner(append) && lane.tryShare()) {
        const call = new LaneCall(caller, error => {
          this.#claim(entry, error)
          lane.leave()
          this.#settle(entry)
        })
        const outcome = engine.append({ ...append, producer: entry.number }, call)
        if (outcome === submitOutcomes.full) lane.leave()
        return outcome
      }
    }
    const request = HeldProduce.tryHold(append, who, caller, held)
    if (request === null) return submitOutcomes.full
    try {
      this.#enter(request)
    } catch (error) {
      if (!(error instanceof BrokerError)) throw error
      queueMicrotask(() => request.onProduceFailed(error))
    }
    return submitOutcomes.held
  }

  /** The same for a request that is held already, and that the caller was told of. Refusals are its answer. */
  submitHeld(request: HeldProduce): void {
    this.#enterAgain(request)
  }

  /**
   * A fresh producer for batches of Kafka's protocol. Its row is committed before its number is known to anybody, so that
   * batches need not wait for it. @throws BrokerError PRODUCERS_TOO_MANY; those of the store
   */
  async allocate(who: Principal): Promise<number> {
    const { table, store, clock } = this.#parts
    const entry = table.addOfBatches(who.keyId, clock.nowMs())
    const { number, id, owner, lastUsedMs } = entry
    try {
      await store.commit([{ kind: 'producer-added', producer: { number, id, owner, isClaimed: true, lastUsedMs } }])
    } catch (error) {
      table.remove(entry)
      throw error
    }
    entry.isClaimed = true
    return number
  }

  /**
   * Enters the lane of a producer of batches, until leaveBatch. @returns null: there is none with that number, or it is about
   * to be forgotten.
   */
  joinBatch(number: number): ProducerEntry | null {
    const { table, clock } = this.#parts
    const entry = table.withNumber(number)
    if (entry === undefined || !isOfBatches(entry) || !entry.isClaimed) return null
    if (!this.#laneOf(entry).tryShare()) return null
    table.use(entry, clock.nowMs())
    return entry
  }

  leaveBatch(entry: ProducerEntry): void {
    const lane = this.#laneOf(entry)
    lane.leave()
    if (lane.isEmpty) this.#lanes.delete(entry)
  }

  /** Its requests in progress are answered first, and what comes later finds nothing of it. @throws BrokerError of the store */
  forget(entry: ProducerEntry): Promise<void> {
    const lane = this.#laneOf(entry)
    return new Promise((resolve, reject) => {
      const start = (): void => void this.#forgetAlone(entry, lane).then(resolve, reject)
      lane.enter({ isAlone: true, start, closed: () => resolve() })
    })
  }

  /** True if nothing of that producer is in progress. */
  isIdle(entry: ProducerEntry): boolean {
    return this.#lanes.get(entry)?.isEmpty ?? true
  }

  #laneOf(entry: ProducerEntry): ProducerLane {
    let lane = this.#lanes.get(entry)
    if (lane === undefined) {
      lane = new ProducerLane()
      this.#lanes.set(entry, lane)
    }
    return lane
  }

  /** @throws BrokerError: the request is not taken. */
  #enter(request: HeldProduce): void {
    const { table, clock, engine } = this.#parts
    let entry = table.withId(request.producerId)
    if (entry === undefined) {
      entry = table.add(request.producerId, request.owner, clock.nowMs())
      this.#allot(entry)
    } else {
      checkOwner(entry, request.owner)
      table.use(entry, clock.nowMs())
    }
    if (entry.owner !== request.owner) return this.#takeOver(entry, request)
    const known = entry
    const lane = this.#laneOf(known)
    const append = request.as(known.number)
    const isAlone = !engine.hasOneOwner(append)
    const start = (): void => {
      request.onDone = error => {
        this.#claim(known, error)
        if (isAlone) lane.giveBack()
        else lane.leave()
        this.#settle(known)
      }
      if (isAlone) engine.appendChecked(append, request, () => request.lateRefusal())
      else this.#appendShared(append, request, lane)
    }
    lane.enter({ isAlone, start, closed: cause => this.#closed(request, cause) })
  }

  /** The id is not claimed by the other key that asked for it: whether it will be, this request waits for. */
  #takeOver(entry: ProducerEntry, request: HeldProduce): void {
    const lane = this.#laneOf(entry)
    const start = (): void => {
      if (entry.isClaimed) {
        lane.giveBack()
        request.onProduceFailed(new BrokerError('PRODUCER_OWNED', { producer: entry.id }))
        return
      }
      this.#forgetAlone(entry, lane).then(
        () => this.#closed(request, null),
        (error: unknown) => this.#closed(request, storeRefusal(error))
      )
    }
    lane.enter({ isAlone: true, start, closed: cause => this.#closed(request, cause) })
  }

  /** The lane that a request waited for is no more. */
  #closed(request: HeldProduce, cause: BrokerError | null): void {
    if (cause === null) this.#enterAgain(request)
    else request.onProduceFailed(cause)
  }

  #appendShared(append: EngineAppend, request: HeldProduce, lane: ProducerLane): void {
    const { engine } = this.#parts
    const refusal = request.lateRefusal()
    if (refusal !== null) {
      lane.share()
      request.onProduceFailed(refusal)
      return
    }
    if (engine.append(append, request) === submitOutcomes.full) {
      engine.whenRoom(() => this.#appendShared(append, request, lane))
      return
    }
    engine.publishSoon()
    lane.share()
    request.onDispatched()
  }

  /** Takes the lane of a new producer until its row is committed. */
  #allot(entry: ProducerEntry): void {
    const lane = this.#laneOf(entry)
    const { number, id, owner, lastUsedMs } = entry
    const start = (): void => {
      this.#parts.store
        .commit([{ kind: 'producer-added', producer: { number, id, owner, isClaimed: false, lastUsedMs } }])
        .then(
          () => lane.giveBack(),
          (error: unknown) => this.#allotFailed(entry, lane, error)
        )
    }
    lane.enter({ isAlone: true, start, closed: () => undefined })
  }

  /** Nothing was written: all who wait for it are told what the store said. */
  #allotFailed(entry: ProducerEntry, lane: ProducerLane, cause: unknown): void {
    this.#remove(entry, lane, storeRefusal(cause))
  }

  async #forgetAlone(entry: ProducerEntry, lane: ProducerLane): Promise<void> {
    const { store } = this.#parts
    try {
      await store.commit([{ kind: 'producer-forgotten', number: entry.number }])
    } catch (error) {
      lane.giveBack()
      throw error
    }
    this.#remove(entry, lane, null)
    await this.#drop(entry.number)
  }

  /**
   * Has the shards drop what they know of it, together with all whose rows went in the same commit. A shard that is down
   * drops it when it starts: the number is not among those it is told.
   */
  #drop(number: number): Promise<void> {
    this.#toDrop.push(number)
    this.#dropping ??= Promise.resolve().then(() => {
      this.#dropping = null
      return this.#parts.engine.forgetProducers(this.#toDrop.splice(0))
    })
    return this.#dropping
  }

  #remove(entry: ProducerEntry, lane: ProducerLane, cause: BrokerError | null): void {
    this.#parts.table.remove(entry)
    this.#lanes.delete(entry)
    lane.close(cause)
    // Delivers what was refused with it.
    this.#parts.engine.turn()
  }

  #enterAgain(request: HeldProduce): void {
    try {
      this.#enter(request)
    } catch (error) {
      if (!(error instanceof BrokerError)) throw error
      request.onProduceFailed(error)
    }
  }

  /** A producer under which records were written, or may have been, is claimed, before anybody else has its lane. */
  #claim(entry: ProducerEntry, error: BrokerError | null): void {
    if (entry.isClaimed || error?.written === 'no') return
    entry.isClaimed = true
    this.#parts.table.change(entry)
    this.#saveClaim(entry)
  }

  /** After each answer: one under which none were is given up. */
  #settle(entry: ProducerEntry): void {
    const lane = this.#lanes.get(entry)
    if (lane === undefined || !lane.isEmpty) return
    if (entry.isClaimed) this.#lanes.delete(entry)
    else {
      const { logger } = this.#parts
      this.forget(entry).catch((cause: unknown) => logger.warn({ err: cause }, 'a producer id stays noted unused'))
    }
  }

  /** Not waited for: until it is stored, the journal itself proves the claim. */
  #saveClaim(entry: ProducerEntry): void {
    const { store, table } = this.#parts
    const { number, lastUsedMs } = entry
    store.commit([{ kind: 'producer-used', producer: { number, isClaimed: true, lastUsedMs } }]).catch(() => {
      // The store has logged it; the next sweep writes the row again.
      table.change(entry)
    })
  }
}

/** Passes the answer on when the lane is left. */
class LaneCall implements AppendCaller {
  readonly #caller: AppendCaller
  readonly #onDone: (error: BrokerError | null) => void

  constructor(caller: AppendCaller, onDone: (error: BrokerError | null) => void) {
    this.#caller = caller
    this.#onDone = onDone
  }

  onProduced(bytes: Buffer, start: number, count: number, duplicates: number, duplicateBytes: number): void {
    this.#onDone(null)
    this.#caller.onProduced(bytes, start, count, duplicates, duplicateBytes)
  }

  onProduceFailed(error: BrokerError): void {
    this.#onDone(error)
    this.#caller.onProduceFailed(error)
  }
}

/** What a request hears that the store failed: none of its records was dispatched. */
function storeRefusal(cause: unknown): BrokerError {
  const { code, details } = toBrokerError(cause)
  return new BrokerError(code, details, { written: 'no', cause })
}

/** What is not claimed belongs to nobody yet (spec D32). */
function checkOwner(entry: ProducerEntry, owner: string): void {
  if (entry.isClaimed && entry.owner !== owner) throw new BrokerError('PRODUCER_OWNED', { producer: entry.id })
}

/** @throws BrokerError SEQUENCE_INVALID naming the first record whose sequence is missing or negative. */
export function checkSequences(records: RecordSource): void {
  for (let index = 0; index < records.count; index++) {
    const high = records.sequenceHighOf(index)
    if (high >= 0) continue
    const isMissing = high === -0x8000_0000 && records.sequenceLowOf(index) === 0
    const problem = isMissing ? 'is missing: with a producer_id every record has one' : 'is negative: it counts from 0'
    throw new BrokerError('SEQUENCE_INVALID', { index, problem })
  }
}
