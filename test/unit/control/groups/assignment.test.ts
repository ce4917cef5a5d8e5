/** Who reads what: the invariants of spec 7.1 over random histories of groups, and the cases that it names. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { assignPartitions } from '../../../../src/control/groups/assignment.ts'
import type { Subscriber } from '../../../../src/control/groups/topic-classes.ts'
import type { Assignment } from '../../../../src/model/groups.ts'
import { isLong, seed } from '../../../support/crash-run.ts'
import { diceOf, replayLine, type Dice } from '../../../support/log-random.ts'

const FILE = 'test/unit/control/groups/assignment.test.ts'
const HISTORIES = isLong ? 20_000 : 600

/** A group as a test drives it: subscriptions, what everybody has, and how large topics are. */
class Group {
  readonly topics = new Map<string, number>()
  readonly subscriptions = new Map<string, readonly string[]>()
  assigned = new Map<string, Assignment>()

  constructor(topics: Readonly<Record<string, number>>) {
    this.topics = new Map(Object.entries(topics))
  }

  rebalance(): Map<string, Assignment> {
    const subscribers: Subscriber[] = Array.from(this.subscriptions, ([id, topics]) => {
      return { id, topics, owned: this.assigned.get(id) ?? new Map() }
    })
    this.assigned = assignPartitions(subscribers, topic => this.topics.get(topic) ?? 0)
    return this.assigned
  }

  join(id: string, ...topics: readonly string[]): void {
    this.subscriptions.set(id, topics)
    this.rebalance()
  }

  leave(id: string): void {
    this.subscriptions.delete(id)
    this.rebalance()
  }

  /** `topic/partition`, of a member. */
  of(id: string): string[] {
    return partitionsOf(this.assigned.get(id))
  }

  sizes(): number[] {
    return [...this.subscriptions.keys()].map(id => this.of(id).length)
  }
}

function partitionsOf(assignment: Assignment | undefined): string[] {
  return [...(assignment ?? [])].flatMap(([topic, partitions]) => Array.from(partitions, id => `${topic}/${id}`))
}

const topicOf = (partition: string): string => partition.slice(0, partition.indexOf('/'))

/** Owner of each partition; fails if one has two. */
function ownersOf(assigned: ReadonlyMap<string, Assignment>): Map<string, string> {
  const owners = new Map<string, string>()
  for (const [id, assignment] of assigned) {
    for (const partition of partitionsOf(assignment)) {
      assert.ok(!owners.has(partition), `${partition} has two owners: ${owners.get(partition)} and ${id}`)
      owners.set(partition, id)
    }
  }
  return owners
}

/** (a): everything that is subscribed to has one owner, who subscribes to it. */
function checkCoverage(group: Group): void {
  const owners = ownersOf(group.assigned)
  const wanted = new Set([...group.subscriptions.values()].flat())
  let count = 0
  for (const topic of wanted) {
    for (let id = 0; id < (group.topics.get(topic) ?? 0); id++) {
      const owner = owners.get(`${topic}/${id}`)
      assert.ok(owner !== undefined, `${topic}/${id} has no owner`)
      assert.ok(group.subscriptions.get(owner)?.includes(topic), `${owner} has ${topic} and does not subscribe to it`)
      count++
    }
  }
  assert.equal(owners.size, count, 'nothing else is assigned')
}

/** (b): nobody could give one to a subscriber of it who has two or more fewer; so equal subscriptions differ by one at most. */
function checkEvenness(group: Group): void {
  const loads = new Map([...group.subscriptions.keys()].map(id => [id, group.of(id).length]))
  for (const [partition, owner] of ownersOf(group.assigned)) {
    for (const [id, topics] of group.subscriptions) {
      if (!topics.includes(topicOf(partition))) continue
      const gap = (loads.get(owner) ?? 0) - (loads.get(id) ?? 0)
      assert.ok(gap <= 1, `${owner} has ${gap} more than ${id}, who could read its ${partition}`)
    }
  }
}

