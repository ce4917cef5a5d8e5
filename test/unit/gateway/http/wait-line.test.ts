/** The order and the fairness of requests that wait. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ByteBudget } from '../../../../src/base/byte-budget.ts'
import { WaitLine } from '../../../../src/gateway/http/wait-line.ts'
import type { Attempt, Waiter } from '../../../../src/gateway/http/wait-line.ts'
import { limits } from '../../../../src/model/limits.ts'

/** A line on rings that can be full per lane, and a budget of bytes. */
class Bench {
  readonly full = new Set<string>()
  readonly budget = new ByteBudget(100)
  readonly taken: string[] = []
  readonly #askers: (() => void)[] = []
  publishCount = 0
  readonly line = new WaitLine({
    whenRoom: callback => void this.#askers.push(callback),
    whenReleased: callback => this.budget.whenReleased(callback),
    onTaken: () => void this.publishCount++
  })

  get askCount(): number {
    return this.#askers.length
  }

  enter(name: string, lane: string, bytes = 0, onAttempt?: () => Attempt): Waiter {
    const attempt = (): Attempt => {
      if (!this.budget.tryReserve(bytes)) return 'bytes-full'
      if (this.full.has(lane)) {
        this.budget.release(bytes)
        return 'rings-full'
      }
      this.taken.push(name)
      return 'taken'
    }
    const waiter = { lane, attempt: onAttempt ?? attempt }
    this.line.enter(waiter)
    return waiter
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

  test('for bytes hold up everyone, so that a big one is not starved by small ones', () => {
    const bench = new Bench()
    bench.budget.tryReserve(60)
    bench.enter('big', 'a', 80)
    bench.enter('small', 'b', 10)
    assert.deepEqual(bench.taken, [])
    bench.budget.release(60)
    assert.deepEqual(bench.taken, ['big', 'small'])
  })

  test('for bytes do not hold up one ahead of them that holds those bytes', () => {
    const bench = new Bench()
    bench.full.add('a')
    bench.budget.tryReserve(50)
    bench.enter('holds', 'a', 0, () => {
      if (bench.full.has('a')) return 'rings-full'
      bench.taken.push('holds')
      return 'taken'
    })
    bench.enter('waits for bytes', 'b', 90)
    bench.makeRoom('a')
    assert.deepEqual(bench.taken, ['holds'])
    bench.budget.release(50)
    assert.deepEqual(bench.taken, ['holds', 'waits for bytes'])
  })

  test('survive one of them giving bytes back while it is tried', () => {
    const bench = new Bench()
    bench.full.add('a')
    bench.budget.tryReserve(50)
    let mustGiveUp = false
    bench.enter('gives up', 'a', 0, () => {
      if (!mustGiveUp) return 'rings-full'
      bench.budget.release(50)
      return 'taken'
    })
    bench.enter('waits for bytes', 'b', 90)
    mustGiveUp = true
    bench.makeRoom('a')
    assert.deepEqual(bench.taken, ['waits for bytes'])
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
