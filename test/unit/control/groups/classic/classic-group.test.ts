import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { limits } from '../../../../../src/model/limits.ts'
import { ClassicStage, protocolsOf } from '../../../../support/classic-stage.ts'

describe('members of a classic group that come together', () => {
  it('wait a moment for each other, and begin one generation', () => {
    const stage = new ClassicStage()
    const first = stage.join()
    assert.equal(stage.group.state, 'PreparingRebalance')
    stage.pass(30)
    const second = stage.join()
    stage.pass(20)
    assert.equal(first.isAnswered, false, 'somebody came: a moment more')
    stage.pass(50)
    assert.equal(stage.group.state, 'CompletingRebalance')
    assert.equal(first.answer.generation, 1)
    assert.equal(first.answer.leader, first.answer.memberId)
    assert.deepEqual(
      first.answer.members.map(({ memberId, metadata }) => [memberId, metadata.toString()]),
      [first, second].map(({ answer }) => [answer.memberId, 'topics of range'])
    )
    assert.deepEqual(second.answer.members, [], 'only the leader hears of everybody')
    assert.equal(second.answer.leader, first.answer.memberId)
  })

  it('are not kept longer than the rebalance timeout by ever more members', () => {
    const stage = new ClassicStage()
    const first = stage.join({ rebalanceTimeoutMs: 1_000 })
    for (let i = 0; i < 40; i++) {
      stage.join({ rebalanceTimeoutMs: 1_000 })
      stage.pass(25)
    }
    assert.equal(first.isAnswered, true)
  })

  it('get what the leader gives them, followers once the leader has', () => {
    const stage = new ClassicStage()
    const [first, second, third] = [stage.join(), stage.join(), stage.join()]
    stage.pass(50)
    stage.pass(50)
    const early = stage.sync(second.answer)
    assert.equal(early.isAnswered, false)
    const leading = stage.sync(first.answer, {
      assignments: [
        { memberId: second.answer.memberId, assignment: Buffer.from('half') },
        { memberId: 'nobody', assignment: Buffer.from('lost') }
      ]
    })
    assert.equal(stage.group.state, 'Stable')
    assert.equal(early.answer.assignment.toString(), 'half')
    assert.equal(leading.answer.assignment.toString(), '', 'whom the leader forgets gets nothing')
    assert.equal(stage.sync(third.answer).answer.assignment.toString(), '', 'who syncs late gets an answer at once')
  })

  it('use the protocol that most of them like best of those that all know', () => {
    const stage = new ClassicStage()
    const first = stage.join({ protocols: protocolsOf('only-here', 'range', 'sticky') })
    stage.join({ protocols: protocolsOf('sticky', 'range') })
    stage.join({ protocols: protocolsOf('sticky', 'range') })
    stage.pass(50)
    stage.pass(50)
    assert.equal(first.answer.protocolName, 'sticky')
    assert.equal(first.answer.members[0]?.metadata.toString(), 'topics of sticky')
  })

  it('are refused where they have no protocol in common, or another type', () => {
    const stage = new ClassicStage()
    stage.stable(1)
    for (const parts of [
      { protocols: protocolsOf('sticky') },
      { protocols: [] },
      { protocolType: 'connect' },
      { protocolType: '' }
    ]) {
      assert.equal(stage.join(parts).answer.fault, 'INCONSISTENT_GROUP_PROTOCOL')
    }
    assert.equal(stage.group.state, 'Stable')
  })

  it('may take a group that is empty again for something else', () => {
    const stage = new ClassicStage()
    const [only] = stage.stable(1)
    stage.leave(only?.memberId ?? '')
    assert.equal(stage.group.state, 'Empty')
    const other = stage.join({ protocolType: 'connect', protocols: protocolsOf('eager') })
    stage.pass(50)
    assert.equal(other.answer.protocolType, 'connect')
    assert.equal(other.answer.generation, 3, 'generations go on: to be empty is one')
  })
})

