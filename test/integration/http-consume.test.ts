/** Consume over HTTP (spec 5), on both engines with 1 and with 3 shards. */
import assert from 'node:assert/strict'
import { connectEs01 } from '../../src/client/es01/client.ts'
import { assertRefused, onBothEngines, onEveryVariant } from '../support/http-api.ts'

const U64_MAX = '18446744073709551615'

onEveryVariant('a read gives what was written', async (t, api, broker) => {
  await api.createTopic('letters', 3)
  const letters = Array.from({ length: 26 }, (_, i) => ({
    partition: 2,
    key: i % 2 ? `k${i}` : null,
    value: 'abcdefghij'
  }))
  for (const half of [letters.slice(0, 13), letters.slice(13)]) await api.produce('letters', half)

  await t.test('in order, with key, time, and where to go on', async () => {
    const earliest = Date.now() - 60_000
    const answer = await api.consume('letters', 2, 'offset=10&max_records=5')
    assert.deepEqual([answer.next_offset, answer.high_watermark, answer.encoding], [15, 26, undefined])
    assert.deepEqual(
      answer.records.map(({ partition, offset, key, value }) => ({ partition, offset, key, value })),
      letters.slice(10, 15).map((record, i) => ({ partition: 2, offset: 10 + i, key: record.key, value: record.value }))
    )
    for (const { timestamp_ms: ms } of answer.records) assert.ok(ms > earliest && ms <= Date.now() + 1000, String(ms))
  })

  await t.test('100 records unless it says otherwise', async () => {
    await api.createTopic('default')
    await api.produce(
      'default',
      Array.from({ length: 150 }, () => ({ value: '' }))
    )
    const answer = await api.consume('default', 0, 'offset=0')
    assert.deepEqual([answer.records.length, answer.next_offset, answer.high_watermark], [100, 100, 150])
  })

  await t.test('at least one record, whatever max_bytes and max_records say', async () => {
    for (const query of ['max_records=0', 'max_bytes=0', 'max_records=0&max_bytes=0', 'max_bytes=1', 'max_bytes=3']) {
      const answer = await api.consume('letters', 2, `offset=4&${query}`)
      assert.deepEqual([answer.records.map(record => record.offset), answer.next_offset], [[4], 5], query)
    }
  })

  await t.test('up to max_bytes, and without the record that would pass it', async () => {
    await api.createTopic('sized')
    await api.produce(
      'sized',
      Array.from({ length: 10 }, () => ({ value: 'v'.repeat(300) }))
    )
    for (const maxBytes of [1, 1_000, 2_000, 3_000, 4_000]) {
      const { records } = await api.consume('sized', 0, `offset=0&max_bytes=${maxBytes}`)
      assert.ok(records.length >= 1)
      assert.ok(records.length === 1 || records.length * 332 <= maxBytes, `${records.length} records for ${maxBytes}`)
    }
    const [two, all] = await Promise.all([
      api.consume('sized', 0, 'offset=0&max_bytes=1000'),
      api.consume('sized', 0, 'offset=0&max_bytes=8388608')
    ])
    assert.equal(two.records.length, 2)
    assert.equal(all.records.length, 10)
  })

  await t.test('a record larger than max_bytes comes alone and whole', async () => {
    await api.createTopic('huge')
    const huge = 'h'.repeat(3_000_000)
    await api.produce('huge', [{ value: 'small' }, { value: huge }, { value: 'small' }])
    const answer = await api.consume('huge', 0, 'offset=1&max_bytes=1000')
    assert.deepEqual([answer.records.map(record => record.value.length), answer.next_offset], [[3_000_000], 2])
    assert.ok(answer.records[0]?.value === huge)
    const before = await api.consume('huge', 0, 'offset=0&max_bytes=1000')
    assert.deepEqual([before.records.map(record => record.value), before.next_offset], [['small'], 1])
  })

  await t.test('limits above the ceiling are brought down to it, silently', async () => {
    const answer = await api.consume('letters', 2, `offset=0&max_records=${U64_MAX}&max_bytes=${U64_MAX}`)
    assert.equal(answer.records.length, 26)
  })

  await t.test('nothing at or beyond the end: the offset asked for comes back digit for digit', async () => {
    for (const offset of [
      '26',
      '27',
      '9007199254740991',
      '9007199254740992',
      '9007199254740993',
      '9223372036854775808',
      U64_MAX
    ]) {
      const answer = await api.get(`/topics/letters/consume?partition=2&offset=${offset}`)
      assert.deepEqual(
        [answer.status, answer.text],
        [200, `{"records":[],"next_offset":${offset},"high_watermark":26}`]
      )
    }
    const empty = await api.get(`/topics/letters/consume?partition=0&offset=${U64_MAX}&encoding=base64`)
    assert.equal(empty.text, `{"records":[],"next_offset":${U64_MAX},"high_watermark":0,"encoding":"base64"}`)
  })

  await t.test('bytes that are no text: U+FFFD in utf8, exact in base64', async () => {
    await api.createTopic('bytes')
    const values = [
      Buffer.from([0xff, 0x00, 0xfe]),
      Buffer.from([0x61, 0xc3]),
      Buffer.from('é"\n', 'utf8'),
      Buffer.alloc(0)
    ]
    const client = await connectEs01(broker.es01)
    await client.produce(
      'bytes',
      values.map(value => ({ key: value, value, partition: 0 }))
    )
    await client.close()
    const text = await api.consume('bytes', 0, 'offset=0&encoding=utf-8')
    assert.deepEqual(
      text.records.map(({ key, value }) => [key, value]),
      [
        ['\ufffd\u0000\ufffd', '\ufffd\u0000\ufffd'],
        ['a\ufffd', 'a\ufffd'],
        ['é"\n', 'é"\n'],
        ['', '']
      ]
    )
    const exact = await api.consume('bytes', 0, 'offset=0&encoding=base64')
    assert.equal(exact.encoding, 'base64')
    assert.deepEqual(
      exact.records.map(({ key, value }) => [key, value]),
      values.map(value => [value.toString('base64'), value.toString('base64')])
    )
  })

  await t.test('a key that is absent is null, in both encodings', async () => {
    for (const encoding of ['utf8', 'base64']) {
      const { records } = await api.consume('letters', 2, `offset=0&max_records=1&encoding=${encoding}`)
      assert.equal(records[0]?.key, null)
    }
  })
})

