import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { BugError } from '../../../src/base/assert.ts'
import { crc32c, crc32cPlain } from '../../../src/base/crc32c.ts'
import { nativeCrc32c, nativeCrc32cProblem } from '../../../src/base/crc32c-native.ts'
import { newRandom } from '../ring/random.ts'

/** Bit by bit, from the definition of the polynomial. */
function reference(bytes: Uint8Array): number {
  let crc = 0xffffffff
  for (const byte of bytes) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (-(crc & 1) & 0x82f63b78)
  }
  return ~crc >>> 0
}

describe('CRC32C', () => {
  it('gives the published values', () => {
    // The 32-byte ones are from RFC 3720, appendix B.4.
    const vectors: [Buffer, number][] = [
      [Buffer.alloc(0), 0],
      [Buffer.from('123456789'), 0xe3069283],
      [Buffer.alloc(32), 0x8a9136aa],
      [Buffer.alloc(32, 0xff), 0x62a8ab43],
      [Buffer.from(Array.from({ length: 32 }, (_, i) => i)), 0x46dd794e]
    ]
    for (const [bytes, wanted] of vectors) {
      assert.equal(crc32c(bytes, 0, bytes.length), wanted)
      assert.equal(crc32cPlain(bytes, 0, bytes.length), wanted)
    }
  })

  it('uses the native code on the machines it is published for', () => {
    if (process.platform !== 'linux' || process.arch !== 'x64') return
    assert.equal(nativeCrc32cProblem, null)
    assert.notEqual(nativeCrc32c, null)
  })

  it('is the same from native code, from the tables and bit by bit, at every length and place', () => {
    const random = newRandom('test/unit/base/crc32c.test.ts')
    const bytes = random.bytes(4096)
    const shared = Buffer.from(new SharedArrayBuffer(bytes.length))
    bytes.copy(shared)
    for (let round = 0; round < 1500; round++) {
      const start = random.below(600)
      const end = start + (round < 1000 ? random.below(400) : random.below(bytes.length - start + 1))
      const wanted = reference(bytes.subarray(start, end))
      const seen = [crc32c(bytes, start, end), crc32c(shared, start, end), crc32cPlain(shared, start, end)]
      assert.deepEqual(seen, [wanted, wanted, wanted], `${random.replay} [${start}, ${end})`)
    }
    assert.equal(crc32c(bytes, 0, bytes.length), reference(bytes))
  })

  it('can be continued over any split', () => {
    const random = newRandom('test/unit/base/crc32c.test.ts')
    const bytes = random.bytes(1200)
    const whole = reference(bytes)
    for (let split = 0; split <= bytes.length; split += 1 + random.below(7)) {
      const first = crc32c(bytes, 0, split)
      assert.equal(crc32c(bytes, split, bytes.length, first), whole, `${random.replay} split ${split}`)
      assert.equal(crc32cPlain(bytes, split, bytes.length, first), whole, `${random.replay} split ${split}`)
    }
  })

  it('a range outside the bytes is a bug, not a checksum', () => {
    const bytes = Buffer.alloc(8)
    for (const [start, end] of [
      [0, 9],
      [-1, 4],
      [5, 4]
    ] as const) {
      assert.throws(() => crc32c(bytes, start, end), BugError)
    }
  })
})
