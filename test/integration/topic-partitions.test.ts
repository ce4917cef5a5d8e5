/**
 * Topics that get more partitions while they are used: whatever knows of partitions knows of the new ones, those that
 * there were keep what they have, and it outlives restarts, deletions and other numbers of shards.
 */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { limits } from '../../src/model/limits.ts'
import { apis } from '../../src/wire/kafka/apis/index.ts'
import { kafkaErrors } from '../../src/wire/kafka/errors.ts'
import { makeTestKey, startGuarded } from '../support/access.ts'
import { runMillrace, spawnBroker, startBroker, variants, waitFor } from '../support/broker.ts'
import { clientBatch } from '../support/client-batches.ts'
import { isLong } from '../support/crash-run.ts'
import { openClient } from '../support/es01-session.ts'
import { openStream } from '../support/event-stream.ts'
import { assertRefused, HttpApi, parse } from '../support/http-api.ts'
import { fetchPartitions, produceBatch } from '../support/kafka-calls.ts'
import { connectKafka, type KafkaClient } from '../support/kafka-client.ts'
import { parsePage, valueOf } from '../support/prometheus.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

async function add(api: HttpApi, topic: string, partitions: number): Promise<void> {
  const answer = await api.post(`/topics/${topic}/partitions`, { partitions })
  assert.deepEqual([answer.status, parse<unknown>(answer)], [200, { name: topic, partitions }])
}

/** One record in each partition from `first` on, whose value is its number. */
async function fill(api: HttpApi, topic: string, first: number, end: number): Promise<void> {
  const numbers = Array.from({ length: end - first }, (_, i) => first + i)
  await api.produce(
    topic,
    numbers.map(partition => ({ partition, value: String(partition) }))
  )
}

/** Values of each partition. */
async function contentsOf(api: HttpApi, topic: string): Promise<string[]> {
  const { partitions } = await api.describe(topic)
  const all = await Promise.all(partitions.map(({ id }) => api.consumeAll(topic, id)))
  return all.map(records => records.map(({ value }) => value).join())
}

async function createPartitions(
  client: KafkaClient,
  name: string,
  count: number,
  asked: { readonly validateOnly?: boolean; readonly assignments?: { brokerIds: number[] }[] } = {}
): Promise<number> {
  const { validateOnly = false, assignments = null } = asked
  const topics = [{ name, count, assignments }]
  const answer = await client.call(apis.createPartitions, 3, { topics, timeoutMs: 1000, validateOnly })
  return answer.results[0]?.errorCode ?? Number.NaN
}

for (const variant of variants) {
  test(`on ${variant.engine} with ${variant.shards} shard(s) all that knows of partitions knows of those that were added`, async t => {
    const broker = await startBroker(t, { variant })
    const api = new HttpApi(broker.url)
    const client = await connectKafka(t, broker.kafka)
    await api.createTopic('t', 2)
    await fill(api, 't', 0, 2)
    await api.createTopic('other', 3)
    await fill(api, 'other', 0, 3)
    // What is looked up by handle before must not be remembered.
    assert.deepEqual(await contentsOf(api, 't'), ['0', '1'])
    await add(api, 't', 4)
    await fill(api, 't', 2, 4)
    assert.deepEqual(await contentsOf(api, 't'), ['0', '1', '2', '3'])
    assert.equal(await createPartitions(client, 't', 7), 0)
    await fill(api, 't', 4, 7)
    assert.deepEqual(await contentsOf(api, 't'), ['0', '1', '2', '3', '4', '5', '6'])
    assert.deepEqual(await contentsOf(api, 'other'), ['0', '1', '2'])
    const metadata = await client.call(apis.metadata, 9, { topics: [{ name: 't' }] })
    assert.equal(metadata.topics[0]?.partitions.length, 7)
    await produceBatch(client, 't', 6, clientBatch({ records: [{ value: 'kafka' }] }))
    const fetched = await fetchPartitions(client, 't', { 0: 0, 3: 0, 6: 1 })
    assert.ok(fetched.every(({ errorCode, records }) => errorCode === 0 && (records?.length ?? 0) > 0))
    const binary = await openClient(t, broker.es01)
    await binary.produce('t', [{ partition: 5, value: 'es01' }])
    const offsets = parse<{ partitions: { latest: number }[] }>(await api.get('/topics/t/offsets'))
    assert.deepEqual(
      offsets.partitions.map(({ latest }) => latest),
      [1, 1, 1, 1, 1, 2, 2]
    )
    const page = parsePage((await api.get('/metrics')).text)
    assert.equal(valueOf(page, 'millrace_partitions'), 10)
    const deleted = await api.post('/topics/t/delete-records', { partition: 5, offset: 1 })
    assert.deepEqual(parse<unknown>(deleted), { partition: 5, start_offset: 1 })
    assert.equal((await api.call('DELETE', '/topics/t')).status, 200)
    await api.createTopic('t', 3)
    assert.deepEqual(await contentsOf(api, 't'), ['', '', ''])
    assert.deepEqual(await contentsOf(api, 'other'), ['0', '1', '2'])
  })
}

