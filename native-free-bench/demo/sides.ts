/**
 * The two ways in and out that the demo uses, behind one shape: HTTP through plain JSON requests, ES01 through this
 * project's client. Main thread.
 */
import { connectEs01 } from '../../src/client/es01/client.ts'
import type { Es01Client } from '../../src/client/es01/client.ts'
import { HttpJson } from '../http-json.ts'
import type { Address } from '../drivers/driver.ts'
import type { BrokerAddresses } from '../load/connections.ts'
import type { ProduceResult } from './ledger.ts'
import type { DemoRecord } from './records.ts'
import { Mismatch } from './verify.ts'
import type { ReadRecord } from './verify.ts'

/** What one read gave. */
export interface ReadAnswer {
  readonly records: readonly ReadRecord[]
  readonly nextOffset: number
  readonly highWatermark: number
}

/** One connection. Every promise rejects when the connection ends first. */
export interface Side {
  /** Requests it may have in flight and still keep their order. */
  readonly inFlightMax: number
  produce(topic: string, records: readonly DemoRecord[]): Promise<readonly ProduceResult[]>
  read(topic: string, partition: number, offset: number): Promise<ReadAnswer>
  close(): Promise<void>
}

export const sideNames = ['HTTP', 'ES01'] as const
export type SideName = (typeof sideNames)[number]

const READ_RECORDS_MAX = 10_000
const READ_BYTES_MAX = 4 * 1024 * 1024

/** Connects. */
export async function openSide(name: SideName, addresses: BrokerAddresses): Promise<Side> {
  if (name === 'HTTP') return new HttpSide(addresses.http)
  if (addresses.es01 === null) throw new Error('the broker has no ES01 listener')
  return new Es01Side(await connectEs01(addresses.es01))
}

class HttpSide implements Side {
  /** One: the broker promises an order per connection, and pipelined requests are refused. */
  readonly inFlightMax = 1
  readonly #http: HttpJson

  constructor(address: Address) {
    this.#http = new HttpJson(address, 1)
  }

  async produce(topic: string, records: readonly DemoRecord[]): Promise<readonly ProduceResult[]> {
    const answer = await this.#http.ask('POST', `/topics/${topic}/produce`, { records })
    return list(answer, 'results').map(one => ({ partition: number(one, 'partition'), offset: number(one, 'offset') }))
  }

  async read(topic: string, partition: number, offset: number): Promise<ReadAnswer> {
    const query = `partition=${partition}&offset=${offset}&max_records=${READ_RECORDS_MAX}&max_bytes=${READ_BYTES_MAX}`
    const answer = await this.#http.ask('GET', `/topics/${topic}/consume?${query}`, null)
    return {
      records: list(answer, 'records').map(one => ({
        offset: number(one, 'offset'),
        key: text(one, 'key'),
        value: text(one, 'value')
      })),
      nextOffset: number(answer, 'next_offset'),
      highWatermark: number(answer, 'high_watermark')
    }
  }

  close(): Promise<void> {
    this.#http.close()
    return Promise.resolve()
  }
}

class Es01Side implements Side {
  /** The broker keeps the order of produces to one topic on one connection. */
  readonly inFlightMax = 4
  readonly #client: Es01Client

  constructor(client: Es01Client) {
    this.#client = client
  }

  produce(topic: string, records: readonly DemoRecord[]): Promise<readonly ProduceResult[]> {
    return this.#client.produce(topic, records)
  }

  async read(topic: string, partition: number, offset: number): Promise<ReadAnswer> {
    const request = { topic, partition, offset, maxRecords: READ_RECORDS_MAX, maxBytes: READ_BYTES_MAX }
    const { records, nextOffset, highWatermark } = await this.#client.consume(request)
    const read = records.map(({ offset: place, key, value }) => {
      if (key === null) throw new Mismatch(`${topic}/${partition} holds a record without key at ${place}`)
      return { offset: place, key: key.toString('utf8'), value: value.toString('utf8') }
    })
    return { records: read, nextOffset, highWatermark }
  }

  /** At once: nothing is in flight any more, or its outcome is looked up in the log. */
  close(): Promise<void> {
    this.#client.destroy()
    return Promise.resolve()
  }
}

function property(value: unknown, name: string): unknown {
  if (typeof value === 'object' && value !== null) {
    const found = Object.getOwnPropertyDescriptor(value, name)
    if (found !== undefined) return found.value
  }
  throw new Error(`the broker's answer has no field ${name}`)
}

function number(value: unknown, name: string): number {
  const found = property(value, name)
  if (typeof found !== 'number') throw new Error(`the field ${name} of the broker's answer is not a number`)
  return found
}

function text(value: unknown, name: string): string {
  const found = property(value, name)
  if (typeof found !== 'string') throw new Error(`the field ${name} of the broker's answer is not a text`)
  return found
}

function list(value: unknown, name: string): readonly unknown[] {
  const found = property(value, name)
  if (!Array.isArray(found)) throw new Error(`the field ${name} of the broker's answer is not a list`)
  return found
}
