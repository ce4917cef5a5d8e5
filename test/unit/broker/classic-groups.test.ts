/** Groups whose members speak Kafka: whose they are, what they share with the others, what a crash may take of them. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { ClassicJoin, ClassicJoinAnswer } from '../../../src/model/classic-groups.ts'
import { BrokerError } from '../../../src/model/errors.ts'
import { noNote, type OffsetNote } from '../../../src/model/groups.ts'
import { limits } from '../../../src/model/limits.ts'
import { encodeEmbedded, subscription } from '../../../src/wire/kafka/consumer-protocol.ts'
import { joinOf } from '../../support/classic-stage.ts'
import { admin, keyOf, mine, stage, theirs } from './group-stage.ts'

/** All that waits for nothing but promises goes on. */
const turn = (): Promise<void> => new Promise(resolve => setImmediate(resolve))
type Stage = ReturnType<typeof stage>

const never = (): void => undefined
const owned = { code: 'GROUP_OWNED' }
const nobody = { memberId: '', instanceId: null, generation: -1 }
const place = { topic: 'orders', partition: 0, offset: 7, note: noNote }

const noted = (metadata: string): OffsetNote => ({ leaderEpoch: -1, metadata })

function subscribed(...topics: string[]): ClassicJoin {
  return joinOf({ protocols: [{ name: 'range', metadata: encodeEmbedded(subscription, 0, { topics }) }] })
}

/** Joins, and lets the moment pass in which others could. */
async function joined({ classicGroups, passTime }: Stage, name: string, who = mine): Promise<ClassicJoinAnswer> {
  const joining = classicGroups.join(who, name, subscribed('orders'), never)
  await turn()
  passTime(limits.classicGatherMs)
  await classicGroups.expireSilent()
  return joining
}

function identityOf({ memberId, generation }: ClassicJoinAnswer): typeof nobody {
  return { memberId, instanceId: null, generation }
}

