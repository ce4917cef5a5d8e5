/** Produce over HTTP (spec 4): where records go, what is refused, and that a refusal writes nothing. */
import assert from 'node:assert/strict'
import { request } from 'node:http'
import {
  HttpApi,
  assertRefused,
  onBothEngines,
  onEveryVariant,
  parse,
  type HttpAnswer,
  type Result
} from '../support/http-api.ts'

const MAX_RECORD = 10_000
const MAX_BODY = 200_000
const smallLimits = { '--max-record-bytes': String(MAX_RECORD), '--max-request-body-bytes': String(MAX_BODY) }

onEveryVariant('records go where the specification says', async (t, api) => {
  await t.test('a key goes to its hash modulo the number of partitions', async () => {
    const expected: Readonly<Record<number, readonly number[]>> = {
      2: [0, 1, 1, 1, 0, 1],
      3: [2, 2, 2, 2, 0, 2],
      4: [0, 1, 1, 3, 0, 1],
      8: [4, 5, 1, 7, 4, 5]
    }
    for (const [count, partitions] of Object.entries(expected)) {
      await api.createTopic(`keys-${count}`, Number(count))
      const keys = ['user-1', 'user-2', 'k1', 'alice', 'bob', '']
      const results = await api.produce(
        `keys-${count}`,
        keys.map(key => ({ key, value: key }))
      )
      assert.deepEqual(
        results.map(result => result.partition),
        partitions,
        `modulo ${count}`
      )
    }
  })

  await t.test('only records without key and partition take turns, across requests', async () => {
    await api.createTopic('turns', 3)
    const first = await api.produce('turns', [
      { value: 'turn 0' },
      { value: 'pinned', partition: 2 },
      { key: 'bob', value: 'keyed' },
      { key: null, value: 'turn 1' },
      { key: 'bob', value: 'pinned against its key', partition: 1 }
    ])
    assert.deepEqual(
      first.map(result => result.partition),
      [0, 2, 0, 1, 1]
    )
    const second = await api.produce('turns', [{ value: 'turn 2' }, { value: 'turn 0 again' }])
    assert.deepEqual(
      second.map(result => result.partition),
      [2, 0]
    )
  })

  await t.test('a refused request takes no turn', async () => {
    await api.createTopic('patient', 3)
    const refused = await api.post('/topics/patient/produce', {
      records: [{ value: 'a' }, { value: 'b', partition: 3 }]
    })
    assertRefused(refused, 400, 'PARTITION_RANGE')
    assert.deepEqual(
      (await api.produce('patient', [{ value: 'first' }])).map(result => result.partition),
      [0]
    )
  })

  await t.test('results come in the order of the request, and each partition counts from 0 without a gap', async () => {
    await api.createTopic('orderly', 4)
    const records = Array.from({ length: 200 }, (_, i) => ({ partition: (i * 7) % 4, key: `k${i}`, value: `v${i}` }))
    const results = await api.produce('orderly', records)
    const next = [0, 0, 0, 0]
    const expected = records.map(({ partition }) => ({ partition, offset: next[partition]!++ }))
    assert.deepEqual(results, expected)
    for (const partition of [0, 1, 2, 3]) {
      const read = await api.consumeAll('orderly', partition)
      assert.deepEqual(
        read.map(({ offset, key, value }) => ({ offset, key, value })),
        records
          .filter(record => record.partition === partition)
          .map(({ key, value }, offset) => ({ offset, key, value }))
      )
      assert.equal(new Set(read.map(record => record.timestamp_ms)).size, 1, 'one request has one time in a partition')
    }
  })

  await t.test('records of one request stay together while many write to the partition', async () => {
    await api.createTopic('crowd', 2)
    const requests = Array.from({ length: 24 }, (_, writer) =>
      Array.from({ length: 20 }, (_, i) => ({ partition: i % 2, value: `${writer}.${i}` }))
    )
    const all = await Promise.all(requests.map(records => api.produce('crowd', records)))
    for (const results of all) {
      for (const partition of [0, 1]) {
        const offsets = results.filter(result => result.partition === partition).map(result => result.offset)
        assert.deepEqual(
          offsets,
          Array.from({ length: 10 }, (_, i) => (offsets[0] ?? 0) + i)
        )
      }
    }
    for (const partition of [0, 1]) {
      const read = await api.consumeAll('crowd', partition)
      assert.deepEqual(
        read.map(record => record.offset),
        Array.from({ length: 240 }, (_, i) => i)
      )
      for (const { offset, value } of read) {
        const [writer = -1, index = -1] = value.split('.').map(Number)
        assert.equal(all[writer]?.[index]?.offset, offset)
      }
    }
  })

  await t.test('any text comes back as it was sent', async () => {
    await api.createTopic('texts')
    const values = [
      '',
      '\u0000\u001f"\\/\b\f\n\r\t',
      'Größe 漢字 😀',
      '\u2028\u2029\ufffd',
      '{"a":[1,2]}',
      ' '.repeat(70_000)
    ]
    await api.produce(
      'texts',
      values.map(value => ({ key: value.slice(0, 20), value }))
    )
    const read = await api.consumeAll('texts', 0)
    assert.deepEqual(
      read.map(({ key, value }) => [key, value]),
      values.map(value => [value.slice(0, 20), value])
    )
  })

  await t.test('100,000 records are one request', async () => {
    await api.createTopic('many', 4)
    const body = `{"records":[${'{"value":""},'.repeat(99_999)}{"value":""}]}`
    const { results } = parse<{ results: Result[] }>(await api.post('/topics/many/produce', body))
    assert.equal(results.length, 100_000)
    assert.ok(results.every(({ partition, offset }, i) => partition === i % 4 && offset === Math.floor(i / 4)))
    assert.deepEqual(await api.ends('many'), [25_000, 25_000, 25_000, 25_000])
  })

  await t.test('100,001 records are refused before a record too large, and nothing is written', async () => {
    const body = `{"records":[${'{"value":""},'.repeat(100_000)}{"value":"","partition":9}]}`
    assertRefused(await api.post('/topics/many/produce', body), 400, 'RECORDS_TOO_MANY', [
      100_001,
      100_000,
      'nothing was written'
    ])
    assert.deepEqual(await api.ends('many'), [25_000, 25_000, 25_000, 25_000])
  })
})

