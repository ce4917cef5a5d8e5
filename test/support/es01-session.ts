/** ES01 connections of a test to a real broker: raw sockets, and the product's own client; all closed with the test. */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { connectEs01, type ConsumedRecord, type Es01Client } from '../../src/client/es01/client.ts'
import { encodeHello } from '../../src/wire/es01/handshake.ts'
import { RawClient } from '../unit/gateway/es01/fixture.ts'
import type { Es01Address } from './broker.ts'
import { atEnd } from './clean-up.ts'

export { RawClient, until } from '../unit/gateway/es01/fixture.ts'

/** A socket that has sent nothing. */
export async function openRaw(t: TestContext, address: Es01Address): Promise<RawClient> {
  const client = await RawClient.connect(address.port)
  atEnd(t, () => client.socket.destroy())
  return client
}

/** A socket whose hello was accepted. */
export async function greetRaw(t: TestContext, address: Es01Address): Promise<RawClient> {
  const client = await openRaw(t, address)
  client.send(encodeHello('', 0))
  assert.equal((await client.take(13)).toString('hex'), '45533031000000000000000000')
  return client
}

/** The product's client. */
export async function openClient(t: TestContext, address: Es01Address): Promise<Es01Client> {
  const client = await connectEs01(address)
  atEnd(t, () => client.destroy())
  return client
}

/** Every record of a partition from an offset on. */
export async function readAll(
  client: Es01Client,
  topic: string,
  partition: number,
  from = 0
): Promise<ConsumedRecord[]> {
  const records: ConsumedRecord[] = []
  for (let offset = from; ;) {
    const answer = await client.consume({ topic, partition, offset, maxRecords: 10_000, maxBytes: 8 * 1024 * 1024 })
    records.push(...answer.records)
    if (answer.nextOffset >= answer.highWatermark) return records
    assert.ok(answer.nextOffset > offset, 'a read before the end moves on')
    offset = answer.nextOffset
  }
}

/** The offsets of results, in order. */
export function offsetsOf(results: readonly { readonly offset: number }[]): number[] {
  return results.map(result => result.offset)
}

/** 0, 1, … count − 1, from `first` on. */
export function range(count: number, first = 0): number[] {
  return Array.from({ length: count }, (_, i) => first + i)
}
