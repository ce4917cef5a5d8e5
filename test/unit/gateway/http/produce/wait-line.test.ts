/** The order of requests that wait for rings. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { WaitLine } from '../../../../../src/gateway/http/produce/wait-line.ts'
import { limits } from '../../../../../src/model/limits.ts'

/** A line on rings that can be full per lane. */
class Bench {
  readonly full = new Set<string>()
  readonly taken: string[] = []
  readonly #askers: (() => void)[] = []
  publishCount = 0
  readonly line = new WaitLine({
    whenRoom: callback => void this.#askers.push(callback),
    onTaken: () => void this.publishCount++
  })

  get askCount(): number {
    return this.#askers.length
  }

  enter(name: string, lane: string): void {
    this.line.enter({
      lane,
      attempt: () => {
        if (this.full.has(lane)) return 'rings-full'
        this.taken.push(name)
        return 'taken'
      }
    })
  }

  makeRoom(lane: string): void {
    this.full.delete(lane)
    for (const callback of this.#askers.splice(0)) callback()
  }
}

describe('requests that wait', () => {
  test('go in their order within a topic, and do not hold up the other topics', () => {
    const bench = new Bench()
    bench.full.add('slow')
    bench.enter('s1', 'slow')
    bench.enter('s2', 'slow')
    bench.enter('f1', 'fast')
    assert.deepEqual(bench.taken, ['f1'])
    assert.equal(bench.askCount, 1)
    bench.full.add('other')
    bench.enter('o1', 'other')
    bench.makeRoom('other')
    assert.deepEqual(bench.taken, ['f1', 'o1'])
    assert.equal(bench.askCount, 1, 'the slow lane asks again')
    bench.makeRoom('slow')
    assert.deepEqual(bench.taken, ['f1', 'o1', 's1', 's2'])
    assert.equal(bench.publishCount, 2)
    assert.ok(!bench.line.hasAhead('slow'))
  })

  test('are refused when the line is too long', () => {
    const bench = new Bench()
    bench.full.add('a')
    for (let i = 0; i < limits.waitingRequestsMax; i++) bench.enter(`${i}`, 'a')
    assert.throws(() => bench.enter('one more', 'a'), { code: 'OVERLOADED' })
    bench.makeRoom('a')
    assert.equal(bench.taken.length, limits.waitingRequestsMax)
  })
})
