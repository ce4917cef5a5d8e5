import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { limits } from '../../../../src/model/limits.ts'
import { counterIndex, createCounters } from '../../../../src/wire/shard/counters.ts'
import { FillPace } from '../../../../workers/settler/fill-pace.ts'

describe('a fill', () => {
  it('rests three times as long as a piece took while any shard writes or is read, and a moment else', () => {
    const memories = [createCounters(), createCounters()]
    const [own, other] = memories.map(memory => new Float64Array(memory))
    assert.ok(own !== undefined && other !== undefined)
    own[counterIndex.groups] = 7
    const pace = new FillPace(() => memories)
    assert.equal(pace.nextPauseMs(20), 5)
    own[counterIndex.groups] = 8
    assert.equal(pace.nextPauseMs(20), 60)
    assert.equal(pace.nextPauseMs(20), 5)
    other[counterIndex.reads] = 1
    assert.equal(pace.nextPauseMs(8), 24)
    other[counterIndex.reads] = 3
    assert.equal(pace.nextPauseMs(0.3), 5)
  })

  it('rests no longer after a disk that stood still', () => {
    const memory = createCounters()
    const pace = new FillPace(() => [memory])
    new Float64Array(memory)[counterIndex.groups] = 1
    assert.equal(pace.nextPauseMs(10_000), limits.fillRestMsMax)
  })
})