onBothEngines(
  'a produce that cannot be carried out',
  async (t, api) => {
    await api.createTopic('strict', 3)
    await api.produce('strict', [{ value: 'before', partition: 1 }])
    const good = '{"value":"good","partition":0}'
    const big = (bytes: number): string => JSON.stringify({ key: 'kk', value: 'x'.repeat(bytes - 2) })
    const refusals: readonly (readonly [string, string, string, readonly (string | number)[]])[] = [
      [
        'a partition one past the last',
        `{"records":[${good},{"value":"v","partition":3}]}`,
        'PARTITION_RANGE',
        ['partition 3', 'strict', '3 partition']
      ],
      [
        'the largest partition number',
        `{"records":[${good},{"value":"v","partition":4294967295}]}`,
        'PARTITION_RANGE',
        [4_294_967_295]
      ],
      [
        'a partition beyond 32 bits',
        `{"records":[${good},{"value":"v","partition":4294967296}]}`,
        'FIELD_INVALID',
        ['partition']
      ],
      ['a negative partition', `{"records":[${good},{"value":"v","partition":-1}]}`, 'FIELD_INVALID', ['partition']],
      ['half a partition', `{"records":[${good},{"value":"v","partition":0.5}]}`, 'FIELD_INVALID', ['partition']],
      [
        'a record over the limit by one byte',
        `{"records":[${good},${big(MAX_RECORD + 1)}]}`,
        'RECORD_TOO_LARGE',
        ['record 1', MAX_RECORD + 1, MAX_RECORD, 'limit', 'nothing was written']
      ],
      [
        'a record too large is told before a partition out of range',
        `{"records":[{"value":"v","partition":3},${big(MAX_RECORD + 9)}]}`,
        'RECORD_TOO_LARGE',
        ['record 1']
      ],
      ['a record without a value', `{"records":[${good},{"key":"k"}]}`, 'FIELD_INVALID', ['value']],
      ['null for a value', `{"records":[${good},{"value":null}]}`, 'FIELD_INVALID', ['value']],
      ['a number for a value', `{"records":[${good},{"value":7}]}`, 'FIELD_INVALID', ['value']],
      ['a number for a key', `{"records":[${good},{"key":7,"value":"v"}]}`, 'FIELD_INVALID', ['key']],
      ['text for a sequence', `{"records":[${good},{"value":"v","sequence":"1"}]}`, 'FIELD_INVALID', ['sequence']],
      [
        'a sequence beyond 64 bits',
        `{"records":[${good},{"value":"v","sequence":9223372036854775808}]}`,
        'FIELD_INVALID',
        ['sequence']
      ],
      ['a record that is no object', `{"records":[${good},"v"]}`, 'FIELD_INVALID', ['records']],
      ['no records', '{}', 'FIELD_INVALID', ['records']],
      ['null for records', '{"records":null}', 'FIELD_INVALID', ['records']],
      ['an object for records', '{"records":{}}', 'FIELD_INVALID', ['records']],
      ['a list for a body', '[]', 'FIELD_INVALID', ['body']],
      [
        'a producer id that is no text',
        `{"producer_id":7,"records":[{"value":"v","sequence":0}]}`,
        'FIELD_INVALID',
        ['producer_id']
      ],
      ['a body cut short', `{"records":[${good},{"value":"v"`, 'BODY_NOT_JSON', []],
      ['text behind the body', `{"records":[${good}]} x`, 'BODY_NOT_JSON', []],
      ['an empty body', '', 'BODY_NOT_JSON', []]
    ]
    for (const [what, body, code, fragments] of refusals) {
      await t.test(`is refused and named: ${what}`, async () => {
        assertRefused(await api.post('/topics/strict/produce', body), 400, code, fragments)
      })
    }
    await t.test('is refused by type before its body is looked at', async () => {
      const answer = await api.call('POST', '/topics/strict/produce', `{"records":[${good}]}`, {
        'content-type': 'text/plain'
      })
      assertRefused(answer, 415, 'MEDIA_TYPE', ['text/plain', 'application/json'])
    })
    await t.test('is not found where there is no such topic, even if it asks for nothing', async () => {
      for (const records of ['[]', `[{"value":"v","partition":77}]`, `[${big(MAX_RECORD + 1)}]`]) {
        assertRefused(await api.post('/topics/none/produce', `{"records":${records}}`), 404, 'TOPIC_NOT_FOUND', [
          'none'
        ])
      }
    })
    await t.test('has written nothing', async () => {
      assert.deepEqual(await api.ends('strict'), [0, 1, 0])
      assert.deepEqual(
        (await api.consumeAll('strict', 1)).map(record => record.value),
        ['before']
      )
    })
    await t.test('leaves no trace in the round-robin', async () => {
      assert.deepEqual(await api.produce('strict', [{ value: 'turn' }]), [{ partition: 0, offset: 0 }])
    })
  },
  { flags: smallLimits }
)

