/**
 * What an operator and the clock do to producers: list, forget, keep their rows up to date, forget the idle. Main thread.
 */
import type { Clock } from '../base/clock.ts'
import type { Catalog } from '../control/catalog.ts'
import { isOfBatches, type ProducerEntry, type ProducerTable } from '../control/producer-table.ts'
import { BrokerError } from '../model/errors.ts'
import { limits } from '../model/limits.ts'
import type { ProducerDescription, ProducerPosition } from '../model/producer.ts'
import type { Store } from '../store/store.ts'
import { kafkaSequenceOf } from '../wire/batch/sequences.ts'
import type { Engine } from './engine.ts'
import type { IdempotentProduce } from './idempotent-produce.ts'

/** Rows of one commit: a sweep must not hold up those who wait for theirs. */
const ROWS_PER_COMMIT = 1000

export interface ProducerCommandsParts {
  readonly table: ProducerTable
  readonly catalog: Catalog
  readonly store: Store
  readonly engine: Engine
  readonly idempotent: IdempotentProduce
  readonly clock: Clock
}

export class ProducerCommands {
  readonly #parts: ProducerCommandsParts
  #sweeping: Promise<void> = Promise.resolve()

  constructor(parts: ProducerCommandsParts) {
    this.#parts = parts
  }

  /** Claimed producers by id. @throws BrokerError NOT_READY: part of the answer would be missing. */
  async list(): Promise<ProducerDescription[]> {
    const { table, catalog, engine } = this.#parts
    const { positions, isWhole } = await engine.listProducers()
    if (!isWhole) throw new BrokerError('NOT_READY', { problem: engine.problems().join('; ') || 'a shard went down' })
    const byNumber = new Map<number, ProducerPosition[]>()
    for (const { handle, producer, lastSequence, lastOffset } of positions) {
      const meaning = catalog.meaningOf(handle)
      if (meaning.kind !== 'live') continue
      const position = {
        topic: meaning.topic.name,
        partition: meaning.partition,
        lastSequence: lastSequence < 0n ? BigInt(kafkaSequenceOf(lastSequence)) : lastSequence,
        lastOffset
      }
      const known = byNumber.get(producer)
      if (known === undefined) byNumber.set(producer, [position])
      else known.push(position)
    }
    return table
      .entries()
      .filter(entry => entry.isClaimed)
      .sort((a, b) => compareText(a.id, b.id))
      .map(({ id, number }) => ({ id, partitions: (byNumber.get(number) ?? []).sort(comparePositions) }))
  }

  /** @throws BrokerError PRODUCER_NOT_FOUND; those of the store */
  async forget(id: string): Promise<void> {
    const { table, idempotent } = this.#parts
    const entry = table.listedAs(id)
    if (entry === undefined || !entry.isClaimed) throw new BrokerError('PRODUCER_NOT_FOUND', { producer: id })
    await idempotent.forget(entry)
  }

  /**
   * Claims the producers that the store has as unclaimed and the journal has records of: the process ended in between.
   * Those that nobody has records of are forgotten; if a shard cannot be asked, at a later start.
   */
  async settleUnclaimed(): Promise<void> {
    const { table, engine, idempotent } = this.#parts
    const unclaimed = table.entries().filter(entry => !entry.isClaimed)
    if (unclaimed.length === 0) return
    const { positions, isWhole } = await engine.listProducers()
    const withRecords = new Set(positions.map(position => position.producer))
    for (const entry of unclaimed) {
      if (withRecords.has(entry.number)) {
        entry.isClaimed = true
        table.change(entry)
      } else if (isWhole && idempotent.isIdle(entry) && !entry.isClaimed) await idempotent.forget(entry)
    }
    await this.#saveChanged()
  }

  /** Writes the rows that changed, then forgets who was idle for too long. One sweep at a time. @throws BrokerError of the store */
  sweep(): Promise<void> {
    this.#sweeping = this.#sweeping.catch(() => undefined).then(() => this.#sweep())
    return this.#sweeping
  }

  async #sweep(): Promise<void> {
    const { table, clock, idempotent } = this.#parts
    await this.#saveChanged()
    const nowMs = clock.nowMs()
    const idle = table
      .entries()
      .filter(entry => entry.isClaimed && nowMs - entry.lastUsedMs > idleMsOf(entry) && idempotent.isIdle(entry))
    for (let from = 0; from < idle.length; from += ROWS_PER_COMMIT) {
      // At once: their commits share a sync.
      await Promise.all(idle.slice(from, from + ROWS_PER_COMMIT).map(entry => idempotent.forget(entry)))
    }
  }

  async #saveChanged(): Promise<void> {
    const { table, store } = this.#parts
    for (;;) {
      const entries = table.takeChanged(ROWS_PER_COMMIT)
      if (entries.length === 0) return
      const changes = entries.map(({ number, isClaimed, lastUsedMs }) => {
        return { kind: 'producer-used', producer: { number, isClaimed, lastUsedMs } } as const
      })
      try {
        await store.commit(changes)
      } catch (error) {
        for (const entry of entries) table.change(entry)
        throw error
      }
    }
  }
}

/** For how long it may be unused. */
function idleMsOf(entry: ProducerEntry): number {
  return isOfBatches(entry) ? limits.batchProducerIdleMs : limits.producerIdleMs
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

function comparePositions(a: ProducerPosition, b: ProducerPosition): number {
  return compareText(a.topic, b.topic) || a.partition - b.partition
}
