/** Reads over HTTP in full: forms of the answer, where it begins, and what it skipped. On both engines. */
import assert from 'node:assert/strict'
import { Packr } from 'msgpackr/pack'
import { assertRefused, HttpApi, onBothEngines, parse, type ReadAnswer } from '../support/http-api.ts'

const unpackr = new Packr({ useRecords: false, int64AsType: 'auto' })

async function readPacked(api: HttpApi, path: string): Promise<unknown> {
  const response = await fetch(api.url + path, { headers: { accept: 'application/msgpack' } })
  assert.deepEqual([response.status, response.headers.get('content-type')], [200, 'application/msgpack'])
  return unpackr.unpack(Buffer.from(await response.arrayBuffer()))
}

onBothEngines('a read in MessagePack', async (t, api) => {
  await api.createTopic('packed', 2)
  await api.produce('packed', [
    { partition: 1, key: 'k', value: 'héllo' },
    { partition: 1, value: '' },
    { partition: 1, key: '', value: 'x'.repeat(400_000) }
  ])

  await t.test('has the fields of the JSON answer, with bytes as they are', async () => {
    const json = await api.consume('packed', 1, 'offset=0')
    const records = json.records.map(({ key, value, ...record }) => {
      return { ...record, key: key === null ? null : Buffer.from(key), value: Buffer.from(value) }
    })
    const expected = { records, next_offset: 3, high_watermark: 3 }
    assert.deepEqual(await readPacked(api, '/topics/packed/consume?partition=1&offset=0'), expected)
    assert.deepEqual(await readPacked(api, '/groups/g/consume?topic=packed&partition=1'), expected)
    const one = await readPacked(api, '/topics/packed/consume?partition=1&offset=0&max_records=1')
    assert.deepEqual(one, { records: records.slice(0, 1), next_offset: 1, high_watermark: 3 })
  })

  await t.test('keeps an offset beyond the end exactly', async () => {
    for (const offset of [7n, 2n ** 32n, 2n ** 53n + 1n, 2n ** 64n - 1n]) {
      const answer = await readPacked(api, `/topics/packed/consume?partition=1&offset=${offset}`)
      assert.ok(typeof answer === 'object' && answer !== null && 'next_offset' in answer)
      assert.equal(BigInt(String(answer.next_offset)), offset)
    }
  })

  await t.test('is refused in JSON', async () => {
    const headers = { accept: 'application/msgpack' }
    for (const [path, status, code] of [
      ['/topics/packed/consume?partition=2&offset=0', 400, 'PARTITION_RANGE'],
      ['/topics/nope/consume?partition=0&offset=0', 404, 'TOPIC_NOT_FOUND'],
      ['/topics/packed/consume?partition=1&offset=0&encoding=utf8', 400, 'FIELD_INVALID']
    ] as const) {
      const answer = await api.call('GET', path, undefined, headers)
      assert.equal(answer.headers.get('content-type'), 'application/json')
      assertRefused(answer, status, code)
    }
  })
})

