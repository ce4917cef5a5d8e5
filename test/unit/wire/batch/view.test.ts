import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { BugError } from '../../../../src/base/assert.ts'
import { crc32c } from '../../../../src/base/crc32c.ts'
import {
  BatchView,
  RecordCursor,
  baseOffsetAt,
  batchBytesAt,
  batchStatus,
  checkBatch,
  lastOffsetDeltaAt
} from '../../../../src/wire/batch/view.ts'
import { newRandom } from '../../ring/random.ts'
import { kafkaRecord, varint } from './ring-records.ts'
import type { KafkaRecord } from './ring-records.ts'

/** Header fields of a test batch, in Kafka's own widths. */
interface TestHeader {
  baseOffset?: bigint
  attributes?: number
  lastOffsetDelta?: number
  baseTimestamp?: bigint
  maxTimestamp?: bigint
  recordCount?: number
}

/** A whole batch around the given record bytes, with a right length and CRC, as a Kafka producer would send it. */
function batchOf(records: readonly Buffer[], header: TestHeader = {}): Buffer {
  const batch = Buffer.concat([Buffer.alloc(61), ...records])
  batch.writeBigInt64BE(header.baseOffset ?? 40n, 0)
  batch.writeInt32BE(batch.length - 12, 8)
  batch.writeInt32BE(9, 12)
  batch.writeInt8(2, 16)
  batch.writeInt16BE(header.attributes ?? 0, 21)
  batch.writeInt32BE(header.lastOffsetDelta ?? Math.max(0, records.length - 1), 23)
  batch.writeBigInt64BE(header.baseTimestamp ?? 1000n, 27)
  batch.writeBigInt64BE(header.maxTimestamp ?? 2000n, 35)
  batch.writeBigInt64BE(77n, 43)
  batch.writeInt16BE(5, 51)
  batch.writeInt32BE(6, 53)
  batch.writeInt32BE(header.recordCount ?? records.length, 57)
  return sealed(batch)
}

function sealed(batch: Buffer): Buffer {
  batch.writeUInt32BE(crc32c(batch, 21, batch.length), 17)
  return batch
}

interface Walked {
  status: number
  records: { offsetDelta: number; timestampDelta: number; key: Buffer | null; value: Buffer | null; headers: number }[]
}

function walk(bytes: Buffer, start: number, end: number): Walked {
  const view = new BatchView()
  const status = view.open(bytes, start, end)
  if (status !== batchStatus.ok) return { status, records: [] }
  const cursor = new RecordCursor()
  cursor.open(bytes, view)
  const records: Walked['records'] = []
  while (cursor.next()) {
    assert.ok(cursor.keyStart >= view.recordsStart && cursor.keyStart + cursor.keyLength <= view.end)
    assert.ok(cursor.valueStart >= cursor.keyStart && cursor.valueStart + cursor.valueLength <= view.end)
    assert.ok(cursor.headersStart <= cursor.headersEnd && cursor.headersEnd <= view.end)
    const part = (at: number, length: number): Buffer | null =>
      length < 0 ? null : Buffer.from(bytes.subarray(at, at + length))
    records.push({
      offsetDelta: cursor.offsetDelta,
      timestampDelta: cursor.timestampDeltaMs,
      key: part(cursor.keyStart, cursor.keyLength),
      value: part(cursor.valueStart, cursor.valueLength),
      headers: cursor.headerCount
    })
  }
  assert.equal(cursor.next(), false, 'the end is the end')
  return { status: cursor.status, records }
}

const PLAIN: KafkaRecord = { offsetDelta: 0, key: Buffer.from('k'), value: Buffer.from('v') }