onBothEngines('a read in steps meets every record once', async (t, api) => {
  await api.createTopic('steps', 2, { segment_bytes: 4_096 })
  const values = Array.from({ length: 600 }, (_, i) => `${i}:${'x'.repeat(i % 97)}`)
  for (let from = 0; from < values.length; from += 60) {
    await api.produce(
      'steps',
      values.slice(from, from + 60).map(value => ({ partition: 1, value }))
    )
  }
  assert.ok(((await api.describe('steps')).partitions[1]?.segment_count ?? 0) > 5, 'the test crosses segments')
  for (const query of ['max_records=1', 'max_records=7', 'max_bytes=700', 'max_records=10000&max_bytes=8388608']) {
    await t.test(`with ${query}`, async () => {
      const read: string[] = []
      for (let offset = 0; offset < values.length;) {
        const answer = await api.consume('steps', 1, `offset=${offset}&${query}`)
        assert.equal(answer.high_watermark, 600)
        assert.equal(answer.records[0]?.offset, offset)
        assert.equal(answer.next_offset, (answer.records.at(-1)?.offset ?? -1) + 1)
        read.push(...answer.records.map(record => record.value))
        offset = answer.next_offset
      }
      assert.deepEqual(read, values)
    })
  }
})

onBothEngines(
  'a read that cannot be carried out is refused with its field and value',
  async (t, api) => {
    await api.createTopic('there', 2)
    const path = (query: string, topic = 'there') => api.get(`/topics/${topic}/consume?${query}`)
    const refusals: readonly (readonly [string, string, readonly (string | number)[]])[] = [
      ['partition=2&offset=0', 'PARTITION_RANGE', ['partition 2', 'out of range', 'there', '2 partition']],
      ['partition=4294967295&offset=0', 'PARTITION_RANGE', [4_294_967_295]],
      ['partition=4294967296&offset=0', 'FIELD_INVALID', ['partition', 4_294_967_295]],
      ['partition=-1&offset=0', 'FIELD_INVALID', ['partition']],
      ['partition=x&offset=0', 'FIELD_INVALID', ['partition']],
      ['partition=&offset=0', 'FIELD_INVALID', ['partition']],
      ['offset=0', 'FIELD_INVALID', ['partition', 'missing']],
      ['partition=0', 'FIELD_INVALID', ['offset', 'missing']],
      ['partition=0&offset=-1', 'FIELD_INVALID', ['offset', U64_MAX]],
      ['partition=0&offset=1.5', 'FIELD_INVALID', ['offset']],
      ['partition=0&offset=18446744073709551616', 'FIELD_INVALID', ['offset', U64_MAX]],
      ['partition=0&offset=0&max_records=-1', 'FIELD_INVALID', ['max_records']],
      ['partition=0&offset=0&max_bytes=1k', 'FIELD_INVALID', ['max_bytes']],
      ['partition=0&offset=0&encoding=hex', 'FIELD_INVALID', ['encoding', 'utf8', 'base64']],
      ['partition=0&partition=1&offset=0', 'FIELD_INVALID', ['partition', 'twice']],
      ['partition=%zz&offset=0', 'FIELD_INVALID', ['partition']]
    ]
    for (const [query, code, fragments] of refusals) {
      await t.test(query, async () => assertRefused(await path(query), 400, code, fragments))
    }
    await t.test('an encoding is judged before the topic, the topic before the partition', async () => {
      assertRefused(await path('partition=0&offset=0&encoding=hex', 'none'), 400, 'FIELD_INVALID', ['encoding'])
      assertRefused(await path('partition=99&offset=0', 'none'), 404, 'TOPIC_NOT_FOUND', ['none'])
    })
    await t.test('what it does not know is ignored', async () => {
      assert.equal((await path('partition=0&offset=0&color=red')).status, 200)
    })
    await t.test('the ceilings are the settings', async () => {
      await api.produce(
        'there',
        Array.from({ length: 9 }, () => ({ partition: 1, value: 'v'.repeat(100) }))
      )
      const byRecords = await api.consume('there', 1, 'offset=0&max_records=100&max_bytes=100000')
      assert.equal(byRecords.records.length, 4)
    })
  },
  { flags: { '--max-fetch-records': '4' } }
)
