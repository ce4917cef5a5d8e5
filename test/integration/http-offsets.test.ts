/** Offsets by time over HTTP, on both engines with 1 and with 3 shards. */
import assert from 'node:assert/strict'
import { assertRefused, onEveryVariant, parse, type HttpApi } from '../support/http-api.ts'
import { waitFor } from '../support/broker.ts'

interface Offsets {
  readonly partition: number
  readonly earliest: number
  readonly latest: number
  readonly offset?: number
  readonly timestamp_ms?: number | null
}

async function one(api: HttpApi, topic: string, query: string): Promise<Offsets> {
  return parse<Offsets>(await api.get(`/topics/${topic}/offsets?${query}`))
}

async function all(api: HttpApi, topic: string, query = ''): Promise<readonly Offsets[]> {
  return parse<{ partitions: Offsets[] }>(await api.get(`/topics/${topic}/offsets${query}`)).partitions
}

onEveryVariant('offsets', async (t, api) => {
  await api.createTopic('times', 5)
  for (let i = 0; i < 8; i++) {
    await api.produce('times', [
      { partition: 1, value: `${i}a` },
      { partition: 1, value: `${i}b` },
      { partition: 3, value: `${i}c` }
    ])
    // The next group has a later time: what is waited for is the clock itself.
    const nowMs = Date.now()
    await waitFor('the clock to go on', () => Date.now() > nowMs + 1)
  }
  const written = await api.consumeAll('times', 1)

  await t.test('say where each partition begins and ends', async () => {
    assert.deepEqual(await one(api, 'times', 'partition=1'), { partition: 1, earliest: 0, latest: 16 })
    const ends = [0, 16, 0, 8, 0]
    const expected = ends.map((latest, partition) => ({ partition, earliest: 0, latest }))
    assert.deepEqual(await all(api, 'times'), expected)
  })

  await t.test('lead to the first record at or after a time', async () => {
    for (const { timestamp_ms: time } of written) {
      for (const wanted of [time - 1, time, time + 1]) {
        const record = written.find(candidate => candidate.timestamp_ms >= wanted)
        const found = await one(api, 'times', `partition=1&timestamp_ms=${wanted}`)
        const expected = { offset: record?.offset ?? 16, timestamp_ms: record?.timestamp_ms ?? null }
        assert.deepEqual(found, { partition: 1, earliest: 0, latest: 16, ...expected })
      }
    }
  })

  await t.test('of all partitions come in one answer, whichever shards they are on', async () => {
    const time = written[6]?.timestamp_ms ?? 0
    // Written with the same request, but by another shard where there are several: its time may be another.
    const other = (await api.consumeAll('times', 3)).find(record => record.timestamp_ms >= time)
    const found = await all(api, 'times', `?timestamp_ms=${time}`)
    assert.deepEqual(
      found.map(({ partition, offset }) => [partition, offset]),
      [
        [0, 0],
        [1, 6],
        [2, 0],
        [3, other?.offset],
        [4, 0]
      ]
    )
    assert.deepEqual(
      found.map(entry => entry.timestamp_ms === null),
      [true, false, true, false, true]
    )
  })

  await t.test('take times before and beyond everything, up to 64 bits', async () => {
    for (const early of ['-9223372036854775808', '-9007199254740993', '-1', '0']) {
      assert.equal((await one(api, 'times', `partition=3&timestamp_ms=${early}`)).offset, 0, early)
    }
    for (const late of ['9007199254740991', '9007199254740992', '9223372036854775808', '18446744073709551615']) {
      const { offset, timestamp_ms: time } = await one(api, 'times', `partition=3&timestamp_ms=${late}`)
      assert.deepEqual([offset, time], [8, null], late)
    }
  })

  await t.test('of a topic or partition that does not exist are refused', async () => {
    assertRefused(await api.get('/topics/nope/offsets'), 404, 'TOPIC_NOT_FOUND', ['nope'])
    assertRefused(await api.get('/topics/times/offsets?partition=5'), 400, 'PARTITION_RANGE', [5, 'times'])
    assertRefused(await api.get('/topics/times/offsets?partition=4294967295'), 400, 'PARTITION_RANGE', [4294967295])
    assertRefused(await api.get('/topics/times/offsets?timestamp_ms=now'), 400, 'FIELD_INVALID', [
      'timestamp_ms',
      'now'
    ])
  })

  await t.test('of 10,000 partitions fit one answer', async () => {
    await api.createTopic('wide', 10_000)
    await api.produce(
      'wide',
      Array.from({ length: 10_000 }, (_, partition) => ({ partition, value: 'v' }))
    )
    const found = await all(api, 'wide', '?timestamp_ms=0')
    assert.equal(found.length, 10_000)
    for (const [partition, entry] of found.entries()) {
      assert.deepEqual([entry.partition, entry.latest, entry.offset], [partition, 1, 0])
      assert.ok(typeof entry.timestamp_ms === 'number')
    }
  })

  await t.test('are asked for and answered while records are written', async () => {
    const end = { reached: false }
    const writing = (async () => {
      for (let i = 0; i < 30; i++) await api.produce('times', [{ partition: 0, value: `${i}` }])
      end.reached = true
    })()
    let latest = 0
    while (!end.reached) {
      const found = await one(api, 'times', 'partition=0&timestamp_ms=0')
      assert.ok(found.latest >= latest && (found.offset ?? -1) === 0, JSON.stringify(found))
      latest = found.latest
    }
    await writing
    assert.equal((await one(api, 'times', 'partition=0')).latest, 30)
  })
})