/** What changed hands although its owner before is there and subscribes: partition, from, to. */
function movesOf(group: Group, before: ReadonlyMap<string, Assignment>): [string, string, string][] {
  const owners = ownersOf(group.assigned)
  const moves: [string, string, string][] = []
  for (const [partition, from] of ownersOf(before)) {
    const to = owners.get(partition)
    if (to !== undefined && to !== from && group.subscriptions.get(from)?.includes(topicOf(partition)))
      moves.push([partition, from, to])
  }
  return moves
}

/** What each could keep. */
function keptOf(group: Group, before: ReadonlyMap<string, Assignment>): Map<string, number> {
  return new Map(
    [...group.subscriptions].map(([id, topics]) => {
      return [id, partitionsOf(before.get(id)).filter(partition => topics.includes(topicOf(partition))).length]
    })
  )
}

/** (c): who lost one that it could keep had more than the end left it, and no fewer than who got it in the end. */
function checkReasons(group: Group, before: ReadonlyMap<string, Assignment>): void {
  const moves = movesOf(group, before)
  const owners = ownersOf(group.assigned)
  for (const [partition, from, to] of moves) {
    const gained = moves.some(([other, , taker]) => taker === from && topicOf(other) === topicOf(partition))
    assert.ok(!gained, `${from} lost ${partition} and got another of that topic`)
    const fresh = group
      .of(from)
      .filter(own => topicOf(own) === topicOf(partition) && !partitionsOf(before.get(from)).includes(own))
    assert.deepEqual(fresh, [], `${from} lost ${partition}, which ${to} has, and got others of that topic`)
    assert.equal(owners.get(partition), to)
  }
}

/** With equal subscriptions the fewest moves that lead to even shares: what is above the share, or what others lack. */
function fewestMoves(kept: readonly number[], total: number): number {
  const low = Math.floor(total / kept.length)
  const high = Math.ceil(total / kept.length)
  // Unowned partitions fill up first: only what they leave must come from others.
  const unowned = total - kept.reduce((sum, count) => sum + count, 0)
  const lacking = kept.reduce((sum, count) => sum + Math.max(0, low - count), 0) - unowned
  const above = kept.reduce((sum, count) => sum + Math.max(0, count - high), 0)
  return Math.max(0, lacking, above)
}

function changeAtRandom(group: Group, dice: Dice, subscribe: () => readonly string[]): void {
  const ids = [...group.subscriptions.keys()]
  const kind = dice.below(10)
  if (ids.length === 0 || (kind < 5 && ids.length < 12)) group.subscriptions.set(`m${dice.below(1000)}`, subscribe())
  else if (kind < 8) group.subscriptions.delete(dice.pick(ids))
  else group.subscriptions.set(dice.pick(ids), subscribe())
  // Several at once leave together when they are evicted.
  if (kind === 7 && ids.length > 2) group.subscriptions.delete(dice.pick(ids))
}

const names = (count: number): string[] => Array.from({ length: count }, (_, i) => `t${i}`)