describe('a batch is read as any Kafka producer may have written it', () => {
  it('every field of the header', () => {
    const batch = Buffer.concat([Buffer.alloc(5), batchOf([kafkaRecord(PLAIN)], { attributes: 0x18 }), Buffer.alloc(9)])
    const view = new BatchView()
    assert.equal(view.open(batch, 5, batch.length), batchStatus.ok)
    const { crc, ...fields } = view
    assert.equal(crc, batch.readUInt32BE(5 + 17))
    assert.deepEqual(fields, {
      start: 5,
      end: batch.length - 9,
      baseOffset: 40,
      lastOffset: 40,
      leaderEpoch: 9,
      attributes: 0x18,
      lastOffsetDelta: 0,
      baseTimestampMs: 1000,
      maxTimestampMs: 2000,
      producerId: 77,
      producerEpoch: 5,
      baseSequence: 6,
      recordCount: 1,
      recordsStart: 66
    })
    assert.deepEqual(
      [batchBytesAt(batch, 5), baseOffsetAt(batch, 5), lastOffsetDeltaAt(batch, 5)],
      [batch.length - 14, 40, 0]
    )
  })

  it('null and empty keys and values apart, headers, timestamps before the first, gaps left by compaction', () => {
    const long = Buffer.alloc(70_000, 3)
    const records: KafkaRecord[] = [
      { offsetDelta: 0, key: null, value: null },
      { offsetDelta: 3, timestampDelta: -5, key: Buffer.alloc(0), value: Buffer.alloc(0) },
      {
        offsetDelta: 200,
        timestampDelta: 2 ** 40,
        key: long,
        value: long,
        headers: [
          ['h', null],
          ['', Buffer.from('x')]
        ]
      },
      { offsetDelta: 2 ** 31 - 1, key: null, value: long, headers: [['name', long]] }
    ]
    const batch = batchOf(records.map(kafkaRecord), { lastOffsetDelta: 2 ** 31 - 1 })
    assert.deepEqual(walk(batch, 0, batch.length), {
      status: batchStatus.ok,
      records: records.map(({ offsetDelta, timestampDelta, key, value, headers }) => ({
        offsetDelta,
        timestampDelta: timestampDelta ?? 0,
        key,
        value,
        headers: headers?.length ?? 0
      }))
    })
  })

  it('a batch that compaction emptied has no records and no fault', () => {
    const batch = batchOf([], { lastOffsetDelta: 12 })
    assert.deepEqual(walk(batch, 0, batch.length), { status: batchStatus.ok, records: [] })
  })

  it('a compressed batch shows its header and none of its records', () => {
    const batch = batchOf([Buffer.from('squeezed')], { attributes: 4, recordCount: 100, lastOffsetDelta: 99 })
    const view = new BatchView()
    assert.equal(checkBatch(batch, 0, batch.length), batchStatus.ok)
    assert.equal(view.open(batch, 0, batch.length), batchStatus.compressed)
    assert.deepEqual([view.baseOffset, view.lastOffset, view.recordCount], [40, 139, 100])
    const cursor = new RecordCursor()
    cursor.open(batch, view)
    assert.deepEqual([cursor.next(), cursor.status], [false, batchStatus.compressed])
  })

  it('several batches behind each other are found by their lengths', () => {
    const both = Buffer.concat([batchOf([kafkaRecord(PLAIN)]), batchOf([kafkaRecord(PLAIN)], { baseOffset: 41n })])
    const second = batchBytesAt(both, 0)
    assert.deepEqual([checkBatch(both, 0, both.length), checkBatch(both, second, both.length)], [0, 0])
    assert.equal(baseOffsetAt(both, second), 41)
  })
})

