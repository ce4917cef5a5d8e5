import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { planSegments } from '../../../../src/log/compaction/plan-segments.ts'
import type { ThinnedSegment } from '../../../../src/log/compaction/plan-segments.ts'

/** Neighbours of ten offsets each; negative sizes stand for segments that lose nothing. */
function neighbours(...sizes: readonly number[]): ThinnedSegment[] {
  return sizes.map((size, index) => ({
    baseOffset: index * 10,
    nextOffset: index * 10 + 10,
    keptBytes: Math.abs(size),
    hasDrops: size >= 0
  }))
}

function plan(segments: readonly ThinnedSegment[], segmentBytes = 100): string {
  return planSegments(segments, segmentBytes)
    .map(({ first, last, bytes, isUnchanged }) => `${first}-${last}:${bytes}${isUnchanged ? '=' : ''}`)
    .join(' ')
}

describe('which segments are merged', () => {
  it('neighbours as long as they fit, from the oldest on', () => {
    assert.equal(plan(neighbours(40, 60, 1, 99, 1)), '0-1:100 2-3:100 4-4:1')
  })

  it('segments that lose nothing join, unless they are more than half full', () => {
    assert.equal(plan(neighbours(10, -50, 10)), '0-2:70')
    assert.equal(plan(neighbours(10, -51, 10)), '0-0:10 1-1:51= 2-2:10')
    assert.equal(plan(neighbours(-20, -30, 90)), '0-1:50 2-2:90')
  })

  it('one that neither loses nor merges is left alone', () => {
    assert.equal(plan(neighbours(90, -20, 90)), '0-0:90 1-1:20= 2-2:90')
  })

  it('emptied ones join whatever is next to them and written anyway', () => {
    assert.equal(plan(neighbours(0, 0, 100, 0, -100, 0)), '0-3:100 4-4:100= 5-5:0')
  })

  it('one above the limit stands alone', () => {
    assert.equal(plan(neighbours(10, 250, 10)), '0-0:10 1-1:250 2-2:10')
  })

  it('none across a hole', () => {
    const segments = neighbours(10, 10, 10).filter((_, index) => index !== 1)
    assert.equal(plan(segments), '0-0:10 1-1:10')
  })

  it('none beyond the 31 bits of offsets and positions in the files, however large segment_bytes is', () => {
    const span = 2 ** 31 - 1
    const wide = (second: number): ThinnedSegment[] => [
      { baseOffset: 5, nextOffset: 15, keptBytes: 1, hasDrops: true },
      { baseOffset: 15, nextOffset: second, keptBytes: 1, hasDrops: true }
    ]
    assert.equal(plan(wide(5 + span)), '0-1:2')
    assert.equal(plan(wide(6 + span)), '0-0:1 1-1:1')
    assert.equal(plan(neighbours(2 ** 31 - 11, 10), 2 ** 40), `0-1:${2 ** 31 - 1}`)
    assert.equal(plan(neighbours(2 ** 31 - 11, 11), 2 ** 40), `0-0:${2 ** 31 - 11} 1-1:11`)
  })
})
