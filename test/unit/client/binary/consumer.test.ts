/** The consumer against a broker that is away, and the share of a group whose coordinator fails. */
import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import { clientError } from '../../../../src/client/binary/client-error.ts'
import type { GroupMember } from '../../../../src/client/binary/group-member.ts'
import { GroupShare } from '../../../../src/client/binary/group-share.ts'
import { Consumer } from '../../../../src/client/binary/index.ts'
import { readingOf } from '../../../../src/client/binary/options.ts'
import type { PartitionReader } from '../../../../src/client/binary/partition-reader.ts'
import { opcodes, type Frame } from '../../../../src/wire/es01/frame.ts'
import type { Es01Address } from '../../../support/broker.ts'
import { startPeer, type PeerConnection } from '../../../support/es01-peer.ts'

/** Partition 2^31 − 1, which no topic has, is asked for at bytes 3 to 6 of a request for topic `t`. */
function isQuestion({ payload }: Frame): boolean {
  return payload.readUInt32BE(3) === 2 ** 31 - 1
}

/** An answer with one record, the first of its log. */
function oneRecord(): Buffer {
  const answer = Buffer.alloc(20 + 28)
  answer.writeBigUInt64BE(1n, 0)
  answer.writeBigUInt64BE(1n, 8)
  answer.writeUInt32BE(1, 16)
  answer.writeInt32BE(-1, 40)
  return answer
}

describe('a consumer whose broker is away at the beginning', () => {
  for (const [what, fail] of [
    ['refuses for the moment', (id, peer) => peer.refuse(id, 'unavailable: shard 0 is starting')],
    ['takes no request', (_, peer) => peer.drop()]
  ] as readonly (readonly [string, (id: number, peer: PeerConnection) => void])[]) {
    test(`waits until it is back: it ${what}`, async t => {
      let failuresLeft = 30
      const address = await startPeer(t, {
        onFrame: (frame, peer) => {
          if (failuresLeft-- > 0) return fail(frame.requestId, peer)
          if (!isQuestion(frame)) return peer.answer(frame.requestId, opcodes.consumed, oneRecord())
          const text =
            "bad request: partition 2147483647 is out of range: topic 't' has 1 partition(s), numbered from 0"
          peer.refuse(frame.requestId, text)
        }
      })
      const reconnect = { initialMs: 1, maxMs: 2 }
      const consumer = new Consumer({ ...address, topic: 't', requestTimeoutMs: 20, reconnect })
      t.after(() => consumer.close())
      for await (const record of consumer) {
        assert.equal(record.offset, 0)
        break
      }
      assert.ok(failuresLeft < 0)
    })
  }

  test('ends without an error when it is closed then', async t => {
    const address = await startPeer(t, {
      onFrame: (frame, peer) => peer.refuse(frame.requestId, 'unavailable: starting')
    })
    const consumer = new Consumer({ ...address, topic: 't' })
    const next = consumer[Symbol.asyncIterator]().next()
    await consumer.close()
    assert.deepEqual(await next, { done: true, value: undefined })
  })
})

describe('a consumer whose topic is made anew', () => {
  /** Its one record is read; then the log is empty, and the place behind that record beyond its end. */
  function consumerOf(t: TestContext, address: Es01Address, options: object): Consumer {
    const consumer = new Consumer({ ...address, topic: 't', partitions: [0], ...options })
    t.after(() => consumer.close())
    return consumer
  }

  function madeAnew(t: TestContext): Promise<Es01Address> {
    return startPeer(t, {
      onFrame: ({ requestId, payload }, peer) => {
        const offset = payload.readBigUInt64BE(7)
        const nothing = Buffer.alloc(20)
        nothing.writeBigUInt64BE(offset, 0)
        peer.answer(requestId, opcodes.consumed, offset === 0n ? oneRecord() : nothing)
      }
    })
  }

  test('begins anew where it was told to', async t => {
    const offsets: number[] = []
    for await (const { offset } of consumerOf(t, await madeAnew(t), { from: 'earliest' })) {
      if (offsets.push(offset) === 3) break
    }
    assert.deepEqual(offsets, [0, 0, 0])
  })

  test('ends with an error where it was not, instead of waiting for offsets that come again', async t => {
    const address = await madeAnew(t)
    for (const from of [undefined, 0, 7]) {
      const loop = async (): Promise<void> => {
        for await (const { offset } of consumerOf(t, address, from === undefined ? {} : { from })) {
          assert.equal(offset, 0)
        }
      }
      await assert.rejects(loop(), { kind: 'out-of-range', written: 'no', retryable: false })
    }
  })
})

