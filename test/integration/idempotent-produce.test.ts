/** Idempotent producers over both protocols: what is a duplicate, what is refused, and that a refusal changes nothing. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Es01Error } from '../../src/client/es01/errors.ts'
import type { ProduceRecord } from '../../src/wire/es01/produce-frame.ts'
import { encodeProduceFrame } from '../../src/wire/es01/produce-frame.ts'
import { startBroker, waitFor } from '../support/broker.ts'
import { greetRaw, openClient, range } from '../support/es01-session.ts'
import { HttpApi, assertRefused, onBothEngines, onEveryVariant, parse, type HttpAnswer } from '../support/http-api.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

interface Result {
  readonly partition: number
  readonly offset: number
  readonly duplicate?: true
}

interface Listed {
  readonly producer_id: string
  readonly partitions: readonly {
    readonly topic: string
    readonly partition: number
    readonly last_seen_sequence: number
    readonly last_offset: number
  }[]
}

type Numbered = readonly [sequence: number | bigint | null, partition?: number, value?: string]

/** A body in which 64-bit sequences keep their digits. */
function bodyOf(producer: string, records: readonly Numbered[]): string {
  const texts = records.map(([sequence, partition = 0, value = `v${sequence}`]) => {
    return `{"value":${JSON.stringify(value)},"partition":${partition},"sequence":${sequence}}`
  })
  return `{"producer_id":${JSON.stringify(producer)},"records":[${texts.join(',')}]}`
}

function send(api: HttpApi, topic: string, producer: string, records: readonly Numbered[]): Promise<HttpAnswer> {
  return api.post(`/topics/${topic}/produce`, bodyOf(producer, records))
}

async function produce(api: HttpApi, topic: string, producer: string, records: readonly Numbered[]): Promise<Result[]> {
  return parse<{ results: Result[] }>(await send(api, topic, producer, records)).results
}

function numbered(sequences: readonly number[], partition = 0): Numbered[] {
  return sequences.map(sequence => [sequence, partition])
}

function es01Records(sequences: readonly (number | bigint)[], partition = 0): ProduceRecord[] {
  return sequences.map(sequence => ({ value: `v${sequence}`, partition, sequence: BigInt(sequence) }))
}

async function listed(api: HttpApi): Promise<readonly Listed[]> {
  return parse<{ producers: Listed[] }>(await api.get('/admin/producers')).producers
}

/** The words of an ES01 error frame. */
async function refusedText(answer: Promise<unknown>): Promise<string> {
  try {
    await answer
  } catch (error) {
    if (error instanceof Es01Error) return error.message
    throw error
  }
  return assert.fail('the request was not refused')
}

onEveryVariant('a producer that has sent 0 to 199', async (t, api, broker) => {
  await api.createTopic('window', 2)
  const client = await openClient(t, broker.es01)
  const half = await produce(api, 'window', 'p', numbered(range(100)))
  assert.deepEqual(
    half,
    range(100).map(offset => ({ partition: 0, offset }))
  )
  const rest = await client.produce('window', es01Records(range(100, 100)), 'p')
  assert.deepEqual(
    rest,
    range(100, 100).map(offset => ({ partition: 0, offset, duplicate: false }))
  )

  await t.test('has 72 to 199 answered as duplicates, with their offsets, over both protocols', async () => {
    const sequences = range(128, 72)
    const duplicates = sequences.map(offset => ({ partition: 0, offset, duplicate: true }))
    assert.deepEqual(await produce(api, 'window', 'p', numbered(sequences)), duplicates)
    assert.deepEqual(await client.produce('window', es01Records(sequences), 'p'), duplicates)
  })
  await t.test('is refused 71 and below as too low', async () => {
    for (const sequence of [71, 0]) {
      const refused = await send(api, 'window', 'p', [[sequence]])
      assertRefused(refused, 400, 'SEQUENCE_TOO_LOW', ['sequence too low', 'expected 200', `got ${sequence}`])
      const text = await refusedText(client.produce('window', es01Records([sequence]), 'p'))
      assert.match(text, /^bad request: sequence too low/)
    }
  })
  await t.test('is refused 201 as a gap', async () => {
    const refused = await send(api, 'window', 'p', [[201]])
    assertRefused(refused, 400, 'SEQUENCE_GAP', ['sequence gap', 'expected 200', 'got 201', "'p'"])
    const text = await refusedText(client.produce('window', es01Records([201]), 'p'))
    assert.match(text, /^bad request: sequence gap.*expected 200, got 201/)
  })
  await t.test('may send 200, and the content of a duplicate is not looked at', async () => {
    assert.deepEqual(await produce(api, 'window', 'p', [[200]]), [{ partition: 0, offset: 200 }])
    const other = await client.produce('window', [{ value: 'other', partition: 0, sequence: 200n }], 'p')
    assert.deepEqual(other, [{ partition: 0, offset: 200, duplicate: true }])
  })
  await t.test('gets duplicates and new records in one answer', async () => {
    assert.deepEqual(await produce(api, 'window', 'p', numbered(range(4, 199))), [
      { partition: 0, offset: 199, duplicate: true },
      { partition: 0, offset: 200, duplicate: true },
      { partition: 0, offset: 201 },
      { partition: 0, offset: 202 }
    ])
  })
  await t.test('has each record in the log once', async () => {
    const values = (await api.consumeAll('window', 0)).map(record => record.value)
    assert.deepEqual(
      values,
      range(203).map(sequence => `v${sequence}`)
    )
  })
  await t.test('is alone with its sequences: others, and other partitions, count from where they begin', async () => {
    assert.deepEqual(await produce(api, 'window', 'q', [[5000]]), [{ partition: 0, offset: 203 }])
    assert.deepEqual(await produce(api, 'window', 'p', [[7, 1]]), [{ partition: 1, offset: 0 }])
    assert.deepEqual(await produce(api, 'window', 'p', [[203]]), [{ partition: 0, offset: 204 }])
  })
})

