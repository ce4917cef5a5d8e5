/** KafkaJS as an idempotent producer for crash tests: one send after the other, through whatever befalls the broker. */
import { CompressionTypes, type Kafka, type Producer } from 'kafkajs'
import type { LoadTopic } from './crash-load.ts'
import { makeValue, type SentRecord } from './history.ts'
import { keyOf } from './kafka-load.ts'
import type { Dice } from './log-random.ts'

const RECORDS_MAX = 8
/**
 * A producer whose connection ends while it asks for its id may do nothing ever after (seen in KafkaJS 2.2.4: no request, no
 * error). One that has heard nothing for so long is left, and another takes its place.
 */
const SILENCE_MS = 5_000

export class KafkaJsLoad {
  readonly sent: SentRecord[] = []
  acked = 0
  failed = 0
  /** Producers that were left because nothing was heard of them. */
  left = 0
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
      const isConnected = await this.#isHeard(this.#connect(producer))
      // After a send that it gave up KafkaJS would give its sequences to others: it is not asked to.
      while (!this.#isStopping && isConnected && (await this.#isHeard(this.#send(producer))));
      await this.#isHeard(producer.disconnect().then(() => true))
    }
    this.#life++
  }

  async #connect(producer: Producer): Promise<boolean> {
    try {
      await producer.connect()
      return true
    } catch (error) {
      if (!(error instanceof Error) || !error.name.startsWith('KafkaJS')) throw error
      this.failed++
      return false
    }
  }

  /** @returns what the call comes to; false also if it comes to nothing. */
  async #isHeard(call: Promise<boolean>): Promise<boolean> {
    let timer: NodeJS.Timeout | undefined
    const silence = new Promise<boolean>(resolve => {
      timer = setTimeout(() => {
        this.left++
        resolve(false)
      }, SILENCE_MS)
    })
    try {
      return await Promise.race([call, silence])
    } finally {
      clearTimeout(timer)
    }
  }

  /** @returns whether all was acknowledged. */
  async #send(producer: Producer): Promise<boolean> {
    const dice = this.#dice
    const { name: topic, partitions } = dice.pick(this.#topics)
    const life = this.#life
    const connection = `${this.#label}.${life}`
    const records = Array.from({ length: 1 + dice.below(RECORDS_MAX) }, (): SentRecord => {
      const value = makeValue(`${connection}-${this.#serial++}`, 20 + dice.below(300))
      return { connection, topic, partition: dice.below(partitions), value, offset: -1, told: 'unknown' }
    })
    this.sent.push(...records)
    const messages = records.map(({ value, partition }) => ({ key: keyOf(value), value, partition }))
    const compression = dice.pick([CompressionTypes.None, CompressionTypes.GZIP])
    try {
      const told = await producer.send({ topic, messages, compression, acks: -1 })
      // It was left meanwhile.
      if (life !== this.#life) return false
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
