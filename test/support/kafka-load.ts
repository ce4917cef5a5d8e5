/**
 * An idempotent producer of Kafka's protocol for crash tests, as Java's is: up to five requests in flight, batches sent
 * again with their sequences after a lost connection or a retriable error, in their order. It notes what it sent and
 * what it was told (history.ts), and complains of an answer that must not be.
 *
 * It sends random batches of its own making, whose bytes it keeps: they are to be read back as they are.
 */
import assert from 'node:assert/strict'
import { apis } from '../../src/wire/kafka/apis/index.ts'
import { kafkaErrors } from '../../src/wire/kafka/errors.ts'
import type { ReadOf } from '../../src/wire/kafka/schema.ts'
import { clientBatch, gzip, lz4, snappy, zstd } from './client-batches.ts'
import type { LoadTopic } from './crash-load.ts'
import { makeValue, type SentRecord } from './history.ts'
import { decodeResponse, type KafkaClient } from './kafka-client.ts'
import type { Dice } from './log-random.ts'

/** What Java's client has in flight at most, and what a broker must know of a producer. */
const IN_FLIGHT_MAX = 5
const VERSION = 9
const RECORDS_MAX = 8
const KEYS = 50
const compressions = [{}, gzip, snappy, lz4, zstd] as const

type Produced = ReadOf<typeof apis.produce.response.fields>
type Told = Produced['responses'][number]['partitionResponses'][number]

/** The key of a record, which its value tells. */
export function keyOf(value: string): string {
  return `key-${value.length % KEYS}`
}

/** Where a batch stands in the sequences of all producers, as the key of a map. */
export function placeOfBatch(place: string, producerId: bigint, epoch: number, sequence: number): string {
  return `${place} ${producerId}/${epoch}/${sequence}`
}

export interface SentBatch {
  readonly topic: string
  readonly partition: number
  readonly bytes: Buffer
  readonly records: readonly SentRecord[]
}

/** A batch in a request; `known` is the offset that it was acknowledged with before. */
interface Sending {
  readonly lane: Lane
  readonly batch: SentBatch
  readonly known: number | null
}

/** One partition: its batches without an answer, in the order of their sequences. */
interface Lane {
  readonly topic: string
  readonly partition: number
  nextSequence: number
  readonly open: SentBatch[]
  /** Of `open`, how many were sent on this connection; all requests that name the lane, copies included. */
  sentCount: number
  inFlight: number
  /** An answer asked for another attempt: it begins with the oldest when nothing is in flight. */
  isRewinding: boolean
  /**
   * The first of its batches met a shard that was down, and a later one the shard that came back: as in Kafka a producer that a
   * partition does not know may begin anywhere, so those before are out of order for ever.
   */
  hasBegunLater: boolean
  last: { readonly batch: SentBatch; readonly offset: number } | null
}

export class KafkaLoad {
  /** In the order of sending. */
  readonly sent: SentRecord[] = []
  /** By placeOfBatch. */
  readonly batches = new Map<string, SentBatch>()
  /** All that were given out to it. */
  readonly producerIds: bigint[] = []
  acked = 0
  /** Batches sent on another connection than their first, and copies of acknowledged ones. */
  retries = 0
  copies = 0
  abandoned = 0
  readonly #label: string
  readonly #topics: readonly LoadTopic[]
  readonly #dice: Dice
  #lanes: Lane[] = []
  #life = 0
  #producerId = -1n
  #epoch = 0
  #serial = 0
  #isDraining = false

  constructor(label: string, topics: readonly LoadTopic[], dice: Dice) {
    this.#label = label
    this.#topics = topics
    this.#dice = dice
    this.#begin()
  }

  /** From now on it only sends what it has no answer to, and run() ends when there is none left. */
  drain(): void {
    this.#isDraining = true
  }

  /** Sends until the connection is gone, or all is answered and it drains. */
  async run(client: KafkaClient): Promise<void> {
    this.#reconnect()
    if (this.#producerId < 0n && !(await this.#takeId(client))) return
    const inFlight: Sending[][] = []
    for (;;) {
      while (inFlight.length < IN_FLIGHT_MAX) {
        const parts = this.#nextParts()
        if (parts.length === 0) break
        client.send(apis.produce, VERSION, requestOf(parts))
        inFlight.push(parts)
      }
      const parts = inFlight.shift()
      if (parts === undefined) return
      const response = await client.next()
      if (response === null) return
      this.#settle(parts, decodeResponse(apis.produce, VERSION, response))
    }
  }

  /** As a new process would: what it has no answer to stays unknown, and nothing of it is sent again. */
  #begin(): void {
    for (const { open } of this.#lanes) this.abandoned += open.length
    this.#life++
    this.#lanes = this.#topics.flatMap(({ name, partitions }) =>
      Array.from({ length: partitions }, (_, partition) => ({
        topic: name,
        partition,
        nextSequence: 0,
        open: [],
        sentCount: 0,
        inFlight: 0,
        isRewinding: false,
        hasBegunLater: false,
        last: null
      }))
    )
  }

  /** Most go on with what they have no answer to; some begin anew, with another id or as a later epoch of theirs. */
  #reconnect(): void {
    if (this.#producerId >= 0n && !this.#isDraining && this.#dice.chance(0.2)) {
      this.#begin()
      if (this.#dice.chance(0.5)) this.#producerId = -1n
      else this.#epoch++
    }
    for (const lane of this.#lanes) {
      this.retries += lane.sentCount
      Object.assign(lane, { sentCount: 0, inFlight: 0, isRewinding: false })
    }
  }

