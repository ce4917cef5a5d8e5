/** The use cases of groups: whose they are, what a crash may take, what happens while the store is busy or refuses. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { clampToEnds } from '../../../src/broker/group-clamp.ts'
import { BrokerError } from '../../../src/model/errors.ts'
import { limits } from '../../../src/model/limits.ts'
import { create, remove } from '../control/topics.ts'
import { admin, keyOf, mine, stage, theirs } from './group-stage.ts'

const place = { topic: 'orders', partition: 0 }
const join = { topics: ['orders'], memberId: 'm' }
const owned = { code: 'GROUP_OWNED', message: /'g'/ }

describe('a group', () => {
  it('belongs to the key that first committed to it: others are refused whatever they ask, admin is not', async () => {
    const { groups } = stage()
    await groups.commit(mine, 'g', place, 5)
    await groups.join(mine, 'g', join)
    await assert.rejects(groups.commit(theirs, 'g', place, 6), owned)
    assert.throws(() => groups.offsets(theirs, 'g'), owned)
    assert.throws(() => groups.positionOf(theirs, 'g', place), owned)
    await assert.rejects(groups.join(theirs, 'g', join), owned)
    assert.throws(() => groups.heartbeat(theirs, 'g', 'm', 1), owned)
    assert.throws(() => groups.leave(theirs, 'g', 'm'), owned)
    assert.throws(() => groups.assignment(theirs, 'g', 'm'), owned)
    await assert.rejects(groups.reset(theirs, 'g', { topic: 'orders', partition: null, to: 'latest' }), owned)
    await assert.rejects(groups.describe(theirs, 'g'), owned)
    await assert.rejects(groups.remove(theirs, 'g'), owned)
    assert.deepEqual(await groups.list(theirs), [])

    assert.deepEqual(groups.offsets(admin, 'g'), new Map([['orders', new Map([[0, 5]])]]))
    assert.equal(groups.positionOf(admin, 'g', place), 5)
    await groups.commit(admin, 'g', place, 6)
    assert.equal(groups.heartbeat(admin, 'g', 'm', 1).status, 'ok')
    assert.equal((await groups.describe(admin, 'g')).owner, 'key_mine', 'what admin does takes it from nobody')
    await groups.commit(mine, 'g', place, 7)
  })

  it('belongs to the key that joined it first, or to admin, if that came first', async () => {
    const { groups } = stage()
    await groups.join(mine, 'g', join)
    await assert.rejects(groups.commit(theirs, 'g', place, 6), owned)
    await groups.commit(admin, 'a', place, 1)
    await assert.rejects(groups.commit(mine, 'a', place, 1), { code: 'GROUP_OWNED' })
  })

  it('is made by no look at it', async () => {
    const { groups, table, commits } = stage()
    assert.deepEqual([groups.offsets(mine, 'g').size, groups.positionOf(mine, 'g', place)], [0, null])
    assert.deepEqual(groups.heartbeat(mine, 'g', 'm', 1), { status: 'unknown_member', generation: 0 })
    groups.leave(mine, 'g', 'm')
    assert.throws(() => groups.assignment(mine, 'g', 'm'), { code: 'GROUP_NOT_FOUND' })
    await assert.rejects(groups.describe(mine, 'g'), { code: 'GROUP_NOT_FOUND' })
    await assert.rejects(groups.remove(mine, 'g'), { code: 'GROUP_NOT_FOUND' })
    assert.deepEqual([table.groupCount, commits.length], [0, 0])
  })

  it('is durable before the first commit or join is answered, and made once by many at once', async () => {
    for (const first of ['commit', 'join'] as const) {
      const { groups, store, commits, table } = stage()
      const { promise: gate, resolve: open } = Promise.withResolvers<void>()
      store.gate = gate
      const answers: string[] = []
      const begin = first === 'commit' ? groups.commit(mine, 'g', place, 5) : groups.join(mine, 'g', join)
      const all = [begin, groups.commit(mine, 'g', { ...place, partition: 1 }, 6), groups.join(mine, 'g', join)].map(
        answer => answer.then(() => answers.push('mine'))
      )
      const other = assert.rejects(groups.commit(theirs, 'g', place, 9), owned)
      await new Promise(resolve => setImmediate(resolve))
      assert.deepEqual([answers, commits.length], [[], 1])
      open()
      await Promise.all([...all, other])
      assert.deepEqual(commits, [{ kind: 'group-added', group: { number: 1, name: 'g', owner: 'key_mine' } }])
      assert.equal(table.withName('g')?.offsetCount, first === 'commit' ? 2 : 1)
    }
  })

  it('is not there if the store refused it, and the next who asks may have it', async () => {
    const { groups, store, table } = stage()
    store.gate = Promise.reject(new BrokerError('DISK_FULL'))
    const waiting = groups.commit(mine, 'g', place, 5)
    const next = groups.join(theirs, 'g', join)
    await assert.rejects(waiting, { code: 'DISK_FULL' })
    await assert.rejects(next, { code: 'DISK_FULL' })
    assert.equal(table.withName('g'), undefined)
    store.gate = null
    await groups.commit(theirs, 'g', place, 1)
    assert.equal(table.withName('g')?.owner, 'key_theirs')
  })

  it('is removed with its offsets, and back as it was if the store refuses that', async () => {
    const { groups, store, table, flush, commits } = stage()
    await groups.commit(mine, 'g', place, 5)
    store.gate = Promise.reject(new BrokerError('DISK_FULL'))
    await assert.rejects(groups.remove(mine, 'g'), { code: 'DISK_FULL' })
    assert.equal(groups.positionOf(mine, 'g', place), 5)
    const { promise: gate, resolve: open } = Promise.withResolvers<void>()
    store.gate = gate
    const removing = groups.remove(mine, 'g')
    const again = groups.commit(theirs, 'g', place, 7)
    await new Promise(resolve => setImmediate(resolve))
    assert.equal(table.withName('g'), undefined)
    open()
    await Promise.all([removing, again])
    assert.deepEqual([table.withName('g')?.owner, groups.positionOf(theirs, 'g', place)], ['key_theirs', 7])
    commits.length = 0
    await flush.flush()
    assert.deepEqual(
      commits.map(change => (change.kind === 'group-offsets' ? [...change.rows.groups] : change.kind)),
      [[2]],
      'nothing is written for the group that is gone'
    )
  })

  it('is not made in vain by a commit or a reset for whose offsets there is no room', async () => {
    const { groups, table, orders, commits } = stage()
    for (let group = 0; table.offsetCount < limits.groupOffsetsTotalMax; group++) {
      const full = table.add(`full-${group}`, 'key_theirs')
      for (let partition = 0; partition < limits.groupOffsetsMax; partition++)
        table.commit(full, orders.id, partition, 1)
    }
    const refusal = { code: 'GROUP_OFFSETS_TOO_MANY' }
    await assert.rejects(groups.commit(mine, 'g', place, 5), refusal)
    await assert.rejects(groups.reset(mine, 'g', { topic: 'orders', partition: null, to: 'latest' }), refusal)
    assert.equal(table.withName('g'), undefined)
    assert.deepEqual(commits, [])
    assert.equal((await groups.join(mine, 'g', join)).generation, 1, 'members need none')
  })

  it('cannot be removed while it has members', async () => {
    const { groups } = stage()
    await groups.join(mine, 'g', join)
    await assert.rejects(groups.remove(mine, 'g'), { code: 'GROUP_NOT_EMPTY', message: /1 member/ })
  })
})

describe('what a key may read', () => {
  const some = keyOf('key_some', 'orders')

  it('bounds commits, group reads, joins and resets, whether the topic exists or not', async () => {
    const { groups, commits } = stage()
    for (const topic of ['secret', 'nothing']) {
      const forbidden = { code: 'FORBIDDEN', message: new RegExp(`read on '${topic}'`) }
      await assert.rejects(groups.commit(some, 'b!d', { topic, partition: 99 }, 5), forbidden)
      assert.throws(() => groups.positionOf(some, 'g', { topic, partition: 0 }), forbidden)
      await assert.rejects(groups.join(some, 'b!d', { topics: ['orders', topic], memberId: 'b!d' }), forbidden)
      await assert.rejects(groups.reset(some, 'g', { topic, partition: null, to: 'latest' }), forbidden)
    }
    assert.equal(commits.length, 0)
  })

  it('bounds what is shown of offsets and lag, and what members do once one of them subscribes to more', async () => {
    const { groups } = stage()
    await groups.commit(some, 'g', place, 10)
    await groups.join(some, 'g', join)
    await groups.commit(admin, 'g', { topic: 'secret', partition: 0 }, 3)
    assert.deepEqual([...groups.offsets(some, 'g').keys()], ['orders'])
    assert.deepEqual([...groups.offsets(admin, 'g').keys()], ['orders', 'secret'])
    assert.equal((await groups.describe(some, 'g')).lagRecords, 0)
    await groups.join(admin, 'g', { topics: ['secret'], memberId: 'other' })
    const forbidden = { code: 'FORBIDDEN', message: /read on 'secret'/ }
    assert.throws(() => groups.heartbeat(some, 'g', 'm', 1), forbidden)
    assert.throws(() => groups.leave(some, 'g', 'm'), forbidden)
    assert.throws(() => groups.assignment(some, 'g', 'm'), forbidden)
  })

  it('is told of very many offsets without holding up others for long', async () => {
    const { groups, table, parts } = stage()
    const wide = create(parts.catalog, 'wide', 10_000)
    for (let group = 0; group < 100; group++) {
      const behind = table.add(`g${group}`, 'key_mine')
      for (let partition = 0; partition < wide.partitionCount; partition++) table.commit(behind, wide.id, partition, 1)
    }
    let turns = 0
    let isOver = false
    const count = (): void => {
      turns++
      if (!isOver) setImmediate(count)
    }
    count()
    const described = await groups.list(mine)
    isOver = true
    assert.equal(described[99]?.lagRecords, 90_000)
    assert.ok(turns > 40, `${turns} turns for a million offsets`)
  })

  it('is nothing for a revoked key, and reset-offsets takes admin', async () => {
    const { groups } = stage()
    const revoked = keyOf('key_mine', '', { isRevoked: true })
    await assert.rejects(groups.commit(revoked, 'g', place, 1), { code: 'KEY_REVOKED' })
    assert.throws(() => groups.heartbeat(revoked, 'g', 'm', 1), { code: 'KEY_REVOKED' })
    await assert.rejects(groups.resetTopic(mine, 'orders'), { code: 'FORBIDDEN' })
    await assert.rejects(groups.resetTopic(admin, 'nothing'), { code: 'TOPIC_NOT_FOUND' })
  })
})

describe('a topic that is deleted', () => {
  it('while its first commit makes the group is refused to it, and leaves no offset', async () => {
    const { groups, catalog, store, table } = stage()
    const { promise: gate, resolve: open } = Promise.withResolvers<void>()
    store.gate = gate
    const committing = groups.commit(mine, 'g', place, 5)
    groups.forgetTopic(remove(catalog, 'orders'))
    open()
    await assert.rejects(committing, { code: 'TOPIC_NOT_FOUND' })
    assert.equal(table.offsetCount, 0)
  })
})

describe('silent members', () => {
  it('are removed after the time-out, not before', async () => {
    const { groups, passTime } = stage()
    await groups.join(mine, 'g', join)
    passTime(15_000)
    await groups.evictSilent(15_000)
    assert.equal(groups.heartbeat(mine, 'g', 'm', 1).status, 'ok')
    passTime(15_001)
    await groups.evictSilent(15_000)
    assert.deepEqual(groups.heartbeat(mine, 'g', 'm', 1), { status: 'unknown_member', generation: 2 })
  })

  it('stay while a stream of theirs is taken, which hears of every new assignment', async () => {
    const { groups, passTime } = stage()
    await groups.join(mine, 'g', join)
    const seen = { isTaken: true, heard: 0 }
    const stream = { isTaking: () => seen.isTaken, onRebalanced: () => void seen.heard++ }
    const detach = groups.attach('g', 'm', stream)
    passTime(15_001)
    await groups.evictSilent(15_000)
    assert.equal(groups.heartbeat(mine, 'g', 'm', 1).status, 'ok')
    await groups.join(mine, 'g', { ...join, memberId: 'n' })
    await new Promise(resolve => setImmediate(resolve))
    assert.equal(seen.heard, 1)
    seen.isTaken = false
    passTime(15_001)
    await groups.evictSilent(15_000)
    await new Promise(resolve => setImmediate(resolve))
    assert.deepEqual([groups.heartbeat(mine, 'g', 'm', 2).status, seen.heard], ['unknown_member', 2])
    detach()
  })

  it('of very many groups are removed with turns for others in between, who may come and go meanwhile', async () => {
    const { groups, coordinator, passTime } = stage()
    for (let i = 0; i < 1000; i++) await groups.join(mine, `g${i}`, join)
    passTime(15_001)
    const evicting = groups.evictSilent(15_000)
    groups.leave(mine, 'g999', 'm')
    await groups.remove(mine, 'g999')
    await groups.join(mine, 'g998', { ...join, memberId: 'new' })
    groups.heartbeat(mine, 'g997', 'm', 1)
    assert.ok(coordinator.counts.evictions < 997, 'others had their turn before all were gone')
    await evicting
    assert.deepEqual(coordinator.counts.evictions, 998)
    assert.equal(groups.heartbeat(mine, 'g998', 'new', 1).status, 'rebalance_required')
    assert.equal(groups.heartbeat(mine, 'g997', 'm', 1).status, 'ok')
    assert.equal(coordinator.counts.groups, 2)
  })
})

describe('the flush of committed offsets', () => {
  it('writes what changed once, in slices, and again what the store refused, with a trouble meanwhile', async () => {
    const { groups, table, flush, store, commits, orders } = stage()
    await groups.commit(mine, 'g', place, 5)
    const group = table.withName('g')
    assert.ok(group !== undefined)
    const count = limits.groupFlushRows + 500
    for (let partition = 0; partition < count; partition++) table.commit(group, orders.id, partition, partition)
    commits.length = 0
    store.gate = Promise.reject(new BrokerError('DISK_FULL'))
    await flush.flush()
    assert.match(flush.problem ?? '', /not stored/)
    store.gate = null
    commits.length = 0
    await flush.flush()
    const sizes = commits.map(change => (change.kind === 'group-offsets' ? change.rows.offsets.length : -1))
    assert.deepEqual([sizes, flush.problem, table.isChanged], [[limits.groupFlushRows, 500], null, false])
    await flush.flush()
    assert.equal(commits.length, 2, 'nothing has changed since')
  })

  it('writes at the end what was committed last', async () => {
    const { groups, flush, commits } = stage()
    flush.start()
    await groups.commit(mine, 'g', place, 5)
    await flush.stop()
    assert.deepEqual(
      commits.map(({ kind }) => kind),
      ['group-added', 'group-offsets']
    )
  })
})

describe('offsets beyond the end of a log that was cut', () => {
  it('become the end, with a line in the log; those of other partitions stay', async () => {
    const { groups, parts, setEnds, logs } = stage()
    for (const partition of [0, 1, 2]) await groups.commit(mine, 'g', { topic: 'orders', partition }, 10)
    await groups.commit(mine, 'g', { topic: 'orders', partition: 3 }, 2n ** 64n - 1n)
    setEnds(8)
    await groups.commit(mine, 'g', { topic: 'orders', partition: 2 }, 7)
    await clampToEnds(parts, (_, partition) => partition !== 0)
    assert.deepEqual(
      groups.offsets(mine, 'g').get('orders'),
      new Map([
        [0, 10],
        [1, 8],
        [2, 7],
        [3, 8]
      ])
    )
    assert.deepEqual(logs, [
      { group: 'g', topic: 'orders', partition: 1, committed: '10', latest: 8 },
      { group: 'g', topic: 'orders', partition: 3, committed: '18446744073709551615', latest: 8 }
    ])
  })
})
