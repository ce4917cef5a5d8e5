/**
 * Classic groups under random members: clients that join, sync, beat, leave, break off and fall silent in any order, and a
 * clock that jumps. What must hold is looked at after every step.
 */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ClassicTable } from '../../../../../src/control/groups/classic/classic-table.ts'
import type { ClassicJoinAnswer, ClassicSyncAnswer } from '../../../../../src/model/classic-groups.ts'
import { limits } from '../../../../../src/model/limits.ts'
import { joinOf, protocolsOf, Waiting } from '../../../../support/classic-stage.ts'
import { chosenSeed, diceOf, replayLine, type Dice } from '../../../../support/log-random.ts'

const GROUP = 1
const STEPS = 4_000
const SESSION_MS = 10_000
const REBALANCE_MS = 15_000

/** One client: what it knows, and what it waits for. */
interface Client {
  readonly instanceId: string | null
  memberId: string
  joined: ClassicJoinAnswer | null
  joining: Waiting<ClassicJoinAnswer> | null
  syncing: Waiting<ClassicSyncAnswer> | null
}

/** What leaders gave, by generation, then member. */
type Given = Map<number, Map<string, string>>

class Play {
  readonly dice: Dice
  readonly table: ClassicTable
  readonly clients: Client[] = []
  readonly given: Given = new Map()
  readonly leaders = new Map<number, string>()
  /** What members were told they have, by generation. */
  readonly told = new Map<number, Map<string, string>>()
  /** Of static members: whose part each id took over. */
  readonly formerIds = new Map<string, string>()
  nowMs = 0
  #ids = 0
  #generation = 0

  constructor(dice: Dice) {
    this.dice = dice
    this.table = new ClassicTable(prefix => `${prefix}-${++this.#ids}`)
    for (let i = 0; i < 8; i++) {
      const instanceId = i < 3 ? `static-${i}` : null
      this.clients.push({ instanceId, memberId: '', joined: null, joining: null, syncing: null })
    }
  }

  step(): void {
    const { dice } = this
    const client = dice.pick(this.clients)
    const roll = dice.below(100)
    if (roll < 45) this.#goOn(client)
    else if (roll < 55) this.#join(client)
    else if (roll < 62) this.#beat(client)
    else if (roll < 66) this.#leave(client)
    else if (roll < 72) this.#breakOff(client)
    else if (roll < 76) this.#restart(client)
    else this.#pass(dice.pick([1, 20, 60, 500, 3_000, SESSION_MS]))
    for (const each of this.clients) this.#take(each)
    this.check()
  }

