/** Batches of Kafka's clients in cold storage: fetched as the bytes that were sent, and refused in a way that clients retry while the store fails. */
import assert from 'node:assert/strict'
import { renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { apis } from '../../src/wire/kafka/apis/index.ts'
import { kafkaErrors } from '../../src/wire/kafka/errors.ts'
import { firstKey, type KeyAnswer, type TestKey } from '../support/access.ts'
import { spawnBroker, startBroker, waitFor, type TestBroker } from '../support/broker.ts'
import { clientBatch, gzip, lz4, placed, snappy, zstd } from '../support/client-batches.ts'
import { localLogs } from '../support/files-below.ts'
import { HttpApi, parse, type ReadRecord } from '../support/http-api.ts'
import { fetchBody, fetchPartitions, produceBatch } from '../support/kafka-calls.ts'
import { connectKafka, decodeResponse, type KafkaClient } from '../support/kafka-client.ts'
import { fetchBatches } from '../support/kafka-contents.ts'
import { loginPlain } from '../support/kafka-login.ts'
import { ClientSession } from '../support/kafka-session.ts'
import { diceOf } from '../support/log-random.ts'
import { heldBytes } from '../support/metrics-held.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

const config = { segment_bytes: 100_000, retention_bytes: 50_000 }
const BATCHES = 40
const RECORDS = 2
const compressions = [{}, gzip, snappy, lz4, zstd] as const

interface Stage {
  readonly api: HttpApi
  readonly client: KafkaClient
  /** As they must be fetched. */
  readonly stored: readonly Buffer[]
  readonly records: readonly ReadRecord[]
  /** First offset that is not in cold storage. */
  readonly border: number
}

const flagsOf = (store: string) => ({ '--segment-delete-grace': '10ms', '--cold-storage-dir': store })

/** A topic whose older segments lie in cold storage, every fifth batch in another codec, one of them of nonsense. */
async function stage(
  t: TestContext,
  broker: Pick<TestBroker, 'url' | 'kafka' | 'dataDir'>,
  key?: TestKey
): Promise<Stage> {
  const api = key?.api ?? new HttpApi(broker.url)
  await api.createTopic('t', 1, config)
  const client = await connectKafka(t, broker.kafka)
  if (key !== undefined) assert.equal(await loginPlain(client, key.id, key.secret), 0)
  const dice = diceOf(7)
  const stored: Buffer[] = []
  for (let i = 0; i < BATCHES; i++) {
    const value = dice.bytes(10_000).toString('base64')
    const codec = compressions[i % compressions.length]
    const good = { records: Array.from({ length: RECORDS }, (_, n) => ({ key: `k${n}`, value })), ...codec }
    const batch = clientBatch(i === 3 ? { body: dice.bytes(20_000), count: RECORDS } : good)
    assert.equal((await produceBatch(client, 't', 0, batch)).errorCode, 0)
    stored.push(placed(batch, i * RECORDS))
  }
  const records = await api.consumeAll('t', 0)
  assert.equal((await api.post('/admin/run-retention', '')).status, 204)
  await waitFor('local files to go', () => localLogs(broker.dataDir).length <= 2)
  const { segments } = JSON.parse((await api.get('/admin/tiered/t/0')).text) as { segments: number[] }
  assert.ok(segments.length > 4, `${segments.length} segments are cold`)
  // The newest cold segment ends where the first copy that is not fetched would begin: its batches are as many as those of others.
  const border = (segments.at(-1) as number) + (segments[1] as number)
  return { api, client, stored, records, border }
}

test('batches in cold storage are fetched as they were sent: from there, from here, and over the border', async t => {
  const flags = flagsOf(temporaryDirectory(t))
  const broker = await startBroker(t, { flags })
  const { api, client, stored, records, border } = await stage(t, broker)
  const last = stored.length - 1
  assert.deepEqual(await fetchBatches(client, 't', 0, last * RECORDS), stored.slice(last), 'here')
  assert.deepEqual(await fetchBatches(client, 't', 0), stored, 'all')
  const before = border / RECORDS - 2
  assert.deepEqual(await fetchBatches(client, 't', 0, before * RECORDS), stored.slice(before), 'over the border')
  const [first] = await fetchPartitions(client, 't', { 0: 0 }, { partitionMaxBytes: 1 })
  assert.deepEqual(first?.records, stored[0], 'one batch, whatever its size')
  assert.deepEqual(await api.consumeAll('t', 0), records)
  await broker.stop()
  const again = await startBroker(t, { dataDir: broker.dataDir, flags })
  assert.deepEqual(await fetchBatches(await connectKafka(t, again.kafka), 't', 0), stored, 'after a restart')
  assert.deepEqual(await new HttpApi(again.url).consumeAll('t', 0), records)
})

test('while the store is away a fetch says so for those partitions in a code that clients retry, and serves the others', async t => {
  const cold = temporaryDirectory(t)
  const broker = await startBroker(t, { flags: flagsOf(join(cold, 'store')) })
  const { api, client, stored } = await stage(t, broker)
  await api.createTopic('hot')
  const hot = clientBatch({ records: [{ value: 'v' }] })
  await produceBatch(client, 'hot', 0, hot)
  renameSync(join(cold, 'store'), join(cold, 'away'))
  writeFileSync(join(cold, 'store'), 'no directory')
  const [ofCold, ofHot] = ['t', 'hot'].map(topic => fetchBody(topic, { 0: 0 }))
  assert.ok(ofCold !== undefined && ofHot !== undefined)
  const both = { ...ofCold, topics: [...ofCold.topics, ...ofHot.topics] }
  const { errorCode, responses } = await client.call(apis.fetch, 11, both)
  assert.equal(errorCode, 0)
  const [refused, served] = responses.map(({ partitions }) => partitions[0])
  assert.deepEqual([refused?.errorCode, refused?.records?.length ?? 0], [kafkaErrors.KAFKA_STORAGE_ERROR.code, 0])
  assert.ok(kafkaErrors.KAFKA_STORAGE_ERROR.isRetriable)
  assert.deepEqual([served?.errorCode, served?.records], [0, placed(hot, 0)])
  rmSync(join(cold, 'store'))
  renameSync(join(cold, 'away'), join(cold, 'store'))
  assert.deepEqual(await fetchBatches(client, 't', 0), stored)
})

test('a store that does not answer keeps nobody else waiting, and a client that gives up leaves nothing', async t => {
  const folder = temporaryDirectory(t)
  const hold = join(folder, 'hold')
  const env = { MILLRACE_FAULTS: `cold/segment.open:1+=hold@${hold}` }
  const broker = await spawnBroker(t, { flags: flagsOf(join(folder, 'store')), env })
  const { api, client, stored } = await stage(t, broker)
  writeFileSync(hold, '')
  const patient = await connectKafka(t, broker.kafka)
  patient.send(apis.fetch, 11, fetchBody('t', { 0: 0 }))
  await waitFor('it to be read', async () => (await heldBytes(api)).replies > 0)
  const last = stored.length - 1
  assert.deepEqual(await fetchBatches(client, 't', 0, last * RECORDS), stored.slice(last))
  assert.equal((await produceBatch(client, 't', 0, clientBatch({ records: [{ value: 'v' }] }))).errorCode, 0)
  patient.socket.destroy()
  rmSync(hold)
  await waitFor('what it held to come back', async () => (await heldBytes(api)).replies === 0)
  assert.deepEqual((await fetchBatches(client, 't', 0)).slice(0, BATCHES), stored)
})

test('a partition in cold storage that takes long is left to the next fetch: records of others do not wait for it', async t => {
  const folder = temporaryDirectory(t)
  const hold = join(folder, 'hold')
  const env = { MILLRACE_FAULTS: `cold/segment.open:1+=hold@${hold}` }
  const broker = await spawnBroker(t, { flags: flagsOf(join(folder, 'store')), env })
  const { api, client, stored } = await stage(t, broker)
  assert.equal((await api.post('/topics/t/partitions', { partitions: 2 })).status, 200)
  const hot = clientBatch({ records: [{ value: 'hot' }] })
  const writeHot = async (): Promise<void> => void (await produceBatch(client, 't', 1, hot))
  await writeHot()
  writeFileSync(hold, '')
  const session = new ClientSession(client, 't')
  const answer = async (offsets: Record<number, number>) =>
    (await session.fetch({ offsets })).map(({ partitionIndex, errorCode, highWatermark, records }) => {
      return [partitionIndex, errorCode, highWatermark, records?.length ?? 0]
    })
  const end = stored.length * RECORDS
  const cold = [0, 0, end, 0]
  assert.deepEqual(await answer({ 0: 0, 1: 0 }), [cold, [1, 0, 1, hot.length]])
  // One that has no session, and one that goes on.
  const alone = await fetchPartitions(client, 't', { 0: 0, 1: 0 })
  assert.deepEqual(
    alone.map(({ records }) => records?.length),
    [0, hot.length]
  )
  await writeHot()
  assert.deepEqual(await answer({ 1: 1 }), [[1, 0, 2, hot.length]])
  rmSync(hold)
  const [told] = await session.fetch({ offsets: { 1: 2 } })
  assert.equal(told?.partitionIndex, 0)
  assert.ok((told.records?.length ?? 0) > 0)
  assert.ok(Buffer.concat(stored).indexOf(told.records ?? '') === 0)
  await waitFor('what it held to come back', async () => {
    const page = (await api.get('/metrics')).text
    return (await heldBytes(api)).replies === 0 && page.includes('\nmillrace_kafka_read_ahead_bytes 0\n')
  })
})

test('a cold read of a key with a quota keeps other fetches of that key for as long as they say, and no longer', async t => {
  const folder = temporaryDirectory(t)
  const hold = join(folder, 'hold')
  const env = { MILLRACE_FAULTS: `cold/segment.open:1+=hold@${hold}` }
  const flags = { ...flagsOf(join(folder, 'store')), '--auth': 'required' }
  const broker = await spawnBroker(t, { flags, env })
  const admin = await firstKey(broker)
  const { api, stored } = await stage(t, broker, admin)
  const limited = { name: 'limited', acls: [{ action: 'read', topic_prefix: 't' }], consume_bytes_per_sec: 100_000_000 }
  const { key, secret } = parse<{ key: KeyAnswer; secret: string }>(await api.post('/admin/keys', limited))
  const connect = async (): Promise<KafkaClient> => {
    const client = await connectKafka(t, broker.kafka)
    assert.equal(await loginPlain(client, key.key_id, secret), 0)
    return client
  }
  writeFileSync(hold, '')
  const [first, other] = [await connect(), await connect()]
  first.send(apis.fetch, 11, fetchBody('t', { 0: 0 }))
  await waitFor('it to be read', async () => (await heldBytes(api)).replies > 0)
  const last = fetchBody('t', { 0: (stored.length - 1) * RECORDS }, { maxWaitMs: 0 })
  const told = await other.call(apis.fetch, 11, last)
  assert.deepEqual([told.errorCode, told.sessionId, told.responses.length], [0, 0, 0])
  rmSync(hold)
  const response = await first.next()
  assert.ok(response !== null)
  const [partition] = decodeResponse(apis.fetch, 11, response).responses.flatMap(({ partitions }) => partitions)
  assert.equal(partition?.errorCode, 0)
  const now = await other.call(apis.fetch, 11, last)
  assert.deepEqual(now.responses[0]?.partitions[0]?.records, stored.at(-1))
})