onEveryVariant('a request with one bad record', async (t, api, broker) => {
  await api.createTopic('whole', 6)
  const client = await openClient(t, broker.es01)
  const spread = (first: number): Numbered[] => range(6).map(partition => [first, partition])
  await produce(api, 'whole', 'p', spread(0))
  const ends = await api.ends('whole')
  const refusals: readonly (readonly [string, readonly Numbered[], string, readonly string[]])[] = [
    ['a gap', [...spread(1), [3, 5]], 'SEQUENCE_GAP', ['partition 5', 'expected 2', 'got 3']],
    ['the same new sequence twice', [...spread(1), [1, 4]], 'SEQUENCE_TOO_LOW', ['partition 4', 'expected 2', 'got 1']],
    ['a duplicate behind a new record', [...spread(1), [0, 2]], 'SEQUENCE_TOO_LOW', ['partition 2', 'got 0']],
    ['a missing sequence', [...spread(1), [null, 0]], 'SEQUENCE_INVALID', ['records[6].sequence', 'missing']],
    ['a negative sequence', [...spread(1), [-1, 0]], 'SEQUENCE_INVALID', ['records[6].sequence', 'negative']],
    ['a partition out of range', [...spread(1), [2, 6]], 'PARTITION_RANGE', ['6']]
  ]
  for (const [what, records, code, fragments] of refusals) {
    await t.test(`writes nothing and advances nothing: ${what}`, async () => {
      assertRefused(await send(api, 'whole', 'p', records), 400, code, fragments)
      const stranger = await send(api, 'whole', 'stranger', records)
      assertRefused(stranger, 400, code)
      const overEs01 = records.map(([sequence, partition = 0]) => ({
        value: 'v',
        partition,
        ...(sequence === null ? {} : { sequence: BigInt(sequence) })
      }))
      assert.match(await refusedText(client.produce('whole', overEs01, 'p')), /^bad request: /)
      assert.deepEqual(await api.ends('whole'), ends)
    })
  }
  await t.test('claims no producer id', async () => {
    assert.deepEqual(
      (await listed(api)).map(producer => producer.producer_id),
      ['p']
    )
  })
  await t.test('can be sent again without it', async () => {
    const results = await produce(api, 'whole', 'p', spread(1))
    assert.deepEqual(
      results,
      range(6).map(partition => ({ partition, offset: 1 }))
    )
    const mixed = await produce(api, 'whole', 'p', [...spread(1), ...spread(2)])
    assert.deepEqual(mixed, [
      ...range(6).map(partition => ({ partition, offset: 1, duplicate: true })),
      ...range(6).map(partition => ({ partition, offset: 2 }))
    ])
  })
})

