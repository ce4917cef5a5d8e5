/** Produce over HTTP in every form: records with headers, base64, MessagePack; what is stored is what was sent. */
import assert from 'node:assert/strict'
import { pack, unpack } from 'msgpackr'
import { startBroker } from '../support/broker.ts'
import { HttpApi, assertRefused, onBothEngines, onEveryVariant, parse, type HttpAnswer } from '../support/http-api.ts'
import { chosenSeed, diceOf, replayLine, type Dice } from '../support/log-random.ts'

const FILE = 'test/integration/record-forms.test.ts'
const packed = { 'content-type': 'application/msgpack' }

interface Sent {
  readonly key: Buffer | null
  readonly value: Buffer
  readonly headers: readonly (readonly [string, Buffer | null])[]
  readonly partition: number
}

/** A record of a consume with `encoding=base64`. */
interface Read {
  readonly key: string | null
  readonly value: string
  readonly headers?: readonly (readonly [string, string | null])[]
}

/** Records of which about half have headers: equal names, null, nothing, bytes that are no text. */
function drawRecords(dice: Dice, count: number, partitions: number): Sent[] {
  const header = (): readonly [string, Buffer | null] => [
    dice.pick(['trace', 'ü', 'content-type']),
    dice.chance(0.2) ? null : dice.bytes(dice.pick([0, 1, 70]))
  ]
  return Array.from({ length: count }, () => ({
    key: dice.chance(0.3) ? null : dice.bytes(dice.pick([0, 1, 30])),
    value: dice.bytes(dice.pick([1, 2, 3, 200])),
    headers: Array.from({ length: dice.chance(0.5) ? 0 : dice.below(5) }, header),
    partition: dice.below(partitions)
  }))
}

type FormName = 'base64' | 'msgpack'

/** The same records as a body of each form that keeps bytes. */
const bodies: Readonly<Record<FormName, (fields: object, records: readonly Sent[]) => string | Buffer>> = {
  base64: (fields, records) => {
    const text = (bytes: Buffer | null): string | null => bytes?.toString('base64') ?? null
    const rows = records.map(({ key, value, headers, partition, ...rest }) => ({
      ...rest,
      key: text(key),
      value: text(value),
      headers: headers.map(([name, bytes]) => [name, text(bytes)]),
      partition
    }))
    return JSON.stringify({ records: rows, ...fields, encoding: 'base64' })
  },
  msgpack: (fields, records) => pack({ ...fields, records })
}

function send(api: HttpApi, topic: string, form: FormName, records: readonly Sent[], fields = {}): Promise<HttpAnswer> {
  const body = bodies[form](fields, records)
  const path = `/topics/${topic}/produce`
  return form === 'msgpack' ? api.call('POST', path, body, packed) : api.call('POST', path, body)
}

/** All that a partition has, as it was sent. */
async function readAll(api: HttpApi, topic: string, partition: number): Promise<Omit<Sent, 'partition'>[]> {
  const bytesOf = (text: string | null): Buffer | null => (text === null ? null : Buffer.from(text, 'base64'))
  const found: Omit<Sent, 'partition'>[] = []
  for (let offset = 0; ;) {
    const query = `partition=${partition}&offset=${offset}&encoding=base64&max_records=10000&max_bytes=8388608`
    const answer = parse<{ records: Read[]; next_offset: number; high_watermark: number }>(
      await api.get(`/topics/${topic}/consume?${query}`)
    )
    for (const { key, value, headers = [] } of answer.records) {
      const pairs = headers.map(([name, text]) => [name, bytesOf(text)] as const)
      found.push({ key: bytesOf(key), value: Buffer.from(value, 'base64'), headers: pairs })
    }
    if (answer.next_offset >= answer.high_watermark) return found
    offset = answer.next_offset
  }
}

const of = (records: readonly Sent[], partition: number): Omit<Sent, 'partition'>[] =>
  records.filter(record => record.partition === partition).map(({ partition: _, ...record }) => record)

