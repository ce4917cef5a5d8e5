/** Who has a fetch session, and who has to leave: the table alone, with sessions that are never read. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { FetchSession } from '../../../../src/gateway/kafka/fetch-session.ts'
import { FetchSessions } from '../../../../src/gateway/kafka/fetch-sessions.ts'
import { limits } from '../../../../src/model/limits.ts'
import { ManualClock } from '../../../support/log-harness.ts'
import { usedBytes } from '../../../support/used-bytes.ts'

class Stage {
  readonly clock = new ManualClock()
  readonly counts = { sessions: 0, partitions: 0, evicted: 0 }
  readonly table = new FetchSessions(this.clock, this.counts)

  /** A session that asks for so many partitions. */
  sessionOf(partitions: number): FetchSession {
    const session = new FetchSession(false, 0)
    ask(session, partitions)
    return session
  }

  /** One that has asked to be opened, by a connection of its own if none is named. */
  opened(partitions: number, client: object = {}, keyId = 'key_1'): FetchSession {
    const session = this.sessionOf(partitions)
    this.table.open(session, keyId, client)
    return session
  }
}

function ask(session: FetchSession, partitions: number): void {
  for (let partition = 0; partition < partitions; partition++) {
    const place = { topic: 't', uuid: '', topicId: undefined, partition, offset: 0, maxBytes: 1 }
    session.ask({ place, fault: 0 })
  }
}

describe('fetch sessions', () => {
  it('have ids of their own, and are found by their key alone', () => {
    const s = new Stage()
    const [one, two] = [s.opened(1), s.opened(2)]
    assert.ok(one.id > 0 && two.id > 0 && one.id !== two.id)
    assert.equal(s.table.find(one.id, 'key_1'), one)
    assert.equal(s.table.find(one.id, 'key_2'), null)
    assert.equal(s.table.find(0, 'key_1'), null)
    assert.deepEqual(s.counts, { sessions: 2, partitions: 3, evicted: 0 })
    const { id } = one
    s.table.close(one)
    assert.deepEqual([one.id, s.table.find(id, 'key_1')], [0, null])
    assert.deepEqual(s.counts, { sessions: 1, partitions: 2, evicted: 0 })
  })

  it('are not opened without partitions, nor with more than one may have', () => {
    const s = new Stage()
    assert.equal(s.opened(0).id, 0)
    assert.equal(s.opened(limits.fetchSessionPartitionsMax + 1).id, 0)
    assert.ok(s.opened(limits.fetchSessionPartitionsMax).id > 0)
  })

  it('leave for a larger one where there is no room, the smallest first, and never for one that is as small', () => {
    const s = new Stage()
    const small = s.opened(1)
    for (let i = 1; i < limits.fetchSessionsMax; i++) s.opened(2)
    assert.equal(s.opened(1).id, 0)
    assert.ok(s.opened(2).id > 0)
    assert.equal(small.id, 0)
    assert.equal(s.opened(2).id, 0)
    assert.deepEqual([s.counts.sessions, s.counts.evicted], [limits.fetchSessionsMax, 1])
  })

  it('leave when nobody used them for two minutes, but only for others', () => {
    const s = new Stage()
    for (let i = 0; i < limits.fetchSessionsMax; i++) s.opened(2)
    s.clock.wallMs += limits.fetchSessionIdleMs - 1
    assert.equal(s.opened(1).id, 0)
    s.clock.wallMs += 1
    assert.equal(s.counts.sessions, limits.fetchSessionsMax)
    assert.ok(s.opened(1).id > 0)
    assert.deepEqual([s.counts.sessions, s.counts.partitions], [1, 1])
  })

  it('have so many partitions together, however few sessions there are', () => {
    const s = new Stage()
    const most = limits.fetchSessionPartitionsTotalMax / limits.fetchSessionPartitionsMax
    for (let i = 0; i < most; i++) assert.ok(s.opened(limits.fetchSessionPartitionsMax).id > 0)
    assert.equal(s.opened(5).id, 0)
    assert.equal(s.counts.partitions, limits.fetchSessionPartitionsTotalMax)
  })

  it('that grow beyond what one may have end', () => {
    const s = new Stage()
    const client = {}
    const session = s.opened(1, client)
    assert.equal(
      s.table.change(session, client, () => ask(session, limits.fetchSessionPartitionsMax)),
      true
    )
    assert.equal(
      s.table.change(session, client, () => ask(session, limits.fetchSessionPartitionsMax + 1)),
      false
    )
    assert.deepEqual(s.counts, { sessions: 0, partitions: 0, evicted: 0 })
  })

  it('of one connection are few: one more ends its oldest', () => {
    const s = new Stage()
    const client = {}
    const all = Array.from({ length: limits.connectionFetchSessionsMax + 1 }, () => s.opened(1, client))
    assert.deepEqual(
      all.map(({ id }) => id > 0),
      all.map((_, i) => i > 0)
    )
    // A session that another connection goes on with counts there.
    s.table.change(all[1] as FetchSession, {}, () => undefined)
    s.opened(1, client)
    assert.ok((all[2] as FetchSession).id > 0)
    assert.equal(s.counts.evicted, 1)
  })

  it('whose connection is gone end when nobody came back to them for two minutes, and those of others stay', t => {
    t.mock.timers.enable({ apis: ['setInterval'] })
    const s = new Stage()
    const passTime = (): void => {
      s.clock.wallMs += limits.fetchSessionIdleMs
      t.mock.timers.tick(limits.fetchSessionIdleMs)
    }
    const [gone, other] = [{}, {}]
    const [left, resumed, stays] = [s.opened(1, gone), s.opened(1, gone), s.opened(1, other)]
    s.table.clientLeft(gone)
    s.table.change(resumed, other, () => undefined)
    passTime()
    assert.deepEqual([left.id > 0, resumed.id > 0, stays.id > 0], [false, true, true])
    assert.deepEqual(s.counts, { sessions: 2, partitions: 2, evicted: 0 })
    s.table.clientLeft(other)
    passTime()
    assert.equal(s.counts.sessions, 0)
    s.table.stop()
  })

  it('let go of a connection that is gone', async () => {
    const s = new Stage()
    let client: object | null = {}
    const session = s.opened(1, client)
    const held = new WeakRef(client)
    s.table.clientLeft(client)
    s.table.stop()
    client = null
    // A WeakRef holds what it was made of until the turn is over.
    for (let i = 0; i < 10 && held.deref() !== undefined; i++) {
      await setImmediate()
      await usedBytes()
    }
    assert.equal(held.deref(), undefined)
    assert.equal(s.table.find(session.id, 'key_1'), session)
  })
})
