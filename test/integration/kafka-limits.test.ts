/** Kafka clients that misbehave: too many, silent, slow, stuck; and what they hold is given back. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { test, type TestContext } from 'node:test'
import { ByteBudget } from '../../src/base/byte-budget.ts'
import { silentLogger } from '../../src/base/logger.ts'
import { createKafkaGateway, type KafkaGateway, type KafkaGatewayOptions } from '../../src/gateway/kafka/gateway.ts'
import { apis } from '../../src/wire/kafka/apis/index.ts'
import { requestFrame } from '../../src/wire/kafka/headers.ts'
import { startBroker, waitFor } from '../support/broker.ts'
import { atEnd } from '../support/clean-up.ts'
import { clientBatch, splitBatches } from '../support/client-batches.ts'
import { HttpApi } from '../support/http-api.ts'
import { fetchBody, produceBatch, produceBody } from '../support/kafka-calls.ts'
import { connectKafka, decodeResponse, type KafkaClient } from '../support/kafka-client.ts'
import { ClientSession } from '../support/kafka-session.ts'
import { usedBytes } from '../support/used-bytes.ts'

const MIB = 1024 * 1024

interface Stage {
  readonly gateway: KafkaGateway
  readonly address: string
  readonly api: HttpApi
  readonly replyBudget: ByteBudget
  readonly requestBudget: ByteBudget
}

type Changes = Partial<Pick<KafkaGatewayOptions, 'timeouts' | 'connectionsMax'>> & {
  readonly settings?: Partial<KafkaGatewayOptions['settings']>
}

/** A listener of its own on a real broker, with limits of the test's. */
async function stage(t: TestContext, { settings = {}, timeouts = {}, ...rest }: Changes = {}): Promise<Stage> {
  const { server, url } = await startBroker(t)
  const replyBudget = new ByteBudget(32 * MIB)
  const requestBudget = new ByteBudget(64 * MIB)
  const gateway = createKafkaGateway({
    broker: server.broker,
    settings: {
      auth: 'disabled',
      autoCreateTopics: false,
      maxRecordBytes: 8 * MIB,
      maxFetchBytes: 8 * MIB,
      segmentBytes: 64 * MIB,
      segmentMs: 604_800_000,
      segmentDeleteGraceMs: 60_000,
      flushEveryRecords: 1,
      flushIntervalMs: 1000,
      defaultTombstoneRetentionMs: 1,
      binaryMaxConnectionsPerIp: 256,
      binaryIdleTimeoutMs: 600_000,
      ...settings
    },
    binds: [{ address: '127.0.0.1:0', advertised: null }],
    directoryId: 'test',
    logger: silentLogger,
    requestBudget,
    replyBudget,
    timeouts,
    ...rest
  })
  const [bound] = await gateway.listen()
  atEnd(t, () => gateway.stop(0))
  const api = new HttpApi(url)
  await api.createTopic('t')
  return { gateway, address: `127.0.0.1:${bound?.port}`, api, replyBudget, requestBudget }
}

/** A socket that reads nothing. */
async function openSocket(t: TestContext, { address }: Stage): Promise<Socket> {
  const [host = '', port] = address.split(':')
  const socket = connect(Number(port), host)
  atEnd(t, () => socket.destroy())
  socket.on('error', () => socket.destroy())
  socket.pause()
  await once(socket, 'connect')
  return socket
}

/** Everything is given back. */
async function untilNothingIsHeld({ gateway, replyBudget, requestBudget }: Stage): Promise<void> {
  await waitFor('connections to be gone', () => gateway.connectionCount === 0)
  await waitFor('memory to be free', () => replyBudget.usedBytes === 0 && requestBudget.usedBytes === 0)
}

test('one address may hold so many connections, and one more is closed', async t => {
  const s = await stage(t, { settings: { binaryMaxConnectionsPerIp: 2 } })
  const clients = [await connectKafka(t, s.address), await connectKafka(t, s.address)]
  await waitFor('both to be open', () => s.gateway.connectionCount === 2)
  const third = await connectKafka(t, s.address)
  await third.closed()
  assert.equal(s.gateway.probe.refused.connectionsPerIp, 1)
  for (const client of clients) assert.equal((await client.call(apis.metadata, 4, { topics: [] })).topics.length, 0)
})

