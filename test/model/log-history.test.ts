/** The judge of the power-loss test must be able to condemn: each of its rules is broken once here. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { LogHistory, type LogContents, type ToldRecord } from '../support/log-history.ts'

const told = (handle: number, offset: number, content: string): ToldRecord => ({ handle, offset, content })
const found = (handles: Record<number, string[]>, start = 0): LogContents =>
  new Map(Object.entries(handles).map(([handle, contents]) => [Number(handle), { start, contents }]))

/** Two acked records a and b of handle 1. */
function acked(): LogHistory {
  const history = new LogHistory()
  history.begin([told(1, 0, 'a'), told(1, 1, 'b')])
  history.ack()
  return history
}

describe('the judge of a restarted log', () => {
  it('accepts what was acked, and of what was in doubt all or nothing', () => {
    acked().settle(found({ 1: ['a', 'b'] }), false)
    for (const rest of [['c', 'd'], []]) {
      const history = acked()
      history.begin([told(1, 2, 'c'), told(1, 3, 'd')])
      history.settle(found({ 1: ['a', 'b', ...rest] }), false)
      assert.deepEqual(history.published(1), ['a', 'b', ...rest])
    }
  })

  it('condemns a log that lost an acked record', () => {
    assert.throws(() => acked().settle(found({ 1: ['a'] }), false), /acked records lost/)
    assert.throws(() => acked().settle(found({}), false), /acked records lost/)
  })

  it('condemns a log that serves another value at an offset', () => {
    assert.throws(() => acked().settle(found({ 1: ['a', 'x'] }), false), /two values/)
    assert.throws(() => acked().settle(found({ 1: ['b', 'a'] }), false), /two values/)
  })

  it('condemns a log that has a record twice or one that nobody appended', () => {
    assert.throws(() => acked().settle(found({ 1: ['a', 'b', 'b'] }), false), /nobody appended/)
    assert.throws(() => acked().settle(found({ 1: ['a', 'b'], 2: ['x'] }), false), /nobody appended/)
  })

  it('condemns a group that came back in part', () => {
    const history = acked()
    history.begin([told(1, 2, 'c'), told(2, 0, 'd')])
    assert.throws(() => history.settle(found({ 1: ['a', 'b', 'c'] }), false), /in part/)
  })

  it('condemns a group that came back without the one before it', () => {
    const history = acked()
    history.begin([told(1, 2, 'c')])
    history.begin([told(2, 0, 'd')])
    assert.throws(() => history.settle(found({ 1: ['a', 'b'], 2: ['d'] }), false), /one before it did not/)
  })

  it('condemns a kill that lost what the page cache must have kept', () => {
    const history = acked()
    history.begin([told(1, 2, 'c')]).isWritten = true
    assert.throws(() => history.settle(found({ 1: ['a', 'b'] }), true), /a kill lost/)
  })

  it('condemns a refused record that turns up, and one that comes back after it was lost', () => {
    const refused = acked()
    refused.refuse(refused.begin([told(1, 2, 'c')]))
    assert.throws(() => refused.settle(found({ 1: ['a', 'b', 'c'] }), false), /refused or lost/)
    const lost = acked()
    lost.begin([told(1, 2, 'c')])
    lost.settle(found({ 1: ['a', 'b'] }), false)
    assert.throws(() => lost.settle(found({ 1: ['a', 'b', 'c'] }), false), /refused or lost/)
  })

  it('follows a start offset that moved, and condemns one that went back or moved unasked', () => {
    const moved = (): LogHistory => {
      const history = acked()
      history.begin([], [{ handle: 1, offset: 1 }])
      history.ack()
      return history
    }
    moved().settle(found({ 1: ['b'] }, 1), false)
    assert.throws(() => moved().settle(found({ 1: ['a', 'b'] }), false), /start offset/)
    assert.throws(() => acked().settle(found({ 1: ['b'] }, 1), false), /start offset/)
    assert.throws(() => moved().settle(found({ 1: [] }, 1), false), /acked records lost/)
    const doubtful = acked()
    doubtful.begin([], [{ handle: 1, offset: 2 }])
    doubtful.settle(found({ 1: [] }, 2), false)
    assert.equal(doubtful.startOf(1), 2)
  })

  it('says nothing more about a deleted topic', () => {
    const history = acked()
    history.begin([told(1, 2, 'c')])
    history.drop(1)
    history.settle(found({}), true)
  })

  it('condemns offsets that leave a hole', () => {
    const history = acked()
    history.begin([told(1, 3, 'd')])
    assert.throws(() => history.ack(), /without a hole/)
  })
})
