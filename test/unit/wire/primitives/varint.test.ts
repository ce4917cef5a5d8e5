import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { VarintReader, varintBytes, writeVarint } from '../../../../src/wire/primitives/varint.ts'
import { newRandom } from '../../ring/random.ts'
import { varint } from '../batch/ring-records.ts'

/** Every number next to a change of length, both signs. */
function edges(bits: number): number[] {
  const numbers = new Set<number>([0])
  for (let bit = 0; bit <= bits; bit++) {
    for (const near of [-2, -1, 0, 1]) {
      for (const sign of [1, -1]) {
        const number = sign * (2 ** bit + near)
        if (number >= -(2 ** bits) && number < 2 ** bits && Number.isSafeInteger(number)) numbers.add(number + 0)
      }
    }
  }
  return [...numbers]
}

describe('varints', () => {
  it('of 32 bits are written, sized and read as the definition says, at every change of length', () => {
    const reader = new VarintReader()
    for (const number of [...edges(31), -(2 ** 31)]) {
      const wanted = varint(number)
      const seen = Buffer.alloc(8)
      assert.equal(writeVarint(seen, 1, number), 1 + wanted.length, `${number}`)
      assert.deepEqual(seen.subarray(1, 1 + wanted.length), wanted, `${number}`)
      assert.equal(varintBytes(number), wanted.length)
      assert.equal(reader.readInt(seen, 1, 8), 1 + wanted.length)
      assert.equal(reader.value, number)
      assert.equal(reader.readLong(seen, 1, 8), 1 + wanted.length)
      assert.equal(reader.value, number)
    }
  })

  it('of 64 bits are read likewise, as far as numbers are exact', () => {
    const reader = new VarintReader()
    for (const number of edges(53)) {
      const bytes = varint(number)
      assert.equal(reader.readLong(bytes, 0, bytes.length), bytes.length, `${number}`)
      assert.equal(reader.value, number)
    }
  })

  it('beyond exact numbers are stepped over and reported, never rounded', () => {
    const reader = new VarintReader()
    for (const big of [2n ** 53n, -(2n ** 53n), 2n ** 63n - 1n, -(2n ** 63n), 2n ** 60n + 1n]) {
      const bytes = varint(big)
      assert.equal(reader.readLong(bytes, 0, bytes.length), bytes.length)
      assert.ok(Number.isNaN(reader.value), `${big}`)
    }
  })

  it('cut off at any byte are refused, whatever follows', () => {
    const reader = new VarintReader()
    for (const number of [0, 64, -5000, 2 ** 20, 2 ** 31 - 1]) {
      const bytes = varint(number)
      for (let end = 0; end < bytes.length; end++) {
        assert.equal(reader.readInt(bytes, 0, end), -1)
        assert.equal(reader.readLong(bytes, 0, end), -1)
      }
    }
  })

  it('with more bits than their kind holds are refused', () => {
    const reader = new VarintReader()
    const tooLongForInt = ['ffffffff1f', 'ffffffff7f', 'ffffffffff01', '808080808000']
    for (const hex of tooLongForInt) assert.equal(reader.readInt(Buffer.from(hex, 'hex'), 0, hex.length / 2), -1, hex)
    const tooLongForLong = ['ffffffffffffffffff02', 'ffffffffffffffffffff01', '8080808080808080808000']
    for (const hex of tooLongForLong) assert.equal(reader.readLong(Buffer.from(hex, 'hex'), 0, hex.length / 2), -1, hex)
  })

  it('of any random bytes read as exact arithmetic reads them', () => {
    const random = newRandom('test/unit/wire/primitives/varint.test.ts')
    const reader = new VarintReader()
    for (let i = 0; i < 20_000; i++) {
      const bytes = random.bytes(11)
      for (let j = 0; j < 10; j++) if (random.below(4) > 0) bytes[j] = (bytes[j] as number) | 0x80
      let zigzag = 0n
      let length = 0
      do zigzag |= BigInt((bytes[length] as number) & 0x7f) << BigInt(7 * length)
      while ((bytes[length++] as number) >= 0x80 && length < bytes.length)
      const isWhole = (bytes[length - 1] as number) < 0x80
      const value = Number((zigzag >> 1n) ^ -(zigzag & 1n))
      const isInt = isWhole && length <= 5 && zigzag < 2n ** 32n
      assert.equal(reader.readInt(bytes, 0, 11), isInt ? length : -1, `${bytes.toString('hex')} ${random.replay}`)
      if (isInt) assert.equal(reader.value, value, random.replay)
      const isLong = isWhole && length <= 10 && zigzag < 2n ** 64n
      assert.equal(reader.readLong(bytes, 0, 11), isLong ? length : -1, `${bytes.toString('hex')} ${random.replay}`)
      if (isLong) assert.equal(reader.value, Number.isSafeInteger(value) ? value : NaN, random.replay)
    }
  })
})
