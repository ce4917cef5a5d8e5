import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { BugError } from '../../../../src/base/assert.ts'
import {
  highOf,
  isSafeU64,
  joinI64,
  readI16,
  readI32,
  readI64,
  readU16,
  readU32,
  readU64,
  write64,
  writeU16,
  writeU32
} from '../../../../src/wire/primitives/u64.ts'
import { newRandom } from '../../ring/random.ts'

const EDGES = [0, 1, 255, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1, 2 ** 32, 2 ** 32 + 1, 2 ** 52, 2 ** 53 - 1]

describe('64-bit numbers on the wire', () => {
  it('are written exactly as Buffer writes them, negative ones too', () => {
    const random = newRandom('test/unit/wire/primitives/u64.test.ts')
    const numbers = EDGES.flatMap(edge => [edge, 0 - edge])
    for (let i = 0; i < 500; i++)
      numbers.push((random.below(2 ** 21) * 2 ** 32 + random.below(2 ** 32)) * (i % 2 ? 1 : -1) + 0)
    for (const number of numbers) {
      const seen = Buffer.alloc(10)
      const wanted = Buffer.alloc(10)
      write64(seen, 1, number)
      wanted.writeBigInt64BE(BigInt(number), 1)
      assert.deepEqual(seen, wanted, `${number} ${random.replay}`)
      assert.equal(readI64(seen, 1), number)
      assert.equal(joinI64(highOf(number) | 0, number >>> 0), number)
      if (number >= 0) assert.equal(readU64(seen, 1), number)
    }
  })

  it('beyond 2^53 − 1 are reported, never rounded', () => {
    const bytes = Buffer.alloc(8)
    for (const big of [2n ** 53n, 2n ** 53n + 1n, 2n ** 63n - 1n, 2n ** 63n, 2n ** 64n - 1n]) {
      bytes.writeBigUInt64BE(big)
      assert.equal(readU64(bytes, 0), -1)
      assert.equal(isSafeU64(bytes.readUInt32BE(0)), false)
    }
    for (const big of [2n ** 53n, -(2n ** 53n), 2n ** 63n - 1n, -(2n ** 63n), -(2n ** 53n) - 1n]) {
      bytes.writeBigInt64BE(big)
      assert.ok(Number.isNaN(readI64(bytes, 0)), `${big}`)
    }
    assert.equal(isSafeU64(2 ** 21 - 1), true)
    for (const number of [2 ** 53, 0.5, NaN]) assert.throws(() => write64(bytes, 0, number), BugError)
  })

  it('16 and 32 bits read back as Buffer reads them', () => {
    const random = newRandom('test/unit/wire/primitives/u64.test.ts')
    for (let i = 0; i < 500; i++) {
      const bytes = random.bytes(6)
      assert.deepEqual(
        [readI16(bytes, 1), readU16(bytes, 1), readI32(bytes, 1), readU32(bytes, 1)],
        [bytes.readInt16BE(1), bytes.readUInt16BE(1), bytes.readInt32BE(1), bytes.readUInt32BE(1)],
        random.replay
      )
      const written = Buffer.alloc(6)
      const after = writeU32(written, writeU16(written, 0, readI16(bytes, 0)), readI32(bytes, 2))
      assert.equal(after, 6)
      assert.deepEqual(written, bytes)
    }
  })
})