onBothEngines('identical requests at the same time', async (t, api, broker) => {
  await api.createTopic('storm', 4)
  const client = await openClient(t, broker.es01)
  const everywhere = (sequence: number): Numbered[] => range(4).map(partition => [sequence, partition])
  const overEs01 = (sequence: number): ProduceRecord[] =>
    range(4).map(partition => ({ value: `v${sequence}`, partition, sequence: BigInt(sequence) }))
  for (const [what, http, es01] of [
    ['to one partition', (s: number) => [[s, 0]] as Numbered[], (s: number) => es01Records([s])],
    ['to all partitions', everywhere, overEs01]
  ] as const) {
    await t.test(`${what} write once, and all hear the same offsets`, async () => {
      for (let round = 0; round < 10; round++) {
        const producer = `${what.replaceAll(' ', '-')}-${Math.floor(round / 5)}`
        const sequence = round % 5
        const answers = await Promise.all([
          ...range(6).map(() => produce(api, 'storm', producer, http(sequence))),
          ...range(6).map(() => client.produce('storm', es01(sequence), producer))
        ])
        const offsets = answers.map(answer => answer.map(result => result.offset).join())
        assert.equal(new Set(offsets).size, 1, offsets.join(' | '))
        for (const i of http(sequence).keys()) {
          const written = answers.filter(answer => answer[i]?.duplicate !== true)
          assert.equal(written.length, 1, 'one of them wrote the record')
        }
      }
      assert.equal((await api.consumeAll('storm', 0)).length, what === 'to one partition' ? 10 : 20)
    })
  }
})

onBothEngines('sequences of 64 bits', async (t, api, broker) => {
  await api.createTopic('wide', 3)
  const client = await openClient(t, broker.es01)
  const last = 2n ** 63n - 1n
  await t.test('are exact up to 2^63 − 1, which is accepted once and followed by nothing', async () => {
    assert.deepEqual(await produce(api, 'wide', 'p', [[last - 1n], [last]]), [
      { partition: 0, offset: 0 },
      { partition: 0, offset: 1 }
    ])
    assert.deepEqual(await client.produce('wide', es01Records([last]), 'p'), [
      { partition: 0, offset: 1, duplicate: true }
    ])
    assertRefused(await send(api, 'wide', 'p', [[last - 2n]]), 400, 'SEQUENCE_TOO_LOW', [String(last - 2n)])
    const { text } = await api.get('/admin/producers')
    assert.ok(text.includes(`"last_seen_sequence":${last},"last_offset":1`), text)
  })
  await t.test('are told apart above 2^53', async () => {
    const big = 2n ** 53n
    await produce(api, 'wide', 'q', [
      [big, 1],
      [big + 1n, 1]
    ])
    const gap = await send(api, 'wide', 'q', [[big + 3n, 1]])
    assertRefused(gap, 400, 'SEQUENCE_GAP', [`expected ${big + 2n}`, `got ${big + 3n}`])
    assertRefused(await send(api, 'wide', 'q', [[big - 1n, 1]]), 400, 'SEQUENCE_TOO_LOW', [`got ${big - 1n}`])
    assertRefused(await send(api, 'wide', 'q', [[0, 1]]), 400, 'SEQUENCE_TOO_LOW', ['got 0'])
    assertRefused(await send(api, 'wide', 'q', [[last, 1]]), 400, 'SEQUENCE_GAP', [`got ${last}`])
    assert.equal((await api.ends('wide'))[1], 2)
  })
})

onBothEngines('the producer ids of a broker', async (t, api) => {
  await api.createTopic('b', 3)
  await api.createTopic('a', 1)
  await t.test('are listed with where they stand, sorted', async () => {
    await produce(api, 'b', 'second', [
      [4, 2],
      [5, 2],
      [9, 0]
    ])
    await produce(api, 'a', 'second', [[1]])
    await produce(api, 'b', 'first', [[0, 2]])
    const { status, text } = await api.get('/admin/producers')
    const second = [
      '{"topic":"a","partition":0,"last_seen_sequence":1,"last_offset":0}',
      '{"topic":"b","partition":0,"last_seen_sequence":9,"last_offset":0}',
      '{"topic":"b","partition":2,"last_seen_sequence":5,"last_offset":1}'
    ]
    const first = '{"topic":"b","partition":2,"last_seen_sequence":0,"last_offset":2}'
    const producers = `{"producer_id":"first","partitions":[${first}]},{"producer_id":"second","partitions":[${second.join()}]}`
    assert.deepEqual([status, text], [200, `{"producers":[${producers}]}`])
  })
  await t.test('begin afresh in a topic that was deleted and made again', async () => {
    assert.equal((await api.call('DELETE', '/topics/a')).status, 200)
    assert.equal((await listed(api))[1]?.partitions.length, 2)
    await api.createTopic('a', 1)
    assert.deepEqual(await produce(api, 'a', 'second', [[1]]), [{ partition: 0, offset: 0 }])
  })
  await t.test('are forgotten on demand, once', async () => {
    const forgotten = await api.call('DELETE', '/admin/producers/second')
    assert.deepEqual([forgotten.status, forgotten.text], [204, ''])
    assertRefused(await api.call('DELETE', '/admin/producers/second'), 404, 'PRODUCER_NOT_FOUND', ["'second'"])
    assert.deepEqual(
      (await listed(api)).map(producer => producer.producer_id),
      ['first']
    )
    assert.deepEqual(await produce(api, 'b', 'second', [[5, 2]]), [{ partition: 2, offset: 3 }])
  })
  await t.test('have 1 to 200 of their alphabet', async () => {
    for (const name of ['', 'a b', 'ü', 'x'.repeat(201)])
      assertRefused(await send(api, 'b', name, [[0]]), 400, 'NAME_INVALID', ['producer_id'])
    for (const name of ['.', '..', 'x'.repeat(200)]) assert.equal((await produce(api, 'b', name, [[0]])).length, 1)
    assert.equal((await api.call('DELETE', `/admin/producers/${'x'.repeat(200)}`)).status, 204)
  })
  await t.test('are neither claimed nor looked at by a request without records', async () => {
    const answer = await api.post('/topics/b/produce', '{"producer_id":"not a name","records":[]}')
    assert.deepEqual([answer.status, answer.text], [200, '{"results":[]}'])
  })
  await t.test('leave sequences without meaning when there is none', async () => {
    const plain = '{"records":[{"value":"v","partition":1,"sequence":7},{"value":"v","partition":1,"sequence":7}]}'
    assert.equal((await api.post('/topics/b/produce', plain)).status, 200)
  })
})

