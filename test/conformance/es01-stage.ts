/** What the rows on ES01 run against: a broker open to all, one that asks for keys, and short ways to speak to both. */
import assert from 'node:assert/strict'
import { gzipSync } from 'node:zlib'
import type { TestContext } from 'node:test'
import { encodeConsumeFrame } from '../../src/wire/es01/consume.ts'
import { encodeFrame, opcodes } from '../../src/wire/es01/frame.ts'
import { encodeHello, features } from '../../src/wire/es01/handshake.ts'
import { encodeProduceFrame, type ProduceRecord } from '../../src/wire/es01/produce-frame.ts'
import { makeTestKey, startGuarded, type GuardedBroker, type TestKey } from '../support/access.ts'
import { startBroker, waitFor, type TestBroker } from '../support/broker.ts'
import { openRaw, type RawClient } from '../support/es01-session.ts'
import { HttpApi } from '../support/http-api.ts'
import { parsePage, valueOf } from '../support/prometheus.ts'

export interface Es01Stage {
  readonly open: TestBroker
  readonly api: HttpApi
  readonly guarded: GuardedBroker
  /** May write `orders` and below, and nothing else. */
  readonly writer: TestKey
}

/** The features that the listener has. */
export const offered = features.gzip

/** Both brokers, each with the topics `orders` of two partitions and `other` of one. */
export async function startStage(t: TestContext): Promise<Es01Stage> {
  const open = await startBroker(t)
  const api = new HttpApi(open.url)
  const guarded = await startGuarded(t)
  for (const each of [api, guarded.admin.api]) {
    await each.createTopic('orders', 2)
    await each.createTopic('other')
  }
  return { open, api, guarded, writer: await makeTestKey(guarded.admin.api, 'write:orders') }
}

/** Hex, with blanks where it reads better. */
export function hex(...parts: readonly string[]): Buffer {
  return Buffer.from(parts.join('').replaceAll(' ', ''), 'hex')
}

export const ping = (id: number, payload: Buffer = Buffer.alloc(0)): Buffer => encodeFrame(id, opcodes.ping, payload)

/** A produce to `orders`, unless another topic is named. */
export function produce(
  id: number,
  records: readonly ProduceRecord[],
  { topic = 'orders', producerId = null }: { readonly topic?: string; readonly producerId?: string | null } = {}
): Buffer {
  return encodeProduceFrame(id, topic, records, producerId)
}

/** A read of partition 0 of `orders` from its start, unless otherwise said. */
export function consume(
  id: number,
  wanted: { topic?: string; partition?: number; offset?: number; maxRecords?: number; maxBytes?: number } = {}
): Buffer {
  return encodeConsumeFrame(id, {
    topic: 'orders',
    partition: 0,
    offset: 0,
    maxRecords: 100,
    maxBytes: 1 << 20,
    ...wanted
  })
}

/** The same frame with its payload packed. */
export function packed(frame: Buffer): Buffer {
  return encodeFrame(frame.readUInt32BE(4), frame[8] as number, gzipSync(frame.subarray(9)))
}

/** A connection whose hello was accepted. */
export async function greet(
  t: TestContext,
  broker: Pick<TestBroker, 'es01'>,
  token = '',
  requested = 0
): Promise<RawClient> {
  const client = await openRaw(t, broker.es01)
  client.send(encodeHello(token, requested))
  assert.equal((await client.take(13))[4], 0, 'the hello is accepted')
  return client
}

/** The reply to a hello: status, features, message. Fails if more comes with it. */
export async function replyTo(client: RawClient): Promise<{ status: number; features: number; message: string }> {
  const head = await client.take(13)
  assert.equal(head.toString('latin1', 0, 4), 'ES01')
  const message = await client.take(head.readUInt32BE(9))
  return { status: head[4] as number, features: head.readUInt32BE(5), message: message.toString() }
}

/** Nothing was answered to a client that is closed now. */
export async function closedInSilence(client: RawClient): Promise<void> {
  await client.closed()
  assert.equal(client.restBytes, 0)
}

/** The connection goes on: a ping is answered, and nothing comes before its answer. */
export async function goesOn(client: RawClient): Promise<void> {
  client.send(ping(0xffff_fff0))
  assert.deepEqual(await client.frame(), { id: 0xffff_fff0, opcode: opcodes.pong, payload: Buffer.alloc(0) })
}

/** The value of a series of the broker's metrics; 0 if it has no such sample. */
export async function metric(
  api: HttpApi,
  name: string,
  labels: Readonly<Record<string, string>> = {}
): Promise<number> {
  return valueOf(parsePage((await api.get('/metrics')).text), name, labels) ?? 0
}

/** Sends, and comes back once the broker has received it. Nobody else may speak to that broker meanwhile. */
export async function sendAndArrive(api: HttpApi, client: RawClient, bytes: Buffer): Promise<void> {
  const before = await metric(api, 'millrace_es01_received_bytes_total')
  client.send(bytes)
  await waitFor('the bytes to arrive', async () => {
    return (await metric(api, 'millrace_es01_received_bytes_total')) === before + bytes.length
  })
}
