/** Classic groups driven by hand: a clock that is moved, members that note what they are answered. */
import assert from 'node:assert/strict'
import { ClassicGroup } from '../../src/control/groups/classic/classic-group.ts'
import type {
  ClassicJoin,
  ClassicJoinAnswer,
  ClassicProtocol,
  ClassicSync,
  ClassicSyncAnswer
} from '../../src/model/classic-groups.ts'

export function protocolsOf(...names: string[]): ClassicProtocol[] {
  return names.map(name => ({ name, metadata: Buffer.from(`topics of ${name}`) }))
}

export function joinOf(parts: Partial<ClassicJoin> = {}): ClassicJoin {
  return {
    memberId: '',
    instanceId: null,
    protocolType: 'consumer',
    protocols: protocolsOf('range'),
    sessionTimeoutMs: 10_000,
    rebalanceTimeoutMs: 60_000,
    clientId: 'client',
    clientHost: '127.0.0.1',
    isIdRequired: false,
    canSkipAssignment: false,
    ...parts
  }
}

/** One group and its clock. */
export class ClassicStage {
  #count = 0
  nowMs = 1_000
  readonly group = new ClassicGroup(prefix => `${prefix}-${++this.#count}`)

  join(parts: Partial<ClassicJoin> = {}): Waiting<ClassicJoinAnswer> {
    const waiting = new Waiting<ClassicJoinAnswer>()
    this.group.join(joinOf(parts), this.nowMs, waiting.take)
    return waiting
  }

  sync(joined: ClassicJoinAnswer, parts: Partial<ClassicSync> = {}): Waiting<ClassicSyncAnswer> {
    const waiting = new Waiting<ClassicSyncAnswer>()
    const { memberId, generation } = joined
    const identity = { memberId, generation, instanceId: null, protocolType: null, protocolName: null }
    this.group.sync({ ...identity, assignments: [], ...parts }, this.nowMs, waiting.take)
    return waiting
  }

  /** The leader gives everybody its own id. */
  assign(leader: ClassicJoinAnswer, parts: Partial<ClassicSync> = {}): Waiting<ClassicSyncAnswer> {
    const assignments = leader.members.map(({ memberId }) => ({ memberId, assignment: Buffer.from(memberId) }))
    return this.sync(leader, { assignments, ...parts })
  }

  heartbeat(joined: ClassicJoinAnswer, instanceId: string | null = null): string | null {
    const { memberId, generation } = joined
    return this.group.heartbeat({ memberId, generation, instanceId }, this.nowMs)
  }

  leave(...memberIds: string[]): (string | null)[] {
    return this.group.leave(
      memberIds.map(memberId => ({ memberId, instanceId: null })),
      this.nowMs
    )
  }

  /** Time passes, and the group looks at it. */
  pass(ms: number): number {
    this.nowMs += ms
    return this.group.expire(this.nowMs)
  }

  /** Brings so many members into a stable group. The first one leads. */
  stable(count: number, parts: (index: number) => Partial<ClassicJoin> = () => ({})): ClassicJoinAnswer[] {
    const waiting = Array.from({ length: count }, (_, index) => this.join(parts(index)))
    this.pass(50)
    this.pass(50)
    const joined = waiting.map(each => each.answer)
    const synced = joined.map((each, index) => {
      const instanceId = parts(index).instanceId ?? null
      return each.members.length > 0 ? this.assign(each, { instanceId }) : this.sync(each, { instanceId })
    })
    for (const [index, { answer }] of synced.entries()) {
      assert.equal(answer.assignment.toString(), joined[index]?.memberId)
    }
    assert.equal(this.group.state, 'Stable')
    return joined
  }
}

/** What waits for one answer, which comes once. */
export class Waiting<T> {
  readonly answers: T[] = []

  readonly take = (answer: T): void => {
    this.answers.push(answer)
  }

  get isAnswered(): boolean {
    return this.answers.length > 0
  }

  get answer(): T {
    assert.equal(this.answers.length, 1, 'a question is answered once')
    return this.answers[0] as T
  }
}