describe('a damaged batch is refused with its reason', () => {
  const batch = batchOf([kafkaRecord(PLAIN), kafkaRecord({ ...PLAIN, offsetDelta: 1 })])

  it('cut off at any byte', () => {
    for (let end = 0; end < batch.length; end++) {
      assert.equal(checkBatch(batch, 0, end), batchStatus.truncated)
      assert.equal(new BatchView().open(batch, 0, end), batchStatus.truncated)
    }
    assert.throws(() => checkBatch(batch, 0, batch.length + 1), BugError)
  })

  it('any flipped bit from the magic on, but never in the base offset or the leader epoch', () => {
    for (let bit = 0; bit < batch.length * 8; bit++) {
      const damaged = Buffer.from(batch)
      const at = bit >>> 3
      damaged[at] = (damaged[at] as number) ^ (1 << (bit & 7))
      const status = checkBatch(damaged, 0, damaged.length)
      const isUncovered = at < 8 || (at >= 12 && at < 16)
      assert.equal(status === batchStatus.ok, isUncovered, `bit ${bit}`)
      if (at === 16) assert.equal(status, batchStatus.badMagic)
      if (at >= 17) assert.equal(status, batchStatus.badCrc)
    }
  })

  it('a length that lies, in every direction', () => {
    const lies: [number, number][] = [
      [-1, batchStatus.badLength],
      [0, batchStatus.badLength],
      [48, batchStatus.badLength],
      [-(2 ** 31), batchStatus.badLength],
      [49, batchStatus.badCrc],
      [batch.length - 11, batchStatus.truncated],
      [2 ** 31 - 1, batchStatus.truncated]
    ]
    for (const [length, wanted] of lies) {
      const lying = Buffer.from(batch)
      lying.writeInt32BE(length, 8)
      assert.equal(checkBatch(lying, 0, lying.length), wanted, `length ${length}`)
    }
  })

  it('numbers that no batch can have', () => {
    const record = kafkaRecord(PLAIN)
    const cases: [TestHeader, number][] = [
      [{ baseOffset: -1n }, batchStatus.badHeader],
      [{ baseOffset: 2n ** 53n }, batchStatus.badHeader],
      [{ baseOffset: 2n ** 53n - 1n, lastOffsetDelta: 1 }, batchStatus.badHeader],
      [{ lastOffsetDelta: -1 }, batchStatus.badHeader],
      [{ recordCount: -1 }, batchStatus.badHeader],
      [{ baseTimestamp: 2n ** 60n }, batchStatus.numberRange],
      [{ maxTimestamp: -(2n ** 63n) }, batchStatus.numberRange]
    ]
    for (const [header, wanted] of cases) {
      const bad = batchOf([record], header)
      assert.equal(
        new BatchView().open(bad, 0, bad.length),
        wanted,
        JSON.stringify(header, (_, v: unknown) => String(v))
      )
    }
  })

  it('records that do not add up', () => {
    const body = (hex: string): Buffer => {
      const bytes = Buffer.from(hex.replaceAll(' ', ''), 'hex')
      return Buffer.concat([varint(bytes.length), bytes])
    }
    const good = '00 00 00 02 6b 02 76 00'
    const cases: [string, Buffer, number?][] = [
      ['a good one', body(good), 1],
      ['a count above the records', body(good), 2],
      ['bytes behind the last record', Buffer.concat([body(good), Buffer.alloc(1)]), 1],
      ['fewer counted than there are', Buffer.concat([body(good), body(good)]), 1],
      ['a record longer than the batch', Buffer.from('7e00', 'hex')],
      ['a negative record length', Buffer.from('01000000000000', 'hex')],
      ['a record too short for its parts', Buffer.from('0a0000000000', 'hex')],
      ['a key over the end', body('00 00 00 20 6b 02 76 00')],
      ['a key length below null', body('00 00 00 03 02 76 00')],
      ['a value over the end', body('00 00 00 02 6b 06 76 00')],
      ['a value length below null', body('00 00 00 02 6b 05 76 00')],
      ['a header count that lies', body('00 00 00 02 6b 02 76 fe ff ff ff 0f')],
      ['a negative header count', body('00 00 00 02 6b 02 76 01')],
      ['a header name that is null', body('00 00 00 02 6b 02 76 02 01 01')],
      ['a header name over the end', body('00 00 00 02 6b 02 76 02 06 61 01')],
      ['a header value over the end', body('00 00 00 02 6b 02 76 02 02 61 08 61')],
      ['bytes behind the headers', body('00 00 00 02 6b 02 76 00 00')],
      ['a negative offset delta', body('00 00 01 02 6b 02 76 00')],
      ['an endless varint', body('00 ff ff ff ff ff ff ff ff ff ff ff')],
      ['an offset delta cut off', body('00 00 ff ff ff ff')],
      ['no header count', body('00 00 00 02 6b 04 76 76')]
    ]
    for (const [name, records, count] of cases) {
      const batch = batchOf([records], { recordCount: count ?? 1 })
      const wanted = name === 'a good one' ? batchStatus.ok : batchStatus.badRecord
      assert.equal(walk(batch, 0, batch.length).status, wanted, name)
    }
    const far = batchOf([kafkaRecord({ ...PLAIN, timestampDelta: 2n ** 60n })])
    assert.equal(walk(far, 0, far.length).status, batchStatus.numberRange)
  })
})