test('keys go to all of the partitions once there are more, over both protocols that choose here', async t => {
  const broker = await startBroker(t)
  const api = new HttpApi(broker.url)
  await api.createTopic('t', 1)
  await add(api, 't', 8)
  const keys = Array.from({ length: 100 }, (_, i) => `k${i}`)
  const results = await api.produce(
    't',
    keys.map(key => ({ key, value: '' }))
  )
  assert.equal(new Set(results.map(({ partition }) => partition)).size, 8)
  const binary = await openClient(t, broker.es01)
  const again = await binary.produce(
    't',
    keys.map(key => ({ key, value: '' }))
  )
  assert.deepEqual(
    again.map(({ partition }) => partition),
    results.map(({ partition }) => partition)
  )
})

test('what does not make more partitions is refused, and the topic stays as it is', async t => {
  const broker = await startBroker(t)
  const api = new HttpApi(broker.url)
  const client = await connectKafka(t, broker.kafka)
  await api.createTopic('t', 3)
  const post = (partitions: unknown) => api.post('/topics/t/partitions', { partitions })
  for (const count of [1, 3])
    assertRefused(await post(count), 400, 'FIELD_INVALID', ['partitions', 'has 3 partition(s)'])
  for (const count of [0, 10_001]) assertRefused(await post(count), 400, 'FIELD_RANGE', ['partitions'])
  for (const count of ['4', -1, 2.5, null]) assertRefused(await post(count), 400, 'FIELD_INVALID', ['partitions'])
  assertRefused(await api.post('/topics/none/partitions', { partitions: 4 }), 404, 'TOPIC_NOT_FOUND')
  const { INVALID_PARTITIONS, INVALID_REPLICA_ASSIGNMENT, UNKNOWN_TOPIC_OR_PARTITION } = kafkaErrors
  for (const count of [-1, 0, 2, 3, 10_001])
    assert.equal(await createPartitions(client, 't', count), INVALID_PARTITIONS.code, String(count))
  assert.equal(await createPartitions(client, 'none', 4), UNKNOWN_TOPIC_OR_PARTITION.code)
  for (const assignments of [
    [],
    [{ brokerIds: [1] }],
    [{ brokerIds: [1] }, { brokerIds: [2] }],
    [{ brokerIds: [1, 1] }, { brokerIds: [1] }]
  ])
    assert.equal(await createPartitions(client, 't', 5, { assignments }), INVALID_REPLICA_ASSIGNMENT.code)
  assert.equal(await createPartitions(client, 't', 5, { validateOnly: true }), 0)
  const topics = [4, 5].map(count => ({ name: 't', count, assignments: null }))
  const twice = await client.call(apis.createPartitions, 3, { topics, timeoutMs: 1000, validateOnly: false })
  assert.deepEqual(
    twice.results.map(({ errorCode }) => errorCode),
    [kafkaErrors.INVALID_REQUEST.code, kafkaErrors.INVALID_REQUEST.code]
  )
  assert.equal((await api.describe('t')).partitions.length, 3)
  assert.equal(await createPartitions(client, 't', 5, { assignments: [{ brokerIds: [1] }, { brokerIds: [1] }] }), 0)
  assert.equal((await api.describe('t')).partitions.length, 5)
})

