/**
 * Batches over Kafka's protocol whose header and checksum are right and whose records are anything: damaged, compressed
 * wrongly, bombs. They are stored and fetched as they are; readers of records over HTTP and ES01, and compaction, come to the
 * end of them; others are served meanwhile, and what was held is given back. 300 batches; 6,000 with MILLRACE_LONG=1, or as
 * many as FUZZ_BATCHES says.
 */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { connectEs01, Es01Error } from '../../src/client/es01/client.ts'
import type { Logger } from '../../src/base/logger.ts'
import { apis } from '../../src/wire/kafka/apis/index.ts'
import { startBroker, type TestBroker } from '../support/broker.ts'
import { clientBatch, placed } from '../support/client-batches.ts'
import { isLong, seed } from '../support/crash-run.ts'
import { bombs, hostileBatch, lyingLengths } from '../support/hostile-batches.ts'
import { HttpApi } from '../support/http-api.ts'
import { produceBatch } from '../support/kafka-calls.ts'
import { connectKafka, type KafkaClient } from '../support/kafka-client.ts'
import { fetchBatches } from '../support/kafka-contents.ts'
import { diceOf, replayLine } from '../support/log-random.ts'
import { heldBytes } from '../support/metrics-held.ts'

const FILE = 'test/fuzz/kafka-batches.test.ts'
const wanted = Number(process.env['FUZZ_BATCHES'] ?? (isLong ? 6_000 : 300))
delete process.env['FUZZ_BATCHES']
const MIB = 1024 * 1024
const topics = ['plain', 'compacted'] as const

/** Sends batches to both topics. @returns those that were taken, as they must be stored. */
async function produceAll(client: KafkaClient, batches: readonly Buffer[]): Promise<Buffer[]> {
  const stored: Buffer[] = []
  let offset = 0
  for (const batch of batches) {
    const told = await produceBatch(client, 'plain', 0, batch)
    const copy = await produceBatch(client, 'compacted', 0, batch)
    assert.equal(copy.errorCode, told.errorCode)
    if (told.errorCode !== 0) continue
    assert.equal(told.baseOffset, offset)
    stored.push(placed(batch, offset))
    offset += batch.readInt32BE(57)
  }
  return stored
}

/** Reads to the end as an ES01 client that steps over what it is refused. @returns how many records it got. */
async function readOverEs01({ es01 }: Pick<TestBroker, 'es01'>, topic: string): Promise<number> {
  const client = await connectEs01(es01)
  let count = 0
  for (let offset = 0; ;) {
    const asked = { topic, partition: 0, offset, maxRecords: 1000, maxBytes: MIB }
    try {
      const answer = await client.consume(asked)
      count += answer.records.length
      if (answer.nextOffset >= answer.highWatermark) break
      assert.ok(answer.nextOffset > offset)
      offset = answer.nextOffset
    } catch (error) {
      const next = error instanceof Es01Error && /next readable offset is (\d+)/.exec(error.message)?.[1]
      if (typeof next !== 'string') throw error
      assert.ok(Number(next) > offset)
      offset = Number(next)
    }
  }
  await client.close()
  return count
}

/** Asks for something small every few milliseconds until told to stop. @returns how often it was answered. */
async function askOn(t: TestContext, { kafka }: Pick<TestBroker, 'kafka'>, goesOn: () => boolean): Promise<number> {
  const client = await connectKafka(t, kafka)
  let answered = 0
  while (goesOn()) {
    await client.call(apis.metadata, 4, { topics: [{ name: 'plain' }] })
    answered++
    // Without a pause it would take half of the machine from those that read.
    await setTimeout(5)
  }
  return answered
}

async function createTopics(api: HttpApi): Promise<void> {
  await api.createTopic('plain')
  // Once it is compacted it takes none of them: what it has must be from before.
  await api.createTopic('compacted', 1, { segment_bytes: 20_000, tombstone_retention_ms: 0 })
}

async function compact(api: HttpApi): Promise<void> {
  assert.equal((await api.call('PUT', '/topics/compacted/config', '{"cleanup_policy":"compact"}')).status, 200)
  assert.equal((await api.post('/admin/run-compaction', '')).status, 204)
}

test(`${wanted} batches of anything are kept as they are, and harm no reader`, async t => {
  t.diagnostic(replayLine(seed, FILE))
  const dice = diceOf(seed)
  const failures: object[] = []
  const warnings: string[] = []
  const logger: Logger = {
    debug() {},
    info() {},
    warn: (_fields, message) => void warnings.push(message),
    error: fields => void failures.push(fields)
  }
  const broker = await startBroker(t, { logger })
  const api = new HttpApi(broker.url)
  await createTopics(api)
  const client = await connectKafka(t, broker.kafka)
  const marker = clientBatch({ records: [{ key: 'marker', value: 'whole' }] })
  const hostile = Array.from({ length: wanted }, () => hostileBatch(dice))
  let isDone = false
  const asking = askOn(t, broker, () => !isDone)
  const stored = await produceAll(client, [...lyingLengths(), ...hostile, marker])
  assert.ok(stored.length > wanted / 2, `${stored.length} were taken`)
  assert.deepEqual(await fetchBatches(client, 'plain', 0), stored)
  for (const topic of topics) {
    assert.equal((await api.consumeAll(topic, 0)).at(-1)?.value, 'whole')
    assert.ok((await readOverEs01(broker, topic)) > 0)
  }
  await compact(api)
  const compacted = await fetchBatches(client, 'compacted', 0)
  const whole = new Set(stored.map(batch => batch.toString('latin1')))
  assert.ok(compacted.some(batch => whole.has(batch.toString('latin1'))))
  assert.equal((await api.consumeAll('compacted', 0)).at(-1)?.value, 'whole')
  isDone = true
  const answered = await asking
  t.diagnostic(
    `${stored.length} batches were stored, ${compacted.length} are left; ${answered} answers to others meanwhile`
  )
  assert.ok(answered > 10)
  assert.deepEqual(failures, [])
  // One for each partition: what any client can send must not fill the log.
  const told = warnings.filter(message => message.startsWith('records that cannot be decoded'))
  assert.equal(told.length, 2, warnings.join('\n'))
  assert.deepEqual(await heldBytes(api), { requests: 0, replies: 0 })
})

test('bombs of every codec are read by nobody, and keep nobody from what is behind them', async t => {
  const broker = await startBroker(t, { flags: { '--shards': '1' } })
  const api = new HttpApi(broker.url)
  await createTopics(api)
  const client = await connectKafka(t, broker.kafka)
  const marker = clientBatch({ records: [{ key: 'marker', value: 'whole' }] })
  const batches = [...bombs(), marker]
  const stored = await produceAll(client, batches)
  assert.equal(stored.length, batches.length)
  let isDone = false
  const asking = askOn(t, broker, () => !isDone)
  for (const records of await Promise.all(topics.map(topic => api.consumeAll(topic, 0))))
    assert.deepEqual(
      records.map(({ value }) => value),
      ['whole']
    )
  for (const topic of topics) {
    assert.equal(await readOverEs01(broker, topic), 1)
    assert.deepEqual(await fetchBatches(client, topic, 0), stored)
  }
  await compact(api)
  assert.deepEqual((await fetchBatches(client, 'compacted', 0)).slice(0, -1), stored.slice(0, -1))
  isDone = true
  assert.ok((await asking) > 10)
  assert.deepEqual(await heldBytes(api), { requests: 0, replies: 0 })
})