onEveryVariant('records of any bytes, with headers', async (t, api) => {
  for (const form of ['base64', 'msgpack'] as const) {
    await t.test(`sent as ${form} come back as they were, over several partitions`, async t => {
      const seed = chosenSeed()
      t.diagnostic(replayLine(seed, FILE))
      const records = drawRecords(diceOf(seed), 500, 4)
      await api.createTopic(form, 4)
      const { results } = parse<{ results: { partition: number; offset: number }[] }>(
        await send(api, form, form, records)
      )
      const next = [0, 0, 0, 0]
      assert.deepEqual(
        results,
        records.map(({ partition }) => ({ partition, offset: next[partition]!++ }))
      )
      for (const partition of [0, 1, 2, 3]) {
        assert.deepEqual(await readAll(api, form, partition), of(records, partition), replayLine(seed, FILE))
      }
    })

    await t.test(`sent as ${form} in a body that another thread scans come back as they were`, async t => {
      const seed = chosenSeed()
      t.diagnostic(replayLine(seed, FILE))
      const records = drawRecords(diceOf(seed), 6000, 2)
      assert.ok(bodies[form]({}, records).length > 512 * 1024)
      await api.createTopic(`${form}-large`, 2)
      parse(await send(api, `${form}-large`, form, records))
      for (const partition of [0, 1]) {
        assert.deepEqual(await readAll(api, `${form}-large`, partition), of(records, partition))
      }
    })

    await t.test(`sent as ${form} with a producer id are written once, over several partitions`, async t => {
      const seed = chosenSeed()
      t.diagnostic(replayLine(seed, FILE))
      const next = [0, 0, 0, 0]
      const records = drawRecords(diceOf(seed), 40, 4).map(record => ({
        ...record,
        sequence: next[record.partition]!++
      }))
      const topic = `${form}-once`
      await api.createTopic(topic, 4)
      const fields = { producer_id: topic }
      const first = parse<{ results: object[] }>(await send(api, topic, form, records, fields)).results
      const again = parse<{ results: object[] }>(await send(api, topic, form, records, fields)).results
      assert.deepEqual(
        again,
        first.map(result => ({ ...result, duplicate: true }))
      )
      for (const partition of [0, 1, 2, 3]) {
        const expected = of(records, partition).map(({ key, value, headers }) => ({ key, value, headers }))
        assert.deepEqual(await readAll(api, topic, partition), expected)
      }
    })
  }

  await t.test('in one record that is larger than a ring takes come back as they were', async () => {
    await api.createTopic('huge')
    const record = { key: null, value: Buffer.alloc(7 * 1024 * 1024, 0xfe), headers: [['n', Buffer.alloc(1000, 1)]] }
    const records = [{ ...record, partition: 0 }, { ...record, value: Buffer.from('x'), headers: [], partition: 0 }] // prettier-ignore
    parse(await api.call('POST', '/topics/huge/produce', pack({ records }), packed))
    assert.deepEqual(await readAll(api, 'huge', 0), [record, { key: null, value: Buffer.from('x'), headers: [] }])
  })
})