test('a key that may only write to a topic gives it no partitions', async t => {
  const { admin } = await startGuarded(t)
  await admin.api.createTopic('t', 1)
  const writer = await makeTestKey(admin.api, 'write:t')
  assertRefused(await writer.api.post('/topics/t/partitions', { partitions: 2 }), 403, 'FORBIDDEN')
  assert.equal((await admin.api.describe('t')).partitions.length, 1)
})

test('members of a group share the new partitions, and their streams follow them', async t => {
  const broker = await startBroker(t, { flags: { '--shards': '3' } })
  const api = new HttpApi(broker.url)
  await api.createTopic('t', 2)
  interface Member {
    readonly member_id: string
    readonly generation: number
    readonly assignment: readonly { readonly partition: number }[]
  }
  const join = async (): Promise<Member> => parse<Member>(await api.post('/groups/g/join', { topics: ['t'] }))
  const [one, two] = [await join(), await join()]
  await api.post('/groups/idle/join', { topics: ['t'], member_id: 'streaming' })
  const stream = await openStream(t, `${broker.url}/groups/idle/stream?member_id=streaming`)
  await add(api, 't', 6)
  const beat = await api.post('/groups/g/heartbeat', { member_id: two.member_id, generation: two.generation })
  assert.match(beat.text, /rebalance_required/)
  const assigned = async ({ member_id: id }: Member): Promise<number[]> =>
    parse<Member>(await api.get(`/groups/g/assignment?member_id=${id}`)).assignment.map(({ partition }) => partition)
  const [ofOne, ofTwo] = [await assigned(one), await assigned(two)]
  assert.deepEqual([ofOne.length, ofTwo.length], [3, 3])
  assert.deepEqual([...ofOne, ...ofTwo].sort(), [0, 1, 2, 3, 4, 5])
  await fill(api, 't', 0, 6)
  const records = await stream.untilRecords(6)
  assert.deepEqual(records.map(({ partition }) => partition).sort(), [0, 1, 2, 3, 4, 5])
})

test('a stream of a whole topic ends when there are more partitions, and goes on over all of them when it comes again', async t => {
  const broker = await startBroker(t)
  const api = new HttpApi(broker.url)
  await api.createTopic('t', 2)
  await fill(api, 't', 0, 2)
  const all = await openStream(t, `${broker.url}/topics/t/stream?offset=earliest`)
  const single = await openStream(t, `${broker.url}/topics/t/stream?partition=1`)
  await all.untilRecords(2)
  await add(api, 't', 4)
  await fill(api, 't', 2, 4)
  await all.untilClosed()
  assert.equal(all.isWhole, true)
  const again = await openStream(t, `${broker.url}/topics/t/stream`, { headers: { 'last-event-id': all.lastId } })
  const records = await again.untilRecords(2)
  assert.deepEqual(records.map(({ partition }) => partition).sort(), [2, 3])
  await fill(api, 't', 1, 2)
  await single.untilRecords(1)
  assert.equal(single.isClosed, false)
})