test('who does not say whose key it has is closed in time, and so is who sends nothing', async t => {
  const guarded = await stage(t, { settings: { auth: 'required' }, timeouts: { authenticationMs: 50 } })
  const silent = await connectKafka(t, guarded.address)
  await silent.closed()
  assert.equal(guarded.gateway.probe.refused.authTimeout, 1)
  const open = await stage(t, { timeouts: { idleMs: 50 } })
  const idle = await connectKafka(t, open.address)
  await idle.closed()
  assert.equal(open.gateway.probe.refused.idleTimeout, 1)
})

test('who has not said whose key it has may send no large request', async t => {
  const s = await stage(t, { settings: { auth: 'required' } })
  const client = await connectKafka(t, s.address)
  const size = Buffer.alloc(4)
  size.writeInt32BE(65_537)
  client.socket.write(size)
  await client.closed()
  assert.equal(s.gateway.probe.refused.frameSize, 1)
})

test('half a request is waited for so long, and its memory comes back', async t => {
  const s = await stage(t, { timeouts: { bodyMs: 300 } })
  const socket = await openSocket(t, s)
  const body = {
    acks: -1,
    timeoutMs: 1,
    topicData: [{ name: 't', partitionData: [{ index: 0, records: Buffer.alloc(MIB) }] }]
  }
  const frame = Buffer.concat(requestFrame(apis.produce, { apiVersion: 7, correlationId: 1, clientId: null }, body))
  socket.write(frame.subarray(0, frame.length / 2))
  await waitFor('it to be dropped', () => s.gateway.probe.refused.bodyTimeout === 1)
  await untilNothingIsHeld(s)
})

test('a client that asks for much and reads nothing is dropped, and others are served meanwhile', async t => {
  const s = await stage(t, { timeouts: { writeMs: 1000 } })
  const writer = await connectKafka(t, s.address)
  const batch = clientBatch({ records: [{ value: 'x'.repeat(900_000) }] })
  for (let i = 0; i < 8; i++) assert.equal((await produceBatch(writer, 't', 0, batch)).errorCode, 0)
  const stuck = await openSocket(t, s)
  const asked = fetchBody('t', { 0: 0 }, { partitionMaxBytes: 8 * MIB })
  for (let correlationId = 1; correlationId <= 30; correlationId++)
    stuck.write(Buffer.concat(requestFrame(apis.fetch, { apiVersion: 11, correlationId, clientId: null }, asked)))
  await waitFor('answers to be held', () => s.replyBudget.usedBytes > 0)
  assert.ok((await produceBatch(writer, 't', 0, batch)).errorCode === 0)
  await waitFor('it to be dropped', () => s.gateway.probe.refused.slowReader === 1)
  assert.ok(s.replyBudget.usedBytes <= 2 * 9 * MIB, `${s.replyBudget.usedBytes} bytes are held`)
  writer.socket.destroy()
  await untilNothingIsHeld(s)
})

test('a partition that gets records while a fetch waits for memory is read once', async t => {
  const s = await stage(t)
  await s.api.createTopic('u', 2)
  const session = new ClientSession(await connectKafka(t, s.address), 'u')
  const watching = async (count: number): Promise<boolean> =>
    (await s.api.get('/metrics')).text.includes(`\nmillrace_watches ${count}\n`)
  await session.fetch({ offsets: { 0: 0, 1: 0 } })
  await waitFor('both to be watched', () => watching(2))
  assert.ok(s.replyBudget.tryReserve(s.replyBudget.limitBytes))
  session.send()
  await waitFor('the next fetch to be taken', () => s.gateway.probe.apis.get('Fetch')?.requests === 2)
  const written = await s.api.post('/topics/u/produce', { records: [{ partition: 0, value: 'v' }] })
  assert.equal(written.status, 200)
  await waitFor('the fetch to hear of it', () => watching(1))
  s.replyBudget.release(s.replyBudget.limitBytes)
  const answer = decodeResponse(apis.fetch, 12, (await session.client.next()) ?? assert.fail('an answer'))
  const told = answer.responses.flatMap(({ partitions }) => partitions)
  assert.deepEqual(
    told.map(({ partitionIndex, records }) => [partitionIndex, splitBatches(records ?? Buffer.alloc(0)).length]),
    [[0, 1]]
  )
  session.client.socket.destroy()
  await untilNothingIsHeld(s)
})

