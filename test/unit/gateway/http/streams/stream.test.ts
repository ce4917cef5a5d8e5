/** Streams and the places where they wait: what they share, what they keep, and what ends them. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { BrokerError } from '../../../../../src/model/errors.ts'
import { limits } from '../../../../../src/model/limits.ts'
import { anonymous, type Principal } from '../../../../../src/model/principal.ts'
import { waitFor } from '../http-harness.ts'
import { StreamStage, type Opened } from './stream-stage.ts'

const key = (keyId: string): Principal & { isRevoked: boolean } => ({ ...anonymous, keyId })

/** Nothing of any stream is left. */
function assertNothingLeft({ broker, hub, probe, replyBudget }: StreamStage): void {
  const left = [probe.streams, hub.placeCount, broker.watches.standing.size, replyBudget.usedBytes]
  assert.deepEqual(left, [0, 0, 0, 0])
}

describe('streams that wait at the same place', () => {
  it('share one watch and one read, and each is charged and sent everything', async t => {
    const stage = new StreamStage(t)
    await stage.create()
    const opened = Array.from({ length: 1000 }, () => stage.open())
    const { broker, probe } = stage
    assert.deepEqual([broker.watches.standing.size, broker.reads.length, probe.streams], [1, 0, 1000])
    stage.append(0, 'a')
    await waitFor(() => opened.every(({ reply }) => reply.offsets.length === 1), 'the first record')
    assert.deepEqual([broker.readerCounts, broker.watches.standing.size], [[1000], 1])
    stage.append(0, 'b', 'c')
    await waitFor(() => opened.every(({ reply }) => reply.offsets.length === 3), 'all records')
    assert.deepEqual([broker.readerCounts, probe.streamEvents], [[1000, 1000], 3000])
    for (const { reply } of opened) reply.close(true)
    assertNothingLeft(stage)
  })

  it('of several keys have one watch a key, and a revoked one ends at once without the others', async t => {
    const stage = new StreamStage(t)
    await stage.create()
    const [lost, kept] = [key('lost'), key('kept')]
    const opened = [stage.open(1, lost), stage.open(1, kept), stage.open(1, lost)] as const
    assert.equal(stage.broker.watches.standing.size, 2)
    lost.isRevoked = true
    const { standing } = stage.broker.watches
    const [first] = [...standing].filter(({ who }) => who === lost)
    assert.ok(first !== undefined)
    standing.delete(first)
    first.caller.onWatchFailed(new BrokerError('KEY_REVOKED'))
    assert.deepEqual(
      opened.map(({ reply, closedCount }) => [reply.isClosed, closedCount]),
      [
        [true, 1],
        [false, 0],
        [true, 1]
      ]
    )
    assert.match(opened[0].reply.text, /event: end\ndata: \{"code":"KEY_REVOKED","error":"key revoked"\}\n\n$/)
    stage.append(0, 'a')
    await waitFor(() => opened[1].reply.offsets.length === 1, 'the record of the other')
  })

  it('whose key is revoked while the read is under way get nothing of it', async t => {
    const stage = new StreamStage(t)
    await stage.create()
    const who = key('lost')
    const lost = stage.open(1, who)
    const kept = stage.open()
    stage.broker.holdsAnswers = true
    stage.append(0, 'a')
    await waitFor(() => stage.broker.heldAnswerCount === 1, 'the read')
    who.isRevoked = true
    stage.broker.flush()
    assert.deepEqual([lost.reply.offsets, kept.reply.offsets], [[], [[0, 0]]])
    assert.match(lost.reply.text, /KEY_REVOKED/)
  })

  it('and one of which leaves during the read do not keep its memory', async t => {
    const stage = new StreamStage(t)
    await stage.create()
    const opened = [stage.open(), stage.open()] as const
    stage.broker.holdsAnswers = true
    stage.append(0, 'a')
    await waitFor(() => stage.broker.heldAnswerCount === 1, 'the read')
    assert.ok(stage.replyBudget.usedBytes > 0)
    for (const { reply } of opened) reply.close(true)
    stage.broker.flush()
    assertNothingLeft(stage)
  })
})

