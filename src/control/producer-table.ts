/**
 * The producer ids of this broker, in memory, with their numbers. Main thread only; calls nobody.
 *
 * Invariants: ids and numbers are unique; numbers only rise, also over restarts and refusals, so a number in the journal
 * never comes to mean another producer; what is not claimed yet counts for the limits, or they could be passed.
 */
import { assert } from '../base/assert.ts'
import { BrokerError } from '../model/errors.ts'
import { limits } from '../model/limits.ts'
import type { Producer } from '../model/producer.ts'
import type { StoreImage } from './store-image.ts'
import { checkProducerId } from './topic-rules.ts'

/** A producer that changes in place: `lastUsedMs` with every request, `isClaimed` once. */
export interface ProducerEntry extends Producer {
  isClaimed: boolean
  lastUsedMs: number
}

/** In no id that a caller may choose. */
const BATCH_PREFIX = 'kafka#'

/** Whether a producer was given out as a number, for batches of Kafka's protocol: it is never used under its id. */
export function isOfBatches({ id }: Pick<Producer, 'id'>): boolean {
  return id.startsWith(BATCH_PREFIX)
}

export class ProducerTable {
  readonly #byId = new Map<string, ProducerEntry>()
  readonly #byNumber = new Map<number, ProducerEntry>()
  readonly #countByOwner = new Map<string, number>()
  /** Entries whose row is older than they are. */
  readonly #changed = new Set<ProducerEntry>()
  #nextNumber: number

  constructor(image: Pick<StoreImage, 'producers' | 'nextProducerNumber'>) {
    this.#nextNumber = image.nextProducerNumber
    for (const producer of image.producers) this.#insert({ ...producer })
  }

  get count(): number {
    return this.#byId.size
  }

  /** One that callers use under this id. */
  withId(id: string): ProducerEntry | undefined {
    const entry = this.#byId.get(id)
    return entry === undefined || isOfBatches(entry) ? undefined : entry
  }

  /** Whichever is listed under it. */
  listedAs(id: string): ProducerEntry | undefined {
    return this.#byId.get(id)
  }

  withNumber(number: number): ProducerEntry | undefined {
    return this.#byNumber.get(number)
  }

  /** A copy: entries may be removed while it is walked. */
  entries(): ProducerEntry[] {
    return [...this.#byId.values()]
  }

  numbers(): number[] {
    return [...this.#byNumber.keys()]
  }

  /**
   * A new producer, not claimed. It counts from now on; its row is to be committed before its number is used.
   * @throws BrokerError NAME_INVALID, PRODUCERS_TOO_MANY
   */
  add(id: string, owner: string, nowMs: number): ProducerEntry {
    checkProducerId(id)
    return this.#add(id, owner, nowMs)
  }

  /** The same for one of batches, whose id is made of its number. @throws BrokerError PRODUCERS_TOO_MANY */
  addOfBatches(owner: string, nowMs: number): ProducerEntry {
    return this.#add(`${BATCH_PREFIX}${this.#nextNumber}`, owner, nowMs)
  }

  #add(id: string, owner: string, nowMs: number): ProducerEntry {
    const { producersPerOwnerMax, producersTotalMax } = limits
    if ((this.#countByOwner.get(owner) ?? 0) >= producersPerOwnerMax) {
      throw new BrokerError('PRODUCERS_TOO_MANY', {
        producer: id,
        limit: producersPerOwnerMax,
        whose: 'a key may have'
      })
    }
    if (this.#byId.size >= producersTotalMax) {
      throw new BrokerError('PRODUCERS_TOO_MANY', { producer: id, limit: producersTotalMax, whose: 'there may be' })
    }
    const entry = { number: this.#nextNumber++, id, owner, isClaimed: false, lastUsedMs: nowMs }
    this.#insert(entry)
    return entry
  }

  remove(entry: ProducerEntry): void {
    assert(this.#byId.get(entry.id) === entry, 'a producer that is removed is there')
    this.#byId.delete(entry.id)
    this.#byNumber.delete(entry.number)
    this.#changed.delete(entry)
    const left = (this.#countByOwner.get(entry.owner) ?? 0) - 1
    if (left > 0) this.#countByOwner.set(entry.owner, left)
    else this.#countByOwner.delete(entry.owner)
  }

  /** Time never goes back for a producer. */
  use(entry: ProducerEntry, nowMs: number): void {
    if (nowMs <= entry.lastUsedMs) return
    entry.lastUsedMs = nowMs
    this.#changed.add(entry)
  }

  /** The row is to be written again: it was not, or the producer is claimed now. */
  change(entry: ProducerEntry): void {
    if (this.#byNumber.has(entry.number)) this.#changed.add(entry)
  }

  /** Takes up to so many entries whose rows are to be written. */
  takeChanged(countMax: number): ProducerEntry[] {
    const taken: ProducerEntry[] = []
    for (const entry of this.#changed) {
      if (taken.length >= countMax) break
      taken.push(entry)
    }
    for (const entry of taken) this.#changed.delete(entry)
    return taken
  }

  #insert(entry: ProducerEntry): void {
    assert(!this.#byId.has(entry.id) && !this.#byNumber.has(entry.number), 'ids and numbers of producers are unique')
    assert(entry.number < this.#nextNumber, 'the next producer number is above every one allotted')
    this.#byId.set(entry.id, entry)
    this.#byNumber.set(entry.number, entry)
    this.#countByOwner.set(entry.owner, (this.#countByOwner.get(entry.owner) ?? 0) + 1)
  }
}
