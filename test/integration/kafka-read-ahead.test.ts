/** What is read for Kafka clients before they ask for it: they get what they would have got, sooner. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { kafkaErrors } from '../../src/wire/kafka/errors.ts'
import { makeTestKey, revokeKey, startGuarded } from '../support/access.ts'
import { startBroker, waitFor, type TestBroker } from '../support/broker.ts'
import { clientBatch, splitBatches } from '../support/client-batches.ts'
import { HttpApi } from '../support/http-api.ts'
import { produceBatch } from '../support/kafka-calls.ts'
import { connectKafka, type KafkaClient } from '../support/kafka-client.ts'
import { loginPlain } from '../support/kafka-login.ts'
import { ClientSession } from '../support/kafka-session.ts'
import { chosenSeed, diceOf, replayLine } from '../support/log-random.ts'

const BATCHES = 8

interface Stage {
  readonly broker: TestBroker
  readonly api: HttpApi
  readonly client: KafkaClient
  /** Bytes of each of its batches; each is one record, and asked for alone. */
  readonly batchBytes: number
}

const batchOf = (value: string): Buffer => clientBatch({ records: [{ key: 'k', value }] })
const valueOf = (i: number): string => `${i}`.padStart(2000, 'v')

async function fill(client: KafkaClient, first = 0): Promise<void> {
  for (let i = 0; i < BATCHES; i++) await produceBatch(client, 't', 0, batchOf(valueOf(first + i)))
}

async function stage(t: TestContext): Promise<Stage> {
  const broker = await startBroker(t)
  const api = new HttpApi(broker.url)
  await api.createTopic('t', 2)
  const client = await connectKafka(t, broker.kafka)
  await fill(client)
  return { broker, api, client, batchBytes: batchOf(valueOf(0)).length }
}

const countsOf = ({ broker }: Pick<Stage, 'broker'>) => broker.server.kafka?.probe.readAhead ?? assert.fail('listens')
/** Of what was read ahead, whether it is still there. */
const unusedOf = (s: Pick<Stage, 'broker'>): number => heldOf(s) + countsOf(s).dropped
const heldOf = ({ broker }: Pick<Stage, 'broker'>): number => broker.server.kafka?.aheadBytes ?? assert.fail('listens')

/** Fetches one batch of the partition from there. @returns its first offset and the digits of its value. */
async function fetchOne(session: ClientSession, offset: number, partitionMaxBytes: number): Promise<[number, string]> {
  const [told, ...others] = await session.fetch({ offsets: { 0: offset }, partitionMaxBytes })
  assert.deepEqual([told?.errorCode, others.length], [0, 0])
  const [batch, ...more] = splitBatches(told?.records ?? Buffer.alloc(0))
  assert.ok(batch !== undefined && more.length === 0, 'a batch')
  const digits = /v(\d+)/.exec(batch.toString('latin1'))?.[1] ?? ''
  return [Number(batch.readBigInt64BE(0)), digits]
}

test('a client that reads on gets what was read while it worked, record by record and to the end', async t => {
  const s = await stage(t)
  const session = new ClientSession(s.client, 't')
  for (let i = 0; i < BATCHES; i++) assert.deepEqual(await fetchOne(session, i, s.batchBytes), [i, `${i}`])
  const { used, dropped } = countsOf(s)
  // All but the first, unless this machine stood still for a second.
  assert.equal(used + dropped, (BATCHES - 1) * s.batchBytes)
  assert.ok(used > 0)
  // Behind the last there is nothing to be read.
  assert.equal(heldOf(s), 0)
  const page = (await s.api.get('/metrics')).text
  assert.match(page, /\nmillrace_kafka_read_ahead_bytes 0\n/)
  assert.ok(page.includes(`\nmillrace_kafka_read_ahead_bytes_total{outcome="used"} ${used}\n`))
})

test('a client that goes elsewhere gets what is there', async t => {
  const s = await stage(t)
  const session = new ClientSession(s.client, 't')
  assert.deepEqual(await fetchOne(session, 0, s.batchBytes), [0, '0'])
  assert.deepEqual(await fetchOne(session, 5, s.batchBytes), [5, '5'])
  assert.deepEqual(await fetchOne(session, 5, s.batchBytes), [5, '5'])
  assert.equal(countsOf(s).used, 0)
})

test('what a client does not ask for is given up: in time, when it forgets the partition, and when it goes', async t => {
  const s = await stage(t)
  const session = new ClientSession(s.client, 't')
  await fetchOne(session, 0, s.batchBytes)
  assert.equal(unusedOf(s), s.batchBytes)
  await waitFor('it to be given up', () => Promise.resolve(heldOf(s) === 0))
  assert.deepEqual(await fetchOne(session, 1, s.batchBytes), [1, '1'])
  assert.deepEqual(await session.fetch({ offsets: { 1: 0 }, forgotten: [0] }).then(told => told.length), 1)
  await waitFor('what was forgotten to be given up', () => Promise.resolve(heldOf(s) === 0))
  const other = await connectKafka(t, s.broker.kafka)
  await fetchOne(new ClientSession(other, 't'), 0, s.batchBytes)
  assert.equal(unusedOf(s), 3 * s.batchBytes)
  other.socket.end()
  await waitFor('what was of a connection to be given up', () => Promise.resolve(heldOf(s) === 0))
  assert.deepEqual(countsOf(s), { used: 0, dropped: 3 * s.batchBytes })
})