describe('a group whose members speak Kafka', () => {
  it('belongs to the key that joined or committed first: others are refused whatever they ask, admin is not', async () => {
    const staged = stage()
    const { classicGroups: groups } = staged
    const identity = identityOf(await joined(staged, 'g'))
    const sync = { ...identity, protocolType: null, protocolName: null, assignments: [] }
    await assert.rejects(groups.join(theirs, 'g', subscribed('orders'), never), owned)
    assert.throws(() => groups.sync(theirs, 'g', sync, never), owned)
    assert.throws(() => groups.heartbeat(theirs, 'g', identity), owned)
    assert.throws(() => groups.leave(theirs, 'g', [identity]), owned)
    await assert.rejects(groups.commit(theirs, 'g', identity, [place]), owned)
    assert.throws(() => groups.offsets(theirs, 'g'), owned)
    assert.throws(() => groups.describe(theirs, 'g'), owned)
    assert.deepEqual(groups.list(theirs), [])
    await assert.rejects(staged.groups.commit(theirs, 'g', place, 5), owned)
    assert.equal(groups.heartbeat(admin, 'g', identity), null)
    assert.equal(groups.list(admin).length, 1)
  })

  it('is durable before its first member hears of it', async () => {
    const staged = stage()
    const { promise: gate, resolve: open } = Promise.withResolvers<void>()
    staged.store.gate = gate
    let isAnswered = false
    const joining = staged.classicGroups.join(mine, 'g', subscribed('orders'), never).then(() => (isAnswered = true))
    await turn()
    staged.passTime(1_000)
    await staged.classicGroups.expireSilent()
    assert.deepEqual(
      staged.commits.map(({ kind }) => kind),
      ['group-added']
    )
    assert.equal(isAnswered, false)
    open()
    await turn()
    staged.passTime(1_000)
    await staged.classicGroups.expireSilent()
    await joining
  })

  it('is made by no member that brings an id, and by no look', async () => {
    const { classicGroups: groups, table } = stage()
    const answer = await groups.join(mine, 'g', { ...subscribed('orders'), memberId: 'm' }, never)
    assert.equal(answer.fault, 'UNKNOWN_MEMBER_ID')
    assert.equal(groups.heartbeat(mine, 'g', nobody), 'UNKNOWN_MEMBER_ID')
    assert.deepEqual(groups.leave(mine, 'g', [nobody]), ['UNKNOWN_MEMBER_ID'])
    assert.deepEqual(groups.offsets(mine, 'g'), [])
    assert.equal(groups.describe(mine, 'g'), null)
    assert.deepEqual(await groups.commit(mine, 'g', { ...nobody, generation: 1 }, [place]), ['ILLEGAL_GENERATION'])
    const [refusal] = await groups.commit(mine, 'g', nobody, [{ ...place, topic: 'none' }])
    assert.ok(refusal instanceof BrokerError)
    assert.equal(refusal.code, 'TOPIC_NOT_FOUND')
    assert.equal((await groups.join(mine, 'a name', subscribed('orders'), never)).fault, 'INVALID_GROUP_ID')
    assert.equal(table.groupCount, 0)
  })

  it('is for members that may read what they subscribe to', async () => {
    const { classicGroups: groups } = stage()
    const limited = keyOf('key_limited', 'orders')
    await assert.rejects(groups.join(limited, 'g', subscribed('orders', 'secret'), never), { code: 'FORBIDDEN' })
    await assert.rejects(groups.join(keyOf('key_gone', '', { isRevoked: true }), 'g', subscribed(), never), {
      code: 'KEY_REVOKED'
    })
  })

  it('has one kind while it has members, whichever came first', async () => {
    const staged = stage()
    const { groups, classicGroups } = staged
    const { memberId } = await joined(staged, 'kafka')
    await assert.rejects(groups.join(mine, 'kafka', { topics: ['orders'], memberId: 'm' }), { code: 'GROUP_KIND' })
    await groups.join(mine, 'http', { topics: ['orders'], memberId: 'm' })
    await assert.rejects(classicGroups.join(mine, 'http', subscribed('orders'), never), { code: 'GROUP_KIND' })
    assert.deepEqual(await classicGroups.commit(mine, 'http', nobody, [place]), ['UNKNOWN_MEMBER_ID'])

    classicGroups.leave(mine, 'kafka', [{ memberId, instanceId: null }])
    await groups.join(mine, 'kafka', { topics: ['orders'], memberId: 'm' })
    assert.equal((await groups.describe(mine, 'kafka')).kind, 'http')
    assert.deepEqual(classicGroups.describe(mine, 'kafka')?.protocolType, 'http')
    groups.leave(mine, 'http', 'm')
    assert.equal((await joined(staged, 'http')).fault, null)
  })

  it('shows its members over HTTP, and cannot be deleted while it has some', async () => {
    const staged = stage()
    const { groups, classicGroups } = staged
    const { memberId } = await joined(staged, 'g')
    const { kind, state, generation, members } = await groups.describe(mine, 'g')
    assert.deepEqual([kind, state, generation], ['kafka', 'CompletingRebalance', 1])
    assert.deepEqual(members, [{ memberId, topics: ['orders'], partitionCount: 0 }])
    await assert.rejects(groups.remove(mine, 'g'), { code: 'GROUP_NOT_EMPTY' })
    classicGroups.leave(mine, 'g', [{ memberId, instanceId: null }])
    const { kind: none, state: empty } = await groups.describe(mine, 'g')
    assert.deepEqual([none, empty], [null, 'Empty'])
    await groups.remove(mine, 'g')
    assert.equal(classicGroups.describe(mine, 'g'), null)
  })

  it('forgets a member whose connection ends before it was told anything, also while the group is being made', async () => {
    const staged = stage()
    const gone: (() => void)[] = []
    const joining = staged.classicGroups.join(mine, 'g', subscribed('orders'), callback => gone.push(callback))
    for (const callback of gone) callback()
    assert.equal((await joining).fault, 'COORDINATOR_NOT_AVAILABLE')
    const again = staged.classicGroups.join(mine, 'g', subscribed('orders'), callback => gone.push(callback))
    await turn()
    assert.equal(staged.parts.classic.counts.members, 1)
    gone.at(-1)?.()
    assert.equal((await again).fault, 'COORDINATOR_NOT_AVAILABLE')
    assert.equal(staged.parts.classic.counts.members, 0)
  })
})