onBothEngines('a produce in full', async (t, api, broker) => {
  await api.createTopic('t', 2)
  const path = '/topics/t/produce'

  await t.test('keeps headers as text too, in order, beside records that have none', async () => {
    const headers = [['b', '1'], ['a', ''], ['b', null], ['é', '€']] // prettier-ignore
    parse(await api.post(path, { records: [{ value: 'with', partition: 0, headers }, { value: 'without', partition: 0 }] })) // prettier-ignore
    const { records } = await api.consume('t', 0, 'offset=0')
    assert.deepEqual(
      records.map(record => ({ ...record, timestamp_ms: 0 })),
      [
        { partition: 0, offset: 0, timestamp_ms: 0, key: null, value: 'with', headers },
        { partition: 0, offset: 1, timestamp_ms: 0, key: null, value: 'without' }
      ]
    )
  })

  await t.test('routes a record by what its key means, not by how it is written', async () => {
    await api.createTopic('routed', 7)
    const keys = ['user-1', 'alice', '', 'ü']
    const plain = await api.produce(
      'routed',
      keys.map(key => ({ key, value: 'v' }))
    )
    const records = keys.map(key => ({ key: Buffer.from(key), value: Buffer.from('v'), headers: [] }))
    const wanted = plain.map(({ partition }) => partition)
    const base64 = records.map(({ key }) => ({ key: key.toString('base64').replaceAll('=', ''), value: '' }))
    const answers = [
      await api.call('POST', '/topics/routed/produce', JSON.stringify({ encoding: 'base64', records: base64 })),
      await api.call('POST', '/topics/routed/produce', pack({ records }), packed)
    ]
    for (const answer of answers) {
      const { results } = parse<{ results: { partition: number }[] }>(answer)
      assert.deepEqual(
        results.map(({ partition }) => partition),
        wanted
      )
    }
  })

  await t.test('is answered in MessagePack where asked, and refused in JSON all the same', async () => {
    const ask = async (body: Buffer | string, headers: Record<string, string>): Promise<[Response, Buffer]> => {
      const response = await fetch(broker.url + path, { method: 'POST', body, headers })
      return [response, Buffer.from(await response.arrayBuffer())]
    }
    const records = [{ value: 'v', partition: 1, sequence: 0 }]
    const body = { producer_id: 'p', records }
    const accept = { accept: 'application/msgpack' }
    const [plain, json] = await ask(pack(body), packed)
    assert.deepEqual([plain.status, plain.headers.get('content-type')], [200, 'application/json'])
    assert.deepEqual(JSON.parse(json.toString()), { results: [{ partition: 1, offset: 0 }] })
    for (const [sent, type] of [
      [pack(body), packed],
      [JSON.stringify(body), { 'content-type': 'application/json' }]
    ] as const) {
      // prettier-ignore
      const [response, answer] = await ask(sent, { ...type, ...accept })
      assert.deepEqual([response.status, response.headers.get('content-type')], [200, 'application/msgpack'])
      assert.deepEqual(unpack(answer), { results: [{ partition: 1, offset: 0, duplicate: true }] })
    }
    const [refused, error] = await ask(pack({ records: [{}] }), { ...packed, ...accept })
    assert.deepEqual([refused.status, refused.headers.get('content-type')], [400, 'application/json'])
    assert.match(error.toString(), /records\[0\]\.value: is missing/)
  })

  await t.test('counts header bytes as those of the record, and says so', async () => {
    const headers = [['n', 'x'.repeat(8 * 1024 * 1024 - 100)]]
    const within = { value: 'v'.repeat(50), headers }
    parse(await api.post(path, { records: [within] }))
    const over = await api.post(path, { records: [{ value: 'v' }, { ...within, value: 'v'.repeat(100) }] })
    assertRefused(over, 400, 'RECORD_TOO_LARGE', ['record 1', 'key, value and headers', 'nothing was written'])
    const plain = await api.post(path, { records: [{ value: 'v'.repeat(8 * 1024 * 1024 + 1) }] })
    assertRefused(plain, 400, 'RECORD_TOO_LARGE', ['8388609 bytes of key and value:'])
  })

  await t.test('that is wrong is refused with the field, in each form, and writes nothing', async () => {
    const ends = await api.ends('t')
    const record = { value: 'aGk=', headers: [['n', 'v']] }
    const wrong: [object, string][] = [
      [{ records: [record, { value: 'v', headers: 7 }] }, 'records[1].headers: must be an array'],
      [{ records: [{ value: 'v', headers: [['n']] }] }, 'records[0].headers[0]: must be a pair'],
      [{ records: [{ value: 'v', headers: [['', 'v']] }] }, 'records[0].headers[0][0]: has 0 bytes: allowed is 1 to 1024'],
      [{ records: [{ value: 'v', headers: Array.from({ length: 101 }, () => ['n', 'v']) }] }, 'has 101 headers: allowed is up to 100']
    ] // prettier-ignore
    for (const [body, words] of wrong) {
      assertRefused(await api.post(path, body), 400, 'FIELD_INVALID', [words])
      assertRefused(await api.call('POST', path, pack(body), packed), 400, 'FIELD_INVALID', [words])
    }
    const base64 = { records: [{ value: 'aGk=' }, { value: 'a' }], encoding: 'base64' }
    assertRefused(await api.post(path, base64), 400, 'FIELD_INVALID', ['records[1].value: must be base64'])
    assertRefused(await api.post(path, { ...base64, encoding: 'hex' }), 400, 'FIELD_INVALID', ['utf8 or base64'])
    assertRefused(await api.call('POST', path, pack(base64), packed), 400, 'FIELD_INVALID', ['encoding: is for JSON'])
    const lie = Buffer.from([0x81, 0xa7, ...Buffer.from('records'), 0xdd, 0xff, 0xff, 0xff, 0xff])
    assertRefused(await api.call('POST', path, lie, packed), 400, 'BODY_NOT_MSGPACK', ['4294967295 values'])
    assertRefused(await api.call('POST', path, '{"records":[]}', packed), 400, 'BODY_NOT_MSGPACK')
    const type = await api.call('POST', path, '{"records":[]}', { 'content-type': 'text/plain' })
    assertRefused(type, 415, 'MEDIA_TYPE', ['send application/json or application/msgpack'])
    const elsewhere = await api.call('POST', '/topics', pack({ name: 'x' }), packed)
    assertRefused(elsewhere, 415, 'MEDIA_TYPE', ['send application/json'])
    assert.deepEqual(await api.ends('t'), ends)
  })
})

onBothEngines(
  'headers outlive compaction and a restart',
  async (t, api, broker) => {
    const seed = chosenSeed()
    t.diagnostic(replayLine(seed, FILE))
    await api.createTopic('state', 1, { segment_bytes: 2000, cleanup_policy: 'compact' })
    const drawn = drawRecords(diceOf(seed), 120, 1)
    const records = drawn.map((record, i) => ({ ...record, key: Buffer.from(`k${i % 7}`) }))
    for (let i = 0; i < records.length; i += 4) parse(await send(api, 'state', 'msgpack', records.slice(i, i + 4)))
    assert.equal((await api.post('/admin/run-compaction', '')).status, 204)
    const before = await readAll(api, 'state', 0)
    assert.ok(before.length < 60, `${before.length} of 120 records are left`)
    const sent = new Set(records.map(record => JSON.stringify({ ...record, partition: 0 })))
    for (const record of before)
      assert.ok(sent.has(JSON.stringify({ ...record, partition: 0 })), replayLine(seed, FILE))
    assert.ok(before.some(({ headers }) => headers.length > 1))
    await broker.stop()
    const again = new HttpApi((await startBroker(t, { dataDir: broker.dataDir })).url)
    assert.deepEqual(await readAll(again, 'state', 0), before, replayLine(seed, FILE))
  },
  { flags: { '--segment-delete-grace': '10ms' } }
)
