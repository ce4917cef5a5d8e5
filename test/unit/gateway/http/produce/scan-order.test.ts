/** The order of produces to one topic while scans are away. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ScanOrder } from '../../../../../src/gateway/http/produce/scan-order.ts'
import type { Step } from '../../../../../src/gateway/http/produce/scan-order.ts'
import { limits } from '../../../../../src/model/limits.ts'
import { makeRandom } from '../../../wire/json/random-bodies.ts'

class RecordedStep implements Step {
  readonly lane: string
  readonly name: string
  isReady = false
  readonly #ran: string[]

  constructor(lane: string, name: string, ran: string[]) {
    this.lane = lane
    this.name = name
    this.#ran = ran
  }

  proceed(): void {
    this.#ran.push(this.name)
  }
}

function settle(order: ScanOrder, step: RecordedStep): void {
  step.isReady = true
  order.settle(step)
}

describe('produces whose bodies are scanned on other threads', () => {
  test('go on in the order in which they came, whatever the order in which their scans end', t => {
    const random = makeRandom()
    t.diagnostic(
      `seed ${random.seed}; replay: MILLRACE_SEED=${random.seed} node --test test/unit/gateway/http/produce/scan-order.test.ts`
    )
    const order = new ScanOrder(true)
    const ran: string[] = []
    const came: string[] = []
    const away: RecordedStep[] = []
    for (let round = 0; round < 2000; round++) {
      if (random.below(2) === 0) {
        const step = new RecordedStep(random.pick(['a', 'b', 'c']), `${round}`, ran)
        came.push(`${step.lane} ${step.name}`)
        order.enter(step)
        away.push(step)
      } else if (away.length > 0) {
        settle(order, away.splice(random.below(away.length), 1)[0] as RecordedStep)
      }
    }
    while (away.length > 0) settle(order, away.splice(random.below(away.length), 1)[0] as RecordedStep)
    assert.equal(ran.length, came.length)
    for (const lane of ['a', 'b', 'c']) {
      const expected = came.filter(item => item.startsWith(lane)).map(item => item.slice(2))
      assert.deepEqual(
        ran.filter(name => expected.includes(name)),
        expected
      )
      assert.ok(!order.hasAhead(lane))
    }
  })

  test('do not wait for those of another topic', () => {
    const order = new ScanOrder(true)
    const ran: string[] = []
    const slow = new RecordedStep('a', 'slow', ran)
    const fast = new RecordedStep('b', 'fast', ran)
    order.enter(slow)
    order.enter(fast)
    settle(order, fast)
    assert.deepEqual([ran, order.hasAhead('a'), order.hasAhead('b')], [['fast'], true, false])
  })

  test('wait for nobody where a connection has one request at a time', () => {
    const order = new ScanOrder(false)
    const ran: string[] = []
    const [slow, fast] = [new RecordedStep('a', 'slow', ran), new RecordedStep('a', 'fast', ran)]
    order.enter(slow)
    assert.ok(!order.hasAhead('a'))
    order.enter(fast)
    settle(order, fast)
    settle(order, slow)
    assert.deepEqual(ran, ['fast', 'slow'])
  })

  test('are refused when too many wait, and taken again when they have gone on', () => {
    const order = new ScanOrder(true)
    const steps = Array.from({ length: limits.waitingRequestsMax }, (_, i) => new RecordedStep('a', String(i), []))
    for (const step of steps) order.enter(step)
    assert.throws(() => order.enter(new RecordedStep('b', 'one more', [])), { code: 'OVERLOADED' })
    for (const step of steps) settle(order, step)
    order.enter(new RecordedStep('b', 'one more', []))
  })
})
