import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { limits } from '../../../../src/model/limits.ts'
import { counterIndex, createCounters } from '../../../../src/wire/shard/counters.ts'
import { FillPace } from '../../../../workers/settler/fill-pace.ts'

describe('a fill', () => {
  it('rests eight times as long as a piece took while any shard writes, and longest beside readers and until all are quiet', () => {
    const memories = [createCounters(), createCounters()]
    const [own, other] = memories.map(memory => new Float64Array(memory))
    assert.ok(own !== undefined && other !== undefined)
    const pace = new FillPace(() => memories)
    assert.equal(pace.nextPauseMs(20, 100), 5)
    own[counterIndex.groups] = 8
    assert.equal(pace.nextPauseMs(20, 200), 160)
    assert.equal(pace.nextPauseMs(20, 201), limits.fillRestMsMax)
    assert.equal(pace.nextPauseMs(20, 200 + limits.fillQuietMs - 1), limits.fillRestMsMax)
    assert.equal(pace.nextPauseMs(20, 200 + limits.fillQuietMs), 5)
    other[counterIndex.reads] = 1
    assert.equal(pace.nextPauseMs(8, 10_000), limits.fillRestMsMax)
    other[counterIndex.groups] = 1
    assert.equal(pace.nextPauseMs(8, 10_001), 64)
    other[counterIndex.groups] = 2
    assert.equal(pace.nextPauseMs(0.3, 10_002), 5)
  })

  it('rests no longer after a disk that stood still', () => {
    const memory = createCounters()
    const pace = new FillPace(() => [memory])
    new Float64Array(memory)[counterIndex.groups] = 1
    assert.equal(pace.nextPauseMs(10_000, 0), limits.fillRestMsMax)
  })
})
