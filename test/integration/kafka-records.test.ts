/** Records through the Kafka listener: what is written, what a fetch brings and when, and what the other protocols make of it. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { apis } from '../../src/wire/kafka/apis/index.ts'
import { kafkaErrors } from '../../src/wire/kafka/errors.ts'
import { startBroker, type TestBroker } from '../support/broker.ts'
import { clientBatch, gzip, placed, splitBatches, zstd } from '../support/client-batches.ts'
import { HttpApi } from '../support/http-api.ts'
import { fetchBody, fetchPartitions, newProducer, produceBatch, produceBody } from '../support/kafka-calls.ts'
import { connectKafka, decodeResponse, type KafkaClient } from '../support/kafka-client.ts'
import { untilWatching } from '../support/metrics-held.ts'

interface Stage {
  readonly broker: TestBroker
  readonly api: HttpApi
  readonly client: KafkaClient
}

async function stage(t: TestContext, partitions = 1, flags: Readonly<Record<string, string>> = {}): Promise<Stage> {
  const broker = await startBroker(t, { flags })
  const api = new HttpApi(broker.url)
  await api.createTopic('t', partitions)
  return { broker, api, client: await connectKafka(t, broker.kafka) }
}

const batchOf = (value: string, count = 1): Buffer =>
  clientBatch({ records: Array.from({ length: count }, () => ({ key: 'k', value })) })

test('a batch is stored as its bytes are, and fetched so in every version', async t => {
  const { broker, client } = await stage(t)
  const batch = clientBatch({
    records: [
      { key: null, value: '' },
      { key: '', value: null, headers: [['h', null]] }
    ],
    ...zstd
  })
  const told = await produceBatch(client, 't', 0, batch, 9)
  assert.deepEqual([told.errorCode, told.baseOffset, told.logAppendTimeMs, told.logStartOffset], [0, 0, -1, 0])
  const { topics } = await client.call(apis.metadata, 12, { topics: [{ name: 't' }] })
  const topicId = topics[0]?.topicId ?? ''
  for (let version = apis.fetch.versions.first; version <= apis.fetch.versions.last; version++) {
    const asked = { version, ...(version >= 13 && { topicId }) }
    const [partition] = await fetchPartitions(client, 't', { 0: 0 }, asked)
    if (version < 10) {
      // Clients of that time do not know zstd (KIP-110).
      assert.equal(partition?.errorCode, kafkaErrors.UNSUPPORTED_COMPRESSION_TYPE.code)
      assert.equal(partition.records?.length, 0)
      continue
    }
    assert.ok(partition !== undefined && partition.records?.equals(placed(batch, 0)) === true, `version ${version}`)
    // Fetch v11 with aborted transactions or a replica to prefer broke librdkafka elsewhere (nisshi#62).
    assert.deepEqual([partition.highWatermark, partition.lastStableOffset], [2, 2])
    assert.deepEqual([partition.abortedTransactions?.length, partition.preferredReadReplica], [0, -1])
  }
  assert.deepEqual([...(broker.server.kafka?.probe.errors.keys() ?? [])], ['UNSUPPORTED_COMPRESSION_TYPE'])
})

test('a client that does not know zstd reads up to the first batch of it, and hears so there', async t => {
  const { client } = await stage(t, 2)
  const packed = clientBatch({ records: [{ value: 'v' }], ...zstd })
  const [plain, zipped] = [batchOf('x'.repeat(300_000)), clientBatch({ records: [{ value: 'v' }], ...gzip })]
  for (const batch of [plain, zipped, packed, plain])
    assert.equal((await produceBatch(client, 't', 0, batch)).errorCode, 0)
  await produceBatch(client, 't', 1, plain)
  const [before, other] = await fetchPartitions(client, 't', { 0: 0, 1: 0 }, { version: 9, maxWaitMs: 60_000 })
  assert.deepEqual([before?.errorCode, other?.records?.length], [0, plain.length])
  assert.deepEqual(splitBatches(before?.records ?? Buffer.alloc(0)), [placed(plain, 0), placed(zipped, 1)])
  const [at] = await fetchPartitions(client, 't', { 0: 2 }, { version: 9, maxWaitMs: 60_000, minBytes: 1_000_000 })
  assert.deepEqual([at?.errorCode, at?.records?.length], [kafkaErrors.UNSUPPORTED_COMPRESSION_TYPE.code, 0])
  const [known] = await fetchPartitions(client, 't', { 0: 2 }, { version: 10 })
  assert.equal(known?.records?.length, packed.length + plain.length)
})

test('what Kafka clients write is read over HTTP: null keys, empty values, tombstones, headers and times', async t => {
  const { api, client } = await stage(t)
  const baseTimestamp = 1_700_000_000_000
  const records = [
    { key: null, value: '' },
    { key: 'k', value: null },
    { key: '', value: 'v', timestampDelta: 5, headers: [['h', 'x'] as const, ['n', null] as const] }
  ]
  await produceBatch(client, 't', 0, clientBatch({ records, baseTimestamp, maxTimestamp: baseTimestamp + 5, ...gzip }))
  const read = await api.consumeAll('t', 0)
  assert.deepEqual(
    read.map(({ offset, key, value, timestamp_ms, headers }) => ({ offset, key, value, at: timestamp_ms, headers })),
    [
      { offset: 0, key: null, value: '', at: baseTimestamp, headers: undefined },
      { offset: 1, key: 'k', value: '', at: baseTimestamp, headers: undefined },
      {
        offset: 2,
        key: '',
        value: 'v',
        at: baseTimestamp + 5,
        headers: [
          ['h', 'x'],
          ['n', null]
        ]
      }
    ]
  )
})

test('what is written over HTTP is fetched as batches of the format', async t => {
  const { api, client } = await stage(t)
  await api.produce('t', [
    { key: 'k', value: 'v' },
    { key: null, value: '' }
  ])
  const [partition] = await fetchPartitions(client, 't', { 0: 0 })
  const batches = splitBatches(partition?.records ?? Buffer.alloc(0))
  assert.deepEqual(
    batches.map(batch => batch.readInt32BE(57)).reduce((sum, count) => sum + count, 0),
    2
  )
})

test('a retried batch of an idempotent producer is answered with its first offsets, and a gap is out of order', async t => {
  const { api, client } = await stage(t)
  const producerId = await newProducer(client)
  const batch = (sequence: number): Buffer =>
    clientBatch({ records: [{ value: 'v' }, { value: 'w' }], producerId, epoch: 0, sequence })
  const first = await produceBatch(client, 't', 0, batch(0))
  assert.deepEqual(await produceBatch(client, 't', 0, batch(0)), first)
  const gap = await produceBatch(client, 't', 0, batch(9))
  assert.equal(gap.errorCode, kafkaErrors.OUT_OF_ORDER_SEQUENCE_NUMBER.code)
  assert.deepEqual(await api.ends('t'), [2])
  // A producer may begin with any sequence where nothing of it is known (redpanda#22670).
  const other = await newProducer(client)
  const late = clientBatch({ records: [{ value: 'v' }], producerId: other, epoch: 0, sequence: 77 })
  assert.equal((await produceBatch(client, 't', 0, late)).errorCode, 0)
})

test('a leader epoch that a client writes into its batch is nothing that it is refused for', async t => {
  const { client } = await stage(t)
  // Sarama writes 0, others −1 (franz-go#1229).
  for (const epoch of [-1, 0, 5]) {
    assert.equal((await produceBatch(client, 't', 0, placed(batchOf('v'), 0, epoch))).errorCode, 0)
  }
})

test('each partition of a produce is refused for itself, by a code that its client understands', async t => {
  const { client } = await stage(t)
  const damaged = batchOf('v')
  damaged[damaged.length - 1] = (damaged[damaged.length - 1] as number) ^ 1
  const answer = await client.call(apis.produce, 8, {
    acks: -1,
    timeoutMs: 1000,
    topicData: [
      {
        name: 't',
        partitionData: [
          { index: 0, records: batchOf('fine') },
          { index: 7, records: batchOf('v') }
        ]
      },
      { name: 'missing', partitionData: [{ index: 0, records: batchOf('v') }] },
      { name: 't', partitionData: [{ index: 0, records: damaged }] },
      { name: 't', partitionData: [{ index: 0, records: null }] },
      { name: 't', partitionData: [{ index: 0, records: clientBatch({ records: [{ value: 'v' }], magic: 1 }) }] }
    ]
  })
  const codes = answer.responses.flatMap(({ partitionResponses }) => partitionResponses.map(told => told.errorCode))
  const { CORRUPT_MESSAGE, INVALID_RECORD, UNKNOWN_TOPIC_OR_PARTITION } = kafkaErrors
  assert.deepEqual(codes.slice(0, 5), [
    0,
    UNKNOWN_TOPIC_OR_PARTITION.code,
    UNKNOWN_TOPIC_OR_PARTITION.code,
    CORRUPT_MESSAGE.code,
    INVALID_RECORD.code
  ])
  assert.ok((codes[5] ?? 0) > 0)
  const worded = answer.responses.flatMap(({ partitionResponses }) => partitionResponses.map(told => told.errorMessage))
  assert.match(worded[3] ?? '', /checksum|corrupt/)
})

test('acks that are none, a transaction, and message sets of old formats are refused as a whole', async t => {
  const { api, client } = await stage(t)
  const codeOf = async (version: number, body: ReturnType<typeof produceBody> & { transactionalId?: string }) =>
    (await client.call(apis.produce, version, body)).responses[0]?.partitionResponses[0]?.errorCode
  const batch = batchOf('v')
  assert.equal(await codeOf(7, produceBody('t', 0, batch, 2)), kafkaErrors.INVALID_REQUIRED_ACKS.code)
  const inTransaction = { ...produceBody('t', 0, batch), transactionalId: 'x' }
  assert.equal(await codeOf(7, inTransaction), kafkaErrors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED.code)
  assert.equal(await codeOf(2, produceBody('t', 0, batch)), kafkaErrors.UNSUPPORTED_FOR_MESSAGE_FORMAT.code)
  assert.deepEqual(await api.ends('t'), [0])
})

test('a fetch at the end is empty and fine, one beyond it or below the start is out of range, and says where they are', async t => {
  const { client } = await stage(t)
  await produceBatch(client, 't', 0, batchOf('v', 3))
  const [atEnd] = await fetchPartitions(client, 't', { 0: 3 })
  // No records are zero bytes, never null: some take null for damage.
  assert.deepEqual([atEnd?.errorCode, atEnd?.records?.length, atEnd?.highWatermark], [0, 0, 3])
  const [beyond] = await fetchPartitions(client, 't', { 0: 4 })
  assert.equal(beyond?.errorCode, kafkaErrors.OFFSET_OUT_OF_RANGE.code)
  const answer = await client.call(apis.deleteRecords, 1, {
    topics: [{ name: 't', partitions: [{ partitionIndex: 0, offset: 2 }] }],
    timeoutMs: 1000
  })
  assert.deepEqual(answer.topics[0]?.partitions[0], { partitionIndex: 0, lowWatermark: 2, errorCode: 0 })
  const [below] = await fetchPartitions(client, 't', { 0: 1 })
  assert.deepEqual([below?.errorCode, below?.logStartOffset], [kafkaErrors.OFFSET_OUT_OF_RANGE.code, 2])
})

test('max_wait 0 is answered at once, whatever min_bytes asks for', async t => {
  const { client } = await stage(t)
  // A fetch that closes a session, with max_wait 0, hung elsewhere.
  for (const sessionEpoch of [0, -1]) {
    const [partition] = await fetchPartitions(client, 't', { 0: 0 }, { minBytes: 1_000_000, sessionEpoch })
    assert.deepEqual([partition?.errorCode, partition?.records?.length], [0, 0])
  }
})

test('a fetch waits until there are min_bytes over all of its partitions, and then brings all of them', async t => {
  const s = await stage(t, 2)
  const writer = await connectKafka(t, s.broker.kafka)
  const batch = batchOf('x'.repeat(100))
  s.client.send(apis.fetch, 11, fetchBody('t', { 0: 0, 1: 0 }, { maxWaitMs: 60_000, minBytes: 2 * batch.length }))
  await untilWatching(s, 2)
  let isAnswered = false
  const answered = s.client.next().then(response => {
    isAnswered = true
    return response
  })
  await produceBatch(writer, 't', 0, batch)
  await fetchPartitions(writer, 't', { 0: 0 })
  await untilWatching(s, 2)
  assert.equal(isAnswered, false)
  await produceBatch(writer, 't', 1, batch)
  const response = await answered
  assert.ok(response !== null)
  const partitions = decodeResponse(apis.fetch, 11, response).responses.flatMap(topic => topic.partitions)
  assert.deepEqual(
    partitions.map(({ partitionIndex, records }) => [partitionIndex, records?.length]),
    [
      [0, batch.length],
      [1, batch.length]
    ]
  )
})

test('a fetch does not wait for min_bytes that no answer can bring: of a partition with more than its share that is enough', async t => {
  const s = await stage(t)
  const batch = clientBatch({ records: [{ value: 'x'.repeat(1000) }] })
  for (let i = 0; i < 5; i++) await produceBatch(s.client, 't', 0, batch)
  const startMs = performance.now()
  for (const share of [{ partitionMaxBytes: 2500 }, { maxBytes: 2500 }]) {
    const asked = { maxWaitMs: 60_000, minBytes: 2500, ...share }
    const [told] = await fetchPartitions(s.client, 't', { 0: 0 }, asked)
    assert.equal(told?.records?.length, 2 * batch.length)
  }
  assert.ok(performance.now() - startMs < 60_000, 'neither waited until its time was over')
})

test('a fetch that waits is woken by the deletion of its topic', async t => {
  const s = await stage(t)
  s.client.send(apis.fetch, 11, fetchBody('t', { 0: 0 }, { maxWaitMs: 60_000 }))
  await untilWatching(s, 1)
  await s.api.call('DELETE', '/topics/t')
  const response = await s.client.next()
  assert.ok(response !== null)
  const [partition] = decodeResponse(apis.fetch, 11, response).responses[0]?.partitions ?? []
  assert.equal(partition?.errorCode, kafkaErrors.UNKNOWN_TOPIC_OR_PARTITION.code)
})

test('a fetch keeps to max_bytes, but for one whole batch, and no partition waits for ever behind the others', async t => {
  const { client } = await stage(t, 4)
  const batch = batchOf('x'.repeat(100_000))
  for (let partition = 0; partition < 4; partition++)
    for (let i = 0; i < 3; i++) await produceBatch(client, 't', partition, batch)
  const [alone] = await fetchPartitions(client, 't', { 0: 1 }, { maxBytes: 1, partitionMaxBytes: 1 })
  assert.equal(alone?.records?.length, batch.length)
  const places: Record<number, number> = { 0: 0, 1: 0, 2: 0, 3: 0 }
  for (let i = 0; i < 40 && Object.values(places).some(offset => offset < 3); i++) {
    const partitions = await fetchPartitions(client, 't', places, { maxBytes: 250_000, partitionMaxBytes: 120_000 })
    const bytes = partitions.reduce((sum, { records }) => sum + (records?.length ?? 0), 0)
    assert.ok(bytes > 0 && bytes <= 250_000 + batch.length, `${bytes} bytes`)
    for (const { partitionIndex, records, highWatermark } of partitions) {
      assert.equal(highWatermark, 3)
      places[partitionIndex] = (places[partitionIndex] ?? 0) + splitBatches(records ?? Buffer.alloc(0)).length
    }
  }
  assert.deepEqual(places, { 0: 3, 1: 3, 2: 3, 3: 3 })
})

test('a client that knows of a later leader than there is hears so, and offsets of epochs are those of the only one', async t => {
  const { client } = await stage(t)
  await produceBatch(client, 't', 0, batchOf('v'))
  const [ahead] = await fetchPartitions(client, 't', { 0: 0 }, { currentLeaderEpoch: 3 })
  assert.equal(ahead?.errorCode, kafkaErrors.UNKNOWN_LEADER_EPOCH.code)
  const ask = async (leaderEpoch: number) => {
    const topics = [{ topic: 't', partitions: [{ partition: 0, currentLeaderEpoch: 0, leaderEpoch }] }]
    const [told] = (await client.call(apis.offsetForLeaderEpoch, 2, { topics })).topics[0]?.partitions ?? []
    return [told?.errorCode, told?.leaderEpoch, told?.endOffset]
  }
  assert.deepEqual(await ask(0), [0, 0, 1])
  assert.deepEqual(await ask(1), [0, -1, -1])
})

test('offsets are found at both ends, by time, and at the record with the largest time', async t => {
  const { client } = await stage(t)
  const records = [1000, 3000, 2000].map(timestampDelta => ({ value: 'v', timestampDelta }))
  await produceBatch(client, 't', 0, clientBatch({ records, baseTimestamp: 0, maxTimestamp: 3000 }))
  const at = async (timestamp: number, version = 7) => {
    const topics = [{ name: 't', partitions: [{ partitionIndex: 0, timestamp }] }]
    const answer = await client.call(apis.listOffsets, version, { replicaId: -1, isolationLevel: 0, topics })
    const told = answer.topics[0]?.partitions[0]
    assert.equal(told?.errorCode, 0)
    return [told.offset, told.timestamp]
  }
  assert.deepEqual(await at(-1), [3, -1])
  assert.deepEqual(await at(-2), [0, -1])
  assert.deepEqual(await at(-3), [1, 3000])
  assert.deepEqual(await at(1500, 1), [1, 3000])
  assert.deepEqual(await at(0, 1), [0, 1000])
  assert.deepEqual(await at(3001), [-1, -1])
})