describe('the share of a group', () => {
  const times = { reading: readingOf({ host: 'h', port: 1 }), reconnect: { initialMs: 1, maxMs: 1 } }
  const owner = { onAssigned: () => {}, onLost: () => {}, onFailed: () => {} }

  function shareOf(member: Partial<GroupMember>, readers: () => readonly Partial<PartitionReader>[]): GroupShare {
    return new GroupShare(member as GroupMember, times, {
      ...owner,
      readers: readers as () => readonly PartitionReader[]
    })
  }

  const beat: GroupMember['beat'] = () => Promise.resolve({ kind: 'same' })

  test('says at its end that the commit failed, not what failed after it', async () => {
    const member = {
      beat,
      commit: () => Promise.reject(clientError('connection', 'no', 'the commit failed')),
      leave: () => Promise.reject(clientError('connection', 'no', 'leaving failed'))
    }
    const readers = [{ finishedOffset: 5, from: 0 }]
    await assert.rejects(shareOf(member, () => readers).end(), { message: 'the commit failed' })
    await assert.rejects(shareOf(member, () => []).end(), { message: 'leaving failed' })
  })

  test('commits nothing that is not beyond where it was assigned, or that is not its own any more', async () => {
    const committed: (number | null)[] = []
    const [low, high, lost] = [
      { finishedOffset: 30, from: 30 },
      { finishedOffset: 31, from: 30 },
      { finishedOffset: 7, from: 'earliest' as const }
    ]
    let readers = [low, high, lost]
    const commit: GroupMember['commit'] = (_, offset) => {
      committed.push(offset)
      readers = [low, high]
      return Promise.resolve(true)
    }
    const share = shareOf({ beat, commit }, () => readers)
    await share.commit()
    await share.commit()
    assert.deepEqual(committed, [31])
  })

  test('commits as of its assignment; refused, it asks for the new one, and commits what it still has as of that', async () => {
    const calls: string[] = []
    const [lost, kept] = [
      { finishedOffset: 5, from: 0 },
      { finishedOffset: 7, from: 0 }
    ]
    let readers: Partial<PartitionReader>[] = []
    const assignedAt = (generation: number) => ({ generation, places: [], committed: () => null })
    const beats: Awaited<ReturnType<typeof beat>>[] = [{ kind: 'moved', assigned: assignedAt(2) }, { kind: 'lost' }]
    const member: Partial<GroupMember> = {
      join: () => Promise.resolve(assignedAt(1)),
      beat: () => {
        calls.push('beat')
        return Promise.resolve(beats.shift() ?? { kind: 'same' })
      },
      commit: (_, offset, generation) => {
        calls.push(`commit ${offset} of ${generation}`)
        return Promise.resolve(generation === 2 && offset < 9)
      },
      leave: () => Promise.resolve()
    }
    const share = new GroupShare(
      member as GroupMember,
      { ...times, reading: readingOf({ host: 'h', port: 1, heartbeatIntervalMs: 60_000, commitIntervalMs: 0 }) },
      {
        ...owner,
        readers: () => readers as unknown as readonly PartitionReader[],
        onAssigned: ({ generation }) => (readers = generation === 1 ? [lost, kept] : [kept]),
        onLost: () => (readers = [])
      }
    )
    await share.start()
    await share.commit()
    assert.deepEqual(calls.splice(0), ['commit 5 of 1', 'beat', 'commit 7 of 2'])
    readers = [{ finishedOffset: 9, from: 0 }]
    await share.end()
    assert.deepEqual(calls, ['commit 9 of 2', 'beat'], 'nothing is committed by one that is no member any more')
  })
})
