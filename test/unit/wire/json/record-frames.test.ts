/** Answers in frames are taken apart as they were put together, in whatever chunks they come. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { BugError } from '../../../../src/base/assert.ts'
import { FramesGather, RecordFrames } from '../../../../src/wire/json/record-frames.ts'

interface Parts {
  readonly nextOffset: bigint
  readonly highWatermark: bigint
  readonly skipped?: readonly [bigint, bigint, bigint]
  readonly records: readonly (readonly [bigint, string])[]
}

/** Written by the table in the header of record-frames.ts, independently of the shard. */
function framesOf({ nextOffset, highWatermark, skipped, records }: Parts): Buffer {
  const u64 = (value: bigint): Buffer => {
    const bytes = Buffer.alloc(8)
    bytes.writeBigUInt64BE(value)
    return bytes
  }
  const u32 = (value: number): Buffer => {
    const bytes = Buffer.alloc(4)
    bytes.writeUInt32BE(value)
    return bytes
  }
  return Buffer.concat([
    u64(nextOffset),
    u64(highWatermark),
    u32(records.length),
    u32(skipped === undefined ? 0 : 1),
    ...(skipped ?? []).map(u64),
    ...records.flatMap(([offset, text]) => [u64(offset), u32(Buffer.byteLength(text)), Buffer.from(text)])
  ])
}

function read(frames: RecordFrames): [number, string][] {
  const records: [number, string][] = []
  while (frames.next()) {
    records.push([frames.offset, frames.bytes.toString('utf8', frames.textStart, frames.textEnd)])
  }
  return records
}

const sample: Parts = {
  nextOffset: 2n ** 33n + 2n,
  highWatermark: 2n ** 53n - 1n,
  records: [
    [2n ** 33n, '{"value":"ü"}'],
    [2n ** 33n + 1n, '']
  ]
}

describe('an answer in frames', () => {
  it('gives head and records, one answer after another', () => {
    const frames = new RecordFrames()
    const skipped = [5n, 2n ** 33n, 2n ** 53n - 1n] as const
    for (const parts of [
      { ...sample, skipped },
      sample,
      { nextOffset: 2n ** 64n - 1n, highWatermark: 0n, records: [] }
    ]) {
      frames.open(framesOf(parts))
      assert.equal(frames.nextOffset, parts.nextOffset)
      assert.equal(BigInt(frames.highWatermark), parts.highWatermark)
      assert.equal(frames.count, parts.records.length)
      const expected = 'skipped' in parts ? { requested: 5, earliest: 2 ** 33, latest: 2 ** 53 - 1 } : null
      assert.deepEqual(frames.skipped, expected)
      assert.deepEqual(
        read(frames),
        parts.records.map(([offset, text]) => [Number(offset), text])
      )
      assert.equal(frames.next(), false)
    }
  })

  it('is the same in chunks of any length, and one chunk is not copied', () => {
    const answer = framesOf(sample)
    const ring = Buffer.concat([Buffer.alloc(3), answer, Buffer.alloc(3)])
    const gather = new FramesGather()
    const only = gather.add(ring, 3, 3 + answer.length, answer.length)
    assert.ok(only !== null && only.equals(answer) && only.buffer === ring.buffer)
    for (let chunk = 1; chunk < answer.length; chunk++) {
      for (let at = 0; at < answer.length; at += chunk) {
        const end = Math.min(answer.length, at + chunk)
        const whole = gather.add(ring, 3 + at, 3 + end, answer.length)
        assert.equal(whole !== null, end === answer.length)
        assert.ok(whole === null || whole.equals(answer), `chunks of ${chunk}`)
      }
    }
    assert.equal(gather.add(answer, 0, 10, answer.length), null)
    gather.clear()
    assert.equal(gather.add(answer, 0, 10, answer.length), null)
    assert.ok(gather.add(answer, 10, answer.length, answer.length)?.equals(answer))
  })

  it('that is cut anywhere, or has more than it says, is a bug', () => {
    const answer = framesOf({ ...sample, skipped: [1n, 2n, 3n] })
    const frames = new RecordFrames()
    const walk = (bytes: Buffer): void => {
      frames.open(bytes)
      read(frames)
    }
    for (let length = 0; length < answer.length; length++) {
      assert.throws(() => walk(answer.subarray(0, length)), BugError, `cut at ${length}`)
    }
    assert.throws(() => walk(Buffer.concat([answer, Buffer.alloc(1)])), BugError)
    const gather = new FramesGather()
    gather.add(answer, 0, 20, 30)
    assert.throws(() => gather.add(answer, 20, answer.length, 30), BugError)
  })
})