test('a client that goes away while its fetch waits leaves nothing', async t => {
  const s = await stage(t)
  const client = await connectKafka(t, s.address)
  client.send(apis.fetch, 11, fetchBody('t', { 0: 0 }, { maxWaitMs: 60_000 }))
  const waiting = async (count: number): Promise<boolean> =>
    (await s.api.get('/metrics')).text.includes(`\nmillrace_watches ${count}\n`)
  await waitFor('it to wait', () => waiting(1))
  client.socket.destroy()
  await waitFor('it to wait no more', () => waiting(0))
  await untilNothingIsHeld(s)
})

test('no more than sixteen requests of a connection are in progress: the others stay in its socket', async t => {
  const s = await stage(t)
  const client = await connectKafka(t, s.address)
  const waiting = client.send(apis.fetch, 11, fetchBody('t', { 0: 0 }, { maxWaitMs: 60_000 }))
  for (let i = 0; i < 40; i++) client.send(apis.metadata, 4, { topics: [] })
  await waitFor('as many as may to be taken', () => s.gateway.probe.apis.get('Metadata')?.requests === 15)
  const writer = await connectKafka(t, s.address)
  await produceBatch(writer, 't', 0, clientBatch({ records: [{ value: 'v' }] }))
  for (let i = 0; i <= 40; i++) assert.equal((await client.next())?.correlationId, waiting + i)
})

/** A whole request to write a batch of nearly the largest size. */
function largestProduce(): Buffer {
  const records = clientBatch({ records: [{ value: Buffer.alloc(8 * MIB, 'x') }] })
  const header = { apiVersion: 7, correlationId: 1, clientId: null }
  return Buffer.concat(requestFrame(apis.produce, header, produceBody('t', 0, records)))
}

test('a thousand connections that have said who they are and ask nothing hold no memory of requests or answers', async t => {
  const s = await stage(t, { settings: { binaryMaxConnectionsPerIp: 1100 } })
  const before = await usedBytes()
  const clients: KafkaClient[] = []
  // As many at once as a queue of a listener holds.
  while (clients.length < 1000)
    clients.push(...(await Promise.all(Array.from({ length: 100 }, () => connectKafka(t, s.address)))))
  await Promise.all(clients.map(client => client.call(apis.apiVersions, 2, {})))
  assert.equal(s.gateway.connectionCount, 1000)
  assert.deepEqual([s.replyBudget.usedBytes, s.requestBudget.usedBytes], [0, 0])
  // Both ends of each are in this process: a buffer of 64 KiB for each connection would be 62 MiB.
  const each = ((await usedBytes()) - before) / 1000
  t.diagnostic(`${Math.round(each)} bytes for both ends of an idle connection`)
  assert.ok(each < 32 * 1024, `${each} bytes each`)
  const writer = await connectKafka(t, s.address)
  assert.equal((await produceBatch(writer, 't', 0, clientBatch({ records: [{ value: 'v' }] }))).errorCode, 0)
  for (const { socket } of [...clients, writer]) socket.destroy()
  await untilNothingIsHeld(s)
})