describe('offsets that are committed by Kafka’s clients', () => {
  it('are those that HTTP shows, and the other way round', async () => {
    const { groups, classicGroups } = stage()
    assert.deepEqual(await classicGroups.commit(mine, 'g', nobody, [place, { ...place, partition: 3 }]), [null, null])
    const both = new Map([
      [0, 7],
      [3, 7]
    ])
    assert.deepEqual(groups.offsets(mine, 'g'), new Map([['orders', both]]))
    await groups.commit(mine, 'g', place, 9)
    assert.equal(classicGroups.offsets(mine, 'g').find(({ partition }) => partition === 0)?.offset, 9)
    assert.deepEqual(classicGroups.offsets(keyOf('key_mine', 'secret'), 'g'), [], 'of topics that the key may read')
  })

  it('are on disk when the commit is answered, many of them with one write', async () => {
    const { classicGroups, store, commits } = stage()
    await classicGroups.commit(mine, 'g', nobody, [place])
    commits.length = 0
    const { promise: gate, resolve: open } = Promise.withResolvers<void>()
    store.gate = gate
    let answered = 0
    const all = Array.from({ length: 50 }, async (_, i) => {
      await classicGroups.commit(mine, 'g', nobody, [{ ...place, partition: i % 4, offset: i }])
      answered++
    })
    await turn()
    assert.equal(answered, 0)
    open()
    await Promise.all(all)
    assert.ok(commits.length <= 2, `${commits.length} writes for 50 commits`)
  })

  it('are refused as a whole, to be tried again, while the store refuses', async () => {
    const { classicGroups, store, flush } = stage()
    await classicGroups.commit(mine, 'g', nobody, [place])
    store.gate = Promise.reject(new BrokerError('DISK_FULL'))
    await assert.rejects(classicGroups.commit(mine, 'g', nobody, [place]), { code: 'DISK_FULL' })
    assert.notEqual(flush.problem, null)
    store.gate = null
    assert.deepEqual(await classicGroups.commit(mine, 'g', nobody, [place]), [null])
    assert.equal(flush.problem, null)
  })

  it('are judged place by place', async () => {
    const { classicGroups } = stage()
    const outcomes = await classicGroups.commit(keyOf('key_mine', 'orders'), 'g', nobody, [
      place,
      { ...place, topic: 'secret' },
      { ...place, partition: 4 },
      { ...place, offset: -1 },
      { ...place, note: noted('x'.repeat(4097)) },
      { ...place, partition: 1, note: noted('ä'.repeat(2048)) }
    ])
    const codes = outcomes.map(outcome => (outcome instanceof BrokerError ? outcome.code : outcome))
    assert.deepEqual(codes, [
      ...[null, 'FORBIDDEN', 'PARTITION_RANGE', 'FIELD_RANGE'],
      ...['OFFSET_METADATA_TOO_LARGE', null]
    ])
  })

  it('keep what is noted beside them until somebody commits anew, also where their removal fails', async () => {
    const { classicGroups, groups, store } = stage()
    const note = { leaderEpoch: 3, metadata: 'until noon' }
    await classicGroups.commit(mine, 'g', nobody, [
      { ...place, note },
      { ...place, partition: 2 }
    ])
    assert.deepEqual(
      classicGroups.offsets(mine, 'g').map(offset => offset.note),
      [note, noNote]
    )
    assert.deepEqual(groups.metadata(mine, 'g'), new Map([['orders', new Map([[0, 'until noon']])]]))
    assert.deepEqual(groups.metadata(keyOf('key_mine', 'secret'), 'g'), new Map(), 'of topics that the key may read')
    assert.throws(() => groups.metadata(theirs, 'g'), owned)
    store.gate = Promise.reject(new BrokerError('DISK_FULL'))
    await assert.rejects(classicGroups.deleteOffsets(mine, 'g', [place]), { code: 'DISK_FULL' })
    await assert.rejects(groups.remove(mine, 'g'), { code: 'DISK_FULL' })
    store.gate = null
    assert.deepEqual(classicGroups.offsets(mine, 'g')[0]?.note, note)
    await groups.commit(mine, 'g', place, 9)
    assert.deepEqual(classicGroups.offsets(mine, 'g')[0]?.note, noNote)
    assert.deepEqual(groups.metadata(mine, 'g'), new Map())
  })

  it('are forgotten one by one, durably, where nobody reads them', async () => {
    const staged = stage()
    const { classicGroups, groups, store, commits, table, flush } = staged
    await assert.rejects(classicGroups.deleteOffsets(mine, 'g', [place]), { code: 'GROUP_NOT_FOUND' })
    await classicGroups.commit(mine, 'g', nobody, [place, { ...place, partition: 3, offset: 4 }])
    await groups.commit(mine, 'g', { ...place, partition: 1 }, 6)
    await assert.rejects(classicGroups.deleteOffsets(theirs, 'g', [place]), owned)
    const gone = [place, { ...place, partition: 1 }, { ...place, partition: 2 }]
    assert.deepEqual(await classicGroups.deleteOffsets(mine, 'g', gone), [null, null, null])
    assert.deepEqual(groups.offsets(mine, 'g'), new Map([['orders', new Map([[3, 4]])]]))
    assert.equal(table.offsetCount, 1)
    assert.equal(commits.at(-1)?.kind, 'group-offsets-removed')
    await flush.flush()
    assert.equal(commits.at(-1)?.kind, 'group-offsets-removed', 'what is gone is not written')

    store.gate = Promise.reject(new BrokerError('DISK_FULL'))
    const last = { ...place, partition: 3 }
    await assert.rejects(classicGroups.deleteOffsets(mine, 'g', [last]), { code: 'DISK_FULL' })
    store.gate = null
    assert.deepEqual(groups.offsets(mine, 'g'), new Map([['orders', new Map([[3, 4]])]]))
    await joined(staged, 'g')
    assert.deepEqual(await classicGroups.deleteOffsets(mine, 'g', [last]), ['GROUP_SUBSCRIBED_TO_TOPIC'])
  })
})