test('records that are deleted after they were read ahead are not brought', async t => {
  const s = await stage(t)
  const session = new ClientSession(s.client, 't')
  await fetchOne(session, 0, s.batchBytes)
  assert.equal((await s.api.post('/topics/t/delete-records', { partition: 0, offset: 4 })).status, 200)
  const [told] = await session.fetch({ offsets: { 0: 1 }, partitionMaxBytes: s.batchBytes })
  assert.deepEqual([told?.errorCode, told?.logStartOffset], [kafkaErrors.OFFSET_OUT_OF_RANGE.code, 4])
  assert.equal(countsOf(s).used, 0)
})

test('a topic made anew under the name of one that was read ahead has its own records', async t => {
  const s = await stage(t)
  const session = new ClientSession(s.client, 't')
  await fetchOne(session, 0, s.batchBytes)
  assert.equal((await s.api.call('DELETE', '/topics/t')).status, 200)
  await s.api.createTopic('t', 1)
  await fill(s.client, 50)
  assert.deepEqual(await fetchOne(session, 1, s.batchBytes), [1, '51'])
})

test('a key that was revoked gets nothing of what was read ahead for it', async t => {
  const { broker, admin } = await startGuarded(t)
  await admin.api.createTopic('t', 1)
  const key = await makeTestKey(admin.api, 'read:t', 'write:t')
  const client = await connectKafka(t, broker.kafka)
  assert.equal(await loginPlain(client, key.id, key.secret), 0)
  await fill(client)
  const batchBytes = batchOf(valueOf(0)).length
  const session = new ClientSession(client, 't')
  await fetchOne(session, 0, batchBytes)
  assert.equal(unusedOf({ broker }), batchBytes)
  await revokeKey(admin.api, key.id)
  session.send({ offsets: { 0: 1 }, partitionMaxBytes: batchBytes })
  await client.closed()
  await waitFor('it to be given up', () => Promise.resolve(heldOf({ broker }) === 0))
  assert.deepEqual(countsOf({ broker }), { used: 0, dropped: batchBytes })
})

test('whatever clients ask for next, they get the batches that are there, and no memory stays behind', async t => {
  const seed = chosenSeed()
  const replay = replayLine(seed, 'test/integration/kafka-read-ahead.test.ts')
  const dice = diceOf(seed)
  const partitions = 4
  const broker = await startBroker(t)
  const api = new HttpApi(broker.url)
  await api.createTopic('t', partitions)
  const writer = await connectKafka(t, broker.kafka)
  const written: Buffer[][] = Array.from({ length: partitions }, () => [])
  const write = async (): Promise<void> => {
    const partition = dice.below(partitions)
    const batches = written[partition] as Buffer[]
    const batch = batchOf(`${partition} ${batches.length} `.padEnd(10 + dice.below(5000), 'x'))
    await produceBatch(writer, 't', partition, batch)
    batches.push(batch)
  }
  for (let i = 0; i < 60; i++) await write()
  const sessions = await Promise.all(
    Array.from({ length: 3 }, async () => new ClientSession(await connectKafka(t, broker.kafka), 't'))
  )
  const placesOf = new Map(sessions.map(session => [session, new Array<number>(partitions).fill(0)]))
  for (let step = 0; step < 400; step++) {
    const session = sessions[dice.below(sessions.length)] as ClientSession
    const places = placesOf.get(session) as number[]
    if (dice.below(10) === 0) await write()
    if (dice.below(8) === 0) {
      const partition = dice.below(partitions)
      places[partition] = dice.below((written[partition] as Buffer[]).length + 1)
    }
    const asked = {
      offsets: { ...places },
      partitionMaxBytes: 1 + dice.below(12_000),
      maxBytes: 1 + dice.below(30_000)
    }
    for (const { partitionIndex, errorCode, records, highWatermark } of await session.fetch(asked)) {
      const batches = written[partitionIndex] as Buffer[]
      assert.deepEqual([errorCode, highWatermark], [0, batches.length], replay)
      for (const batch of splitBatches(records ?? Buffer.alloc(0))) {
        const at = places[partitionIndex] as number
        // One record a batch: what the client wrote, placed where the partition has it.
        assert.equal(Number(batch.readBigInt64BE(0)), at, replay)
        assert.ok(batch.subarray(21).equals((batches[at] as Buffer).subarray(21)), replay)
        places[partitionIndex] = at + 1
      }
    }
  }
  const { used } = countsOf({ broker })
  assert.ok(used > 0, `something was used: ${replay}`)
  for (const { client } of sessions) client.socket.end()
  await waitFor('all to be given up', () => Promise.resolve(heldOf({ broker }) === 0))
})
