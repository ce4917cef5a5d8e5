/**
 * What a key and a value mean to whoever reads them, whoever wrote them: null, empty and absent over every pair of
 * protocols, headers, times; and that to compaction null alone is a tombstone (decision 26 of the specification).
 */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { BatchRecords } from '../../src/wire/batch/records.ts'
import { HeaderCursor } from '../../src/wire/batch/headers.ts'
import { BatchView } from '../../src/wire/batch/view.ts'
import { startBroker, type TestBroker } from '../support/broker.ts'
import { clientBatch, gzip } from '../support/client-batches.ts'
import { openClient, readAll } from '../support/es01-session.ts'
import { HttpApi } from '../support/http-api.ts'
import { produceBatch } from '../support/kafka-calls.ts'
import { connectKafka } from '../support/kafka-client.ts'
import { fetchBatches } from '../support/kafka-contents.ts'

type Text = string | null
type Headers = readonly (readonly [string, Text])[]

/** A record as it is stored. undefined: nothing was said of it, which is null. */
interface Written {
  readonly key?: Text
  readonly value: Text
  readonly headers?: Headers
}

interface Read {
  readonly key: Text
  readonly value: Text
  /** null: the protocol does not show them. */
  readonly headers: Headers | null
  readonly timestampMs: number
}

interface Protocol {
  /** What of that it can say at all. */
  readonly canWrite: (record: Written) => boolean
  /** To partition 0, in order. */
  readonly write: (broker: TestBroker, t: TestContext, records: readonly Written[]) => Promise<void>
  readonly read: (broker: TestBroker, t: TestContext) => Promise<readonly Read[]>
  /** What it shows of a value that is stored as null, and of headers. */
  readonly nullValue: Text
  readonly hasHeaders: boolean
}

/** Of the batches of Kafka's client. */
const TIME_MS = 1_700_000_000_000

/** The empty text that HTTP and ES01 write is stored as null. */
const asText = ({ key, value, headers }: Written) => ({
  ...(key !== undefined && { key }),
  value: value ?? '',
  ...(headers !== undefined && { headers })
})

const protocols: Readonly<Record<string, Protocol>> = {
  http: {
    canWrite: ({ value }) => value !== '',
    async write(broker, _, records) {
      const rows = records.map(record => ({ ...asText(record), partition: 0 }))
      await new HttpApi(broker.url).produce('t', rows)
    },
    async read(broker) {
      const records = await new HttpApi(broker.url).consumeAll('t', 0)
      return records.map(({ key, value, headers = [], timestamp_ms: timestampMs }) => ({
        key,
        value,
        headers,
        timestampMs
      }))
    },
    nullValue: '',
    hasHeaders: true
  },
  es01: {
    canWrite: ({ value, headers }) => value !== '' && headers === undefined,
    async write(broker, t, records) {
      const client = await openClient(t, broker.es01)
      await client.produce(
        't',
        records.map(record => ({ ...asText(record), partition: 0 }))
      )
    },
    async read(broker, t) {
      const records = await readAll(await openClient(t, broker.es01), 't', 0)
      return records.map(({ key, value, timestampMs }) => {
        return { key: key === null ? null : key.toString(), value: value.toString(), headers: null, timestampMs }
      })
    },
    nullValue: '',
    hasHeaders: false
  },
  kafka: {
    canWrite: () => true,
    async write(broker, t, records) {
      const client = await connectKafka(t, broker.kafka)
      const half = Math.ceil(records.length / 2)
      for (const [i, part] of [records.slice(0, half), records.slice(half)].entries()) {
        if (part.length === 0) continue
        const timed = part.map((record, delta) => ({ ...record, timestampDelta: i * half + delta }))
        const batch = clientBatch({ records: timed, baseTimestamp: TIME_MS, ...(i === 0 ? {} : gzip) })
        assert.equal((await produceBatch(client, 't', 0, batch)).errorCode, 0)
      }
    },
    async read(broker, t) {
      return (await fetchBatches(await connectKafka(t, broker.kafka), 't', 0)).flatMap(readBatch)
    },
    nullValue: null,
    hasHeaders: true
  }
}