  async #takeId(client: KafkaClient): Promise<boolean> {
    client.send(apis.initProducerId, 4, { transactionalId: null, transactionTimeoutMs: 0 })
    const response = await client.next()
    if (response === null) return false
    const { errorCode, producerId, producerEpoch } = decodeResponse(apis.initProducerId, 4, response)
    assert.equal(errorCode, 0)
    this.#producerId = producerId
    this.#epoch = producerEpoch
    this.producerIds.push(producerId)
    return true
  }

  /** The batches of one request, each of another partition. Empty: there is nothing to be sent now. */
  #nextParts(): Sending[] {
    const dice = this.#dice
    const retried = this.#lanes.filter(lane => !lane.isRewinding && lane.sentCount < lane.open.length)
    const lanes = retried.length > 0 || this.#isDraining ? retried : this.#lanes.filter(lane => !lane.isRewinding)
    const parts: Sending[] = []
    for (let left = 1 + dice.below(3), from = dice.below(lanes.length + 1); left > 0 && lanes.length > 0; left--) {
      const [lane] = lanes.splice(from % lanes.length, 1) as [Lane]
      parts.push(this.#nextOf(lane))
      lane.inFlight++
    }
    return parts
  }

  #nextOf(lane: Lane): Sending {
    const { open, last } = lane
    if (last !== null && lane.inFlight < 2 && open.length === lane.sentCount && this.#dice.chance(0.05)) {
      this.copies++
      return { lane, batch: last.batch, known: last.offset }
    }
    const batch = open[lane.sentCount] ?? this.#make(lane)
    lane.sentCount++
    return { lane, batch, known: null }
  }

  #make(lane: Lane): SentBatch {
    const dice = this.#dice
    const { topic, partition, nextSequence: sequence } = lane
    const connection = `${this.#label}.${this.#life}`
    const records = Array.from({ length: 1 + dice.below(RECORDS_MAX) }, (): SentRecord => {
      const value = makeValue(`${connection}-${this.#serial++}`, 20 + dice.below(300))
      return { connection, topic, partition, value, offset: -1, told: 'unknown' }
    })
    const bytes = clientBatch({
      records: records.map(({ value }) => ({ key: keyOf(value), value })),
      producerId: this.#producerId,
      epoch: this.#epoch,
      sequence,
      ...dice.pick(compressions)
    })
    const batch = { topic, partition, bytes, records }
    this.batches.set(placeOfBatch(`${topic}/${partition}`, this.#producerId, this.#epoch, sequence), batch)
    this.sent.push(...records)
    lane.open.push(batch)
    lane.nextSequence += records.length
    return batch
  }

  #settle(parts: readonly Sending[], { responses }: Produced): void {
    const told = responses.flatMap(({ name, partitionResponses }) =>
      partitionResponses.map(part => ({ place: `${name}/${part.index}`, part }))
    )
    assert.equal(told.length, parts.length)
    for (const sending of parts) {
      const { lane } = sending
      const answer = told.find(({ place }) => place === `${lane.topic}/${lane.partition}`)
      assert.ok(answer !== undefined, `${lane.topic}/${lane.partition} is answered`)
      lane.inFlight--
      this.#take(sending, answer.part)
      if (lane.isRewinding && lane.inFlight === 0) Object.assign(lane, { isRewinding: false, sentCount: 0 })
    }
  }

  #drop(lane: Lane, batch: SentBatch): void {
    lane.open.splice(lane.open.indexOf(batch), 1)
    lane.sentCount--
  }

  #take({ lane, batch, known }: Sending, { errorCode, baseOffset }: Told): void {
    const who = `${this.#label}, producer ${this.#producerId} epoch ${this.#epoch}, ${lane.topic}/${lane.partition}`
    if (lane.hasBegunLater && errorCode === kafkaErrors.OUT_OF_ORDER_SEQUENCE_NUMBER.code) {
      this.#drop(lane, batch)
      this.abandoned++
      return
    }
    if (errorCode !== kafkaErrors.NONE.code) {
      // What follows a batch that failed is out of order, and is sent again behind it.
      const mayFollow = errorCode === kafkaErrors.OUT_OF_ORDER_SEQUENCE_NUMBER.code && lane.isRewinding
      assert.ok(mayFollow || isRetriable(errorCode), `${who}: error ${errorCode}`)
      lane.isRewinding = true
      return
    }
    if (known !== null) assert.equal(baseOffset, known, `${who}: a copy is answered with the offset of its first`)
    else {
      lane.hasBegunLater ||= lane.last === null && batch !== lane.open[0]
      this.#drop(lane, batch)
      this.acked++
    }
    lane.last = { batch, offset: baseOffset }
    for (const [i, record] of batch.records.entries()) Object.assign(record, { told: 'acked', offset: baseOffset + i })
  }
}

function isRetriable(code: number): boolean {
  return Object.values(kafkaErrors).some(error => error.code === code && error.isRetriable)
}

function requestOf(parts: readonly Sending[]) {
  const topicData = [...new Set(parts.map(({ lane }) => lane.topic))].map(name => ({
    name,
    partitionData: parts
      .filter(({ lane }) => lane.topic === name)
      .map(({ lane, batch }) => ({ index: lane.partition, records: batch.bytes }))
  }))
  return { acks: -1, timeoutMs: 30_000, topicData }
}