describe('hostile bytes', () => {
  /** Fails the test when the reader looks outside [start, end). */
  function guarded(bytes: Buffer, start: number, end: number): Buffer {
    return new Proxy(bytes, {
      get(target, name) {
        if (typeof name === 'string' && /^\d+$/.test(name)) {
          const at = Number(name)
          assert.ok(at >= start && at < end, `read of byte ${at} outside [${start}, ${end})`)
        }
        const value: unknown = Reflect.get(target, name, target)
        return typeof value === 'function' ? value.bind(target) : value
      }
    })
  }

  it('never lead the cursor outside the batch or into a loop', () => {
    const random = newRandom('test/unit/wire/batch/view.test.ts')
    let refused = 0
    for (let round = 0; round < 4000; round++) {
      const count = 1 + random.below(6)
      const records = Array.from({ length: count }, (_, offsetDelta) =>
        kafkaRecord({
          offsetDelta,
          timestampDelta: random.below(1000) - 500,
          key: random.below(3) === 0 ? null : random.bytes(random.below(70)),
          value: random.below(3) === 0 ? null : random.bytes(random.below(70)),
          headers: Array.from({ length: random.below(3) }, (): [string, Buffer | null] => [
            'h'.repeat(random.below(3)),
            random.below(2) === 0 ? null : random.bytes(random.below(9))
          ])
        })
      )
      const batch = batchOf(records)
      const bytes = Buffer.concat([random.bytes(16), batch, random.bytes(16)])
      const end = bytes.length - 16
      // The batch length stays true, so that the damage is inside; half of the rounds hit record headers, half any byte.
      const hits = 1 + random.below(3)
      for (let i = 0; i < hits; i++) {
        const at = 16 + 57 + random.below(random.below(2) === 0 ? 12 : batch.length - 57)
        if (at < end) bytes[at] = random.below(3) === 0 ? 0xff : random.below(256)
      }
      try {
        const { status, records: seen } = walk(guarded(bytes, 16, end), 16, end)
        if (status !== batchStatus.ok) refused++
        assert.ok(seen.length <= batch.length / 7)
      } catch (error) {
        throw new Error(`round ${round}; ${random.replay}`, { cause: error })
      }
    }
    assert.ok(refused > 1000, `most damage must be noticed by structure alone: ${refused} of 4000`)
  })

  it('of any kind are a status, never an exception', () => {
    const random = newRandom('test/unit/wire/batch/view.test.ts')
    for (let round = 0; round < 4000; round++) {
      const bytes = random.bytes(random.below(160))
      if (bytes.length > 61 && random.below(4) > 0) {
        bytes[16] = 2
        bytes.writeInt32BE(bytes.length - 12, 8)
        bytes.writeUInt32BE(0, 0)
        bytes[21] = 0
        bytes[22] = 0
        bytes.writeInt32BE(random.below(5), 57)
      }
      const { status } = walk(bytes, 0, bytes.length)
      assert.ok(status >= 0 && status <= batchStatus.numberRange, random.replay)
    }
  })
})
