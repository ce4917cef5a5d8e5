import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { BugError } from '../../../../src/base/assert.ts'
import { KeyHash } from '../../../../src/log/compaction/key-hash.ts'
import { KEY_MAP_FULL, KEY_NEW, KEY_PLACE_BYTES, KeyMap } from '../../../../src/log/compaction/key-map.ts'
import { Marks } from '../../../../src/log/compaction/marks.ts'
import { newRandom } from '../../ring/random.ts'

const file = 'test/unit/log/compaction/key-map.test.ts'

function wordsOf(hash: KeyHash): Buffer {
  const bytes = Buffer.alloc(16)
  for (const [index, word] of [hash.word0, hash.word1, hash.word2, hash.word3].entries()) {
    bytes.writeInt32LE(word, index * 4)
  }
  return bytes
}

/** Chaskey-12 written a second time, over bigints, straight from its definition. */
function referenceHash(secret: Buffer, message: Buffer): Buffer {
  const mask32 = 0xffff_ffffn
  const wordsFrom = (bytes: Buffer): bigint[] => [0, 4, 8, 12].map(at => BigInt(bytes.readUInt32LE(at)))
  const double = (bytes: Buffer): Buffer => {
    const value = wordsFrom(bytes).reduce((sum, word, index) => sum | (word << BigInt(32 * index)), 0n)
    const product = BigInt.asUintN(128, value << 1n) ^ (value >> 127n === 1n ? 0x87n : 0n)
    const out = Buffer.alloc(16)
    for (let i = 0; i < 16; i++) out[i] = Number((product >> BigInt(8 * i)) & 0xffn)
    return out
  }
  const rotate = (word: bigint, bits: bigint): bigint => ((word << bits) | (word >> (32n - bits))) & mask32
  const isFull = message.length > 0 && message.length % 16 === 0
  const subkey = isFull ? double(secret) : double(double(secret))
  const padded = isFull ? message : Buffer.concat([message, Buffer.from([1]), Buffer.alloc(15 - (message.length % 16))])
  let state = wordsFrom(secret)
  const mix = (bytes: Buffer): void => {
    const words = wordsFrom(bytes)
    state = state.map((word, index) => word ^ (words[index] ?? 0n))
  }
  for (let at = 0; at < padded.length; at += 16) {
    mix(padded.subarray(at, at + 16))
    const isLast = at + 16 === padded.length
    if (isLast) mix(subkey)
    for (let round = 0; round < 12; round++) {
      let [a = 0n, b = 0n, c = 0n, d = 0n] = state
      a = (a + b) & mask32
      b = rotate(b, 5n) ^ a
      a = rotate(a, 16n)
      c = (c + d) & mask32
      d = rotate(d, 8n) ^ c
      a = (a + d) & mask32
      d = rotate(d, 13n) ^ a
      c = (c + b) & mask32
      b = rotate(b, 7n) ^ c
      c = rotate(c, 16n)
      state = [a, b, c, d]
    }
    if (isLast) mix(subkey)
  }
  const out = Buffer.alloc(16)
  for (const [index, word] of state.entries()) out.writeUInt32LE(Number(word), index * 4)
  return out
}

describe('the fingerprint of a key', () => {
  it('is the standard function: the first eight bytes agree with its published vectors', () => {
    const secret = Buffer.from('00112233445566778899aabbccddeeff', 'hex')
    const published = [
      ['', 'dd3e1849d6824555'],
      ['00', 'ed1da89ec93179ca'],
      ['0001', '98fe20a343cd666f'],
      ['000102', 'f6f418acdd7d9fa1'],
      ['00010203', '4cf04960099949f3'],
      ['0001020304', '75c83252653d3b57'],
      ['000102030405060708090a0b0c0d0e', '6a3ee3d35c043397'],
      ['000102030405060708090a0b0c0d0e0f', 'd13970d7be9b2350']
    ]
    const hash = new KeyHash(secret)
    for (const [message = '', tag] of published) {
      const bytes = Buffer.from(message, 'hex')
      hash.hash(bytes, 0, bytes.length)
      assert.equal(wordsOf(hash).subarray(0, 8).toString('hex'), tag, `message ${message}`)
    }
  })

  it('agrees with a second implementation for keys of every length, wherever they lie', () => {
    const random = newRandom(file)
    for (let length = 0; length < 70; length++) {
      const secret = random.bytes(16)
      const bytes = random.bytes(length + 9)
      const hash = new KeyHash(secret)
      hash.hash(bytes, 4, 4 + length)
      assert.deepEqual(wordsOf(hash), referenceHash(secret, bytes.subarray(4, 4 + length)), random.replay)
    }
  })

  it('differs under another secret, so nobody can choose keys that collide', () => {
    const key = Buffer.from('account-1')
    const hashes = [Buffer.alloc(16, 1), Buffer.alloc(16, 2)].map(secret => {
      const hash = new KeyHash(secret)
      hash.hash(key, 0, key.length)
      return wordsOf(hash).toString('hex')
    })
    assert.notEqual(hashes[0], hashes[1])
  })
})

