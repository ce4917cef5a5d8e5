import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { BugError } from '../../../src/base/assert.ts'
import { fnv1a64Modulo, murmur2 } from '../../../src/base/hash.ts'
import { newRandom } from '../ring/random.ts'

function fnvReference(bytes: Uint8Array): bigint {
  let hash = 0xcbf29ce484222325n
  for (const byte of bytes) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n)
  return hash
}

/** murmur2 with every intermediate as an exact 64-bit integer, written from the definition. */
function murmurReference(bytes: Buffer): number {
  const multiply = (value: bigint): bigint => BigInt.asUintN(32, value * 0x5bd1e995n)
  let hash = 0x9747b28cn ^ BigInt(bytes.length)
  let at = 0
  for (; at + 4 <= bytes.length; at += 4) {
    const mixed = multiply(BigInt(bytes.readUInt32LE(at)))
    hash = multiply(hash) ^ multiply(mixed ^ (mixed >> 24n))
  }
  if (at < bytes.length) {
    for (let i = bytes.length - 1; i >= at; i--) hash ^= BigInt(bytes.readUInt8(i)) << BigInt(8 * (i - at))
    hash = multiply(hash)
  }
  hash = multiply(hash ^ (hash >> 13n))
  return Number(BigInt.asIntN(32, hash ^ (hash >> 15n)))
}

const moduliOf = (text: string): number[] =>
  [2, 3, 4, 8].map(modulus => fnv1a64Modulo(Buffer.from(text), 0, text.length, modulus))

describe('keys go to the same partition for ever', () => {
  it('FNV-1a agrees with the routing table of the specification', () => {
    const table: [string, number[]][] = [
      ['user-1', [0, 2, 0, 4]],
      ['user-2', [1, 2, 1, 5]],
      ['k1', [1, 2, 1, 1]],
      ['alice', [1, 2, 3, 7]],
      ['bob', [0, 0, 0, 4]],
      ['', [1, 2, 1, 5]]
    ]
    for (const [key, moduli] of table) assert.deepEqual(moduliOf(key), moduli, `key '${key}'`)
  })

  it('FNV-1a in two halves equals exact 64-bit arithmetic for every length and modulus', () => {
    const random = newRandom('test/unit/base/hash.test.ts')
    for (let round = 0; round < 3000; round++) {
      const bytes = random.bytes(random.below(70))
      const start = random.below(bytes.length + 1)
      const end = start + random.below(bytes.length - start + 1)
      const exact = fnvReference(bytes.subarray(start, end))
      for (const modulus of [1, 2, 3, 12, 1000, 10_000, 2 ** 20 - 1, 1 + random.below(2 ** 20 - 1)]) {
        const wanted = Number(exact % BigInt(modulus))
        assert.equal(fnv1a64Modulo(bytes, start, end, modulus), wanted, `${random.replay} modulus ${modulus}`)
      }
    }
  })

  it('FNV-1a refuses a modulus for which it would not be exact', () => {
    const key = Buffer.from('k')
    assert.throws(() => fnv1a64Modulo(key, 0, 1, 2 ** 20), BugError)
    assert.throws(() => fnv1a64Modulo(key, 0, 1, 0), BugError)
  })

  it('a key outside its bytes is a bug, not a hash', () => {
    const key = Buffer.from('k')
    assert.throws(() => fnv1a64Modulo(key, 0, 2, 3), BugError)
    assert.throws(() => murmur2(key, 1, 0), BugError)
  })

  it("murmur2 gives the values of Kafka's own test", () => {
    const known: [string, number][] = [
      ['21', -973932308],
      ['foobar', -790332482],
      ['a-little-bit-long-string', -985981536],
      ['a-little-bit-longer-string', -1486304829],
      ['lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8', -58897971],
      ['abc', 479470107]
    ]
    for (const [text, hash] of known) assert.equal(murmur2(Buffer.from(text), 0, text.length), hash, text)
  })

  it('murmur2 equals exact arithmetic for every length and place of the key', () => {
    const random = newRandom('test/unit/base/hash.test.ts')
    for (let round = 0; round < 2000; round++) {
      const bytes = random.bytes(random.below(50))
      const start = random.below(bytes.length + 1)
      assert.equal(murmur2(bytes, start, bytes.length), murmurReference(bytes.subarray(start)), random.replay)
    }
  })
})
