/** Who hears that a group was assigned anew, when, and how often. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { MemberStreams } from '../../../src/broker/member-streams.ts'
import type { MemberStream } from '../../../src/model/groups.ts'

class CountingStream implements MemberStream {
  heard = 0
  takes = true
  onHeard: () => void = () => undefined

  isTaking(): boolean {
    return this.takes
  }

  onRebalanced(): void {
    this.heard++
    this.onHeard()
  }
}

const microtask = (): Promise<void> => Promise.resolve()

describe('the streams of members', () => {
  it('hear of a new assignment after the call that made it, once for several, and those of other groups do not', async () => {
    const streams = new MemberStreams()
    const [mine, other] = [new CountingStream(), new CountingStream()]
    streams.attach('g', 'm', mine)
    streams.attach('h', 'm', other)
    streams.rebalanced('g')
    streams.rebalanced('g')
    assert.equal(mine.heard, 0)
    await microtask()
    streams.rebalanced('nobody')
    await microtask()
    assert.deepEqual([mine.heard, other.heard], [1, 0])
  })

  it('hear of a change that comes while they are told, in a turn of its own', async () => {
    const streams = new MemberStreams()
    const stream = new CountingStream()
    streams.attach('g', 'm', stream)
    stream.onHeard = () => {
      if (stream.heard < 3) streams.rebalanced('g')
    }
    streams.rebalanced('g')
    await microtask()
    assert.equal(stream.heard, 1)
    for (let i = 0; i < 5; i++) await microtask()
    assert.equal(stream.heard, 3)
  })

  it('hear nothing after their end, also when another ends them while both are told', async () => {
    const streams = new MemberStreams()
    const [first, second] = [new CountingStream(), new CountingStream()]
    streams.attach('g', 'm', first)
    const detach = streams.attach('g', 'n', second)
    first.onHeard = detach
    streams.rebalanced('g')
    await microtask()
    detach()
    assert.deepEqual([first.heard, second.heard], [1, 0])
  })

  it('stand in for the heartbeats of members whose client takes what it is sent', () => {
    const streams = new MemberStreams()
    const hung = new CountingStream()
    hung.takes = false
    const detach = streams.attach('g', 'm', new CountingStream())
    streams.attach('g', 'n', hung)
    assert.deepEqual(
      [...streams.taking()].map(({ group, memberId }) => [group, memberId]),
      [['g', 'm']]
    )
    detach()
    assert.deepEqual([...streams.taking()], [])
  })
})