describe('the assignment of partitions', () => {
  it('covers all, is even, moves the fewest there can be, over random histories of members who want the same', t => {
    t.diagnostic(replayLine(seed, FILE))
    const dice = diceOf(seed)
    let moved = 0
    for (let history = 0; history < HISTORIES; history++) {
      const topics = names(1 + dice.below(4))
      const group = new Group(Object.fromEntries(topics.map(topic => [topic, dice.below(20)])))
      for (let step = 0; step < 12; step++) {
        changeAtRandom(group, dice, () => topics)
        const before = group.assigned
        group.rebalance()
        checkCoverage(group)
        checkEvenness(group)
        checkReasons(group, before)
        if (group.subscriptions.size === 0) continue
        const moves = movesOf(group, before)
        const total = [...group.topics.values()].reduce((sum, count) => sum + count, 0)
        assert.equal(moves.length, fewestMoves([...keptOf(group, before).values()], total), `history ${history}`)
        moved += moves.length
      }
    }
    assert.ok(moved > HISTORIES, 'there was something to move')
  })

  it('covers all, is even, and moves nothing that could stay, over random histories of different subscriptions', t => {
    t.diagnostic(replayLine(seed, FILE))
    const dice = diceOf(seed + 1)
    let moved = 0
    let needless = 0
    for (let history = 0; history < HISTORIES; history++) {
      const topics = names(1 + dice.below(6))
      const group = new Group(Object.fromEntries(topics.map(topic => [topic, dice.below(12)])))
      const subscribe = (): readonly string[] => topics.filter(() => dice.below(2) === 0).concat(dice.pick(topics))
      for (let step = 0; step < 12; step++) {
        changeAtRandom(group, dice, () => [...new Set(subscribe())])
        const before = group.assigned
        group.rebalance()
        checkCoverage(group)
        checkEvenness(group)
        checkReasons(group, before)
        const moves = movesOf(group, before)
        moved += moves.length
        needless += moves.filter(move => canGoBack(group, move)).length
        const again = group.assigned
        assert.deepEqual(group.rebalance(), again, 'nothing moves when nothing changed')
      }
    }
    t.diagnostic(`${moved} moves, ${needless} of them could be taken back and leave it even`)
    assert.equal(needless, 0)
  })
})

describe('the steps that the specification names', () => {
  it('come out as the table of the specification says', () => {
    const group = new Group({ orders: 4, billing: 1 })
    group.join('a', 'orders')
    assert.deepEqual(group.sizes(), [4])
    const first = group.of('a')
    group.join('b', 'orders')
    assert.deepEqual(group.sizes(), [2, 2])
    assert.ok(
      group.of('a').every(partition => first.includes(partition)),
      'a keeps two of its own'
    )
    const before = group.assigned
    group.join('c', 'orders')
    assert.deepEqual(group.sizes().toSorted(), [1, 1, 2], 'a late joiner gets its share')
    assert.equal(movesOf(group, before).length, 1)
    const [ofA, ofC] = [group.of('a'), group.of('c')]
    group.leave('b')
    assert.deepEqual(group.sizes(), [2, 2])
    assert.ok(ofA.every(partition => group.of('a').includes(partition)))
    assert.ok(ofC.every(partition => group.of('c').includes(partition)))
  })

  it('leave nobody with more than one too many, and none without an owner, where topics are fewer or differ', () => {
    const six = new Group({ t: 6 })
    for (const id of ['a', 'b']) six.join(id, 't')
    const before = six.assigned
    six.join('c', 't')
    assert.deepEqual([six.sizes(), movesOf(six, before).length], [[2, 2, 2], 2])
    const two = new Group({ t: 2 })
    for (const id of ['a', 'b', 'c']) two.join(id, 't')
    assert.deepEqual(two.sizes().toSorted(), [0, 1, 1])
    const different = new Group({ t1: 4, t2: 1 })
    different.join('a', 't1')
    different.join('b', 't2')
    assert.deepEqual(different.sizes(), [4, 1], 'nobody else may read t1')
  })
})

/** Whether one move, taken back, would leave an assignment that is as even. */
function canGoBack(group: Group, [partition, from, to]: [string, string, string]): boolean {
  const other = new Group(Object.fromEntries(group.topics))
  for (const [id, topics] of group.subscriptions) other.subscriptions.set(id, topics)
  const topic = topicOf(partition)
  const id = Number(partition.slice(topic.length + 1))
  const changed = (member: string, change: (partitions: number[]) => number[]): Assignment => {
    const assignment = new Map(group.assigned.get(member))
    assignment.set(topic, Uint32Array.from(change([...(assignment.get(topic) ?? [])])))
    return assignment
  }
  other.assigned = new Map(group.assigned)
  other.assigned.set(
    from,
    changed(from, partitions => [...partitions, id])
  )
  other.assigned.set(
    to,
    changed(to, partitions => partitions.filter(own => own !== id))
  )
  try {
    checkEvenness(other)
    return true
  } catch {
    // It would not be even: the move was needed.
    return false
  }
}