test('a fetch that waits over old and new partitions is answered by a record in a new one', async t => {
  const broker = await startBroker(t, { flags: { '--shards': '3' } })
  const api = new HttpApi(broker.url)
  const client = await connectKafka(t, broker.kafka)
  await api.createTopic('t', 1)
  assert.equal(await createPartitions(client, 't', 3), 0)
  const waiting = fetchPartitions(client, 't', { 0: 0, 1: 0, 2: 0 }, { maxWaitMs: 30_000 })
  await fill(api, 't', 2, 3)
  const found = (await waiting).filter(({ records }) => (records?.length ?? 0) > 0)
  assert.deepEqual(
    found.map(({ partitionIndex }) => partitionIndex),
    [2]
  )
})

test('retention and compaction reach partitions that were added', async t => {
  const broker = await startBroker(t, {
    flags: { '--shards': '3', '--segment-ms': '100ms', '--retention-check-interval': '10ms' }
  })
  const api = new HttpApi(broker.url)
  await api.createTopic('aged', 1, { retention_ms: 1 })
  await api.createTopic('kept', 1, { cleanup_policy: 'compact', segment_bytes: 128 })
  for (const topic of ['aged', 'kept']) await add(api, topic, 3)
  await fill(api, 'aged', 0, 3)
  await waitFor('all partitions to have aged', async () =>
    (await api.describe('aged')).partitions.every(({ start_offset }) => start_offset === 1)
  )
  for (let i = 0; i < 5; i++)
    await api.produce(
      'kept',
      [0, 1, 2].map(partition => ({ partition, key: 'k', value: `${i}`.padEnd(100, 'x') }))
    )
  assert.equal((await api.post('/admin/run-compaction', '')).status < 300, true)
  for (const partition of [0, 1, 2]) {
    const values = (await api.consumeAll('kept', partition)).map(({ value }) => value[0])
    assert.ok(values.length <= 2 && values.at(-1) === '4', `${partition}: ${values.join()}`)
  }
})

/** Partitions of two topics that grew in turn, each with its own content. */
async function grownBroker(t: TestContext, dataDir: string): Promise<void> {
  const first = await spawnBroker(t, { dataDir, flags: { '--shards': '2' } })
  const api = new HttpApi(first.url)
  for (const topic of ['a', 'b']) await api.createTopic(topic, 2)
  for (const count of [3, 5]) for (const topic of ['a', 'b']) await add(api, topic, count)
  for (const topic of ['a', 'b']) await fill(api, topic, 0, 5)
  await api.post('/admin/run-compaction', '')
  assert.equal((await first.kill('SIGTERM')).code, 0)
}

const numbers = ['0', '1', '2', '3', '4']

test('partitions that were added are there after a restart, with another number of shards, and in a dump', async t => {
  const dataDir = temporaryDirectory(t)
  await grownBroker(t, dataDir)
  for (const shards of isLong ? ['2', '3', '1'] : ['3']) {
    const broker = await spawnBroker(t, { dataDir, flags: { '--shards': shards } })
    const api = new HttpApi(broker.url)
    for (const topic of ['a', 'b']) assert.deepEqual(await contentsOf(api, topic), numbers, `${topic} on ${shards}`)
    assert.equal((await broker.kill('SIGTERM')).code, 0)
  }
  const verified = await runMillrace(['verify', '--data-dir', dataDir])
  assert.equal(verified.code, 0, verified.stdout + verified.stderr)
  const archive = `${temporaryDirectory(t)}/b.tar`
  const dumped = await runMillrace(['dump', '--data-dir', dataDir, '--topics', 'b', '--output', archive])
  assert.equal(dumped.code, 0, dumped.stderr)
  const restored = `${temporaryDirectory(t)}/restored`
  const back = await runMillrace(['restore', '--data-dir', restored, '--input', archive])
  assert.equal(back.code, 0, back.stderr)
  const broker = await spawnBroker(t, { dataDir: restored })
  const api = new HttpApi(broker.url)
  assert.deepEqual(await contentsOf(api, 'b'), numbers)
  await add(api, 'b', 6)
  await fill(api, 'b', 5, 6)
  assert.deepEqual(await contentsOf(api, 'b'), [...numbers, '5'])
})

