/** Members of groups: generations, who may be whom, limits, and the time that a rebalance takes. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Coordinator, type Actor } from '../../../../src/control/groups/coordinator.ts'
import { GroupTable, type Group } from '../../../../src/control/groups/group-table.ts'
import { limits } from '../../../../src/model/limits.ts'
import { emptyImage } from '../topics.ts'

const key: Actor = { keyId: 'key', isAdmin: false }
const admin: Actor = { keyId: 'admin', isAdmin: true }

function stage(partitionCount = 4): { coordinator: Coordinator; table: GroupTable; group: Group } {
  const table = new GroupTable(emptyImage)
  return { coordinator: new Coordinator(() => partitionCount), table, group: table.add('g', 'key') }
}

const joining = (memberId: string, topics: readonly string[] = ['t'], nowMs = 0) => {
  return { memberId, kind: 'http', topics, nowMs } as const
}

const generationOf = (coordinator: Coordinator, group: Group): number =>
  coordinator.membershipOf(group)?.generation ?? 0

describe('the members of a group', () => {
  it('share one generation, which every change of them raises once', () => {
    const { coordinator, group } = stage()
    const steps: [() => unknown, number][] = [
      [() => coordinator.join(group, key, joining('a')), 1],
      [() => coordinator.join(group, key, joining('a')), 1],
      [() => coordinator.join(group, key, joining('b')), 2],
      [() => coordinator.join(group, key, joining('b', ['t', 'u'])), 3],
      [() => coordinator.join(group, key, joining('b', ['u', 't'])), 3],
      [() => coordinator.leave(group, key, 'nobody'), 3],
      [() => coordinator.leave(group, key, 'a'), 4],
      [() => coordinator.leave(group, key, 'a'), 4],
      [() => [...coordinator.evict(-1)], 4],
      [() => [...coordinator.evict(1)], 5],
      [() => coordinator.join(group, key, joining('c')), 6]
    ]
    for (const [step, generation] of steps) {
      step()
      assert.equal(generationOf(coordinator, group), generation)
    }
    assert.deepEqual(coordinator.counts, { groups: 1, members: 1, rebalances: 6, evictions: 1 })
  })

  it('are removed together by one pass, which is one rebalance, and live on through heartbeats and joins', () => {
    const { coordinator, group } = stage()
    for (const id of ['a', 'b', 'c', 'd']) coordinator.join(group, key, joining(id))
    coordinator.heartbeat(group, key, { id: 'a', generation: 1, nowMs: 10 })
    coordinator.join(group, key, joining('b', ['t'], 10))
    assert.deepEqual([...coordinator.evict(10)], [{ group: group.number, count: 2 }])
    assert.equal(generationOf(coordinator, group), 5)
    assert.deepEqual(Array.from(coordinator.membershipOf(group)?.members() ?? [], ({ id }) => id).sort(), ['a', 'b'])
  })

  it('hear ok only of the very generation, however large the number they send', () => {
    const { coordinator, group } = stage()
    coordinator.join(group, key, joining('a'))
    const status = (generation: number | bigint): string =>
      coordinator.heartbeat(group, key, { id: 'a', generation, nowMs: 1 }).status
    assert.deepEqual([0, 1, 2, 2n ** 64n - 1n].map(status), [
      'rebalance_required',
      'ok',
      'rebalance_required',
      'rebalance_required'
    ])
  })

  it('belong to the key that made them; admin may act for them', () => {
    const { coordinator, group } = stage()
    coordinator.join(group, admin, joining('theirs'))
    coordinator.join(group, key, joining('mine'))
    const refusal = { code: 'MEMBER_OWNED', message: /'theirs' of group 'g'/ }
    assert.throws(() => coordinator.join(group, key, joining('theirs')), refusal)
    assert.throws(() => coordinator.heartbeat(group, key, { id: 'theirs', generation: 1, nowMs: 0 }), refusal)
    assert.throws(() => coordinator.leave(group, key, 'theirs'), refusal)
    assert.throws(() => coordinator.memberOf(group, key, 'theirs'), refusal)
    assert.equal(coordinator.memberOf(group, admin, 'mine').member.id, 'mine')
    coordinator.join(group, admin, joining('mine'))
    assert.equal(coordinator.memberOf(group, key, 'mine').member.keyId, 'key', 'it stays of the key that made it')
    assert.throws(() => coordinator.memberOf(group, key, 'nobody'), { code: 'MEMBER_NOT_FOUND' })
    assert.throws(
      () => coordinator.memberOf(group, key, 'n'.repeat(10_000)),
      ({ message }: Error) => {
        return message.length < 300
      }
    )
  })

  it('are of one kind while there are any', () => {
    const { coordinator, group } = stage()
    coordinator.join(group, key, joining('a'))
    const other = { ...joining('b'), kind: 'kafka' } as const
    assert.throws(() => coordinator.join(group, key, other), { code: 'GROUP_KIND', message: /speak http.*kafka/ })
    coordinator.leave(group, key, 'a')
    coordinator.join(group, key, other)
    assert.equal(coordinator.membershipOf(group)?.kind, 'kafka')
  })

  it('are so many at most, in a group and in all', () => {
    const { coordinator, group, table } = stage(0)
    for (let i = 0; i < limits.groupMembersMax; i++) coordinator.join(group, key, joining(`m${i}`))
    const refusal = { code: 'MEMBERS_TOO_MANY', message: /1000 members/ }
    assert.throws(() => coordinator.join(group, key, joining('more')), refusal)
    coordinator.join(group, key, joining('m0'))
    for (let i = limits.groupMembersMax; i < limits.membersTotalMax; i++)
      coordinator.join(table.add(`g${i}`, 'key'), key, joining('m'))
    assert.throws(() => coordinator.join(table.add('last', 'key'), key, joining('m')), { code: 'OVERLOADED' })
    coordinator.leave(group, key, 'm1')
    coordinator.join(group, key, joining('more'))
  })

  it('have so many partitions at most, over all groups', () => {
    const { coordinator, table } = stage(200_000)
    for (let assigned = 0; assigned < limits.assignedPartitionsMax; assigned += 200_000)
      coordinator.join(table.add(`g${assigned}`, 'key'), key, joining('m'))
    const refusal = { code: 'OVERLOADED', message: /partitions.*10000000/ }
    assert.throws(() => coordinator.join(table.add('more', 'key'), key, joining('m')), refusal)
  })

  it('that join with few partitions cannot have more than that by subscribing to others later', () => {
    const { table } = stage()
    const coordinator = new Coordinator(topic => (topic === 'large' ? 200_000 : 1))
    const groups = Array.from({ length: 60 }, (_, i) => table.add(`g${i}`, 'key'))
    for (const group of groups) coordinator.join(group, key, joining('m', ['small']))
    const grow = (): void => {
      for (const group of groups) coordinator.join(group, key, joining('m', ['large']))
    }
    assert.throws(grow, { code: 'OVERLOADED', message: /partitions.*10000000/ })
    assert.equal(coordinator.memberOf(groups[59] as Group, key, 'm').member.topics[0], 'small')
    // Who changes nothing stays.
    for (const [i, group] of groups.entries()) coordinator.join(group, key, joining('m', [i < 50 ? 'large' : 'small']))
  })

  it('are assigned 10,000 partitions in less than 20 ms each time that one joins or leaves', t => {
    for (const [topicCount, partitionCount] of [
      [1, 10_000],
      [100, 100]
    ] as const) {
      const { coordinator, group } = stage(partitionCount)
      const topics = Array.from({ length: topicCount }, (_, i) => `topic-${i}`)
      const tookMs: number[] = []
      const measure = (step: () => void): void => {
        const before = process.threadCpuUsage()
        step()
        const { user, system } = process.threadCpuUsage(before)
        tookMs.push((user + system) / 1000)
      }
      for (let i = 0; i < 300; i++) measure(() => coordinator.join(group, key, joining(`m${i}`, topics)))
      for (let i = 0; i < 300; i++) measure(() => coordinator.leave(group, key, `m${i}`))
      tookMs.sort((a, b) => a - b)
      const [median = 0, slow = 0] = [tookMs[300], tookMs[594]]
      t.diagnostic(
        `${topicCount} topic(s) of ${partitionCount}: p50 ${median.toFixed(2)} ms, p99 ${slow.toFixed(2)} ms, longest ${tookMs.at(-1)?.toFixed(2)} ms of the thread's time`
      )
      assert.ok(median < 20, `${median} ms`)
    }
  })
})