/** The records of a batch, null and all. */
function readBatch(batch: Buffer): Read[] {
  const [view, records, header] = [new BatchView(), new BatchRecords(), new HeaderCursor()]
  view.open(batch, 0, batch.length)
  records.open(batch, view)
  const { cursor, bytes } = records
  const textAt = (start: number, length: number): Text =>
    length < 0 ? null : bytes.toString('utf8', start, start + length)
  const read: Read[] = []
  while (cursor.next()) {
    header.open(bytes, cursor.headersStart, cursor.headersEnd, cursor.headerCount)
    const headers: [string, Text][] = []
    while (header.next())
      headers.push([textAt(header.nameStart, header.nameLength) ?? '', textAt(header.valueStart, header.valueLength)])
    const [key, value] = [textAt(cursor.keyStart, cursor.keyLength), textAt(cursor.valueStart, cursor.valueLength)]
    read.push({ key, value, headers, timestampMs: view.baseTimestampMs + cursor.timestampDeltaMs })
  }
  assert.equal(cursor.status, 0)
  return read
}

const keys = {
  'no key': undefined,
  'a null key': null,
  'an empty key': '',
  'a key': 'k',
  'a key of other letters': 'ключ'
}
const values = { null: null, empty: '', 'a value': 'v', 'a value of other letters': '値' }
const headerLists: Readonly<Record<string, Headers | undefined>> = {
  'no headers': undefined,
  'a header': [['name', 'value']],
  'a null and an empty header': [
    ['null', null],
    ['empty', '']
  ],
  'a header twice': [
    ['twice', '1'],
    ['other', null],
    ['twice', '2'],
    ['twice', '1']
  ]
}

const cases: readonly { readonly name: string; readonly record: Written }[] = Object.entries(keys).flatMap(([k, key]) =>
  Object.entries(values).flatMap(([v, value]) =>
    Object.entries(headerLists).map(([h, headers]) => {
      const record = { value, ...(key !== undefined && { key }), ...(headers !== undefined && { headers }) }
      return { name: `${k}, ${v}, ${h}`, record }
    })
  )
)

for (const [writer, { canWrite, write }] of Object.entries(protocols)) {
  test(`what ${writer} writes means the same to all who read it`, async t => {
    const broker = await startBroker(t)
    await new HttpApi(broker.url).createTopic('t')
    const written = cases.filter(({ record }) => canWrite(record))
    assert.ok(written.length >= 15)
    await write(
      broker,
      t,
      written.map(({ record }) => record)
    )
    const times: number[][] = []
    for (const [reader, { read, nullValue, hasHeaders }] of Object.entries(protocols)) {
      const got = await read(broker, t)
      assert.equal(got.length, written.length)
      for (const [i, { name, record }] of written.entries()) {
        const { key = null, value, headers = [] } = record
        const { timestampMs: _, ...meaning } = got[i] as Read
        const expected = { key, value: value ?? nullValue, headers: hasHeaders ? headers : null }
        assert.deepEqual(meaning, expected, `${name}, read over ${reader}`)
      }
      times.push(got.map(({ timestampMs }) => timestampMs))
    }
    const [first] = times
    for (const other of times) assert.deepEqual(other, first, 'times are the same to all')
    if (writer === 'kafka')
      assert.deepEqual(
        first,
        written.map((_, i) => TIME_MS + i)
      )
    else
      assert.ok(
        first?.every(time => time > TIME_MS),
        "times are of the broker's clock"
      )
  })
}

test('to compaction null is a tombstone, whoever wrote it, and an empty value is a value like any other', async t => {
  const broker = await startBroker(t, { flags: { '--segment-delete-grace': '10ms' } })
  const api = new HttpApi(broker.url)
  await api.createTopic('t', 1, { cleanup_policy: 'compact', segment_bytes: 1000, tombstone_retention_ms: 0 })
  const names = Object.keys(protocols)
  const gone = names.map(name => `gone by ${name}`)
  const all = [...gone, '', 'emptied', 'changed']
  await api.produce(
    't',
    all.map(key => ({ key, value: 'first', partition: 0 }))
  )
  for (const [i, name] of names.entries())
    await (protocols[name] as Protocol).write(broker, t, [{ key: gone[i] as string, value: null }])
  const { write } = protocols['kafka'] as Protocol
  await write(broker, t, [
    { key: 'emptied', value: '' },
    { key: '', value: '' },
    { key: 'changed', value: 'last' }
  ])
  // What seals the segments of all of that.
  for (let i = 0; i < 4; i++) await api.produce('t', [{ key: `filler ${i}`, value: 'x'.repeat(900), partition: 0 }])
  assert.equal((await api.post('/admin/run-compaction', '')).status, 204)
  const left = (await api.consumeAll('t', 0)).filter(({ key }) => !key?.startsWith('filler'))
  assert.deepEqual(
    left.map(({ key, value }) => [key, value]),
    [
      ['emptied', ''],
      ['', ''],
      ['changed', 'last']
    ]
  )
})
