/** What a produce of Kafka's protocol is refused for: one claim a row, by the code that clients of Kafka expect for it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { apis } from '../../src/wire/kafka/apis/index.ts'
import { kafkaErrors } from '../../src/wire/kafka/errors.ts'
import { startBroker } from '../support/broker.ts'
import { clientBatch, codecs, gzip, placed, zstd, type ClientBatch } from '../support/client-batches.ts'
import { HttpApi } from '../support/http-api.ts'
import { fetchPartitions, produceBatch, produceBody } from '../support/kafka-calls.ts'
import { connectKafka } from '../support/kafka-client.ts'

const records = [{ key: 'k', value: 'v' }, { value: 'w' }]
const whole = clientBatch({ records })
const of = (batch: ClientBatch): Buffer => clientBatch({ records, ...batch })
const changed = (change: (bytes: Buffer) => void): Buffer => {
  const bytes = Buffer.from(whole)
  change(bytes)
  return bytes
}

type Row = readonly [claim: string, error: keyof typeof kafkaErrors, records: Buffer | null, version?: number]

const rows: readonly Row[] = [
  ['no records at all', 'INVALID_RECORD', null],
  ['an empty record set', 'INVALID_RECORD', Buffer.alloc(0)],
  ['two batches', 'INVALID_RECORD', Buffer.concat([whole, whole])],
  ['a batch and what is none behind it', 'INVALID_RECORD', Buffer.concat([whole, Buffer.alloc(5)])],
  ['a batch of format 1', 'INVALID_RECORD', of({ magic: 1 })],
  ['less than a header', 'CORRUPT_MESSAGE', whole.subarray(0, 60)],
  ['a length beyond the batch', 'CORRUPT_MESSAGE', whole.subarray(0, -1)],
  ['a length below a header', 'CORRUPT_MESSAGE', changed(bytes => bytes.writeInt32BE(48, 8))],
  ['a checksum that is another', 'CORRUPT_MESSAGE', changed(bytes => bytes.writeUInt32BE(7, 17))],
  ['more than the largest batch', 'MESSAGE_TOO_LARGE', of({ records: [{ value: Buffer.alloc(1_100_000) }] })],
  ['no record', 'INVALID_RECORD', of({ records: [] })],
  ['fewer records than offsets', 'INVALID_RECORD', of({ lastOffsetDelta: 2 })],
  ['more records than fit into it', 'INVALID_RECORD', of({ count: 1000 })],
  ['a control batch', 'INVALID_RECORD', of({ attributes: 0x20 })],
  ['a batch of a transaction', 'INVALID_RECORD', of({ attributes: 0x10, producerId: 1 })],
  ['a producer id without a sequence', 'INVALID_RECORD', of({ producerId: 1, sequence: -1 })],
  ['the bit that says that the broker set its times', 'INVALID_TIMESTAMP', of({ attributes: 8 })],
  ['a time beyond all numbers', 'INVALID_TIMESTAMP', of({ baseTimestamp: 2n ** 60n, maxTimestamp: 2n ** 60n })],
  ['a codec that is none', 'UNSUPPORTED_COMPRESSION_TYPE', of({ codec: 5 })],
  ['zstd in a version that does not know it', 'UNSUPPORTED_COMPRESSION_TYPE', of(zstd), 6]
]

test('each fault of a batch is refused by its code, in words since version 8, and nothing of it is written', async t => {
  const broker = await startBroker(t, { flags: { '--max-record-bytes': '1024' } })
  const api = new HttpApi(broker.url)
  await api.createTopic('t')
  const client = await connectKafka(t, broker.kafka)
  for (const [claim, error, bytes, only] of rows) {
    for (const version of only === undefined ? [3, 7, 8, 9, 11] : [only]) {
      const told = await produceBatch(client, 't', 0, bytes, version)
      assert.deepEqual([told.errorCode, told.baseOffset], [kafkaErrors[error].code, -1], `${claim}, version ${version}`)
      assert.equal((told.errorMessage ?? '') !== '', version >= 8, `${claim}, version ${version}`)
      assert.deepEqual(told.recordErrors, [], 'it is about the batch, not a record of it')
    }
  }
  assert.deepEqual(await api.ends('t'), [0])
})

test('a batch is taken as clients make it: with each codec that its version knows, any leader epoch, any base offset', async t => {
  const broker = await startBroker(t)
  const api = new HttpApi(broker.url)
  await api.createTopic('t')
  const client = await connectKafka(t, broker.kafka)
  const cases: readonly (readonly [Buffer, number])[] = [
    [whole, 3],
    [of(gzip), 3],
    [of({ codec: codecs.snappy }), 3],
    [of({ codec: codecs.lz4 }), 3],
    [of(zstd), 7],
    [of({ baseOffset: 12 }), 9],
    [placed(whole, 0, 5), 9],
    [of({ baseTimestamp: -1, maxTimestamp: -1 }), 9]
  ]
  for (const [bytes, version] of cases) {
    const told = await produceBatch(client, 't', 0, bytes, version)
    assert.deepEqual([told.errorCode, told.errorMessage], [0, null])
  }
  assert.deepEqual(await api.ends('t'), [2 * cases.length])
})

test('in one request what is zstd before its time is refused alone', async t => {
  const broker = await startBroker(t)
  await new HttpApi(broker.url).createTopic('t', 2)
  const client = await connectKafka(t, broker.kafka)
  const partitionData = [
    { index: 0, records: of(zstd) },
    { index: 1, records: whole }
  ]
  const answer = await client.call(apis.produce, 5, {
    acks: 1,
    timeoutMs: 1,
    topicData: [{ name: 't', partitionData }]
  })
  const codes = answer.responses[0]?.partitionResponses.map(({ errorCode }) => errorCode)
  assert.deepEqual(codes, [kafkaErrors.UNSUPPORTED_COMPRESSION_TYPE.code, 0])
})

test('acks 0 with a batch that is refused ends the connection, as there is no other way to say it', async t => {
  const broker = await startBroker(t)
  await new HttpApi(broker.url).createTopic('t')
  const client = await connectKafka(t, broker.kafka)
  client.send(apis.produce, 6, produceBody('t', 0, of(zstd), 0))
  await client.closed()
})

test('what came with a produce of acks 0 that fails is answered before the connection ends', async t => {
  const broker = await startBroker(t)
  const client = await connectKafka(t, broker.kafka)
  // In one chunk, so that both are taken before either is answered.
  client.socket.cork()
  client.send(apis.produce, 7, produceBody('missing', 0, of(gzip), 0))
  const behind = client.send(apis.apiVersions, 2, {})
  client.socket.uncork()
  assert.equal((await client.next())?.correlationId, behind)
  await client.closed()
})

test('no fetch has null for records, whatever became of its partition', async t => {
  const broker = await startBroker(t)
  await new HttpApi(broker.url).createTopic('t')
  const client = await connectKafka(t, broker.kafka)
  for (const version of [4, 11, 12]) {
    const partitions = await fetchPartitions(client, 't', { 0: 0, 1: 0 }, { version })
    const other = await fetchPartitions(client, 'missing', { 0: 0 }, { version })
    for (const { records: bytes } of [...partitions, ...other]) assert.equal(bytes?.length, 0)
  }
})
