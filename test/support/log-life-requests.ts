/**
 * What a simulated life sends to its log: random requests whose records can be told apart, some of them of producers.
 */
import { hash } from 'node:crypto'
import type { PartitionLog } from '../../src/log/partition-log.ts'
import type { ShardLog } from '../../src/log/shard-log.ts'
import { gzip } from './client-batches.ts'
import { gatheredResults, partitionOf, type TestRecord, type TestRequest } from './log-harness.ts'
import type { ToldRecord } from './log-history.ts'
import { LifeProducers } from './log-producers.ts'
import type { Dice } from './log-random.ts'

const KIB = 1024

export interface LifeTopic {
  readonly firstHandle: number
  readonly partitionCount: number
  readonly segmentBytes: number
}

export class LifeRequests {
  readonly producers: LifeProducers
  /** Batches that were sent as a client encodes them. */
  batches = 0
  readonly #dice: Dice
  #nextId = 1

  constructor(dice: Dice) {
    this.#dice = dice
    this.producers = new LifeProducers(dice)
  }

  /** Requests of one group. */
  draw(log: ShardLog, topics: readonly LifeTopic[]): TestRequest[] {
    return Array.from({ length: 1 + this.#dice.below(3) }, (_, request) => {
      const topic = this.#dice.pick(topics)
      const count = 1 + this.#dice.below(this.#dice.pick([1, 8, 40]))
      const largest = this.#dice.chance(0.05) ? 150 * KIB : this.#dice.pick([0, 40, 300, 5000])
      const records = Array.from({ length: count }, (_, i) =>
        this.#drawRecord(this.#dice.below(topic.partitionCount), i === 0 ? largest : Math.min(largest, 300))
      )
      const { firstHandle } = topic
      if (this.#dice.chance(0.3)) return this.#drawBatch(log, topic, records, request === 0)
      // One request of a producer in a group: what the next is to send follows from what is staged.
      if (request > 0 || this.#dice.chance(0.5)) return { firstHandle, records }
      const producer = this.producers.draw()
      const logOf = (partition: number): PartitionLog => partitionOf(log, firstHandle, partition)
      const numbered = this.producers.number(producer, records, logOf, ({ key, value }) => contentOf(key, value))
      return { firstHandle, producer, records: numbered }
    })
  }

  /** The same records as one batch for one partition. */
  #drawBatch(log: ShardLog, topic: LifeTopic, drawn: readonly TestRecord[], mayHaveProducer: boolean): TestRequest {
    this.batches++
    const { firstHandle } = topic
    const partition = this.#dice.below(topic.partitionCount)
    const records = drawn.map(record => ({ ...record, partition }))
    const times = { baseTimestamp: 1_700_000_000_000 + this.#dice.below(1_000_000) }
    const batch = this.#dice.chance(0.3) ? { ...times, ...gzip } : times
    if (!mayHaveProducer || this.#dice.chance(0.4)) return { firstHandle, records, batch }
    const producer = this.producers.drawOfBatches()
    const partitionLog = partitionOf(log, firstHandle, partition)
    const contents = records.map(({ key, value }) => contentOf(key, value))
    const { sequence, count } = this.producers.numberBatch(producer, contents, partitionLog)
    return { firstHandle, producer, records: records.slice(0, count), batch: { ...batch, sequence } }
  }

  /** Key or value begins with a number that no other record has. */
  #drawRecord(partition: number, largestValue: number): TestRecord {
    const id = Buffer.from(`${this.#nextId++};`)
    const filling = this.#dice.bytes(this.#dice.below(largestValue + 1))
    return this.#dice.chance(0.7)
      ? { partition, key: id, value: filling }
      : { partition, key: null, value: Buffer.concat([id, filling]) }
  }
}

/** What the callers of gathered requests will be told. Duplicates are told nothing new. */
export function toldRecords(log: ShardLog, requests: readonly TestRequest[]): ToldRecord[] {
  const results = gatheredResults(log)
  let at = 0
  return requests.flatMap(({ firstHandle, records, batch }) => {
    const base = batch === undefined ? null : results[at++]
    return records.flatMap(({ partition, key, value }, i) => {
      const result = base ?? results[at++]
      if (result === undefined || result.isDuplicate) return []
      const offset = base === null ? result.offset : result.offset + i
      return [{ handle: firstHandle + partition, offset, content: contentOf(key, value) }]
    })
  })
}

/** What a record is known by: no two of a life are the same. */
export function contentOf(key: Buffer | null, value: Buffer): string {
  return hash('sha1', Buffer.concat([Buffer.from(`${key?.length ?? -1} `), key ?? Buffer.alloc(0), value]), 'base64')
}
