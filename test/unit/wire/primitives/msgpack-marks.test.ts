/** Heads of MessagePack values, read back with msgpackr. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Unpackr } from 'msgpackr'
import { BugError } from '../../../../src/base/assert.ts'
import {
  MARK_BYTES_MAX,
  writeMsgpackArray,
  writeMsgpackBin,
  writeMsgpackInt,
  writeMsgpackStr
} from '../../../../src/wire/primitives/msgpack-marks.ts'

const unpackr = new Unpackr({ useRecords: false, int64AsType: 'bigint' })

function written(write: (target: Buffer, at: number) => number, content = Buffer.alloc(0)): Buffer {
  const target = Buffer.alloc(2 + MARK_BYTES_MAX, 0xee)
  const end = write(target, 2)
  assert.ok(end <= target.length)
  return Buffer.concat([target.subarray(2, end), content])
}

const read = (bytes: Buffer): unknown => unpackr.unpack(bytes)

describe('a MessagePack head', () => {
  it('of an integer is exact at every width, and the shortest for it from 0 on', () => {
    const rows: [number, number][] = [
      [0, 1],
      [0x7f, 1],
      [0x80, 2],
      [0xff, 2],
      [0x100, 3],
      [0xffff, 3],
      [0x1_0000, 5],
      [0xffff_ffff, 5],
      [0x1_0000_0000, 9],
      [Number.MAX_SAFE_INTEGER, 9],
      [-1, 9],
      [-(2 ** 40), 9],
      [Number.MIN_SAFE_INTEGER, 9]
    ]
    for (const [value, length] of rows) {
      const bytes = written((target, at) => writeMsgpackInt(target, at, value))
      assert.equal(bytes.length, length, `${value}`)
      assert.equal(BigInt(read(bytes) as number), BigInt(value))
    }
    for (const value of [2 ** 53, 0.5, NaN, -Infinity]) {
      assert.throws(() => writeMsgpackInt(Buffer.alloc(9), 0, value), BugError, `${value}`)
    }
  })

  it('of bytes, text and arrays says the length at every width', () => {
    for (const length of [0, 1, 15, 16, 31, 32, 255, 256, 65_535, 65_536, 100_000]) {
      const content = Buffer.alloc(length, 0x61)
      const bin = read(written((target, at) => writeMsgpackBin(target, at, length), content))
      assert.ok(bin instanceof Uint8Array && content.equals(bin), `bin ${length}`)
      const text = read(written((target, at) => writeMsgpackStr(target, at, length), content))
      assert.ok(text === content.toString(), `str ${length}`)
      const array = read(written((target, at) => writeMsgpackArray(target, at, length), Buffer.alloc(length)))
      assert.ok(Array.isArray(array) && array.length === length, `array ${length}`)
    }
  })
})