onBothEngines('where a read begins', async (t, api) => {
  await api.createTopic('placed', 2)
  for (const value of ['a', 'b', 'c', 'd']) await api.produce('placed', [{ value, partition: 1 }])
  const { records } = await api.consume('placed', 1, 'offset=0')
  const timeOf = (offset: number): number => records[offset]?.timestamp_ms ?? assert.fail()
  const firstAt = (timeMs: number): number => records.find(record => record.timestamp_ms >= timeMs)?.offset ?? 4
  const read = async (query: string): Promise<[number[], number]> => {
    const answer = await api.consume('placed', 1, query)
    assert.equal(answer.skipped, undefined)
    return [answer.records.map(({ offset }) => offset), answer.next_offset]
  }
  const from = (offset: number): [number[], number] => [[0, 1, 2, 3].slice(offset), 4]

  await t.test('may be the first record, or behind the last', async () => {
    assert.deepEqual(await read('offset=earliest'), from(0))
    assert.deepEqual(await read('offset=latest'), from(4))
    const empty = await api.consume('placed', 0, 'offset=latest')
    assert.deepEqual([empty.records, empty.next_offset], [[], 0])
  })

  await t.test('may be a time: the first record at or after it, or where the next one will be', async () => {
    for (const offset of [0, 1, 2, 3]) {
      const timeMs = timeOf(offset)
      assert.deepEqual(await read(`timestamp_ms=${timeMs}`), from(firstAt(timeMs)))
    }
    assert.deepEqual(await read(`timestamp_ms=${timeOf(3) + 1}`), from(4))
    assert.deepEqual(await read('timestamp_ms=-9223372036854775808'), from(0))
    assert.deepEqual(await read('timestamp_ms=18446744073709551615'), from(4))
  })

  await t.test('may be behind the last record, for who waits for the next one', async () => {
    await api.createTopic('next')
    await api.produce('next', [{ value: 'before' }])
    let isAnswered = false
    const waiting = api.consume('next', 0, 'offset=latest&max_wait_ms=60000').finally(() => (isAnswered = true))
    // One of them comes after the broker has looked where the end is.
    while (!isAnswered) await api.produce('next', [{ value: 'after' }])
    const { records } = await waiting
    assert.ok(records.length > 0 && records.every(({ value }) => value === 'after'))
  })

  await t.test('is asked of a topic and partition that are there', async () => {
    for (const start of ['offset=earliest', 'offset=latest', 'timestamp_ms=0']) {
      assertRefused(await api.get(`/topics/nope/consume?partition=0&${start}`), 404, 'TOPIC_NOT_FOUND')
      assertRefused(await api.get(`/topics/placed/consume?partition=2&${start}`), 400, 'PARTITION_RANGE')
    }
    assertRefused(await api.get('/topics/placed/consume?partition=1&offset=0&timestamp_ms=0'), 400, 'FIELD_INVALID')
  })
})

onBothEngines('a read of records that were deleted', async (t, api) => {
  await api.createTopic('trimmed')
  await api.produce(
    'trimmed',
    Array.from({ length: 10 }, (_, i) => ({ value: String(i) }))
  )
  const deleted = await api.post('/topics/trimmed/delete-records', { partition: 0, offset: 6 })
  assert.equal(deleted.status, 200, deleted.text)
  const offsets = [6, 7, 8, 9]

  await t.test('begins with what is left, and says what was asked for and what there is', async () => {
    const answer = await api.get('/topics/trimmed/consume?partition=0&offset=2')
    assert.ok(answer.text.endsWith('"skipped":{"requested":2,"earliest":6,"latest":10}}'), answer.text)
    const { records, next_offset: next } = parse<ReadAnswer>(answer)
    assert.deepEqual([records.map(({ offset }) => offset), next], [offsets, 10])
    const packed = await readPacked(api, '/topics/trimmed/consume?partition=0&offset=2&max_records=1')
    assert.ok(typeof packed === 'object' && packed !== null && 'skipped' in packed)
    assert.deepEqual(packed.skipped, { requested: 2, earliest: 6, latest: 10 })
  })

  await t.test('says nothing if it asked for no record that is gone', async () => {
    for (const path of [
      '/topics/trimmed/consume?partition=0&offset=6',
      '/topics/trimmed/consume?partition=0&offset=earliest',
      '/topics/trimmed/consume?partition=0&timestamp_ms=0',
      '/groups/fresh/consume?topic=trimmed&partition=0'
    ]) {
      const { records, skipped } = parse<ReadAnswer>(await api.get(path))
      assert.deepEqual([records.map(({ offset }) => offset), skipped], [offsets, undefined], path)
    }
  })

  await t.test('says so to a group whose committed offset is gone', async () => {
    const commit = await api.post('/groups/late/commit', { topic: 'trimmed', partition: 0, offset: 0 })
    assert.equal(commit.status, 204, commit.text)
    const { skipped } = parse<ReadAnswer>(await api.get('/groups/late/consume?topic=trimmed&partition=0'))
    assert.deepEqual(skipped, { requested: 0, earliest: 6, latest: 10 })
  })
})
