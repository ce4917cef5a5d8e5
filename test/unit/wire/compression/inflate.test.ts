/** The four codecs of record batches: what Kafka's client compressed comes out again, and nothing else does any harm. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { codecs, inflate } from '../../../../src/wire/compression/inflate.ts'
import { goldenBatch, goldenFile, goldenRecords } from '../../../support/golden-batches.ts'
import { chosenSeed, diceOf, replayLine } from '../../../support/log-random.ts'

const names = ['gzip', 'snappy', 'lz4', 'zstd'] as const
const wanted = goldenRecords()
const LIMIT = 1_000_000

const bodyOf = (name: (typeof names)[number]): Buffer => goldenBatch(name).subarray(61)
const inflated = (codec: number, bytes: Buffer, limit = LIMIT): Buffer | null =>
  inflate(codec, bytes, 0, bytes.length, limit)

describe('records that a client has compressed', () => {
  for (const name of names) {
    it(`come out of ${name} as they were, also from the middle of memory that threads share`, () => {
      const body = bodyOf(name)
      assert.deepEqual(inflated(codecs[name], body), wanted)
      const shared = Buffer.from(new SharedArrayBuffer(body.length + 50))
      body.copy(shared, 20)
      assert.deepEqual(inflate(codecs[name], shared, 20, 20 + body.length, LIMIT), wanted)
    })

    it(`come out of ${name} up to the limit, and not beyond`, () => {
      const body = bodyOf(name)
      assert.deepEqual(inflated(codecs[name], body, wanted.length), wanted)
      assert.equal(inflated(codecs[name], body, wanted.length - 1), null)
      assert.equal(inflated(codecs[name], body, 10), null)
    })

    it(`may be any bytes for ${name}: nothing is thrown, and no more than the limit comes out`, t => {
      const seed = chosenSeed()
      t.diagnostic(replayLine(seed, 'test/unit/wire/compression/inflate.test.ts'))
      const dice = diceOf(seed)
      const body = bodyOf(name).subarray(0, 3000)
      for (let round = 0; round < 3000; round++) {
        const bytes = dice.chance(0.3) ? dice.bytes(dice.below(200)) : Buffer.from(body)
        for (let i = dice.below(5); i > 0 && bytes.length > 0; i--) bytes[dice.below(bytes.length)] = dice.below(256)
        const end = dice.below(bytes.length + 1)
        const out = inflate(codecs[name], bytes, 0, end, 20_000)
        assert.ok(out === null || out.length <= 20_000)
      }
    })
  }

  it('come out of blocks that refer to the ones before, with all that an lz4 frame may have around them', () => {
    assert.deepEqual(inflated(codecs.lz4, goldenFile('linked-blocks.lz4')), wanted)
    const twice = Buffer.concat([bodyOf('lz4'), goldenFile('linked-blocks.lz4')])
    assert.deepEqual(inflated(codecs.lz4, twice), Buffer.concat([wanted, wanted]))
  })

  it('come out of snappy without framing too', () => {
    // The blocks of the framing are such ones.
    const framed = bodyOf('snappy')
    const blocks: Buffer[] = []
    for (let at = 16; at < framed.length;) {
      const end = at + 4 + framed.readInt32BE(at)
      const block = inflated(codecs.snappy, framed.subarray(at + 4, end))
      assert.ok(block !== null)
      blocks.push(block)
      at = end
    }
    assert.ok(blocks.length > 1)
    assert.deepEqual(Buffer.concat(blocks), wanted)
  })

  it('that stand for far more than their bytes are given up at the limit', () => {
    const zeros = Buffer.alloc(50_000_000)
    // One literal, then one match as long as its lengths of 255 say.
    const match = Buffer.concat([Buffer.from([0x1f, 0, 1, 0]), Buffer.alloc(200_000, 255), Buffer.from([0, 0x10, 0])])
    const block = Buffer.alloc(4)
    block.writeUInt32LE(match.length)
    const lz4 = Buffer.concat([Buffer.from([0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, 0x82]), block, match, Buffer.alloc(4)])
    // 32,000,001 in all: a literal, and copies of 64.
    const snappy = Buffer.concat([
      Buffer.from([0x81, 0x90, 0xa1, 0x0f, 0, 0]),
      Buffer.alloc(1_500_000, '\xfe\x01\0', 'latin1')
    ])
    const bombs = [
      [codecs.gzip, gzipSync(zeros)],
      [codecs.zstd, zstdCompressSync(zeros)],
      [codecs.lz4, lz4],
      [codecs.snappy, snappy]
    ] as const
    for (const [codec, bomb] of bombs) {
      assert.equal(inflated(codec, bomb), null, `codec ${codec}`)
      const all = inflated(codec, bomb, 60_000_000)
      assert.ok(all !== null && all.length > 30_000_000, `codec ${codec}, with a limit above it`)
    }
  })

  it('are nothing for a codec that there is not', () => {
    for (const codec of [5, 6, 7]) assert.equal(inflated(codec, wanted), null)
  })
})
