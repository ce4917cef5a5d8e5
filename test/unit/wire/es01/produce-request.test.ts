/** The listener's decoder of produce payloads: what it says of records, what it writes to a ring, what it refuses. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { copied } from '../../../../src/base/copy.ts'
import { fnv1a64Modulo, murmur2Modulo } from '../../../../src/base/hash.ts'
import { limits } from '../../../../src/model/limits.ts'
import { encodeProduceFrame } from '../../../../src/wire/es01/produce-frame.ts'
import type { ProduceRecord } from '../../../../src/wire/es01/produce-frame.ts'
import { ProduceDecoder } from '../../../../src/wire/es01/produce-request.ts'
import { parseRing } from '../../gateway/es01/fake-broker.ts'

/** Any generator of 32-bit numbers would do; this one is small and has no short cycle that matters here. */
function randomFrom(seed: number): (below: number) => number {
  let state = seed >>> 0
  return below => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

function decoded(frame: Buffer): ProduceDecoder {
  const decoder = new ProduceDecoder()
  assert.ok(decoder.decode(frame, 9, frame.length), decoder.problem)
  return decoder
}

const records: ProduceRecord[] = [
  { key: 'user-1', value: 'a' },
  { value: '', partition: 2 },
  { key: '', value: 'empty key', sequence: 5n },
  { value: Buffer.alloc(100, 1), partition: 0 }
]

describe('a decoded request', () => {
  test('tells sizes, partitions and keys of its records', () => {
    const source = decoded(encodeProduceFrame(1, 'topic', records))
    assert.equal(source.topic, 'topic')
    assert.equal(source.producerId, null)
    assert.equal(source.count, 4)
    assert.deepEqual(
      [0, 1, 2, 3].map(i => source.payloadBytesOf(i)),
      [7, 0, 9, 100]
    )
    assert.deepEqual(
      [0, 1, 2, 3].map(i => source.ringBytesOf(i)),
      [27, 20, 29, 120]
    )
    assert.equal(source.ringBytes, 196)
    assert.deepEqual([source.largestPayloadBytes, source.largestPayloadIndex], [100, 3])
    assert.deepEqual(
      [0, 1, 2, 3].map(i => source.partitionOf(i)),
      [-1, 2, -1, 0]
    )
  })

  test('routes keys as the specification shows: user-1 to 0 and user-2 to 1 of two, no key to nowhere', () => {
    const source = decoded(
      encodeProduceFrame(1, 't', [{ key: 'user-1', value: '' }, { key: 'user-2', value: '' }, { value: '' }])
    )
    assert.deepEqual(
      [0, 1, 2].map(i => source.hashKeyOf(i, 2, fnv1a64Modulo)),
      [0, 1, -1]
    )
  })

  test('goes to a ring as a whole or record by record with the same bytes, each byte copied once', () => {
    const source = decoded(encodeProduceFrame(1, 't', records))
    const partitions = Uint32Array.of(3, 2, 1, 0)
    const whole = Buffer.from(new SharedArrayBuffer(source.ringBytes + 10))
    const before = copied.bytes
    assert.equal(source.writeAll(partitions, whole, 5), 5 + source.ringBytes)
    assert.equal(copied.bytes - before, source.ringBytes)
    const single = Buffer.alloc(whole.length)
    let at = 5
    for (let i = 0; i < source.count; i++) at = source.writeRecord(i, partitions[i] as number, single, at)
    assert.equal(at, 5 + source.ringBytes)
    assert.ok(single.equals(Buffer.from(whole)))
    assert.deepEqual(
      parseRing(single.subarray(5), 4).map(({ key, value, partition, sequence }) => [
        key?.toString(),
        value.length,
        partition,
        sequence
      ]),
      [
        ['user-1', 1, 3, -(2n ** 63n)],
        [undefined, 0, 2, -(2n ** 63n)],
        ['', 9, 1, 5n],
        [undefined, 100, 0, -(2n ** 63n)]
      ]
    )
  })

  test('reads any negative key length or partition as none, and writes it as −1', () => {
    const frame = encodeProduceFrame(1, 't', [{ value: 'v', partition: 1 }])
    const recordAt = frame.length - 21
    frame.writeInt32BE(-7, recordAt)
    frame.writeInt32BE(-2147483648, frame.length - 12)
    const source = decoded(frame)
    assert.deepEqual([source.partitionOf(0), source.hashKeyOf(0, 3, fnv1a64Modulo)], [-1, -1])
    const ring = Buffer.alloc(source.ringBytes)
    source.writeAll(Uint32Array.of(6), ring, 0)
    assert.deepEqual(parseRing(ring, 1)[0]?.partition, 6)
    const single = Buffer.alloc(source.ringBytes)
    source.writeRecord(0, 6, single, 0)
    assert.deepEqual(single, ring)
  })

  test('may have no records, and bytes behind its records are ignored', () => {
    const empty = encodeProduceFrame(1, 't', [])
    assert.equal(decoded(empty).count, 0)
    assert.equal(decoded(empty).writeAll(new Uint32Array(), Buffer.alloc(0), 0), 0)
    const source = decoded(Buffer.concat([encodeProduceFrame(1, 't', records), Buffer.alloc(50, 0xff)]))
    assert.equal(source.ringBytes, 196)
  })

  test('counts more records than a request may have, without keeping their places', () => {
    const count = limits.requestRecordsMax + 5
    const source = decoded(
      encodeProduceFrame(
        1,
        't',
        Array.from({ length: count }, () => ({ value: '' }))
      )
    )
    assert.equal(source.count, count)
    assert.equal(source.ringBytes, count * 20)
  })
})

describe('a malformed request', () => {
  test('is refused wherever it ends', () => {
    const frame = encodeProduceFrame(1, 'topic', records, 'producer')
    const decoder = new ProduceDecoder()
    for (let end = 9; end < frame.length; end++) {
      assert.equal(decoder.decode(frame, 9, end), false, `${end}`)
      assert.equal(decoder.count, 0)
    }
    assert.ok(decoder.decode(frame, 9, frame.length))
    assert.equal(decoder.producerId, 'producer')
  })

  test('is refused for a topic or producer id that is not UTF-8', () => {
    const decoder = new ProduceDecoder()
    const topic = encodeProduceFrame(1, 'to', [])
    topic[11] = 0xff
    assert.equal(decoder.decode(topic, 9, topic.length), false)
    assert.match(decoder.problem, /topic is not UTF-8/)
    const producer = encodeProduceFrame(1, 't', [], 'p')
    producer[16] = 0xff
    assert.equal(decoder.decode(producer, 9, producer.length), false)
    assert.match(decoder.problem, /producer_id is not UTF-8/)
  })

  test('names the record and the length that lies', () => {
    const decoder = new ProduceDecoder()
    const frame = encodeProduceFrame(1, 't', [{ value: '' }, { key: 'k', value: 'v' }])
    frame.writeInt32BE(1000, frame.length - 22)
    assert.equal(decoder.decode(frame, 9, frame.length), false)
    assert.match(decoder.problem, /record 1: key_len is 1000/)
  })

  test('with a lying count is refused before memory is taken for it', () => {
    const decoder = new ProduceDecoder()
    const frame = encodeProduceFrame(1, 't', records)
    const before = process.memoryUsage().arrayBuffers
    for (const count of [10, 100_000, 0x7fffffff, 0xffffffff]) {
      frame.writeUInt32BE(count, 16)
      assert.equal(decoder.decode(frame, 9, frame.length), false, `${count}`)
      assert.match(decoder.problem, new RegExp(`count is ${count}`))
    }
    assert.ok(process.memoryUsage().arrayBuffers - before < 100_000)
  })

  test('never makes the decoder fail in another way, whatever the bytes', t => {
    const seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 31))
    t.diagnostic(`seed ${seed}; replay: SEED=${seed} node --test test/unit/wire/es01/produce-request.test.ts`)
    const random = randomFrom(seed)
    const decoder = new ProduceDecoder()
    let accepted = 0
    for (let round = 0; round < 5000; round++) {
      const frame = encodeProduceFrame(1, 'topic', records.slice(0, random(5)), random(4) === 0 ? 'p' : null)
      for (let flips = random(3); flips > 0; flips--) frame[9 + random(frame.length - 9)] = random(256)
      const end = random(3) === 0 ? 9 + random(frame.length - 8) : frame.length
      if (!decoder.decode(frame, 9, end)) continue
      accepted++
      let sum = 0
      for (let i = 0; i < decoder.count; i++) {
        assert.equal(decoder.payloadBytesOf(i), decoder.ringBytesOf(i) - 20)
        assert.ok(decoder.partitionOf(i) >= -1)
        assert.ok(decoder.hashKeyOf(i, 7, murmur2Modulo) < 7)
        sum += decoder.ringBytesOf(i)
      }
      assert.equal(sum, decoder.ringBytes)
      const ring = Buffer.alloc(sum)
      assert.equal(decoder.writeAll(new Uint32Array(decoder.count), ring, 0), sum)
      assert.equal(parseRing(ring, decoder.count).length, decoder.count)
    }
    assert.ok(accepted > 500, 'enough of the inputs were well-formed to test anything')
  })
})
