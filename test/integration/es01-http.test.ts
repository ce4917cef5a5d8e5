/** One log, two protocols: what goes in over one comes out of the other (spec 12, D24, D26). */
import assert from 'node:assert/strict'
import { openClient, range, readAll } from '../support/es01-session.ts'
import { onBothEngines } from '../support/http-api.ts'

onBothEngines('HTTP and ES01 share one log', async (t, api, broker) => {
  const client = await openClient(t, broker.es01)

  await t.test('text produced over HTTP has the same bytes over ES01, and the other way round', async () => {
    await api.createTopic('texts')
    const texts = ['', 'plain', 'Größe 漢字 😀', '\u0000\u0001"\\/\r\n\t\u2028', '\ufeff\ufffd', 'x'.repeat(40_000)]
    await api.produce(
      'texts',
      texts.map(value => ({ key: value.slice(0, 9), value }))
    )
    await client.produce(
      'texts',
      texts.map(value => ({ key: value.slice(0, 9), value }))
    )
    const expected = [...texts, ...texts].map(value => [value.slice(0, 9), value])
    const overEs01 = await readAll(client, 'texts', 0)
    assert.deepEqual(
      overEs01.map(({ key, value }) => [key?.toString(), value.toString()]),
      expected
    )
    for (const [i, { value }] of overEs01.entries()) {
      assert.ok(value.equals(Buffer.from(expected[i]?.[1] ?? '', 'utf8')), `record ${i} byte for byte`)
    }
    const overHttp = await api.consumeAll('texts', 0)
    assert.deepEqual(
      overHttp.map(({ key, value }) => [key, value]),
      expected
    )
  })

  await t.test('any bytes produced over ES01 come back exactly over HTTP with base64', async () => {
    await api.createTopic('bytes')
    const values = range(20).map(i => Buffer.from(range(i * 13).map(j => (i * 37 + j * 101) & 0xff)))
    await client.produce(
      'bytes',
      values.map(value => ({ value }))
    )
    const { records } = await api.consume('bytes', 0, 'offset=0&encoding=base64')
    assert.deepEqual(
      records.map(record => record.value),
      values.map(value => value.toString('base64'))
    )
  })

  await t.test('offset, time, key, next offset and end are the same over both', async () => {
    await api.createTopic('same', 2)
    await api.produce('same', [
      { partition: 1, key: '', value: '' },
      { partition: 1, value: 'v' }
    ])
    const http = await api.consume('same', 1, 'offset=0')
    const es01 = await client.consume({ topic: 'same', partition: 1, offset: 0, maxRecords: 100, maxBytes: 1_000_000 })
    assert.deepEqual([es01.nextOffset, es01.highWatermark], [http.next_offset, http.high_watermark])
    assert.deepEqual(
      es01.records.map(({ partition, offset, timestampMs, key, value }) => ({
        partition,
        offset,
        timestamp_ms: timestampMs,
        key: key === null ? null : key.toString(),
        value: value.toString()
      })),
      http.records
    )
    assert.deepEqual(
      http.records.map(record => record.key),
      ['', null]
    )
  })

  await t.test('a key finds the same partition over both', async () => {
    await api.createTopic('keyed', 8)
    const keys = ['user-1', 'user-2', 'k1', 'alice', 'bob', '', 'Größe', 'x'.repeat(1000)]
    const http = await api.produce(
      'keyed',
      keys.map(key => ({ key, value: '' }))
    )
    const es01 = await client.produce(
      'keyed',
      keys.map(key => ({ key, value: '' }))
    )
    assert.deepEqual(
      es01.map(result => result.partition),
      http.map(result => result.partition)
    )
    assert.deepEqual(
      http.slice(0, 6).map(result => result.partition),
      [4, 5, 1, 7, 4, 5]
    )
  })

  await t.test('records without a key take turns across both', async () => {
    await api.createTopic('turns', 3)
    const partitions: number[] = []
    for (const i of range(4)) {
      const records = range(i % 2 === 0 ? 2 : 1).map(() => ({ value: 'v' }))
      const results = i < 2 ? await api.produce('turns', records) : await client.produce('turns', records)
      partitions.push(...results.map(result => result.partition))
    }
    assert.deepEqual(partitions, [0, 1, 2, 0, 1, 2])
  })

  await t.test('a topic deleted over HTTP is gone over ES01 at once', async () => {
    await api.createTopic('gone')
    await client.produce('gone', [{ value: 'v' }])
    assert.equal((await api.call('DELETE', '/topics/gone')).status, 200)
    await assert.rejects(client.produce('gone', [{ value: 'v' }]), { message: "not found: no topic named 'gone'" })
    const read = client.consume({ topic: 'gone', partition: 0, offset: 0, maxRecords: 1, maxBytes: 1 })
    await assert.rejects(read, { message: "not found: no topic named 'gone'" })
  })
})