describe('a new member of a classic group that must know its id first', () => {
  it('is given one, and joins with it', () => {
    const stage = new ClassicStage()
    const refused = stage.join({ isIdRequired: true })
    assert.equal(refused.answer.fault, 'MEMBER_ID_REQUIRED')
    assert.equal(stage.group.memberCount, 0)
    const joined = stage.join({ isIdRequired: true, memberId: refused.answer.memberId })
    stage.pass(50)
    assert.equal(joined.answer.fault, null)
    assert.equal(joined.answer.memberId, refused.answer.memberId)
    assert.equal(stage.group.pendingCount, 0)
  })

  it('is waited for in a rebalance until its id lapses', () => {
    const stage = new ClassicStage()
    const [first] = stage.stable(1)
    stage.join({ isIdRequired: true, sessionTimeoutMs: 5_000 })
    const again = stage.join({ memberId: first?.memberId ?? '' })
    assert.equal(again.isAnswered, false)
    stage.pass(4_999)
    assert.equal(again.isAnswered, false)
    stage.pass(1)
    assert.equal(again.answer.generation, 2)
    assert.equal(stage.group.pendingCount, 0)
  })

  it('is not waited for when it leaves instead', () => {
    const stage = new ClassicStage()
    const [first] = stage.stable(1)
    const refused = stage.join({ isIdRequired: true })
    const again = stage.join({ memberId: first?.memberId ?? '' })
    assert.deepEqual(stage.leave(refused.answer.memberId), [null])
    assert.equal(again.answer.generation, 2)
  })

  it('is unknown under an id that it made up', () => {
    const stage = new ClassicStage()
    assert.equal(stage.join({ memberId: 'mine' }).answer.fault, 'UNKNOWN_MEMBER_ID')
  })
})

describe('a rebalance of a classic group', () => {
  it('has every member join again, and begins when all have', () => {
    const stage = new ClassicStage()
    const [first, second] = stage.stable(2)
    assert.ok(first && second)
    const third = stage.join()
    assert.equal(stage.heartbeat(first), 'REBALANCE_IN_PROGRESS')
    assert.equal(stage.sync(second).answer.fault, 'REBALANCE_IN_PROGRESS')
    const again = [first, second].map(({ memberId }) => stage.join({ memberId }))
    assert.equal(third.answer.generation, 2)
    assert.equal(again[0]?.answer.members.length, 3)
    assert.equal(stage.heartbeat(first), 'ILLEGAL_GENERATION')
    assert.equal(stage.heartbeat(third.answer), null, 'one that waits to sync is well')
  })

  it('goes on without those that do not join again in time', () => {
    const stage = new ClassicStage()
    const [first, second] = stage.stable(2, () => ({ rebalanceTimeoutMs: 3_000 }))
    assert.ok(first && second)
    const again = stage.join({ memberId: first.memberId, rebalanceTimeoutMs: 3_000 })
    assert.equal(stage.pass(2_999), 0)
    assert.equal(again.isAnswered, false)
    assert.equal(stage.pass(1), 1)
    assert.equal(again.answer.members.length, 1)
    assert.equal(stage.heartbeat(second), 'UNKNOWN_MEMBER_ID')
  })

  it('has another lead if the leader does not join again', () => {
    const stage = new ClassicStage()
    const [first, second] = stage.stable(2)
    assert.ok(first && second)
    stage.leave(first.memberId)
    const again = stage.join({ memberId: second.memberId })
    assert.equal(again.answer.leader, second.memberId)
    assert.equal(again.answer.members.length, 1)
  })

  it('is not begun by a follower that says the same again, and is by one that says something else', () => {
    const stage = new ClassicStage()
    const [first, second] = stage.stable(2)
    assert.ok(first && second)
    assert.equal(stage.join({ memberId: second.memberId }).answer.generation, 1)
    assert.equal(stage.group.state, 'Stable')
    const protocols = [{ name: 'range', metadata: Buffer.from('other topics') }]
    const changed = stage.join({ memberId: second.memberId, protocols })
    assert.equal(stage.group.state, 'PreparingRebalance')
    const leading = stage.join({ memberId: first.memberId })
    assert.equal(changed.answer.generation, 2)
    assert.equal(leading.answer.members[1]?.metadata.toString(), 'other topics')
  })

  it('is begun by a leader that joins again: it wants to assign anew', () => {
    const stage = new ClassicStage()
    const [first] = stage.stable(1)
    assert.ok(first)
    assert.equal(stage.join({ memberId: first.memberId }).answer.generation, 2)
  })

  it('answers a member again that joins twice while others sync: the first answer may be lost', () => {
    const stage = new ClassicStage()
    const [first, second] = [stage.join(), stage.join()]
    stage.pass(50)
    stage.pass(50)
    const { memberId } = first.answer
    assert.deepEqual(stage.join({ memberId }).answer, first.answer)
    assert.equal(stage.group.state, 'CompletingRebalance')
    assert.equal(second.answer.generation, 1)
  })

  it('answers the earlier of two joins of one member with a refusal, and the later with the generation', () => {
    const stage = new ClassicStage()
    const [first, second] = stage.stable(2)
    assert.ok(first && second)
    const { memberId } = first
    const [earlier, later] = [stage.join({ memberId }), stage.join({ memberId })]
    assert.equal(earlier.answer.fault, 'REBALANCE_IN_PROGRESS')
    stage.join({ memberId: second.memberId })
    assert.equal(later.answer.generation, 2)
  })
})