describe('a stream whose client is slow', () => {
  it('reads nothing until the socket has taken what it was sent, and holds that and no more', async t => {
    const stage = new StreamStage(t)
    await stage.create(2)
    const { reply } = stage.open(2)
    reply.isFull = true
    stage.append(0, 'a')
    await waitFor(() => reply.offsets.length === 1, 'the first record')
    const heldBytes = Buffer.byteLength(reply.pushed.at(-1) ?? '')
    assert.equal(stage.replyBudget.usedBytes, heldBytes)
    stage.append(1, 'b')
    stage.append(0, 'c', 'd')
    await new Promise(resolve => setImmediate(resolve))
    assert.deepEqual([stage.broker.reads.length, stage.replyBudget.usedBytes], [1, heldBytes])
    reply.drain()
    stage.broker.watches.answer()
    await waitFor(() => reply.offsets.length === 4, 'the rest')
    assert.deepEqual(reply.offsets.toSorted(), [
      [0, 0],
      [0, 1],
      [0, 2],
      [1, 0]
    ])
    assert.equal(stage.replyBudget.usedBytes, 0)
  })

  it('does not hold up those that wait with it', async t => {
    const stage = new StreamStage(t)
    await stage.create()
    const [slow, quick] = [stage.open(), stage.open()]
    slow.reply.isFull = true
    for (const value of ['a', 'b', 'c']) {
      const count = quick.reply.offsets.length
      stage.append(0, value)
      await waitFor(() => quick.reply.offsets.length > count, 'the next record')
    }
    assert.deepEqual([slow.reply.offsets.length, quick.reply.offsets.length], [1, 3])
    slow.reply.drain()
    stage.broker.watches.answer()
    await waitFor(() => slow.reply.offsets.length === 3, 'what it had missed')
  })

  it('is cut when what it has not taken finds no room, and the one before it is not', async t => {
    const text = 'x'.repeat(10_000)
    // Room for the read of both, not for what two sockets keep of it.
    const stage = new StreamStage(t, { budgetBytes: 70_000 })
    await stage.create()
    const opened = Array.from({ length: 3 }, () => stage.open())
    for (const { reply } of opened) reply.isFull = true
    stage.append(0, text.repeat(4))
    await waitFor(() => opened.every(({ reply }) => reply.offsets.length === 1), 'the record')
    assert.deepEqual(
      opened.map(({ reply }) => reply.isAborted),
      [false, true, true]
    )
    assert.equal(stage.probe.streamsCut, 2)
    assert.ok(stage.replyBudget.usedBytes <= 70_000)
    opened[0]?.reply.drain()
    assert.equal(stage.replyBudget.usedBytes, 0)
  })

  it('gets no comments: they would wait with the rest', async t => {
    const stage = new StreamStage(t, { heartbeatMs: 15 })
    await stage.create()
    const [silent, slow] = [stage.open(), stage.open()]
    slow.reply.isFull = true
    const before = slow.reply.pushed.length
    await waitFor(() => silent.reply.text.endsWith(': \n\n: \n\n: \n\n'), 'three heartbeats')
    assert.ok(slow.reply.pushed.length <= before + 1, 'the one that found it full')
  })
})