  /** What a client in its right mind does next. */
  #goOn(client: Client): void {
    if (client.joining !== null || client.syncing !== null) return
    if (client.joined === null) return this.#join(client)
    if (this.dice.chance(0.8)) this.#sync(client, client.joined)
    else this.#beat(client)
  }

  #join(client: Client): void {
    const waiting = new Waiting<ClassicJoinAnswer>()
    const names = this.dice.chance(0.5) ? ['range', 'sticky'] : ['sticky', 'range']
    const join = joinOf({
      memberId: client.memberId,
      instanceId: client.instanceId,
      protocols: protocolsOf(...(this.dice.chance(0.1) ? ['range'] : names)),
      sessionTimeoutMs: SESSION_MS,
      rebalanceTimeoutMs: REBALANCE_MS,
      isIdRequired: this.dice.chance(0.7),
      canSkipAssignment: this.dice.chance(0.5)
    })
    const before = client.instanceId === null ? undefined : this.#memberOf(client.instanceId)
    client.joining = waiting
    client.joined = null
    this.table.join(GROUP, join, this.nowMs, waiting.take)
    const after = client.instanceId === null ? undefined : this.#memberOf(client.instanceId)
    if (before !== undefined && after !== undefined && before !== after) this.formerIds.set(after, before)
  }

  #memberOf(instanceId: string): string | undefined {
    const members = [...(this.table.groupOf(GROUP)?.members() ?? [])]
    return members.find(member => member.instanceId === instanceId)?.id
  }

  #sync(client: Client, joined: ClassicJoinAnswer): void {
    const { memberId, generation, skipAssignment, members } = joined
    const waiting = new Waiting<ClassicSyncAnswer>()
    const isLeading = members.length > 0 && !skipAssignment
    const shares = members.map((member, index) => [member.memberId, `share ${index} of ${generation}`] as const)
    const state = this.table.groupOf(GROUP)?.state
    client.syncing = waiting
    const identity = { memberId, instanceId: client.instanceId, generation }
    const assignments = isLeading ? shares.map(([id, share]) => ({ memberId: id, assignment: Buffer.from(share) })) : []
    const rest = { protocolType: null, protocolName: null, assignments }
    this.table.sync(GROUP, { ...identity, ...rest }, this.nowMs, waiting.take)
    const hasAssigned = state === 'CompletingRebalance' && this.table.groupOf(GROUP)?.state === 'Stable'
    if (!hasAssigned) return
    assert.ok(isLeading, 'only the leader makes a generation stable')
    assert.equal(this.given.has(generation), false, 'a generation is assigned once')
    this.given.set(generation, new Map(shares))
  }

  #beat({ memberId, instanceId, joined }: Client): void {
    this.table.heartbeat(GROUP, { memberId, instanceId, generation: joined?.generation ?? -1 }, this.nowMs)
  }

  #leave(client: Client): void {
    this.table.leave(GROUP, [client], this.nowMs)
    this.#forget(client)
  }

  #breakOff(client: Client): void {
    for (const waiting of [client.joining, client.syncing]) {
      if (waiting !== null && !waiting.isAnswered) this.table.abandon(GROUP, waiting.take, this.nowMs)
    }
    client.joining = null
    client.syncing = null
  }

  #restart(client: Client): void {
    this.#breakOff(client)
    this.#forget(client)
  }

  #forget(client: Client): void {
    client.memberId = ''
    client.joined = null
    // What it waits for is answered to nobody, as when its process is still there.
    client.joining = null
    client.syncing = null
  }

  #pass(ms: number): void {
    this.nowMs += ms
    for (const { group } of this.table.expireAll(this.nowMs)) assert.equal(group, GROUP)
  }

  #take(client: Client): void {
    if (client.joining?.isAnswered === true) {
      const { answer } = client.joining
      client.joining = null
      if (answer.fault === 'MEMBER_ID_REQUIRED') client.memberId = answer.memberId
      else if (answer.fault !== null) client.memberId = ''
      else this.#takeGeneration(client, answer)
    }
    if (client.syncing?.isAnswered === true) {
      const { answer } = client.syncing
      client.syncing = null
      if (answer.fault === null && client.joined !== null) this.#takeShare(client.joined, answer)
      else client.joined = null
    }
  }

  #takeGeneration(client: Client, answer: ClassicJoinAnswer): void {
    client.memberId = answer.memberId
    client.joined = answer
    assert.ok(answer.generation <= this.#generationNow())
    if (answer.members.length === 0 || answer.skipAssignment) return
    const other = this.leaders.get(answer.generation)
    assert.ok(other === undefined || other === answer.memberId, 'a generation has one leader')
    this.leaders.set(answer.generation, answer.memberId)
  }

  #takeShare({ memberId, generation }: ClassicJoinAnswer, { assignment }: ClassicSyncAnswer): void {
    const share = assignment.toString()
    assert.equal(share, this.#shareOf(memberId, generation), 'a member gets what the leader of its generation gave it')
    const told = this.told.get(generation) ?? new Map<string, string>()
    this.told.set(generation, told)
    const root = this.#rootOf(memberId)
    for (const [other, its] of told) assert.ok(other === root || its !== share || share === '', 'no two have one share')
    told.set(root, share)
  }

  /** What the leader of a generation gave a member, or the one whose part it took over. */
  #shareOf(memberId: string, generation: number): string {
    const given = this.given.get(generation)
    for (let id: string | undefined = memberId; id !== undefined; id = this.formerIds.get(id)) {
      const share = given?.get(id)
      if (share !== undefined) return share
    }
    return ''
  }

  #rootOf(memberId: string): string {
    let root = memberId
    for (let id = this.formerIds.get(root); id !== undefined; id = this.formerIds.get(root)) root = id
    return root
  }

  #generationNow(): number {
    return this.table.groupOf(GROUP)?.generation ?? 0
  }

  check(): void {
    const group = this.table.groupOf(GROUP)
    if (group === undefined) return
    const members = [...group.members()]
    assert.ok(group.generation >= this.#generation, 'generations only rise')
    this.#generation = group.generation
    assert.equal(group.state === 'Empty' && members.length > 0, false, 'who is empty has no members')
    assert.equal(group.leader === null, members.length === 0)
    assert.ok(group.leader === null || members.some(({ id }) => id === group.leader), 'a member leads')
    for (const { id, joining, syncing, assignment } of members) {
      assert.ok(joining === null || group.state === 'PreparingRebalance', 'joins wait for a generation')
      assert.ok(syncing === null || group.state === 'CompletingRebalance', 'syncs wait for the leader')
      if (group.state === 'Stable') assert.equal(assignment.toString(), this.#shareOf(id, group.generation))
    }
    const isTimed = group.state === 'PreparingRebalance' || group.state === 'CompletingRebalance'
    assert.ok(!isTimed || group.deadlineMs !== null, 'what waits for others has a deadline')
    assert.equal(this.table.counts.members, members.length)
    assert.equal(this.table.bytes, group.bytes)
  }

  /** Everybody falls silent. */
  end(): void {
    const waiting = this.clients.flatMap(({ joining, syncing }) => [joining, syncing])
    for (let i = 0; i < 20; i++) this.#pass(SESSION_MS)
    for (const each of waiting) assert.equal(each?.isAnswered ?? true, true, 'who waits is answered in the end')
    assert.equal(this.table.groupOf(GROUP)?.state ?? 'Empty', 'Empty')
    assert.equal(this.table.bytes, 0)
    assert.equal(this.table.counts.members, 0)
    assert.equal(this.table.groupOf(GROUP)?.pendingCount ?? 0, 0)
  }
}

describe('classic groups whose members do anything at any time', () => {
  it('have one stable generation with one leader, whose word is what each member gets', t => {
    const seed = chosenSeed()
    t.diagnostic(replayLine(seed, 'test/unit/control/groups/classic/random.test.ts'))
    let stable = 0
    for (let round = 0; round < 20; round++) {
      const play = new Play(diceOf(seed + round))
      for (let step = 0; step < STEPS; step++) play.step()
      play.end()
      stable += play.given.size
    }
    assert.ok(stable > 100, `only ${stable} generations became stable: the play is not worth much`)
  })
})

describe('a classic group whose one member leaves while others are waited for', () => {
  it('is empty when that time is over', () => {
    const table = new ClassicTable(prefix => prefix)
    const waiting = new Waiting<ClassicJoinAnswer>()
    table.join(GROUP, joinOf({ clientId: 'one' }), 0, waiting.take)
    table.leave(GROUP, [{ memberId: 'one', instanceId: null }], 1)
    assert.equal(waiting.answer.fault, 'UNKNOWN_MEMBER_ID')
    assert.equal(table.groupOf(GROUP)?.state, 'PreparingRebalance')
    table.expire(GROUP, limits.classicGatherMs)
    table.expire(GROUP, 2 * limits.classicGatherMs)
    assert.equal(table.groupOf(GROUP)?.state, 'Empty')
    assert.equal(table.groupOf(GROUP)?.deadlineMs, null)
  })
})

describe('the limits of classic groups', () => {
  it('bound what one member brings, its protocols, and how long it may be silent', () => {
    const table = new ClassicTable(prefix => prefix)
    const large = [{ name: 'range', metadata: Buffer.alloc(limits.classicMemberBytesMax) }]
    const many = protocolsOf(...Array.from({ length: limits.classicProtocolsMax + 1 }, (_, i) => `p${i}`))
    assert.equal(table.faultOfJoin(joinOf()), null)
    assert.equal(table.faultOfJoin(joinOf({ protocols: large })), 'GROUP_MAX_SIZE_REACHED')
    assert.equal(table.faultOfJoin(joinOf({ protocols: many })), 'INCONSISTENT_GROUP_PROTOCOL')
    for (const sessionTimeoutMs of [-1, 0, limits.classicSessionMsMin - 1, limits.classicSessionMsMax + 1]) {
      assert.equal(table.faultOfJoin(joinOf({ sessionTimeoutMs })), 'INVALID_SESSION_TIMEOUT')
    }
  })

  it('bound the members of a group, ids that were given out among them', () => {
    let ids = 0
    const table = new ClassicTable(prefix => `${prefix}-${++ids}`)
    const faults = new Set<string | null>()
    for (let i = 0; i < limits.groupMembersMax; i++) {
      table.join(GROUP, joinOf({ isIdRequired: true }), 0, ({ fault }) => faults.add(fault))
    }
    assert.deepEqual([...faults], ['MEMBER_ID_REQUIRED'])
    table.join(GROUP, joinOf({ isIdRequired: true }), 0, ({ fault }) => faults.add(fault))
    assert.deepEqual([...faults], ['MEMBER_ID_REQUIRED', 'GROUP_MAX_SIZE_REACHED'])
    table.expire(GROUP, SESSION_MS)
    const joined = new Waiting<ClassicJoinAnswer>()
    table.join(GROUP, joinOf(), SESSION_MS, joined.take)
    table.expire(GROUP, SESSION_MS + limits.classicGatherMs)
    assert.equal(joined.answer.fault, null, 'ids lapse')
  })

  it('bound the bytes of a group', () => {
    let ids = 0
    const table = new ClassicTable(prefix => `${prefix}-${++ids}`)
    const protocols = [{ name: 'range', metadata: Buffer.alloc(limits.classicMemberBytesMax - 2_000) }]
    let refused = 0
    for (let i = 0; i < 20; i++) {
      table.join(GROUP, joinOf({ protocols }), 0, ({ fault }) => {
        assert.equal(fault, 'GROUP_MAX_SIZE_REACHED')
        refused++
      })
    }
    assert.equal(table.memberCountOf(GROUP) + refused, 20)
    assert.ok(refused > 0)
    assert.ok(table.bytes <= limits.classicGroupBytesMax)
  })
})
