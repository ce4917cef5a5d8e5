/** Batches of a few KiB that a Kafka client sent, with records of 32 MiB in them: what the readers of each protocol are answered. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { unpack } from 'msgpackr'
import { silentLogger } from '../../src/base/logger.ts'
import type { Es01Client } from '../../src/client/es01/client.ts'
import { limits } from '../../src/model/limits.ts'
import { startBroker, type TestBroker } from '../support/broker.ts'
import { clientBatch, gzip, placed, splitBatches, zstd } from '../support/client-batches.ts'
import { openClient } from '../support/es01-session.ts'
import { openStream } from '../support/event-stream.ts'
import { HttpApi, type ReadAnswer, type ReadRecord } from '../support/http-api.ts'
import { fetchPartitions, produceBatch } from '../support/kafka-calls.ts'
import { connectKafka, type KafkaClient } from '../support/kafka-client.ts'

const MAX_RECORD_BYTES = 256 * 1024
const MAX_BYTES = 1024 * 1024
/** JSON has six bytes for one at most; without the bound an answer had 200 MB. */
const ANSWER_BYTES_MAX = MAX_BYTES + 6 * (MAX_RECORD_BYTES + limits.batchSurplusBytes) + 1000
const bomb = { value: Buffer.alloc(32 * 1024 * 1024) }
const half = { value: Buffer.alloc(15 * 1024 * 1024) }
/** Larger than HTTP takes one, and as large as a batch without compression may be. */
const large = {
  value: Buffer.alloc(MAX_RECORD_BYTES + limits.batchSurplusBytes)
}
const within = { value: 'within' }

interface Stage {
  readonly broker: TestBroker
  readonly api: HttpApi
  readonly kafka: KafkaClient
  readonly binary: Es01Client
  readonly warnings: object[]
}

/** Topic t has: before, a bomb, a bomb, within, a bomb, large, within, behind. */
async function stage(t: TestContext): Promise<Stage> {
  const warnings: object[] = []
  const warn = (fields: object, message: string): void => void warnings.push({ ...fields, message })
  const flags = { '--max-record-bytes': String(MAX_RECORD_BYTES) }
  const broker = await startBroker(t, {
    flags,
    logger: { ...silentLogger, warn }
  })
  const api = new HttpApi(broker.url)
  const kafka = await connectKafka(t, broker.kafka)
  await api.createTopic('t', 1)
  await api.produce('t', [{ value: 'before' }])
  for (const batch of bombs) {
    assert.ok(batch.length < 64 * 1024)
    assert.equal((await produceBatch(kafka, 't', 0, batch)).errorCode, 0)
  }
  await api.produce('t', [{ value: 'behind' }])
  return {
    broker,
    api,
    kafka,
    binary: await openClient(t, broker.es01),
    warnings
  }
}

const bombs = [
  clientBatch({ records: [bomb], ...gzip }),
  clientBatch({ records: [half, within, half, large, within], ...zstd })
]
const answered = [0, 3, 5, 6, 7]
const latest = 8
const passedOver = [
  { requested: 1, earliest: 3, latest },
  { requested: 4, earliest: 5, latest }
]

/** Reads from 0 to the end. @returns records and what was passed over. */
async function readAll(
  url: string,
  accept: string,
  decode: (body: Buffer) => ReadAnswer
): Promise<{ records: ReadRecord[]; skipped: unknown[] }> {
  const records: ReadRecord[] = []
  const skipped: unknown[] = []
  for (let offset = 0; offset < latest;) {
    const response = await fetch(`${url}&offset=${offset}&max_bytes=${MAX_BYTES}`, { headers: { accept } })
    assert.equal(response.status, 200)
    const body = Buffer.from(await response.arrayBuffer())
    assert.ok(body.length <= ANSWER_BYTES_MAX, `${body.length} bytes`)
    const answer = decode(body)
    records.push(...answer.records)
    if (answer.skipped !== undefined) skipped.push(answer.skipped)
    assert.ok(Number(answer.next_offset) > offset, 'a read before the end moves on')
    offset = Number(answer.next_offset)
  }
  return { records, skipped }
}