describe('a stream of many partitions', () => {
  it('reads them one at a time and in turn, so that none starves and one answer at most is on its way', async t => {
    const stage = new StreamStage(t)
    await stage.create(20)
    const { reply } = stage.open(20, anonymous, { ...stage.form, maxRecords: 1 })
    for (let partition = 0; partition < 20; partition++) {
      stage.broker.recordsOf('t', partition).push(
        ...Array.from({ length: 3 }, () => {
          return { key: null, value: Buffer.from('v'), sequence: 0n }
        })
      )
    }
    stage.broker.holdsAnswers = true
    stage.broker.watches.answer()
    for (let i = 0; i < 60; i++) {
      await waitFor(() => stage.broker.heldAnswerCount > 0 || stage.broker.watches.standing.size > 0, 'the next read')
      assert.ok(stage.broker.heldAnswerCount <= 1)
      stage.broker.flush()
    }
    await waitFor(() => reply.offsets.length === 60, 'all records')
    const rounds = [0, 1, 2].map(round => reply.offsets.slice(20 * round, 20 * round + 20))
    for (const [offset, round] of rounds.entries()) {
      assert.deepEqual(
        round.map(([partition]) => partition).toSorted((a, b) => a - b),
        [...Array(20).keys()]
      )
      assert.ok(round.every(([, at]) => at === offset))
    }
  })

  it('goes on after it was blocked by something else that was sent between a turn and its read', async t => {
    const stage = new StreamStage(t)
    await stage.create(2)
    const { stream, reply } = stage.open(2)
    stage.broker.holdsAnswers = true
    stage.append(0, 'a')
    stage.append(1, 'b')
    await waitFor(() => stage.broker.heldAnswerCount === 1, 'the first read')
    // The answer gives the other partition its turn, which begins with a microtask of its own.
    reply.onPushed = () => {
      reply.onPushed = () => undefined
      queueMicrotask(() => {
        reply.isFull = true
        stream.send(Buffer.from('event: assignment\ndata: {}\n\n'), 1)
      })
    }
    stage.broker.flush()
    await waitFor(() => reply.text.includes('assignment'), 'the other event')
    assert.deepEqual([reply.isFull, stage.broker.heldAnswerCount], [true, 0])
    stage.broker.holdsAnswers = false
    reply.drain()
    await waitFor(() => reply.offsets.length === 2, 'the other record')
    stage.append(0, 'c')
    await waitFor(() => reply.offsets.length === 3, 'what came later')
    reply.close(true)
    await waitFor(() => stage.replyBudget.usedBytes === 0, 'the reads that were on their way')
    assertNothingLeft(stage)
  })

  it('follows a partition no more once it is not its own, also while that is read', async t => {
    const stage = new StreamStage(t)
    await stage.create(2)
    const { stream, reply, followers } = stage.open(2)
    stage.broker.holdsAnswers = true
    stage.append(0, 'a')
    await waitFor(() => stage.broker.heldAnswerCount === 1, 'the read')
    const [lost] = followers
    assert.ok(lost !== undefined)
    stream.unfollow(lost)
    stage.append(1, 'b')
    await waitFor(() => stage.broker.heldAnswerCount === 2, 'the read of the other')
    stage.broker.flush()
    await waitFor(() => reply.offsets.length > 0, 'the other record')
    assert.deepEqual(reply.offsets, [[1, 0]])
    reply.close(true)
    assertNothingLeft(stage)
  })
})

