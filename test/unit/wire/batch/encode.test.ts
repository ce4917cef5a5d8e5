import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { describe, it } from 'node:test'
import { BugError } from '../../../../src/base/assert.ts'
import { copied } from '../../../../src/base/copy.ts'
import {
  BATCH_HEADER_BYTES,
  placeBatch,
  recordBodyBytes,
  recordBytes,
  sealBatch,
  writeRecord
} from '../../../../src/wire/batch/encode.ts'
import { checkBatch } from '../../../../src/wire/batch/view.ts'
import { newRandom } from '../../ring/random.ts'
import { ringBytesOf } from './ring-records.ts'
import type { TestRecord } from './ring-records.ts'

/** What the decoder of kafkajs, an independent reader of the format, makes of a batch. */
interface KafkajsBatch {
  firstOffset: string
  firstTimestamp: string
  maxTimestamp: string
  partitionLeaderEpoch: number
  inTransaction: boolean
  isControlBatch: boolean
  lastOffsetDelta: number
  producerId: string
  producerEpoch: number
  firstSequence: number
  timestampType: number
  records: { key: Buffer | null; value: Buffer | null; offset: string; timestamp: string; headers: object }[]
}
const require = createRequire(import.meta.url)
const Decoder: new (bytes: Buffer) => object = require('kafkajs/src/protocol/decoder.js')
const decodeBatch: (
  decoder: object
) => Promise<KafkajsBatch> = require('kafkajs/src/protocol/recordBatch/v0/decoder.js')

const TIMESTAMP_MS = 1_700_000_000_123

/** One batch of the records at target[at…], from sources of their own. @returns the position after it. */
function encodeBatch(
  records: readonly TestRecord[],
  target: Buffer,
  at: number,
  baseOffset: number,
  takesAppendTime = false
): number {
  let end = at + BATCH_HEADER_BYTES
  for (let i = 0; i < records.length; i++) {
    // A lead-in, so that places inside the source matter.
    const source = Buffer.concat([Buffer.alloc(i % 5, 0xee), ringBytesOf(records[i] as TestRecord)])
    end = writeRecord(target, end, i, source, i % 5)
  }
  const fields = { baseOffset, leaderEpoch: 3, timestampMs: TIMESTAMP_MS, recordCount: records.length }
  sealBatch(target, at, end, { ...fields, takesAppendTime })
  return end
}

/** CRC32C from the definition, bit by bit. */
function crcReference(bytes: Uint8Array): number {
  let crc = 0xffffffff
  for (const byte of bytes) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (-(crc & 1) & 0x82f63b78)
  }
  return ~crc >>> 0
}