test('records of 32 MiB in batches of a few KiB', { timeout: 120_000 }, async t => {
  const { broker, api, kafka, binary, warnings } = await stage(t)
  const url = `${broker.url}/topics/t/consume?partition=0`
  const json = (body: Buffer): ReadAnswer => JSON.parse(String(body)) as ReadAnswer

  await t.test(
    'are passed over in JSON and MessagePack, which say so, and those around them are answered',
    async () => {
      const reads = [
        readAll(url, 'application/json', json),
        readAll(`${url}&encoding=base64`, 'application/json', json),
        readAll(url, 'application/msgpack', body => unpack(body) as ReadAnswer)
      ]
      for (const { records, skipped } of await Promise.all(reads)) {
        assert.deepEqual(
          records.map(({ offset }) => Number(offset)),
          answered
        )
        assert.deepEqual(skipped, passedOver)
      }
    }
  )
  await t.test('are passed over in a stream of events, by an event for each gap', async () => {
    const stream = await openStream(t, `${broker.url}/topics/t/stream?partition=0&offset=0`)
    const records = await stream.untilRecords(answered.length)
    assert.deepEqual(
      records.map(({ offset }) => offset),
      answered
    )
    const told = stream.ofType('skipped').map(({ data }) => JSON.parse(data) as unknown)
    assert.deepEqual(
      told,
      passedOver.map(skipped => ({ partition: 0, ...skipped }))
    )
    assert.ok(stream.text.length <= ANSWER_BYTES_MAX)
    stream.close()
  })
  await t.test('are refused over ES01 with the offset at which to go on', async () => {
    const read = (offset: number): ReturnType<Es01Client['consume']> =>
      binary.consume({
        topic: 't',
        partition: 0,
        offset,
        maxRecords: 10,
        maxBytes: MAX_BYTES
      })
    const offsets: number[] = []
    for (const from of [0, 3, 5, 6]) {
      const { records } = await read(from)
      offsets.push(...records.map(({ offset }) => offset))
      const bytes = records.reduce((sum, { value }) => sum + value.length, 0)
      assert.ok(bytes <= MAX_BYTES + MAX_RECORD_BYTES + limits.batchSurplusBytes, `${bytes} bytes`)
    }
    assert.deepEqual([...new Set(offsets)], answered)
    await assert.rejects(read(1), /offsets 1 to 1 of partition 0 .*the next readable offset is 2/)
    await assert.rejects(read(2), /offsets 2 to 2 of partition 0 .*the next readable offset is 3/)
    await assert.rejects(read(4), /offsets 4 to 4 of partition 0 .*the next readable offset is 5/)
  })
  await t.test('are what they were for readers of whole batches', async () => {
    const [partition] = await fetchPartitions(kafka, 't', { 0: 1 })
    const stored = splitBatches(partition?.records ?? Buffer.alloc(0))
    assert.deepEqual(stored.slice(0, 2), [placed(bombs[0] as Buffer, 1), placed(bombs[1] as Buffer, 2)])
  })
  await t.test('are told to the operator once', () => {
    const message = 'records larger than a record may be are passed over: a client sent them compressed'
    assert.deepEqual(
      warnings.map(({ message: text, topic }: { message?: string; topic?: string }) => [text, topic]),
      [[message, 't']]
    )
  })
  await t.test('keep twelve readers and a producer from nothing', async () => {
    const reads = Array.from({ length: 12 }, () => api.consume('t', 0, `offset=1&max_bytes=${MAX_BYTES}`))
    const [result] = await api.produce('t', [{ value: 'meanwhile' }])
    assert.equal(result?.offset, latest)
    for (const { records, skipped } of await Promise.all(reads))
      assert.deepEqual([records[0]?.offset, skipped?.earliest], [3, 3])
  })
})