describe('what fails', () => {
  it('for the moment is waited out, with the stream open', async t => {
    const stage = new StreamStage(t, { retryMs: 2 })
    await stage.create()
    const { reply } = stage.open()
    for (const error of [
      new BrokerError('SHARD_DOWN', { shard: 0 }),
      new BrokerError('OVERLOADED', { what: 'it', limit: 1 }),
      new BrokerError('RATE_LIMITED', { problem: 'p', seconds: '0.1', retryAfterSeconds: 1 })
    ]) {
      stage.broker.readFailure = error
      stage.append(0, 'v')
      await waitFor(() => stage.broker.watches.standing.size === 0, 'the failure')
      stage.broker.readFailure = null
      await waitFor(() => stage.broker.watches.standing.size === 1, 'the next try')
      stage.broker.watches.answer()
      await waitFor(() => stage.broker.watches.standing.size === 1, 'the record')
    }
    assert.deepEqual([reply.offsets.length, reply.isClosed], [3, false])
    stage.broker.watches.answer(new BrokerError('SHARD_DIED', { shard: 0 }))
    await waitFor(() => stage.broker.watches.standing.size === 1, 'the next watch')
  })

  it('with its key ends a stream that waits for nothing: for a quota, or without any partition', async t => {
    const stage = new StreamStage(t, { heartbeatMs: 15 })
    await stage.create()
    const who = key('k')
    const waiting = stage.open(1, who)
    stage.broker.readFailure = new BrokerError('RATE_LIMITED', { problem: 'p', seconds: '600', retryAfterSeconds: 600 })
    stage.append(0, 'a')
    await waitFor(() => stage.broker.watches.standing.size === 0, 'it to wait')
    const empty = stage.open(0, who)
    const kept = stage.open(0, key('other'))
    who.isRevoked = true
    for (const { reply } of [waiting, empty]) {
      await waitFor(() => reply.isClosed, 'its end')
      assert.match(reply.text, /event: end\ndata: \{"code":"KEY_REVOKED"/)
    }
    assert.equal(kept.reply.isClosed, false)
    kept.reply.close(true)
    assertNothingLeft(stage)
  })

  it('for good ends the stream with its reason, and one that is inside tells its id alone', async t => {
    const stage = new StreamStage(t)
    await stage.create()
    const ends: Opened[] = []
    for (const error of [
      new BrokerError('TOPIC_NOT_FOUND', { topic: 't' }),
      new BrokerError('INTERNAL', {}, { cause: new Error('secret') })
    ]) {
      const opened = stage.open()
      ends.push(opened)
      stage.broker.watches.answer(error)
      assert.deepEqual([opened.reply.isClosed, opened.reply.isAborted], [true, false])
    }
    assert.match(
      ends[0]?.reply.text ?? '',
      /event: end\ndata: \{"code":"TOPIC_NOT_FOUND","error":"no topic named 't'"\}\n\n$/
    )
    const [, id] =
      /\{"code":"INTERNAL","error":"internal error \(id ([0-9a-f]{8})\)"\}/.exec(ends[1]?.reply.text ?? '') ?? []
    assert.ok(stage.log.some(({ fields }) => 'request_id' in fields && fields.request_id === id))
    assert.ok(!ends[1]?.reply.text.includes('secret'))
    assertNothingLeft(stage)
  })

  it('in the broker itself ends the streams of that read, and their memory is free', async t => {
    const stage = new StreamStage(t)
    await stage.create()
    const { reply } = stage.open()
    stage.broker.bug = new Error('a bug')
    stage.append(0, 'v')
    await waitFor(() => reply.isClosed, 'the end')
    assert.match(reply.text, /"code":"INTERNAL"/)
    assertNothingLeft(stage)
  })

  it('never is taken for progress: an answer without records at its own offset is asked for again later', async t => {
    const stage = new StreamStage(t, { retryMs: 1 })
    await stage.create()
    stage.open()
    stage.broker.holdsAnswers = true
    const nothing = Buffer.alloc(24)
    nothing.writeBigUInt64BE(5n, 8)
    stage.broker.cannedAnswer = { bytes: nothing, chunkBytes: 100 }
    stage.broker.watches.answer()
    await waitFor(() => stage.broker.heldAnswerCount === 1, 'the read')
    stage.broker.flush()
    assert.equal(stage.broker.watches.standing.size, 0, 'not at once')
    await waitFor(() => stage.broker.watches.standing.size === 1, 'the next watch')
  })
})

describe('the hub', () => {
  it('takes as many streams and partitions as it may, and refuses the next', async t => {
    const stage = new StreamStage(t)
    const { hub } = stage
    const streams = Array.from({ length: limits.streamsMax }, () => {
      return { partitionCount: 10, look: () => undefined, end: () => undefined }
    })
    for (const stream of streams) {
      hub.checkRoom(stream.partitionCount)
      hub.add(stream)
    }
    assert.throws(() => hub.checkRoom(0), /the number of streams is at its limit of 10000/)
    assert.throws(() => hub.checkPartitionRoom(1), /partitions of streams is at its limit of 100000/)
    for (const stream of streams) hub.forget(stream)
    hub.checkRoom(limits.streamedPartitionsMax)
    assert.equal(stage.probe.streams, 0)
  })

  it('ends all streams when it stops, and takes no more', async t => {
    const stage = new StreamStage(t)
    await stage.create()
    const { reply } = stage.open()
    stage.hub.stop()
    assert.match(reply.text, /event: end\ndata: \{"code":"STOPPING"/)
    assert.throws(() => stage.hub.checkRoom(1), /shutting down/)
    assertNothingLeft(stage)
  })

  it('keeps nothing of ten thousand streams that came and went, in whatever state', async t => {
    const stage = new StreamStage(t, { retryMs: 1 })
    await stage.create(3)
    for (let i = 0; i < 10_000; i++) {
      const { reply } = stage.open(1 + (i % 3))
      if (i % 7 === 0) stage.append(i % 3, 'v')
      if (i % 11 === 0) reply.isFull = true
      if (i % 100 === 0) await new Promise(resolve => setImmediate(resolve))
      reply.close(i % 2 === 0)
    }
    await waitFor(() => stage.broker.heldAnswerCount === 0, 'the last answers')
    assertNothingLeft(stage)
  })
})
