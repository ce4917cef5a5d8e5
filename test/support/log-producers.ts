/**
 * The producers of a simulated life of a log: what they send, and what the log must know of them. The judge is the log
 * itself: which sequences it must know, and at which offsets, follows from the records that are in it.
 */
import assert from 'node:assert/strict'
import type { PartitionLog } from '../../src/log/partition-log.ts'
import { kafkaSequenceOf } from '../../src/wire/batch/sequences.ts'
import type { Dice } from './log-random.ts'
import type { TestRecord } from './log-harness.ts'

const WINDOW = 128n
const NUMBERS = [1, 2, 3, 2 ** 40]
/** Of those that speak Kafka's protocol. */
const BATCH_NUMBERS = [11, 12, 2 ** 41]

interface Sent {
  readonly producer: number
  readonly sequence: bigint
}

export class LifeProducers {
  readonly #dice: Dice
  readonly #sentByContent = new Map<string, Sent>()
  duplicates = 0

  constructor(dice: Dice) {
    this.#dice = dice
  }

  draw(): number {
    return this.#dice.pick(NUMBERS)
  }

  drawOfBatches(): number {
    return this.#dice.pick(BATCH_NUMBERS)
  }

  /** Numbers a batch: the next one, or one that was accepted before. @returns how many of the records are in it. */
  numberBatch(
    producer: number,
    contents: readonly string[],
    { producers }: PartitionLog
  ): { sequence: number; count: number } {
    const known = producers.of(producer)
    if (known !== null && known.next > 0 && this.#dice.chance(0.3)) {
      const back = 1 + this.#dice.below(Math.min(known.next, Number(WINDOW)))
      const count = Math.min(contents.length, back)
      this.duplicates += count
      return { sequence: kafkaSequenceOf(known.sequenceAt(known.next - back)), count }
    }
    const first = this.#dice.pick([0, 7, 2 ** 31 - 3])
    const sequence = known === null ? BigInt(first) - 2n ** 63n : known.sequenceAt(known.next)
    contents.forEach((content, i) => this.#sentByContent.set(content, { producer, sequence: sequence + BigInt(i) }))
    return { sequence: kafkaSequenceOf(sequence), count: contents.length }
  }

  /**
   * Numbers the records of one request: from where the log stands on, sometimes after a few that it has already.
   * @param logOf the log of a partition. @param contentOf what the record will be known by.
   */
  number(
    producer: number,
    records: readonly TestRecord[],
    logOf: (partition: number) => PartitionLog,
    contentOf: (record: TestRecord) => string
  ): TestRecord[] {
    const next = new Map<number, bigint>()
    return records.map(record => {
      const known = logOf(record.partition).producers.of(producer)
      const expected = known === null ? this.#firstEver() : known.sequenceAt(known.next)
      let sequence = next.get(record.partition)
      if (sequence === undefined && known !== null && this.#dice.chance(0.3)) {
        sequence = expected - BigInt(1 + this.#dice.below(Math.min(known.next, Number(WINDOW))))
      }
      sequence ??= expected
      next.set(record.partition, sequence + 1n)
      const isNew = known === null || sequence >= expected
      if (isNew) this.#sentByContent.set(contentOf(record), { producer, sequence })
      else this.duplicates++
      return { ...record, sequence }
    })
  }

  /** What a log knows of its producers is what its records say. @param contents by offset. */
  check(log: PartitionLog, contents: readonly string[]): void {
    const bySender = new Map<number, { sequence: bigint; offset: number }[]>()
    for (const [offset, content] of contents.entries()) {
      const sent = this.#sentByContent.get(content)
      if (sent === undefined) continue
      const records = bySender.get(sent.producer) ?? []
      const last = records.at(-1)
      assert.ok(last === undefined || sent.sequence === last.sequence + 1n, 'sequences in a log have no gaps')
      bySender.set(sent.producer, [...records, { sequence: sent.sequence, offset }])
    }
    const known = [...log.producers.entries()].filter(([, sequences]) => sequences.durableNext(log.highWatermark) > 0)
    assert.deepEqual(known.map(([number]) => number).sort(), [...bySender.keys()].sort(), 'the same producers')
    for (const [number, sequences] of known) {
      const records = bySender.get(number) ?? []
      const durable = sequences.durableNext(log.highWatermark)
      assert.equal(sequences.sequenceAt(durable - 1), records.at(-1)?.sequence, 'the last sequence that is in the log')
      for (const { sequence, offset } of records.slice(-Number(WINDOW))) {
        const relative = sequences.relativeOf(Number(sequence >> 32n), Number(sequence & 0xffff_ffffn))
        assert.equal(sequences.offsetOf(relative), offset, `producer ${number}, sequence ${sequence}`)
      }
    }
  }

  #firstEver(): bigint {
    return this.#dice.pick([0n, 7n, 2n ** 32n - 3n, 2n ** 53n - 2n, 2n ** 62n])
  }
}
