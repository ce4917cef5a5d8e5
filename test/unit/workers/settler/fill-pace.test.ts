import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { counterIndex, createCounters } from '../../../../src/wire/shard/counters.ts'
import { FillPace } from '../../../../workers/settler/fill-pace.ts'

describe('a fill', () => {
  it('rests three times as long as a piece took while its shard writes or is read, and a moment else', () => {
    const memory = createCounters()
    const counters = new Float64Array(memory)
    counters[counterIndex.groups] = 7
    const pace = new FillPace(memory)
    assert.equal(pace.pauseMs(20), 5)
    counters[counterIndex.groups] = 8
    assert.equal(pace.pauseMs(20), 60)
    assert.equal(pace.pauseMs(20), 5)
    counters[counterIndex.reads] = 1
    assert.equal(pace.pauseMs(8), 24)
    counters[counterIndex.reads] = 3
    assert.equal(pace.pauseMs(0.3), 5)
  })
})
