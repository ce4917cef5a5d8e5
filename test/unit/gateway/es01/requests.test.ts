/** Requests over a socket: answers, refusals, order. The rows of the protocol's behaviour table, one by one. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Logger } from '../../../../src/base/logger.ts'
import { copied } from '../../../../src/base/copy.ts'
import { silentLogger } from '../../../../src/base/logger.ts'
import { BrokerError } from '../../../../src/model/errors.ts'
import type { ProduceCaller } from '../../../../src/model/requests.ts'
import { submitOutcomes } from '../../../../src/model/requests.ts'
import { decodeConsumed, encodeConsumeFrame } from '../../../../src/wire/es01/consume.ts'
import type { ConsumeRequest } from '../../../../src/wire/es01/consume.ts'
import { encodeFrame, opcodes } from '../../../../src/wire/es01/frame.ts'
import { decodeProduced, encodeProduceFrame } from '../../../../src/wire/es01/produce-frame.ts'
import { startGateway, until } from './fixture.ts'

const produce = (id: number, value = 'v'): Buffer => encodeProduceFrame(id, 't', [{ value, partition: 0 }])

function consume(id: number, changes: Partial<ConsumeRequest> = {}): Buffer {
  return encodeConsumeFrame(id, { topic: 't', partition: 0, offset: 0, maxRecords: 100, maxBytes: 1 << 20, ...changes })
}

describe('a produce', () => {
  test('is stored as sent and answered in the order of its records', async t => {
    const { greet, broker } = await startGateway(t)
    const client = await greet()
    const records = [
      { value: 'pinned', partition: 3 },
      { key: 'user-1', value: Buffer.from([0, 255]) },
      { value: 'anywhere', sequence: 4n }
    ]
    client.send(encodeProduceFrame(42, 't', records))
    const frame = await client.frame()
    assert.deepEqual([frame.id, frame.opcode], [42, opcodes.produced])
    const results = decodeProduced(frame.payload)
    assert.deepEqual(results, [
      { partition: 3, offset: 0, duplicate: false },
      { partition: 0, offset: 0, duplicate: false },
      { partition: 0, offset: 1, duplicate: false }
    ])
    const stored = broker
      .log('t', 0)
      .map(({ key, value, sequence }) => [key?.toString(), value.toString('hex'), sequence])
    assert.deepEqual(stored, [
      ['user-1', '00ff', -(2n ** 63n)],
      [undefined, Buffer.from('anywhere').toString('hex'), 4n]
    ])
  })

  test('without records is answered by no results', async t => {
    const { greet } = await startGateway(t)
    const client = await greet()
    client.send(encodeProduceFrame(1, 't', []))
    assert.deepEqual(await client.frame(), { id: 1, opcode: opcodes.produced, payload: Buffer.alloc(4) })
  })

  test('refused by the broker gets an error frame that begins with the kind of error, and the connection goes on', async t => {
    const { greet, broker } = await startGateway(t)
    const client = await greet()
    client.send(encodeProduceFrame(1, 'nope', [{ value: 'v' }]))
    assert.equal(await client.errorText(1), "not found: no topic named 'nope'")
    client.send(encodeProduceFrame(2, 't', [{ value: 'v' }, { value: 'v', partition: 4 }]))
    assert.match(await client.errorText(2), /^bad request: partition 4 is out of range: topic 't' has 4/)
    client.send(
      encodeProduceFrame(
        3,
        't',
        Array.from({ length: 100_001 }, () => ({ value: '' }))
      )
    )
    assert.match(await client.errorText(3), /^bad request: the request has 100001 records: over the limit of 100000/)
    assert.equal(broker.logs.size, 0)
    client.send(produce(4))
    assert.equal((await client.frame()).opcode, opcodes.produced)
  })

  test('that the broker holds keeps its place: nothing behind it is taken until it is dispatched', async t => {
    const { greet, broker } = await startGateway(t)
    const client = await greet()
    broker.holdsNext = true
    client.send(encodeProduceFrame(1, 't', [{ value: 'first', partition: 0, sequence: 0n }], 'p1'))
    client.send(encodeProduceFrame(2, 't', [{ value: 'second', partition: 0 }]))
    client.send(encodeFrame(3, opcodes.ping, Buffer.alloc(0)))
    await until('the first is held', () => broker.held !== null)
    assert.equal(broker.submitted, 0)
    broker.dispatchHeld()
    const answers = [await client.frame(), await client.frame(), await client.frame()]
    assert.deepEqual(answers.map(answer => answer.id).sort(), [1, 2, 3])
    assert.deepEqual(
      broker.logs.get('t/0')?.map(record => record.value.toString()),
      ['first', 'second']
    )
  })

  test('of 100,000 records and megabytes arrives whole', async t => {
    const { greet, broker } = await startGateway(t)
    const client = await greet()
    client.send(
      encodeProduceFrame(
        1,
        't',
        Array.from({ length: 100_000 }, (_, i) => ({ value: `${i}`, partition: 1 }))
      )
    )
    client.send(encodeProduceFrame(2, 't', [{ value: Buffer.alloc(8 << 20, 9), partition: 2 }]))
    const [many, big] = await client.frames(2)
    assert.equal(many?.payload.length, 4 + 13 * 100_000)
    assert.equal(big?.id, 2)
    assert.equal(broker.log('t', 1)[99_999]?.value.toString(), '99999')
    assert.ok(broker.log('t', 2)[0]?.value.equals(Buffer.alloc(8 << 20, 9)))
  })

  test('that arrives whole is copied once, from the memory that the socket reads to, to the ring', async t => {
    const { greet, gateway } = await startGateway(t)
    const client = await greet()
    const records = Array.from({ length: 100 }, (_, i) => ({ key: `${i}`, value: Buffer.alloc(100, i) }))
    const frame = encodeProduceFrame(1, 't', records)
    const before = copied.bytes
    client.send(frame)
    await client.frame()
    const recordBytes = frame.length - 9 - 2 - 1 - 4 - 4
    assert.deepEqual([copied.bytes - before, gateway.movedBytes], [recordBytes, 0])
  })

  test('to one topic is executed in the order of arrival, also when the broker is full for a while', async t => {
    const { greet, broker } = await startGateway(t)
    const client = await greet()
    client.send(Buffer.concat([produce(1, 'a'), produce(2, 'b')]))
    await client.frames(2)
    broker.isFull = true
    client.send(Buffer.concat([produce(3, 'c'), produce(4, 'd'), encodeFrame(5, opcodes.ping, Buffer.alloc(0))]))
    await until('the gateway asked for room', () => broker.waitingForRoom === 1)
    client.send(produce(6, 'e'))
    broker.makeRoom()
    assert.deepEqual((await client.frames(4)).map(frame => frame.id).sort(), [3, 4, 5, 6])
    assert.deepEqual(
      broker.log('t', 0).map(record => record.value.toString()),
      ['a', 'b', 'c', 'd', 'e']
    )
  })

  test('may come in pieces of any size', async t => {
    const { greet, gateway, broker } = await startGateway(t)
    const client = await greet()
    const frame = produce(9, 'split')
    const before = gateway.probe.receivedBytes
    for (let cut = 1; cut < frame.length; cut++) {
      client.send(frame.subarray(0, cut))
      const arrived = before + (cut - 1) * frame.length + cut
      await until(`${cut} bytes arrived`, () => gateway.probe.receivedBytes === arrived)
      client.send(frame.subarray(cut))
      assert.equal((await client.frame()).id, 9)
    }
    assert.equal(broker.log('t', 0).length, frame.length - 1)
    assert.ok(broker.log('t', 0).every(record => record.value.toString() === 'split'))
  })
})

describe('a consume', () => {
  test('is answered by the records as they were produced', async t => {
    const { greet } = await startGateway(t)
    const client = await greet()
    client.send(encodeProduceFrame(1, 't', [{ key: 'k', value: 'v', partition: 2 }]))
    await client.frame()
    client.send(consume(2, { partition: 2 }))
    const frame = await client.frame()
    assert.deepEqual([frame.id, frame.opcode], [2, opcodes.consumed])
    assert.deepEqual(decodeConsumed(frame.payload), {
      nextOffset: 1,
      highWatermark: 1,
      records: [
        { partition: 2, offset: 0, timestampMs: 1_700_000_000_000, key: Buffer.from('k'), value: Buffer.from('v') }
      ]
    })
  })

  test('passes its offset on exactly, and clamps its limits to at least 1 and at most the settings', async t => {
    const { greet, broker } = await startGateway(t, { settings: { maxFetchRecords: 50, maxFetchBytes: 5000 } })
    const seen: number[][] = []
    const submitRead = broker.submitRead.bind(broker)
    broker.submitRead = (who, read, caller) => {
      seen.push([read.offsetHigh, read.offsetLow, read.maxRecords, read.maxBytes])
      return submitRead(who, read, caller)
    }
    const client = await greet()
    client.send(consume(1, { offset: 2n ** 64n - 1n, maxRecords: 0, maxBytes: 0 }))
    client.send(consume(2, { maxRecords: 0xffff_ffff, maxBytes: 0xffff_ffff }))
    const [first] = await client.frames(2)
    assert.deepEqual(seen, [
      [0xffff_ffff, 0xffff_ffff, 1, 1],
      [0, 0, 50, 5000]
    ])
    assert.equal(first?.payload.readBigUInt64BE(0), 2n ** 64n - 1n)
  })

  test('of an unknown topic or partition gets an error frame, and the connection goes on', async t => {
    const { greet } = await startGateway(t)
    const client = await greet()
    client.send(consume(1, { topic: 'nope' }))
    assert.match(await client.errorText(1), /^not found: /)
    client.send(consume(2, { partition: 0xffff_ffff }))
    assert.match(await client.errorText(2), /^bad request: partition 4294967295 is out of range/)
  })

  test('whose answer comes in pieces keeps them together while other answers pass', async t => {
    const { greet, broker } = await startGateway(t)
    const client = await greet()
    client.send(
      encodeProduceFrame(1, 't', [
        { value: Buffer.alloc(300_000, 5), partition: 0 },
        { value: 'b', partition: 1 }
      ])
    )
    await client.frame()
    broker.chunkBytes = 1000
    broker.isHeld = true
    client.send(Buffer.concat([consume(2), produce(3), consume(4, { partition: 1 }), consume(5)]))
    await until('all are in progress', () => broker.submitted === 5)
    broker.release()
    const frames = await client.frames(4)
    const sizes = frames
      .map(frame => [frame.id, decodeConsumed(frame.payload)])
      .map(([id, answer]) => {
        return [id, typeof answer === 'object' ? answer.records.map(record => record.value.length) : 'produce']
      })
    assert.deepEqual(sizes.sort(), [
      [2, [300_000]],
      [3, 'produce'],
      [4, [1]],
      [5, [300_000, 1]]
    ])
  })
})

describe('a malformed frame', () => {
  test('gets an error frame that begins with decode, and the connection goes on', async t => {
    const { greet, gateway, broker } = await startGateway(t)
    const client = await greet()
    const lying = produce(1)
    lying.writeUInt32BE(0xffff_ffff, 9 + 2 + 1 + 4)
    const cases: [Buffer, RegExp][] = [
      [lying, /^decode: count is 4294967295, but only 21 bytes follow/],
      [encodeFrame(2, opcodes.produce, Buffer.alloc(0)), /^decode: the payload ends inside topic_len/],
      [encodeFrame(3, opcodes.produce, Buffer.from('0001ff', 'hex')), /^decode: topic is not UTF-8/],
      [encodeFrame(4, opcodes.consume, Buffer.from('000174', 'hex')), /^decode: only 0 of 20 bytes/],
      [
        encodeFrame(5, opcodes.consume, Buffer.concat([Buffer.from('0001ff', 'hex'), Buffer.alloc(20)])),
        /^decode: topic/
      ]
    ]
    for (const [i, [frame, expected]] of cases.entries()) {
      client.send(frame)
      assert.match(await client.errorText(i + 1), expected)
    }
    assert.equal(broker.submitted, 0)
    assert.deepEqual([...gateway.probe.errorFrames], [['FRAME_INVALID', cases.length]])
    client.send(produce(9))
    assert.equal((await client.frame()).opcode, opcodes.produced)
  })

  test('with an opcode of answers gets an error frame, and the connection goes on', async t => {
    const { greet } = await startGateway(t)
    const client = await greet()
    for (const opcode of [0x81, 0x82, 0x83, 0xff]) {
      client.send(encodeFrame(opcode, opcode, Buffer.from('x')))
      assert.match(await client.errorText(opcode), /^bad request: opcode: 0x(81|82|83|FF) is an answer/)
    }
  })

  test('with an unknown opcode closes the connection without a frame, before its body has come', async t => {
    const { greet, gateway } = await startGateway(t)
    for (const opcode of [0x00, 0x04, 0x80, 0xfe]) {
      const client = await greet()
      client.send(encodeFrame(1, opcode, Buffer.alloc(100)).subarray(0, 9))
      await client.closed()
      assert.equal(client.restBytes, 0)
    }
    assert.equal(gateway.probe.refused.unknownOpcode, 4)
  })

  test('with a length below 5 or over the limit closes the connection without a frame', async t => {
    const { greet, gateway, requestBudget } = await startGateway(t)
    for (const length of [0, 4, 16 * 1024 * 1024 + 1, 0xffff_ffff]) {
      const client = await greet()
      const prefix = Buffer.alloc(4)
      prefix.writeUInt32BE(length)
      client.send(prefix)
      await client.closed()
      assert.equal(client.restBytes, 0)
    }
    assert.equal(gateway.probe.refused.frameLength, 4)
    assert.equal(requestBudget.usedBytes, 0)
  })

  test('does not cost the requests before it their answers', async t => {
    const { greet, broker } = await startGateway(t)
    const client = await greet()
    broker.isHeld = true
    client.send(Buffer.concat([produce(1), produce(2), Buffer.alloc(4), produce(3)]))
    await until('two are in progress', () => broker.inProgress === 2)
    broker.release()
    assert.deepEqual(
      (await client.frames(2)).map(frame => frame.id),
      [1, 2]
    )
    await client.closed()
    assert.equal(broker.submitted, 2)
  })

  test('that announces the largest length and stops takes no memory', async t => {
    const { greet, gateway, requestBudget } = await startGateway(t)
    const client = await greet()
    const before = process.memoryUsage().arrayBuffers
    const head = encodeFrame(1, opcodes.produce, Buffer.alloc(3)).subarray(0, 12)
    head.writeUInt32BE(16 * 1024 * 1024)
    client.send(head)
    await until('it arrived', () => gateway.probe.receivedBytes === 24)
    assert.equal(requestBudget.usedBytes, 0)
    assert.ok(process.memoryUsage().arrayBuffers - before < 1024 * 1024)
  })
})

describe('the rest of the protocol', () => {
  test('a ping is answered whatever its payload', async t => {
    const { greet } = await startGateway(t)
    const client = await greet()
    client.send(encodeFrame(0xffff_ffff, opcodes.ping, Buffer.from('ignored')))
    assert.deepEqual(await client.frame(), { id: 0xffff_ffff, opcode: opcodes.pong, payload: Buffer.alloc(0) })
  })

  test('equal request ids are echoed, not checked', async t => {
    const { greet } = await startGateway(t)
    const client = await greet()
    client.send(Buffer.concat([produce(7), produce(7)]))
    assert.deepEqual(
      (await client.frames(2)).map(frame => frame.id),
      [7, 7]
    )
  })

  test('a bug says internal error and an id to the client, and the rest to the log alone', async t => {
    const lines: object[] = []
    const logger: Logger = { ...silentLogger, error: fields => lines.push(fields) }
    const { greet, broker } = await startGateway(t, { logger })
    const client = await greet()
    broker.throwsNext = true
    client.send(Buffer.concat([produce(1), produce(2)]))
    const text = await client.errorText(1)
    const id = /^internal error \(id ([0-9a-f]{8})\)$/.exec(text)?.[1]
    assert.ok(id !== undefined, text)
    assert.equal(lines.length, 1)
    assert.equal(Reflect.get(lines[0] ?? {}, 'request_id'), id)
    assert.equal((await client.frame()).opcode, opcodes.produced)
  })

  test('a client that half-closes gets the answers to what it sent, then the end', async t => {
    const { greet, broker } = await startGateway(t)
    const client = await greet()
    broker.isHeld = true
    client.socket.end(Buffer.concat([produce(1), produce(2), produce(3).subarray(0, 10)]))
    await until('two are in progress', () => broker.inProgress === 2)
    assert.equal(client.hasEnded, false)
    broker.release()
    assert.deepEqual(
      (await client.frames(2)).map(frame => frame.id),
      [1, 2]
    )
    await client.closed()
  })

  test('an answer that comes outside of a delivery is written all the same', async t => {
    const { greet, broker } = await startGateway(t)
    const callers: ProduceCaller[] = []
    broker.submitProduce = (_who, _topic, _records, caller) => {
      callers.push(caller)
      return submitOutcomes.taken
    }
    const client = await greet()
    client.send(produce(1))
    await until('it is in progress', () => callers.length === 1)
    callers[0]?.onProduceFailed(new BrokerError('SHARD_DIED', { shard: 0 }))
    assert.equal(
      await client.errorText(1),
      'unavailable: shard 0 stopped while the request was in progress (written: unknown)'
    )
  })

  test('a client that goes away amid its requests leaves nothing behind', async t => {
    const { greet, broker, gateway, replyBudget } = await startGateway(t)
    const client = await greet()
    broker.isHeld = true
    client.send(Buffer.concat([produce(1), consume(2), consume(3)]))
    await until('three are in progress', () => broker.inProgress === 3)
    assert.ok(replyBudget.usedBytes > 0)
    client.socket.resetAndDestroy()
    await until('the connection is gone', () => gateway.connectionCount === 0)
    broker.release()
    assert.equal(replyBudget.usedBytes, 0)
  })
})
