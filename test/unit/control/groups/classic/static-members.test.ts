import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ClassicStage, protocolsOf } from '../../../../support/classic-stage.ts'

const names = ['a', 'b']
const named = (index: number): { instanceId: string } => ({ instanceId: names[index] ?? 'more' })

describe('a static member of a classic group', () => {
  it('needs no id first, and its id begins with its name', () => {
    const stage = new ClassicStage()
    const joined = stage.join({ instanceId: 'a', isIdRequired: true })
    stage.pass(50)
    assert.equal(joined.answer.fault, null)
    assert.match(joined.answer.memberId, /^a-/)
  })

  it('that is started again keeps what it had, without a rebalance', () => {
    const stage = new ClassicStage()
    const [, second] = stage.stable(2, named)
    assert.ok(second)
    const back = stage.join({ instanceId: 'b' })
    assert.equal(back.answer.generation, 1)
    assert.notEqual(back.answer.memberId, second.memberId)
    assert.equal(stage.group.state, 'Stable')
    const synced = stage.sync(back.answer, { instanceId: 'b' })
    assert.equal(synced.answer.assignment.toString(), second.memberId, 'what its former self was given')
  })

  it('that is started again before it had synced is not waited for under its former id', () => {
    const stage = new ClassicStage()
    const [first] = [stage.join({ instanceId: 'a' }), stage.join({ instanceId: 'b' })]
    stage.pass(50)
    stage.pass(50)
    stage.assign(first.answer, { instanceId: 'a' })
    const back = stage.join({ instanceId: 'b' })
    stage.sync(back.answer, { instanceId: 'b' })
    for (let i = 0; i < 10; i++) {
      stage.pass(9_000)
      assert.equal(stage.heartbeat(first.answer, 'a'), null)
      assert.equal(stage.heartbeat(back.answer, 'b'), null)
    }
  })

  it('fences its former self', () => {
    const stage = new ClassicStage()
    const [, second] = stage.stable(2, named)
    assert.ok(second)
    const back = stage.join({ instanceId: 'b' })
    const old = { memberId: second.memberId, instanceId: 'b', generation: 1 }
    assert.equal(stage.heartbeat(second, 'b'), 'FENCED_INSTANCE_ID')
    assert.equal(stage.sync(second, { instanceId: 'b' }).answer.fault, 'FENCED_INSTANCE_ID')
    assert.equal(stage.join({ memberId: second.memberId, instanceId: 'b' }).answer.fault, 'FENCED_INSTANCE_ID')
    assert.equal(stage.group.checkCommit(old, stage.nowMs), 'FENCED_INSTANCE_ID')
    assert.deepEqual(stage.group.leave([old], stage.nowMs), ['FENCED_INSTANCE_ID'])
    assert.equal(stage.heartbeat(back.answer, 'b'), null)
  })

  it('fences its former self that waits for an answer', () => {
    const stage = new ClassicStage()
    stage.stable(1)
    const former = stage.join({ instanceId: 'b' })
    const later = stage.join({ instanceId: 'b' })
    assert.equal(former.answer.fault, 'FENCED_INSTANCE_ID')
    assert.equal(later.isAnswered, false)
  })

  it('that led and is back has nothing to assign, if its client knows what that is', () => {
    const stage = new ClassicStage()
    stage.stable(2, named)
    const back = stage.join({ instanceId: 'a', canSkipAssignment: true }).answer
    assert.equal(back.skipAssignment, true)
    assert.equal(back.leader, back.memberId)
    assert.equal(back.members.length, 2)
    assert.equal(stage.group.state, 'Stable')
  })

  it('that led and is back takes its part as a follower, if its client is older', () => {
    const stage = new ClassicStage()
    const [first] = stage.stable(2, named)
    assert.ok(first)
    const back = stage.join({ instanceId: 'a' }).answer
    assert.equal(back.skipAssignment, false)
    assert.equal(back.leader, first.memberId)
    assert.deepEqual(back.members, [])
    assert.equal(stage.sync(back, { instanceId: 'a' }).answer.assignment.toString(), first.memberId)
    assert.equal(stage.group.leader, back.memberId, 'in truth it leads: its next join begins a rebalance')
  })

  it('that is back with another protocol begins a rebalance if that changes what is picked', () => {
    const stage = new ClassicStage()
    stage.stable(1, () => ({ instanceId: 'a', protocols: protocolsOf('range', 'sticky') }))
    const back = stage.join({ instanceId: 'a', protocols: protocolsOf('sticky') })
    assert.equal(back.answer.generation, 2)
    assert.equal(back.answer.protocolName, 'sticky')
  })

  it('is not lost by a rebalance that it misses, and is by its silence', () => {
    const stage = new ClassicStage()
    const [first] = stage.stable(2, index => ({
      instanceId: index === 0 ? null : 'b',
      rebalanceTimeoutMs: 2_000,
      sessionTimeoutMs: 10_000
    }))
    assert.ok(first)
    const again = stage.join({ memberId: first.memberId, rebalanceTimeoutMs: 2_000 })
    stage.pass(2_000)
    assert.equal(again.answer.members.length, 2, 'the leader assigns to it too')
    stage.assign(again.answer)
    stage.pass(7_900)
    stage.heartbeat(again.answer)
    assert.equal(stage.group.memberCount, 2)
    stage.pass(100)
    assert.equal(stage.group.memberCount, 1)
  })

  it('keeps its group waiting when all are away, until they are back or silent too long', () => {
    const stage = new ClassicStage()
    const [, second] = stage.stable(2, index => ({ ...named(index), rebalanceTimeoutMs: 2_000 }))
    assert.ok(second)
    stage.leave(second.memberId)
    for (let i = 0; i < 4; i++) stage.pass(2_000)
    assert.equal(stage.group.state, 'PreparingRebalance')
    assert.equal(stage.group.memberCount, 1)
    const back = stage.join({ instanceId: 'a', rebalanceTimeoutMs: 2_000 })
    assert.equal(back.answer.generation, 2)
    stage.pass(20_000)
    assert.equal(stage.group.state, 'Empty')
  })

  it('leaves by its name alone', () => {
    const stage = new ClassicStage()
    stage.stable(2, named)
    const leavers = [
      { memberId: '', instanceId: 'a' },
      { memberId: '', instanceId: 'nobody' },
      { memberId: 'nobody', instanceId: null }
    ]
    assert.deepEqual(stage.group.leave(leavers, stage.nowMs), [null, 'UNKNOWN_MEMBER_ID', 'UNKNOWN_MEMBER_ID'])
    assert.equal(stage.group.memberCount, 1)
  })
})