describe('the map of newest records', () => {
  const secret = Buffer.alloc(16, 7)

  it('gives back the newest record of every key, like a plain map', () => {
    const random = newRandom(file)
    const map = new KeyMap(200 * KEY_PLACE_BYTES, secret)
    for (let round = 0; round < 3; round++) {
      const plain = new Map<string, number>()
      for (let ordinal = round; ordinal < 3000; ordinal++) {
        const text = `key-${random.below(250)}`
        const key = Buffer.from(`__${text}__`)
        const found = map.put(key, 2, key.length - 2, ordinal)
        const isFull = !plain.has(text) && plain.size === map.keysMax
        assert.equal(found, isFull ? KEY_MAP_FULL : (plain.get(text) ?? KEY_NEW), random.replay)
        if (!isFull) plain.set(text, ordinal)
        assert.equal(map.has(key, 2, key.length - 2), !isFull, random.replay)
        assert.equal(map.keyCount, plain.size, random.replay)
      }
      map.clear()
      assert.equal(map.has(Buffer.from('key-1'), 0, 5), false, random.replay)
    }
  })

  it('takes at least one key however little memory it is given', () => {
    const map = new KeyMap(0, secret)
    assert.equal(map.keysMax, 1)
    assert.equal(map.put(Buffer.from('a'), 0, 1, 0), KEY_NEW)
    assert.equal(map.put(Buffer.from('b'), 0, 1, 1), KEY_MAP_FULL)
    assert.equal(map.put(Buffer.from('a'), 0, 1, 2), 0)
  })

  it('tells the empty key from all others', () => {
    const map = new KeyMap(100 * KEY_PLACE_BYTES, secret)
    assert.equal(map.put(Buffer.alloc(0), 0, 0, 0), KEY_NEW)
    assert.equal(map.put(Buffer.from([0]), 0, 1, 1), KEY_NEW)
    assert.equal(map.put(Buffer.alloc(16), 0, 16, 2), KEY_NEW)
    assert.equal(map.put(Buffer.alloc(0), 0, 0, 3), 0)
  })

  it('refuses records out of order', () => {
    const map = new KeyMap(100 * KEY_PLACE_BYTES, secret)
    map.put(Buffer.from('a'), 0, 1, 5)
    assert.throws(() => map.put(Buffer.from('a'), 0, 1, 5), BugError)
  })
})

describe('marks', () => {
  it('agree with a plain set, also far apart and at the borders of pieces', () => {
    const random = newRandom(file)
    const marks = new Marks()
    const plain = new Set<number>()
    const near = [0, 524_288, 1_048_576, 2 ** 33]
    const pick = (): number => Math.max(0, (near[random.below(4)] ?? 0) + random.below(80) - 40)
    for (let i = 0; i < 300; i++) {
      const ordinal = pick()
      assert.equal(marks.add(ordinal), !plain.has(ordinal), random.replay)
      plain.add(ordinal)
      const start = pick()
      const end = start + random.below(12)
      const expected = [...plain].some(marked => marked >= start && marked < end)
      assert.equal(marks.hasAny(start, end), expected, `${start} to ${end}; ${random.replay}`)
      assert.equal(marks.has(start), plain.has(start), random.replay)
    }
    assert.equal(marks.count, plain.size, random.replay)
  })
})