test('a flood of connections beyond the most that may be is closed, and those that are open are served', async t => {
  const s = await stage(t, { connectionsMax: 10 })
  const clients = await Promise.all(Array.from({ length: 10 }, () => connectKafka(t, s.address)))
  await waitFor('all to be open', () => s.gateway.connectionCount === 10)
  const flood = await Promise.all(Array.from({ length: 100 }, () => connectKafka(t, s.address)))
  await Promise.all(flood.map(client => client.closed()))
  assert.equal(s.gateway.probe.refused.connectionsTotal, 100)
  assert.equal(s.gateway.connectionCount, 10)
  for (const client of clients) assert.equal((await client.call(apis.metadata, 4, { topics: [] })).topics.length, 0)
  clients[0]?.socket.destroy()
  await waitFor('one to be gone', () => s.gateway.connectionCount === 9)
  const next = await connectKafka(t, s.address)
  assert.equal((await next.call(apis.metadata, 4, { topics: [] })).topics.length, 0)
})

test('memory for a request of the largest size is set aside once 64 KiB of it came, and is back when it was written', async t => {
  const s = await stage(t)
  const frame = largestProduce()
  const client = await connectKafka(t, s.address)
  client.socket.write(frame.subarray(0, 4))
  await waitFor('its size to be read', () => s.gateway.probe.receivedBytes >= 4)
  assert.ok(s.requestBudget.usedBytes < MIB, `${s.requestBudget.usedBytes} bytes are held for a size that was said`)
  for (let at = 4; at < frame.length; at += 300_001) {
    const end = Math.min(frame.length, at + 300_001)
    client.socket.write(frame.subarray(at, end))
    await waitFor('it to arrive', () => s.gateway.probe.receivedBytes >= end)
    const held = s.requestBudget.usedBytes
    if (end === frame.length) break
    assert.ok(
      held >= frame.length - MIB && held <= frame.length + MIB,
      `${held} bytes are set aside for ${frame.length}`
    )
  }
  assert.notEqual(await client.next(), null)
  assert.deepEqual(await s.api.ends('t'), [1])
  client.socket.destroy()
  await untilNothingIsHeld(s)
})

test('many who dribble the largest request hold no more than their share of the budget, and who writes little is served', async t => {
  const s = await stage(t, { timeouts: { bodyMs: 1_000 } })
  const frame = largestProduce()
  const sockets = await Promise.all(Array.from({ length: 10 }, () => openSocket(t, s)))
  for (const socket of sockets) socket.write(frame.subarray(0, frame.length - 1000))
  await waitFor('memory to be taken', () => s.requestBudget.usedBytes > 7 * MIB)
  assert.ok(s.requestBudget.usedBytes <= s.requestBudget.limitBytes / 4, `${s.requestBudget.usedBytes} bytes`)
  const writer = await connectKafka(t, s.address)
  assert.equal((await produceBatch(writer, 't', 0, clientBatch({ records: [{ value: 'v' }] }))).errorCode, 0)
  const { refused } = s.gateway.probe
  await waitFor('all to be dropped', () => refused.bodyTimeout + refused.memory === sockets.length, 30_000)
  writer.socket.destroy()
  await untilNothingIsHeld(s)
})

test('long answers to a client that does not read are in the reply memory, which bounds them, and are given back', async t => {
  const { gateway, address, api, replyBudget } = await stage(t, { timeouts: { stalledMs: 600_000 } })
  for (let index = 0; index < 18; index++) await api.createTopic(`t${index}`, 10_000)
  const frame = Buffer.concat(
    requestFrame(apis.metadata, { apiVersion: 12, correlationId: 1, clientId: null }, { topics: null })
  )
  const sockets = await Promise.all(Array.from({ length: 16 }, () => openSocket(t, { address } as Stage)))
  for (const socket of sockets) socket.write(Buffer.concat(Array.from({ length: 16 }, () => frame)))
  await waitFor('the memory to be full', () => replyBudget.usedBytes >= replyBudget.limitBytes)
  // An answer is begun where there is room, and has some five million bytes here.
  assert.ok(replyBudget.usedBytes < replyBudget.limitBytes + 8 * 5_000_000, `${replyBudget.usedBytes} bytes are held`)
  for (const socket of sockets) socket.destroy()
  await waitFor('the connections to be gone', () => gateway.connectionCount === 0)
  await waitFor('the memory to be given back', () => replyBudget.usedBytes === 0)
})
