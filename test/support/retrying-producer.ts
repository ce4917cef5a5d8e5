/**
 * A producer that gives nothing up: it sends each request over HTTP and ES01 at once, under one producer id, until it is
 * acknowledged, whatever happens to the broker meanwhile. It notes what it was told, and complains of what must not be.
 */
import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'
import { connectEs01, Es01Error, type Es01Client } from '../../src/client/es01/client.ts'
import type { LoadTarget } from './crash-load.ts'
import type { Dice } from './log-random.ts'

/** Wait after a failure: asking a broken broker without end would drown the machine. */
const RETRY_MS = 10

interface Numbered {
  readonly partition: number
  readonly sequence: number
}

interface Told {
  readonly partition: number
  readonly offset: number
  readonly duplicate: boolean
}

export class RetryingProducer {
  /** By partition, the offset of each sequence, as it was acknowledged. */
  readonly acked: number[][]
  readonly id: string
  requests = 0
  /** Copies and retries that were told that all they sent was there already. */
  duplicates = 0
  retries = 0
  readonly #topic: string
  readonly #dice: Dice
  #client: { readonly port: number; readonly connection: Promise<Es01Client> } | null = null
  #isStopping = false

  constructor(id: string, topic: string, partitions: number, dice: Dice) {
    this.id = id
    this.#topic = topic
    this.#dice = dice
    this.acked = Array.from({ length: partitions }, () => [])
  }

  /** The value of a record: what it is found by. */
  valueOf({ partition, sequence }: Numbered): string {
    return `${this.id}/${partition}/${sequence}`
  }

  /** Sends until told to stop. @param target where the broker listens now. @throws what must not be */
  async run(target: () => LoadTarget): Promise<void> {
    while (!this.#isStopping) await this.#deliver(this.#draw(), target)
    await this.#client?.connection.then(
      client => client.destroy(),
      () => undefined
    )
  }

  /** Finishes the request in hand. */
  stop(): void {
    this.#isStopping = true
  }

  /** New records for some partitions; sometimes behind the last ones of one of them, once more. */
  #draw(): Numbered[] {
    const records: Numbered[] = []
    for (const [partition, offsets] of this.acked.entries()) {
      if (this.acked.length > 1 && this.#dice.chance(0.4)) continue
      const again = this.#dice.chance(0.2) ? Math.min(offsets.length, this.#dice.below(20)) : 0
      const count = 1 + this.#dice.below(4)
      for (let i = -again; i < count; i++) records.push({ partition, sequence: offsets.length + i })
    }
    return records
  }

  async #deliver(records: readonly Numbered[], target: () => LoadTarget): Promise<void> {
    if (records.length === 0) return
    for (;;) {
      const copies = await Promise.all([this.#overHttp(records, target()), this.#overEs01(records, target())])
      const answers = copies.filter(copy => copy !== null)
      for (const answer of answers) this.#note(records, answer)
      this.requests++
      if (answers.length > 0) return
      this.retries++
      await pause(RETRY_MS)
    }
  }

  /** Every answer about a record says the same. */
  #note(records: readonly Numbered[], answer: readonly Told[]): void {
    assert.equal(answer.length, records.length)
    for (const [i, { partition, sequence }] of records.entries()) {
      const told = answer[i]
      const offsets = this.acked[partition] ?? []
      assert.ok(told !== undefined && told.partition === partition)
      const known = offsets[sequence]
      const name = this.valueOf({ partition, sequence })
      assert.ok(known === undefined || known === told.offset, `${name} was at ${known}, and is at ${told.offset}`)
      offsets[sequence] = told.offset
    }
    if (answer.every(told => told.duplicate)) this.duplicates++
  }

  async #overHttp(records: readonly Numbered[], { url }: LoadTarget): Promise<Told[] | null> {
    const body = JSON.stringify({
      producer_id: this.id,
      records: records.map(record => ({ ...record, value: this.valueOf(record) }))
    })
    const headers = { 'content-type': 'application/json' }
    let response: Response
    let text: string
    try {
      response = await fetch(`${url}/topics/${this.#topic}/produce`, { method: 'POST', headers, body })
      text = await response.text()
    } catch (error) {
      // The broker was killed: fetch says TypeError, with the reason as its cause.
      if (error instanceof TypeError) return null
      throw error
    }
    assert.ok(response.status === 200 || response.status >= 500, `${this.id}: ${text}`)
    if (response.status !== 200) return null
    const { results } = JSON.parse(text) as { results: { partition: number; offset: number; duplicate?: true }[] }
    return results.map(({ partition, offset, duplicate }) => ({ partition, offset, duplicate: duplicate === true }))
  }

  async #overEs01(records: readonly Numbered[], { es01 }: LoadTarget): Promise<Told[] | null> {
    if (this.#client?.port !== es01.port) this.#client = { port: es01.port, connection: connectEs01(es01) }
    const { connection } = this.#client
    try {
      const client = await connection
      const sent = records.map(record => ({
        value: this.valueOf(record),
        partition: record.partition,
        sequence: BigInt(record.sequence)
      }))
      return await client.produce(this.#topic, sent, this.id)
    } catch (error) {
      if (!(error instanceof Es01Error)) throw error
      assert.doesNotMatch(error.message, /sequence|bad request/, this.id)
      if (!/^(unavailable|internal error)/.test(error.message)) this.#client = null
      return null
    }
  }
}
