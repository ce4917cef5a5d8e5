/** The lane of a producer: who may go together, who goes alone, and that nobody overtakes. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ProducerLane } from '../../../src/broker/producer-lane.ts'
import { BrokerError } from '../../../src/model/errors.ts'

function task(name: string, isAlone: boolean, log: string[]): Parameters<ProducerLane['enter']>[0] {
  return {
    isAlone,
    start: () => void log.push(name),
    closed: cause => void log.push(`${name} ${cause?.code ?? 'gone'}`)
  }
}

describe('a lane', () => {
  test('is shared until somebody must be alone, who waits for all before and holds up all behind', () => {
    const lane = new ProducerLane()
    const log: string[] = []
    assert.ok(lane.tryShare() && lane.tryShare())
    lane.enter(task('alone', true, log))
    lane.enter(task('behind', false, log))
    assert.equal(lane.tryShare(), false, 'nobody overtakes who waits')
    lane.leave()
    assert.deepEqual(log, [])
    lane.leave()
    assert.deepEqual(log, ['alone'])
    lane.giveBack()
    assert.deepEqual(log, ['alone', 'behind'])
    assert.equal(lane.tryShare(), false, 'not before it is dispatched')
    lane.share()
    assert.ok(lane.tryShare())
    lane.leave()
    assert.equal(lane.isEmpty, false)
    lane.leave()
    assert.ok(lane.isEmpty)
  })

  test('keeps who shares it in order while the first waits for room, also when another leaves', () => {
    const lane = new ProducerLane()
    const log: string[] = []
    assert.ok(lane.tryShare())
    lane.enter(task('first', false, log))
    lane.enter(task('second', false, log))
    lane.leave()
    assert.deepEqual(log, ['first'])
    lane.share()
    assert.deepEqual(log, ['first', 'second'])
  })

  test('that is closed tells everybody who waits', () => {
    const lane = new ProducerLane()
    const log: string[] = []
    lane.enter(task('closer', true, log))
    lane.enter(task('a', false, log))
    lane.enter(task('b', true, log))
    lane.close(new BrokerError('DISK_FULL'))
    assert.deepEqual(log, ['closer', 'a DISK_FULL', 'b DISK_FULL'])
  })
})
