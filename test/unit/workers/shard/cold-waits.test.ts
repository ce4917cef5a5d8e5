/** Reads that wait for cold storage: each is asked for once, hears once, and not later than it must. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ColdSegmentAbsent } from '../../../../src/log/cold-segment.ts'
import type { ReplyWriter } from '../../../../workers/shard/reply-writer.ts'
import { COLD_WAIT_MS, ColdWaits, type ColdWaiter } from '../../../../workers/shard/cold-waits.ts'

class Fixture {
  ms = 0
  readonly asked: string[] = []
  readonly heard: string[] = []
  readonly waits = new ColdWaits(
    {
      event: (event: { segment: { name: string } }) => void this.asked.push(event.segment.name)
    } as unknown as ReplyWriter,
    { counters: new Float64Array(64), monotonicMs: () => this.ms }
  )

  park(name: string, who: string, endMs: number | null = null): void {
    const waiter: ColdWaiter = {
      endMs,
      resume: until => void this.heard.push(`${who} goes on until ${until}`),
      refuse: problem => void this.heard.push(`${who}: ${problem}`)
    }
    this.waits.park(absent(name), waiter)
  }
}

function absent(name: string): ColdSegmentAbsent {
  const numbers = { logBytes: 1, blocksBytes: 1, logChecksum: 0, blocksChecksum: 0 }
  return new ColdSegmentAbsent({ name, logKey: `${name}.log`, blocksKey: `${name}.blocks`, ...numbers }, false)
}

describe('a read that waits for a cold segment', () => {
  it('shares one fetch with all others that wait for it, and goes on when it is there', () => {
    const fixture = new Fixture()
    fixture.park('a', 'first')
    fixture.ms = 10
    fixture.park('a', 'second')
    fixture.park('b', 'third')
    assert.deepEqual(fixture.asked, ['a', 'b'])
    fixture.waits.finish('a', null)
    fixture.waits.finish('a', null)
    assert.deepEqual(fixture.heard, [
      `first goes on until ${COLD_WAIT_MS}`,
      `second goes on until ${COLD_WAIT_MS + 10}`
    ])
    fixture.waits.finish('b', 'the bucket is away')
    assert.equal(fixture.heard.at(-1), 'third: the bucket is away')
    fixture.park('a', 'later')
    assert.deepEqual(fixture.asked, ['a', 'b', 'a'], 'what was evicted is asked for again')
  })

  it('is refused when its time is over, however many segments it waited for, and the fetch goes on', () => {
    const fixture = new Fixture()
    assert.equal(fixture.waits.dueMs, Number.POSITIVE_INFINITY)
    fixture.park('a', 'patient')
    fixture.ms = 1000
    fixture.park('a', 'tired', 2000)
    assert.equal(fixture.waits.dueMs, 2000)
    fixture.waits.turn()
    assert.deepEqual(fixture.heard, [])
    fixture.ms = 2000
    fixture.waits.turn()
    assert.deepEqual(fixture.heard, [`tired: it did not come within ${COLD_WAIT_MS / 1000} s`])
    fixture.park('a', 'new')
    assert.deepEqual(fixture.asked, ['a'])
    fixture.ms = COLD_WAIT_MS
    fixture.waits.turn()
    assert.equal(fixture.heard.length, 2)
    fixture.waits.finish('a', null)
    assert.equal(fixture.heard.at(-1), `new goes on until ${COLD_WAIT_MS + 2000}`)
  })

  it('ahead of anyone is fetched without a waiter', () => {
    const fixture = new Fixture()
    fixture.waits.fetchAhead(absent('a'))
    fixture.park('a', 'reader')
    assert.deepEqual(fixture.asked, ['a'])
    fixture.waits.finish('a', null)
    assert.equal(fixture.heard.length, 1)
  })
})
