/** KafkaJS as an idempotent producer for crash tests: one send after the other, through whatever befalls the broker. */
import { CompressionTypes, type Kafka, type Producer } from 'kafkajs'
import type { LoadTopic } from './crash-load.ts'
import { makeValue, type SentRecord } from './history.ts'
import { keyOf } from './kafka-load.ts'
import type { Dice } from './log-random.ts'

const RECORDS_MAX = 8

export class KafkaJsLoad {
  readonly sent: SentRecord[] = []
  acked = 0
  failed = 0
  readonly #kafka: Kafka
  readonly #label: string
  readonly #topics: readonly LoadTopic[]
  readonly #dice: Dice
  #life = 0
  #serial = 0
  #isStopping = false
  #producer: Producer | null = null

  constructor(kafka: Kafka, label: string, topics: readonly LoadTopic[], dice: Dice) {
    this.#kafka = kafka
    this.#label = label
    this.#topics = topics
    this.#dice = dice
  }

  /** run() ends when the send in progress is answered. */
  stop(): void {
    this.#isStopping = true
  }

  /** Whatever it does, it does no more. */
  async abort(): Promise<void> {
    this.#isStopping = true
    await this.#producer?.disconnect()
  }

  async run(): Promise<void> {
    while (!this.#isStopping) {
      this.#life++
      const producer = this.#kafka.producer({ idempotent: true, maxInFlightRequests: 1 })
      this.#producer = producer
      await producer.connect()
      // After a send that it gave up KafkaJS would give its sequences to others: it is not asked to.
      while (!this.#isStopping && (await this.#send(producer)));
      await producer.disconnect()
    }
  }

  /** @returns whether all was acknowledged. */
  async #send(producer: Producer): Promise<boolean> {
    const dice = this.#dice
    const { name: topic, partitions } = dice.pick(this.#topics)
    const connection = `${this.#label}.${this.#life}`
    const records = Array.from({ length: 1 + dice.below(RECORDS_MAX) }, (): SentRecord => {
      const value = makeValue(`${connection}-${this.#serial++}`, 20 + dice.below(300))
      return { connection, topic, partition: dice.below(partitions), value, offset: -1, told: 'unknown' }
    })
    this.sent.push(...records)
    const messages = records.map(({ value, partition }) => ({ key: keyOf(value), value, partition }))
    const compression = dice.pick([CompressionTypes.None, CompressionTypes.GZIP])
    try {
      const told = await producer.send({ topic, messages, compression, acks: -1 })
      for (const { partition, baseOffset } of told) this.#acknowledge(records, partition, Number(baseOffset))
      return true
    } catch (error) {
      if (!(error instanceof Error) || !error.name.startsWith('KafkaJS')) throw error
      this.failed++
      return false
    }
  }

  #acknowledge(records: readonly SentRecord[], partition: number, baseOffset: number): void {
    this.acked++
    for (const [i, record] of records.filter(sent => sent.partition === partition).entries())
      Object.assign(record, { told: 'acked', offset: baseOffset + i })
  }
}