describe('a member of a classic group that fails', () => {
  it('and leads, between join and sync: the others join again', () => {
    const stage = new ClassicStage()
    const [first, second] = [stage.join(), stage.join({ sessionTimeoutMs: 30_000 })]
    stage.pass(50)
    stage.pass(50)
    const waiting = stage.sync(second.answer)
    assert.equal(stage.pass(9_999), 0)
    assert.equal(waiting.isAnswered, false)
    assert.equal(stage.pass(1), 1)
    assert.equal(waiting.answer.fault, 'REBALANCE_IN_PROGRESS')
    const again = stage.join({ memberId: second.answer.memberId })
    assert.equal(again.answer.leader, second.answer.memberId)
    assert.equal(stage.heartbeat(first.answer), 'UNKNOWN_MEMBER_ID')
  })

  it('and never syncs is removed after the rebalance timeout, although it beats', () => {
    const stage = new ClassicStage()
    const [first, second] = [stage.join({ rebalanceTimeoutMs: 8_000 }), stage.join({ rebalanceTimeoutMs: 8_000 })]
    stage.pass(50)
    stage.pass(50)
    stage.assign(first.answer)
    stage.pass(7_900)
    assert.equal(stage.heartbeat(second.answer), null)
    assert.equal(stage.heartbeat(first.answer), null)
    assert.equal(stage.pass(100), 1)
    assert.equal(stage.heartbeat(second.answer), 'UNKNOWN_MEMBER_ID')
    assert.equal(stage.heartbeat(first.answer), 'REBALANCE_IN_PROGRESS')
  })

  it('is removed once it was silent for its session timeout, and not before', () => {
    const stage = new ClassicStage()
    const [first, second] = stage.stable(2)
    assert.ok(first && second)
    stage.pass(9_000)
    stage.heartbeat(first)
    assert.equal(stage.pass(1_000), 1)
    assert.equal(stage.heartbeat(second), 'UNKNOWN_MEMBER_ID')
    assert.equal(stage.group.state, 'PreparingRebalance')
  })

  it('leaves the group empty if it was the last', () => {
    const stage = new ClassicStage()
    stage.stable(1)
    stage.pass(10_000)
    assert.equal(stage.group.state, 'Empty')
    assert.equal(stage.group.bytes, 0)
    assert.equal(stage.group.deadlineMs, null)
    assert.equal(stage.group.leader, null)
  })

  it('does not count as silent while it waits for an answer', () => {
    const stage = new ClassicStage()
    const [first] = stage.stable(2, () => ({ sessionTimeoutMs: 5_000 }))
    stage.heartbeat(first ?? assert.fail())
    const again = stage.join({ memberId: first?.memberId ?? '', sessionTimeoutMs: 5_000 })
    stage.pass(5_000)
    assert.equal(again.answer.members.length, 1)
  })

  it('is forgotten with its connection if it was told nothing yet, else only the question is', () => {
    const stage = new ClassicStage()
    const [first] = stage.stable(1)
    assert.ok(first)
    const unknown = stage.join()
    stage.group.abandon(unknown.take, stage.nowMs)
    assert.equal(stage.group.memberCount, 1)
    const again = stage.join({ memberId: first.memberId })
    assert.equal(again.answer.generation, 2, 'nobody waits for it')
    stage.join()
    const lost = stage.join({ memberId: first.memberId })
    assert.equal(stage.group.memberCount, 2)
    stage.group.abandon(lost.take, stage.nowMs)
    assert.equal(stage.group.memberCount, 2)
    assert.equal(unknown.isAnswered, false, 'nobody listens')
  })

  it('is refused with an old generation, wherever it asks', () => {
    const stage = new ClassicStage()
    const [first] = stage.stable(1)
    assert.ok(first)
    const { memberId } = first
    stage.assign(stage.join({ memberId }).answer)
    const old = { memberId, instanceId: null, generation: 1 }
    assert.equal(stage.heartbeat(first), 'ILLEGAL_GENERATION')
    assert.equal(stage.sync(first).answer.fault, 'ILLEGAL_GENERATION')
    assert.equal(stage.group.checkCommit(old, stage.nowMs), 'ILLEGAL_GENERATION')
    assert.equal(stage.group.checkCommit({ ...old, generation: 2 }, stage.nowMs), null)
  })

  it('and says another protocol in its sync than was picked is refused', () => {
    const stage = new ClassicStage()
    const first = stage.join()
    stage.pass(50)
    for (const parts of [{ protocolName: 'sticky' }, { protocolType: 'connect' }]) {
      assert.equal(stage.sync(first.answer, parts).answer.fault, 'INCONSISTENT_GROUP_PROTOCOL')
    }
    const right = { protocolName: 'range', protocolType: 'consumer' }
    assert.equal(stage.assign(first.answer, right).answer.fault, null)
  })

  it('cannot give out more than a group may have', () => {
    const stage = new ClassicStage()
    const first = stage.join()
    stage.pass(50)
    const { memberId } = first.answer
    const assignment = Buffer.alloc(limits.classicGroupBytesMax)
    assert.equal(
      stage.sync(first.answer, { assignments: [{ memberId, assignment }] }).answer.fault,
      'GROUP_MAX_SIZE_REACHED'
    )
  })
})

describe('who commits offsets of a classic group', () => {
  it('is no member only while there are none', () => {
    const stage = new ClassicStage()
    const simple = { memberId: '', instanceId: null, generation: -1 }
    assert.equal(stage.group.checkCommit(simple, stage.nowMs), null)
    const [first] = stage.stable(1)
    assert.ok(first)
    assert.equal(stage.group.checkCommit(simple, stage.nowMs), 'UNKNOWN_MEMBER_ID')
    stage.leave(first.memberId)
    assert.equal(stage.group.checkCommit(simple, stage.nowMs), null)
  })

  it('may commit while members join again, not once they wait for the leader', () => {
    const stage = new ClassicStage()
    const [first, second] = stage.stable(2)
    assert.ok(first && second)
    const identity = { memberId: second.memberId, instanceId: null, generation: 1 }
    stage.join({ memberId: first.memberId })
    assert.equal(stage.group.checkCommit(identity, stage.nowMs), null)
    stage.join({ memberId: second.memberId })
    assert.equal(stage.group.checkCommit({ ...identity, generation: 2 }, stage.nowMs), 'REBALANCE_IN_PROGRESS')
  })
})