onBothEngines(
  'a produce at its exact limits is taken',
  async (t, api) => {
    await api.createTopic('exact')
    await t.test('a record of the largest size, key and value together', async () => {
      const key = 'k'.repeat(1_000)
      await api.produce('exact', [
        { key, value: 'x'.repeat(MAX_RECORD - 1_000) },
        { value: 'ß'.repeat(MAX_RECORD / 2) }
      ])
      assert.deepEqual(await api.ends('exact'), [2])
    })
    await t.test('an empty list of records is answered by an empty list, and writes nothing', async () => {
      const answer = await api.post('/topics/exact/produce', '{"records":[]}')
      assert.deepEqual([answer.status, answer.text], [200, '{"results":[]}'])
      assert.deepEqual(await api.ends('exact'), [2])
    })
    await t.test('a sequence near 2^63 without a producer id is ignored', async () => {
      const body = '{"records":[{"value":"s","sequence":9223372036854775807},{"value":"s","sequence":null}]}'
      assert.equal(
        (await api.post('/topics/exact/produce', body)).text,
        '{"results":[{"partition":0,"offset":2},{"partition":0,"offset":3}]}'
      )
    })
    for (const isChunked of [false, true]) {
      const how = isChunked ? 'without a content-length' : 'with a content-length'
      await t.test(`a body of the largest size, ${how}`, async () => {
        const [before = 0] = await api.ends('exact')
        const answer = await send(api, bodyOf(MAX_BODY), isChunked)
        assert.deepEqual([answer.status, await api.ends('exact')], [200, [before + 21]])
      })
      await t.test(`a body over it by one byte is refused, ${how}, and nothing is written`, async () => {
        const before = await api.ends('exact')
        assertRefused(await send(api, bodyOf(MAX_BODY + 1), isChunked), 413, 'BODY_TOO_LARGE', [MAX_BODY])
        assert.deepEqual(await api.ends('exact'), before)
      })
    }
  },
  { flags: smallLimits }
)

/** A body of exactly that many bytes with 21 records. */
function bodyOf(bytes: number): string {
  const start = `{"records":[${`{"value":"${'x'.repeat(9_900)}"},`.repeat(20)}{"value":"`
  return `${start}${'y'.repeat(bytes - start.length - 4)}"}]}`
}

/** Sends a body in pieces, as fetch does not. */
async function send(api: HttpApi, body: string, isChunked: boolean): Promise<HttpAnswer> {
  const headers = { 'content-type': 'application/json', ...(isChunked ? {} : { 'content-length': body.length }) }
  return await new Promise((resolve, reject) => {
    const outgoing = request(`${api.url}/topics/exact/produce`, { method: 'POST', headers }, response => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () => {
        const answered = new Headers({ 'content-type': response.headers['content-type'] ?? '' })
        resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString(), headers: answered })
      })
    })
    outgoing.on('error', reject)
    for (let at = 0; at < body.length; at += 50_000) outgoing.write(body.slice(at, at + 50_000))
    outgoing.end()
  })
}