describe('a batch made by the broker', () => {
  it('is the same bytes for ever', () => {
    const target = Buffer.alloc(200, 0xaa)
    const records = [
      { key: Buffer.from('k1'), value: Buffer.from('hello') },
      { key: null, value: Buffer.alloc(0) },
      { key: Buffer.alloc(0), value: Buffer.from('x') }
    ]
    const end = encodeBatch(records, target, 7, 0x1234_5678_9abc)
    const wanted = [
      '0000123456789abc 0000004e 00000003 02 95b73ece 0000 00000002',
      '0000018bcfe5687b 0000018bcfe5687b ffffffffffffffff ffff ffffffff 00000003',
      '1a 00 00 00 04 6b31 0a 68656c6c6f 00',
      '0c 00 00 02 01 01 00',
      '0e 00 00 04 00 02 78 00'
    ]
    assert.equal(target.toString('hex', 7, end), wanted.join('').replaceAll(' ', ''))
    assert.deepEqual(
      [target.subarray(0, 7), target.subarray(end)],
      [Buffer.alloc(7, 0xaa), Buffer.alloc(200 - end, 0xaa)]
    )
  })

  it('is read by an independent Kafka decoder with every record as it was sent', async () => {
    const random = newRandom('test/unit/wire/batch/encode.test.ts')
    const target = Buffer.from(new SharedArrayBuffer(1 << 20))
    for (let round = 0; round < 40; round++) {
      const records = Array.from({ length: 1 + random.below(200) }, () => ({
        key: random.below(3) === 0 ? null : random.bytes(random.below(90)),
        value: random.bytes(random.below(5) === 0 ? 0 : random.below(300))
      }))
      const baseOffset = random.below(2 ** 31) * 1000
      const takesAppendTime = round % 2 === 1
      const end = encodeBatch(records, target, 16, baseOffset, takesAppendTime)
      assert.equal(checkBatch(target, 16, end), 0, random.replay)
      const batch = await decodeBatch(new Decoder(Buffer.from(target.subarray(16, end))))
      const { records: decoded, ...header } = batch
      assert.deepEqual(header, {
        firstOffset: String(baseOffset),
        firstTimestamp: String(TIMESTAMP_MS),
        partitionLeaderEpoch: 3,
        inTransaction: false,
        isControlBatch: false,
        lastOffsetDelta: records.length - 1,
        producerId: '-1',
        producerEpoch: -1,
        firstSequence: -1,
        maxTimestamp: String(TIMESTAMP_MS),
        timestampType: takesAppendTime ? 1 : 0
      })
      assert.deepEqual(
        decoded.map(({ key, value, offset, timestamp, headers }) => ({ key, value, offset, timestamp, headers })),
        records.map(({ key, value }, i) => ({
          key,
          // D26: an empty value is stored as null.
          value: value.length === 0 ? null : value,
          offset: String(baseOffset + i),
          timestamp: String(TIMESTAMP_MS),
          headers: {}
        })),
        random.replay
      )
    }
  })

  it('carries the CRC32C of everything from byte 21 on, and keeps it when it is given its place', () => {
    const random = newRandom('test/unit/wire/batch/encode.test.ts')
    for (const bytes of [1, 100, 1000, 70_000]) {
      const target = Buffer.alloc(80_000)
      const end = encodeBatch([{ key: null, value: random.bytes(bytes) }], target, 0, 5)
      const crc = crcReference(target.subarray(21, end))
      assert.equal(target.readUInt32BE(17), crc)
      placeBatch(target, 0, 2 ** 53 - 1, 77)
      assert.deepEqual([target.readBigInt64BE(0), target.readInt32BE(12)], [2n ** 53n - 1n, 77])
      assert.equal(target.readUInt32BE(17), crcReference(target.subarray(21, end)))
      assert.equal(checkBatch(target, 0, end), 0)
    }
  })

  it('takes exactly the bytes that were planned, at every change of a varint', () => {
    const around = (edge: number): number[] => [edge - 2, edge - 1, edge, edge + 1].filter(number => number >= 0)
    const lengths = [...around(0), ...around(40), ...around(64), ...around(8192), 2 ** 20 - 1, 2 ** 20]
    const deltas = [0, 1, 63, 64, 8191, 8192, 2 ** 20 - 1, 2 ** 20, 2 ** 27 - 1, 2 ** 27, 2 ** 31 - 1]
    const target = Buffer.alloc(2 ** 21 + 8192 + 100)
    for (const valueLength of lengths) {
      for (const keyLength of [-1, 0, 1, 63, 64, 8191, 8192]) {
        const record = { key: keyLength < 0 ? null : Buffer.alloc(keyLength, 1), value: Buffer.alloc(valueLength, 2) }
        const source = ringBytesOf(record)
        for (const delta of valueLength < 10_000 ? deltas : [0, 2 ** 27]) {
          const planned = recordBytes(delta, recordBodyBytes(keyLength, valueLength, 1))
          assert.equal(writeRecord(target, 3, delta, source, 0), 3 + planned, `${delta} ${keyLength} ${valueLength}`)
        }
      }
    }
  })

  it('copies each key and value once', () => {
    const target = Buffer.alloc(10_000)
    const records = [
      { key: Buffer.alloc(30), value: Buffer.alloc(3000) },
      { key: null, value: Buffer.alloc(20) }
    ]
    const before = copied.bytes
    encodeBatch(records, target, 0, 0)
    assert.equal(copied.bytes - before, 3050)
  })

  it('without records, or with impossible lengths, is a bug of the caller', () => {
    const target = Buffer.alloc(200)
    const fields = { baseOffset: 0, leaderEpoch: 0, timestampMs: 0, recordCount: 1, takesAppendTime: false }
    assert.throws(() => sealBatch(target, 0, 61, fields), BugError)
    assert.throws(() => sealBatch(target, 0, 201, fields), BugError)
    assert.throws(() => sealBatch(target, 0, 70, { ...fields, recordCount: 0 }), BugError)
    assert.throws(() => placeBatch(target, 0, -1, 0), BugError)
    const source = ringBytesOf({ key: null, value: Buffer.from('v') })
    source.writeInt32BE(-2, 0)
    assert.throws(() => writeRecord(target, 0, 0, source, 0), BugError)
    source.writeInt32BE(-1, 0)
    source.writeInt32BE(-1, 4)
    assert.throws(() => writeRecord(target, 0, 0, source, 0), BugError)
  })
})
