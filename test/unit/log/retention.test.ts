import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { expiredSegments } from '../../../src/log/retention.ts'
import type { Expired, RetainedSegment } from '../../../src/log/retention.ts'
import type { TopicRetention } from '../../../src/wire/shard/messages.ts'
import { newRandom } from '../ring/random.ts'

/** Five segments of ten records and 100 bytes, received at 1000, 2000 … 5000; the last is the active one. */
const segments: readonly RetainedSegment[] = [1, 2, 3, 4, 5].map(number => ({
  baseOffset: (number - 1) * 10,
  nextOffset: number * 10,
  bytes: 100,
  receiveMsMax: number * 1000,
  isSealed: number < 5
}))

function decide(retention: Partial<TopicRetention>, nowMs = 10_000, startOffset = 0): Expired {
  const none: TopicRetention = { retentionMs: null, retentionBytes: null, cleanupPolicy: 'delete' }
  return expiredSegments(segments, startOffset, { ...none, ...retention }, nowMs)
}

describe('retention', () => {
  it('drops nothing without a limit', () => {
    assert.deepEqual(decide({}), { count: 0, startOffset: 0 })
  })

  it('by age drops segments whose newest record is strictly older than the limit', () => {
    assert.deepEqual(decide({ retentionMs: 8000 }), { count: 1, startOffset: 10 })
    assert.deepEqual(decide({ retentionMs: 7999 }), { count: 2, startOffset: 20 })
  })

  it('by age never drops the segment that records still join', () => {
    assert.deepEqual(decide({ retentionMs: 0 }, 2 ** 50), { count: 4, startOffset: 40 })
  })

  it('by size drops the oldest until the rest, the active segment included, is at most the limit', () => {
    assert.deepEqual(decide({ retentionBytes: 500 }), { count: 0, startOffset: 0 })
    assert.deepEqual(decide({ retentionBytes: 499 }), { count: 1, startOffset: 10 })
    assert.deepEqual(decide({ retentionBytes: 250 }), { count: 3, startOffset: 30 })
    assert.deepEqual(decide({ retentionBytes: 0 }), { count: 4, startOffset: 40 })
  })

  it('drops what either limit asks for', () => {
    assert.deepEqual(decide({ retentionMs: 8000, retentionBytes: 300 }), { count: 2, startOffset: 20 })
    assert.deepEqual(decide({ retentionMs: 6500, retentionBytes: 450 }), { count: 3, startOffset: 30 })
  })

  it('leaves a purely compacted topic alone, and prunes a compacted and deleted one', () => {
    assert.deepEqual(decide({ retentionMs: 0, retentionBytes: 0, cleanupPolicy: 'compact' }), {
      count: 0,
      startOffset: 0
    })
    assert.deepEqual(decide({ retentionBytes: 250, cleanupPolicy: 'compact,delete' }), { count: 3, startOffset: 30 })
  })

  it('takes limits up to 2^64 − 1 as practically for ever', () => {
    const huge = 2n ** 64n - 1n
    assert.deepEqual(decide({ retentionMs: huge, retentionBytes: huge }, 2 ** 53 - 1), { count: 0, startOffset: 0 })
  })

  it('drops nothing by age when the clock has gone back', () => {
    assert.deepEqual(decide({ retentionMs: 0 }, 500), { count: 0, startOffset: 0 })
  })

  it('drops segments below the start offset under every policy, and does not move the start for them', () => {
    assert.deepEqual(decide({ cleanupPolicy: 'compact' }, 0, 25), { count: 2, startOffset: 25 })
    assert.deepEqual(decide({}, 0, 30), { count: 3, startOffset: 30 })
  })

  it('does not count bytes below the start offset towards the size', () => {
    assert.deepEqual(decide({ retentionBytes: 300 }, 0, 20), { count: 2, startOffset: 20 })
    assert.deepEqual(decide({ retentionBytes: 299 }, 0, 20), { count: 3, startOffset: 30 })
  })

  it('never moves the start offset back', () => {
    assert.deepEqual(decide({ retentionMs: 7999 }, 10_000, 25), { count: 2, startOffset: 25 })
    assert.deepEqual(decide({ retentionMs: 6999 }, 10_000, 25), { count: 3, startOffset: 30 })
  })

  it('ends at the end of the log when every segment is sealed and goes', () => {
    const sealed = segments.map(segment => ({ ...segment, isSealed: true }))
    const limits: TopicRetention = { retentionMs: 1, retentionBytes: null, cleanupPolicy: 'delete' }
    assert.deepEqual(expiredSegments(sealed, 0, limits, 99_999), { count: 5, startOffset: 50 })
    assert.deepEqual(expiredSegments([], 7, limits, 99_999), { count: 0, startOffset: 7 })
  })

  it('keeps exactly what the rules keep, whatever the sizes, ages and limits', () => {
    const random = newRandom('test/unit/log/retention.test.ts')
    for (let round = 0; round < 500; round++) {
      let receiveMs = 0
      let offset = 0
      const sealedCount = random.below(8)
      const log = Array.from({ length: sealedCount + 1 }, (_, index): RetainedSegment => {
        const baseOffset = offset
        offset += random.below(5) + 1
        receiveMs += random.below(100)
        const isSealed = index < sealedCount
        return { baseOffset, nextOffset: offset, bytes: random.below(100), receiveMsMax: receiveMs, isSealed }
      })
      const retentionMs = random.below(300)
      const retentionBytes = random.below(400)
      const nowMs = random.below(800)
      const limits: TopicRetention = { retentionMs, retentionBytes, cleanupPolicy: 'delete' }
      const { count, startOffset } = expiredSegments(log, 0, limits, nowMs)
      const total = (from: number): number => log.slice(from).reduce((sum, segment) => sum + segment.bytes, 0)
      const mayGo = (index: number): boolean => {
        const segment = log[index]
        if (segment === undefined || !segment.isSealed) return false
        return nowMs - segment.receiveMsMax > retentionMs || total(index) > retentionBytes
      }
      for (let index = 0; index < count; index++) assert.ok(mayGo(index), random.replay)
      assert.ok(!mayGo(count), random.replay)
      assert.equal(startOffset, count === 0 ? 0 : (log[count]?.baseOffset ?? offset), random.replay)
    }
  })
})