test('a topic that grew and was deleted leaves nothing that is taken for unknown data', async t => {
  const dataDir = temporaryDirectory(t)
  await grownBroker(t, dataDir)
  const broker = await spawnBroker(t, { dataDir, flags: { '--shards': '2' } })
  assert.equal((await new HttpApi(broker.url).call('DELETE', '/topics/a')).status, 200)
  assert.equal((await broker.kill('SIGKILL')).code, null)
  const next = await spawnBroker(t, { dataDir, flags: { '--shards': '2' } })
  const api = new HttpApi(next.url)
  assert.deepEqual(await contentsOf(api, 'b'), numbers)
  await api.post('/admin/run-compaction', '')
  assert.equal((await next.kill('SIGTERM')).code, 0)
  const verified = await runMillrace(['verify', '--data-dir', dataDir])
  assert.equal(verified.code, 0, verified.stdout + verified.stderr)
  assert.doesNotMatch(verified.stdout, /no topic/)
})

test('a topic that grew as often as it can between others is refused more, and is served after a restart', async t => {
  const dataDir = temporaryDirectory(t)
  const broker = await spawnBroker(t, { dataDir, flags: { '--shards': '2' } })
  const api = new HttpApi(broker.url)
  await api.createTopic('t', 1)
  const max = limits.topicRangesMax
  for (let count = 2; count <= max; count++) {
    await api.createTopic(`between-${count}`, 1)
    await add(api, 't', count)
  }
  await fill(api, 't', 0, max)
  await api.createTopic('last', 1)
  const refused = await api.post('/topics/t/partitions', { partitions: max + 1 })
  const words = ['partitions', String(max + 1), `${max} is the limit`, 'nothing was written']
  assertRefused(refused, 400, 'FIELD_INVALID', words)
  const client = await connectKafka(t, broker.kafka)
  assert.equal(await createPartitions(client, 't', max + 1), kafkaErrors.INVALID_PARTITIONS.code)
  // Where nothing came between there are no more ranges.
  for (const count of [2, 3, 5]) await add(api, 'last', count)
  const expected = Array.from({ length: max }, (_, i) => String(i))
  assert.deepEqual(await contentsOf(api, 't'), expected)
  assert.equal((await broker.kill('SIGTERM')).code, 0)
  const inspected = await runMillrace(['inspect', 'topics', '--data-dir', dataDir, '--limit', '1000', '--json'])
  const lines = inspected.stdout.trim().split('\n')
  const rows = lines.map(line => JSON.parse(line) as { readonly name: string; readonly handles: unknown[] })
  const handlesIn = (name: string): unknown[] | undefined => rows.find(row => row.name === name)?.handles
  assert.deepEqual([handlesIn('t')?.length, handlesIn('last')?.length], [max, 1])
  const shown = await runMillrace(['inspect', 'topics', '--data-dir', dataDir, '--topic', 't'])
  assert.match(shown.stdout, / first_handle=1 handles=1\.\.1,3\.\.3,5\.\.5,/)
  const again = new HttpApi((await spawnBroker(t, { dataDir, flags: { '--shards': '2' } })).url)
  assert.deepEqual(await contentsOf(again, 't'), expected)
  await fill(again, 'last', 0, 5)
  await again.createTopic('new', 1)
})

test('millrace topic add-partitions says how many there are then', async t => {
  const broker = await startBroker(t)
  await new HttpApi(broker.url).createTopic('t', 1)
  const env = { MILLRACE_BROKER: broker.url }
  const run = await runMillrace(['topic', 'add-partitions', 't', '--partitions', '4'], { env })
  assert.deepEqual([run.code, run.stdout], [0, "topic 't' has 4 partition(s)\n"])
  const fewer = await runMillrace(['topic', 'add-partitions', 't', '--partitions', '2'], { env })
  assert.notEqual(fewer.code, 0)
  assert.match(fewer.stderr, /has 4 partition\(s\)/)
})