describe('a broker that starts again', () => {
  for (const shards of [1, 3] as const) {
    test(`knows duplicates, gaps and who was forgotten, with ${shards} shard(s)`, async t => {
      const dataDir = temporaryDirectory(t)
      const first = await startBroker(t, { dataDir, variant: { engine: 'node', shards } })
      const before = new HttpApi(first.url)
      await before.createTopic('t', 3)
      await before.createTopic('gone', 3)
      const spread = (sequence: number): Numbered[] => range(3).map(partition => [sequence, partition])
      for (let i = 0; i < 150; i++) await produce(before, 't', 'p', spread(i))
      await produce(before, 't', 'forgotten', spread(0))
      await produce(before, 'gone', 'p', spread(0))
      assert.equal((await before.call('DELETE', '/admin/producers/forgotten')).status, 204)
      assert.equal((await before.call('DELETE', '/topics/gone')).status, 200)
      const listedBefore = await listed(before)
      await first.stop()

      const second = await startBroker(t, { dataDir, variant: { engine: 'node', shards } })
      const api = new HttpApi(second.url)
      assert.deepEqual(await listed(api), listedBefore)
      for (const sequence of [22, 149]) {
        const results = await produce(api, 't', 'p', spread(sequence))
        assert.ok(results.every(result => result.duplicate === true && result.offset === sequence))
      }
      assertRefused(await send(api, 't', 'p', spread(21)), 400, 'SEQUENCE_TOO_LOW')
      assertRefused(await send(api, 't', 'p', spread(151)), 400, 'SEQUENCE_GAP')
      assert.ok((await produce(api, 't', 'p', spread(150))).every(result => result.duplicate === undefined))
      assert.ok((await produce(api, 't', 'forgotten', spread(0))).every(result => result.duplicate === undefined))
    })
  }
})

test('produces of one ES01 connection keep their order, whichever of them the broker holds', async t => {
  const broker = await startBroker(t, { variant: { engine: 'node', shards: 3 } })
  const api = new HttpApi(broker.url)
  await api.createTopic('order', 3)
  const raw = await greetRaw(t, broker.es01)
  /** Without an id, over three shards and one; with an id that is known, or new; all of them reach partition 0. */
  const kinds = [
    { producer: () => null, partitions: 3 },
    { producer: () => 'over-three', partitions: 3 },
    { producer: () => 'over-one', partitions: 1 },
    { producer: (i: number) => `new-${i}`, partitions: 1 },
    { producer: (i: number) => `new-${i}`, partitions: 3 }
  ] as const
  const frames = range(60).map(i => {
    const kind = kinds[i % kinds.length] ?? kinds[0]
    const sequence = BigInt(Math.floor(i / kinds.length))
    const records = range(kind.partitions).map(partition => ({ value: String(i), partition, sequence }))
    return encodeProduceFrame(i, 'order', records, kind.producer(i))
  })
  raw.send(Buffer.concat(frames))
  for (const _ of frames) assert.equal((await raw.frame()).opcode, 0x81)
  const values = (await api.consumeAll('order', 0)).map(record => Number(record.value))
  assert.deepEqual(values, range(60))
  await waitFor('every id to be claimed', async () => (await listed(api)).length === 2 + 24)
})
