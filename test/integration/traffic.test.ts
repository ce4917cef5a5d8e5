/** What the broker counts of each topic against what was sent and received, over both protocols. */
import assert from 'node:assert/strict'
import type { ProduceRecord } from '../../src/client/es01/client.ts'
import { toTopicId } from '../../src/model/ids.ts'
import type { TestBroker } from '../support/broker.ts'
import { openClient, range } from '../support/es01-session.ts'
import { assertRefused, onBothEngines, parse, type HttpApi } from '../support/http-api.ts'

/** Counts of records and of bytes in keys and values. */
class Tally {
  records = 0
  bytes = 0

  add(records: readonly { readonly key?: Buffer | string | null; readonly value: Buffer | string }[]): void {
    for (const { key, value } of records) {
      this.records++
      this.bytes += lengthOf(key ?? '') + lengthOf(value)
    }
  }
}

function lengthOf(field: Buffer | string): number {
  return typeof field === 'string' ? Buffer.byteLength(field) : field.length
}

/** The topics of a fresh broker in the order in which the test creates them: their ids count from 1. */
function countsOf(broker: TestBroker, ordinal: number, produced: Tally, consumed: Tally): void {
  assert.deepEqual(broker.server.traffic.of(toTopicId(ordinal)), {
    producedRecords: produced.records,
    producedBytes: produced.bytes,
    consumedRecords: consumed.records,
    consumedBytes: consumed.bytes
  })
}

async function produceAs(api: HttpApi, topic: string, producer: string, records: readonly object[]): Promise<string> {
  const answer = await api.post(`/topics/${topic}/produce`, { producer_id: producer, records })
  return parse<{ results: { duplicate?: boolean }[] }>(answer)
    .results.map(({ duplicate }) => (duplicate === true ? 'd' : 'n'))
    .join('')
}

onBothEngines('a topic counts what is produced to it and consumed from it', async (t, api, broker) => {
  const client = await openClient(t, broker.es01)
  // Five partitions: with three shards a request has records for all of them.
  for (const name of ['plain', 'again', 'long', 'quiet']) await api.createTopic(name, 5)

  await t.test('in records, and in bytes of keys and values as they are stored, over both protocols', async () => {
    const [produced, consumed] = [new Tally(), new Tally()]
    const texts = ['', 'plain', 'Größe 漢字 😀', '\u0000"\\\n', 'x'.repeat(5000)]
    const overHttp = texts.flatMap((value, i) => [
      { key: value.slice(0, 6), value },
      { value, partition: i },
      { key: '', value, partition: 0 }
    ])
    await api.produce('plain', overHttp)
    produced.add(overHttp)
    const overEs01: ProduceRecord[] = range(40).map(i => ({
      key: i % 3 === 0 ? null : Buffer.alloc(i, 0xfe),
      value: Buffer.alloc(i * 17, 0xff),
      partition: i % 5
    }))
    await client.produce('plain', overEs01)
    produced.add(overEs01.map(({ key, value }) => ({ key: bufferOf(key), value: bufferOf(value) ?? '' })))
    countsOf(broker, 1, produced, consumed)

    for (const partition of range(5)) {
      // From the middle of a batch, cut by max_records.
      const answer = await client.consume({ topic: 'plain', partition, offset: 1, maxRecords: 4, maxBytes: 1 << 20 })
      assert.equal(answer.records.length, 4)
      consumed.add(answer.records)
      // base64 tells the bytes; utf8 of the same has as many, though its text is longer or shorter.
      const { records } = await api.consume('plain', partition, 'offset=0&max_records=50&encoding=base64')
      const bytes = records.map(({ key, value }) => ({ key: decoded(key), value: decoded(value) ?? '' }))
      consumed.add(bytes)
      await api.consume('plain', partition, 'offset=0&max_records=50')
      consumed.add(bytes)
    }
    countsOf(broker, 1, produced, consumed)
  })

  await t.test('duplicates were produced once', async () => {
    const [produced, consumed] = [new Tally(), new Tally()]
    const sent = range(30).map(i => ({
      key: `k${i}`,
      value: 'v'.repeat(i),
      partition: i % 5,
      sequence: Math.floor(i / 5)
    }))
    assert.equal(await produceAs(api, 'again', 'p', sent.slice(0, 20)), 'n'.repeat(20))
    produced.add(sent.slice(0, 20))
    // All again, then half of it again with new ones behind, over all shards and in one partition.
    assert.equal(await produceAs(api, 'again', 'p', sent.slice(0, 20)), 'd'.repeat(20))
    assert.equal(await produceAs(api, 'again', 'p', sent.slice(10)), 'd'.repeat(10) + 'n'.repeat(10))
    produced.add(sent.slice(20))
    const ofOne = sent.filter(({ partition }) => partition === 3)
    const more = { key: null, value: 'more', partition: 3, sequence: 6 }
    assert.equal(await produceAs(api, 'again', 'p', [...ofOne, more]), 'dddddd' + 'n')
    produced.add([more])
    const overEs01 = [...ofOne, more].map(record => ({ ...record, sequence: BigInt(record.sequence) }))
    assert.ok((await client.produce('again', overEs01, 'p')).every(({ duplicate }) => duplicate))
    countsOf(broker, 2, produced, consumed)
  })

  await t.test('an answer of many pieces is counted once, and whole', async () => {
    const [produced, consumed] = [new Tally(), new Tally()]
    const records = range(70).map(i => ({ value: 'y'.repeat(20_000 + i), partition: 2 }))
    for (let i = 0; i < 70; i += 10) await api.produce('long', records.slice(i, i + 10))
    produced.add(records)
    const whole = 'offset=0&max_records=100&max_bytes=8388608'
    assert.equal((await api.consume('long', 2, whole)).records.length, 70)
    consumed.add(records)
    const read = { topic: 'long', partition: 2, offset: 0, maxRecords: 100, maxBytes: 8_388_608 }
    assert.equal((await client.consume(read)).records.length, 70)
    consumed.add(records)
    // One record that is larger than max_bytes comes all the same.
    await client.consume({ ...read, offset: 5, maxBytes: 1 })
    consumed.add(records.slice(5, 6))
    countsOf(broker, 3, produced, consumed)
  })

  await t.test('what is refused or empty counts for nothing', async () => {
    const none = new Tally()
    const wrong = [
      { value: 'v', partition: 0 },
      { value: 'v', partition: 9 }
    ]
    assertRefused(await api.post('/topics/quiet/produce', { records: wrong }), 400, 'PARTITION_RANGE')
    const gap = [
      { value: 'v', partition: 0, sequence: 0 },
      { value: 'v', partition: 0, sequence: 2 }
    ]
    const refused = await api.post('/topics/quiet/produce', { producer_id: 'q', records: gap })
    assertRefused(refused, 400, 'SEQUENCE_GAP')
    assert.deepEqual((await api.consume('quiet', 0, 'offset=0')).records, [])
    await api.produce('quiet', [])
    countsOf(broker, 4, none, none)
  })

  await t.test('a topic made again begins at nothing', async () => {
    await api.call('DELETE', '/topics/plain')
    await api.createTopic('plain')
    countsOf(broker, 1, new Tally(), new Tally())
    countsOf(broker, 5, new Tally(), new Tally())
  })
})

function bufferOf(field: Uint8Array | string | null | undefined): Buffer | null {
  if (field === null || field === undefined) return null
  return typeof field === 'string' ? Buffer.from(field) : Buffer.from(field)
}

function decoded(text: string | null): Buffer | null {
  return text === null ? null : Buffer.from(text, 'base64')
}
