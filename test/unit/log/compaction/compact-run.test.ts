import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { BugError } from '../../../../src/base/assert.ts'
import { compactSegments } from '../../../../src/log/compaction/compact.ts'
import type { SourceBatch, SourceSegment } from '../../../../src/log/compaction/pass.ts'
import { COMPACTION_PIECE_BYTES } from '../../../../src/log/compaction/read-meter.ts'
import { MemoryOutput, compact, logOf, requestOf, segmentOf, sourceOf } from './test-segments.ts'

describe('a pass at work', () => {
  /** Counts what is read between two yields, and whether every iteration was closed. */
  function watched(batchCount: number): { segment: SourceSegment; read: { bytes: number; open: number } } {
    const read = { bytes: 0, open: 0 }
    const value = 'v'.repeat(10_000)
    const plain = segmentOf(
      0,
      100,
      Array.from({ length: batchCount }, (_, index) => `key-${index % 50}=${value}`)
    )
    const segment = sourceOf(plain)
    return {
      read,
      segment: {
        ...segment,
        *batches(): Generator<SourceBatch, void, void> {
          read.open++
          try {
            for (const batch of segment.batches()) {
              read.bytes += batch.end - batch.start
              yield batch
            }
          } finally {
            read.open--
          }
        }
      }
    }
  }

  it('yields after every quarter of a mebibyte it has read', () => {
    const { segment, read } = watched(200)
    const run = compactSegments(requestOf([segment]), new MemoryOutput())
    let before = 0
    let yields = 0
    while (run.next().done !== true) {
      assert.ok(read.bytes - before <= COMPACTION_PIECE_BYTES + 11_000)
      before = read.bytes
      yields++
    }
    assert.ok(yields > 15)
  })

  it('may be stopped at any yield, and then has nothing open', () => {
    for (let stopAt = 1; stopAt < 20; stopAt++) {
      const { segment, read } = watched(200)
      let steps = 0
      for (const _ of compactSegments(requestOf([segment], { mapBytes: 700 }), new MemoryOutput())) {
        if (++steps === stopAt) break
      }
      assert.equal(steps, stopAt)
      assert.equal(read.open, 0)
    }
  })

  it('passes on what reading or writing throws', () => {
    const log = logOf(['a=1', 'a=2'])
    const failing: SourceSegment = {
      ...(log[0] as SourceSegment),
      batches: () => {
        throw new RangeError('unreadable')
      }
    }
    assert.throws(() => compact(requestOf([failing])), { message: 'unreadable' })
    const output = new MemoryOutput()
    output.batch = () => {
      throw new RangeError('no room')
    }
    const run = compactSegments(requestOf(log), output)
    assert.throws(
      () => {
        while (run.next().done !== true);
      },
      { message: 'no room' }
    )
  })

  it('ends rather than guess when a segment does not read the same twice', () => {
    const [segment] = logOf(['a=1', 'a=2', 'b=1'])
    assert.ok(segment !== undefined)
    let reads = 0
    const changing: SourceSegment = {
      ...segment,
      *batches(): Generator<SourceBatch, void, void> {
        let left = reads++ === 0 ? 3 : 2
        for (const batch of segment.batches()) {
          if (left-- > 0) yield batch
        }
      }
    }
    assert.throws(() => compact(requestOf([changing])), BugError)
  })

  it('refuses segments that overlap or are out of order', () => {
    const [first, second] = logOf(['a=1'], ['a=2'])
    assert.ok(first !== undefined && second !== undefined)
    assert.throws(() => compact(requestOf([second, first])), BugError)
    assert.throws(() => compact(requestOf([first, first])), BugError)
  })
})
