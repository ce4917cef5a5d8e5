/** What bounds a connection: requests in progress, unread answers, shared memory, time. Nothing may get stuck. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { encodeConsumeFrame } from '../../../../src/wire/es01/consume.ts'
import { encodeFrame, opcodes } from '../../../../src/wire/es01/frame.ts'
import { encodeProduceFrame } from '../../../../src/wire/es01/produce-frame.ts'
import { startGateway, until } from './fixture.ts'
import type { Fixture, RawClient } from './fixture.ts'

const KIB = 1024
const MIB = 1024 * KIB

function produce(id: number, valueBytes = 1): Buffer {
  return encodeProduceFrame(id, 't', [{ value: Buffer.alloc(valueBytes, id), partition: 0 }])
}

function consume(id: number, maxBytes = MIB): Buffer {
  return encodeConsumeFrame(id, { topic: 't', partition: 0, offset: 0, maxRecords: 100, maxBytes })
}

const ping = (id: number): Buffer => encodeFrame(id, opcodes.ping, Buffer.alloc(0))

describe('requests in progress', () => {
  test('are at most 32 per connection: the 33rd waits, and none is refused', async t => {
    const { greet, broker, gateway } = await startGateway(t)
    const client = await greet()
    const other = await greet()
    broker.isHeld = true
    client.send(Buffer.concat(Array.from({ length: 100 }, (_, i) => produce(i))))
    await until('the connection stopped reading', () => gateway.probe.pauses === 1)
    assert.equal(broker.submitted, 32)
    client.send(ping(1000))
    other.send(ping(1))
    await other.frame()
    assert.equal(client.restBytes, 0)
    broker.release()
    const ids = (await client.frames(101)).map(frame => frame.id)
    assert.deepEqual(
      ids.sort((a, b) => a - b),
      [...Array.from({ length: 100 }, (_, i) => i), 1000]
    )
    assert.equal(broker.inProgressMax, 32)
    assert.ok(
      broker.log('t', 0).every((record, i) => record.value[0] === i),
      'and they were executed in order'
    )
  })

  test('of one connection do not hold up another when the broker has no room', async t => {
    const { greet, broker, gateway } = await startGateway(t)
    const clients = [await greet(), await greet()]
    broker.isFull = true
    for (const client of clients) client.send(Buffer.concat([produce(1), produce(2)]))
    await until('both asked for room', () => broker.waitingForRoom === 2)
    assert.equal(gateway.probe.pauses, 2)
    broker.makeRoom()
    for (const client of clients)
      assert.deepEqual(
        (await client.frames(2)).map(frame => frame.id),
        [1, 2]
      )
  })
})

describe('reply bytes', () => {
  test('are reserved before a request is submitted, and given back when its answer was written', async t => {
    const { greet, broker, replyBudget } = await startGateway(t)
    const client = await greet()
    broker.isHeld = true
    client.send(Buffer.concat([produce(1), consume(2, 100_000)]))
    await until('both are in progress', () => broker.inProgress === 2)
    assert.ok(replyBudget.usedBytes >= 100_000 + 64 * KIB + 1024)
    broker.release()
    await client.frames(2)
    await until('all was given back', () => replyBudget.usedBytes === 0)
  })

  test('that are used up delay further requests until some are free', async t => {
    const { greet, broker } = await startGateway(t, { replyBytes: MIB + 100 * KIB })
    const first = await greet()
    const second = await greet()
    broker.isHeld = true
    first.send(consume(1))
    await until('the first is in progress', () => broker.submitted === 1)
    second.send(Buffer.concat([consume(2), consume(3)]))
    first.send(consume(4))
    broker.release()
    assert.equal((await first.frame()).id, 1)
    assert.deepEqual(
      (await second.frames(2)).map(frame => frame.id),
      [2, 3]
    )
    assert.equal((await first.frame()).id, 4)
    assert.equal(broker.inProgressMax, 1)
  })
})

describe('clients that ask for much and read nothing', () => {
  /** Greets so many clients that do not read, each of which asks for twenty answers of 6 MiB. */
  async function sendSleepers({ greet, broker }: Fixture, count: number): Promise<RawClient[]> {
    broker.bigValueBytes = 6 * MIB
    const sleepers: RawClient[] = []
    while (sleepers.length < count) sleepers.push(await greet())
    for (const sleeper of sleepers) {
      sleeper.socket.pause()
      sleeper.send(Buffer.concat(Array.from({ length: 20 }, (_, i) => consume(i, 8 * MIB))))
    }
    return sleepers
  }

  test('hold one largest answer each, so that one of them cannot hold the memory of all', async t => {
    const fixture = await startGateway(t)
    await sendSleepers(fixture, 1)
    const { broker, greet, gateway, replyBudget } = fixture
    await until('its answer is stuck', () => broker.submitted >= 1 && broker.inProgress === 0)
    await until('it is not read from any more', () => gateway.probe.pauses >= 1)
    assert.ok(replyBudget.usedBytes <= 8 * MIB + 64 * KIB, `${replyBudget.usedBytes} bytes`)
    const other = await greet()
    other.send(Buffer.concat([consume(1, 8 * MIB), consume(2, 8 * MIB)]))
    assert.deepEqual(
      (await other.frames(2)).map(frame => frame.id),
      [1, 2]
    )
    assert.equal(gateway.probe.refused.slowReader, 0)
  })

  test('are cut off early once the others lack memory: the others are served, large reads too', async t => {
    const fixture = await startGateway(t, { timeouts: { stalledMs: 60 } })
    await sendSleepers(fixture, 27)
    const { greet, gateway, replyBudget } = fixture
    await until('the memory is used up', () => replyBudget.limitBytes - replyBudget.usedBytes < 8 * MIB)
    const other = await greet()
    const sinceMs = performance.now()
    other.send(consume(1, 8 * MIB))
    assert.equal((await other.frame()).id, 1)
    // Far below the 30 s of a write that nobody waits for.
    assert.ok(performance.now() - sinceMs < 5_000)
    assert.ok(gateway.probe.refused.slowReader > 0)
    assert.equal(other.isClosed, false)
  })

  test('are left alone while there is memory for all', async t => {
    const fixture = await startGateway(t, { timeouts: { stalledMs: 20 }, settings: { binaryIdleTimeoutMs: 1000 } })
    const sleepers = await sendSleepers(fixture, 3)
    const idle = await fixture.greet()
    await idle.closed()
    assert.deepEqual([fixture.gateway.probe.refused.idleTimeout, fixture.gateway.probe.refused.slowReader], [1, 0])
    for (const sleeper of sleepers) sleeper.socket.resume()
    for (const sleeper of sleepers) assert.equal((await sleeper.frames(20)).length, 20)
  })
})

describe('request bytes', () => {
  test('of a half-read frame are charged, and given back when it was taken', async t => {
    const { greet, requestBudget } = await startGateway(t)
    const client = await greet()
    const frame = produce(1, 3 * MIB)
    client.send(frame.subarray(0, 2 * MIB))
    await until('most of it is charged', () => requestBudget.usedBytes >= 2 * MIB - 128 * KIB)
    client.send(frame.subarray(2 * MIB))
    await client.frame()
    assert.equal(requestBudget.usedBytes, 0)
  })

  test('that are used up stop the reading of large frames until some are free, and small ones pass', async t => {
    const { greet, requestBudget, gateway, broker } = await startGateway(t, { requestBytes: MIB })
    assert.ok(requestBudget.tryReserve(MIB))
    const client = await greet()
    const other = await greet()
    client.send(produce(1, 500 * KIB))
    await until('the reading paused', () => gateway.probe.pauses > 0)
    other.send(produce(2, 30 * KIB))
    assert.equal((await other.frame()).opcode, opcodes.produced)
    assert.equal(broker.submitted, 1)
    requestBudget.release(MIB)
    assert.equal((await client.frame()).opcode, opcodes.produced)
  })

  test('are set aside for a whole frame: those for which there are none wait in their sockets, and all go through', async t => {
    const { greet, gateway } = await startGateway(t, { requestBytes: 3 * MIB, timeouts: { bodyMs: 5000 } })
    const clients = [await greet(), await greet(), await greet(), await greet()]
    clients.forEach((client, i) => client.send(produce(i, 2 * MIB)))
    for (const [i, client] of clients.entries()) assert.equal((await client.frame()).id, i)
    assert.deepEqual([gateway.probe.refused.memory, gateway.probe.refused.bodyTimeout], [0, 0])
  })
})

describe('half-read frames', () => {
  /** Clients that have sent all of a large frame but its end. */
  async function sendStuck({ greet }: Fixture, count: number): Promise<RawClient[]> {
    const stuck: RawClient[] = []
    while (stuck.length < count) {
      // Made before it is greeted: that takes a while, which is silence to the listener.
      const frame = produce(stuck.length, 15 * MIB)
      const client = await greet()
      client.send(frame.subarray(0, -1))
      stuck.push(client)
    }
    return stuck
  }

  test('of one address hold a quarter of the request memory at most, so that the rest is for the others', async t => {
    const fixture = await startGateway(t, { requestBytes: 128 * MIB })
    const { requestBudget, gateway } = fixture
    await sendStuck(fixture, 9)
    await until('the last of them wait for memory', () => gateway.probe.pauses >= 5)
    assert.ok(requestBudget.usedBytes > 20 * MIB, `${requestBudget.usedBytes} bytes`)
    assert.ok(requestBudget.usedBytes <= 32 * MIB, `${requestBudget.usedBytes} bytes`)
    assert.equal(gateway.probe.refused.memory, 0)
  })

  test('that do not come on are cut off early once request memory is short, and who waited is served', async t => {
    const fixture = await startGateway(t, { requestBytes: 40 * MIB, timeouts: { stalledMs: 60 } })
    const { greet, gateway, requestBudget } = fixture
    const stuck = await sendStuck(fixture, 1)
    await until('memory is short', () => requestBudget.usedBytes >= 15 * MIB)
    const slow = await greet()
    const frame = produce(7, 15 * MIB)
    // It sends on, in pieces far above the rate that is asked for: it is not one of them.
    let sent = 0
    const feed = setInterval(() => {
      slow.send(frame.subarray(sent, sent + 256 * KIB))
      sent += 256 * KIB
      if (sent >= frame.length) clearInterval(feed)
    }, 5)
    t.after(() => clearInterval(feed))
    assert.equal((await slow.frame()).id, 7)
    await until('the stuck one is gone', () => stuck.every(client => client.isClosed))
    assert.deepEqual([gateway.probe.refused.memory, gateway.probe.refused.bodyTimeout], [1, 0])
  })

  test('may stay while there is memory for all', async t => {
    const fixture = await startGateway(t, { timeouts: { stalledMs: 20 }, settings: { binaryIdleTimeoutMs: 200 } })
    const [stuck] = await sendStuck(fixture, 1)
    const idle = await fixture.greet()
    await idle.closed()
    assert.equal(fixture.gateway.probe.refused.memory, 0)
    stuck?.send(produce(0, 15 * MIB).subarray(-1))
    assert.equal((await stuck?.frame())?.id, 0)
  })
})

describe('time', () => {
  test('a frame that does not come whole in time closes the connection', async t => {
    const { greet, gateway } = await startGateway(t, { timeouts: { bodyMs: 40 } })
    const client = await greet()
    client.send(produce(1).subarray(0, 20))
    await client.closed()
    assert.equal(gateway.probe.refused.bodyTimeout, 1)
  })

  test('a silent connection is closed after the idle timeout, half a length prefix or not', async t => {
    const { greet, gateway } = await startGateway(t, { settings: { binaryIdleTimeoutMs: 60 } })
    const clients = [await greet(), await greet()]
    clients[1]?.send(Buffer.from([0, 0]))
    for (const client of clients) await client.closed()
    assert.ok(clients.every(client => client.restBytes === 0))
    assert.equal(gateway.probe.refused.idleTimeout, 2)
  })

  test('a request in progress keeps its connection from being idle', async t => {
    const { greet, broker, gateway } = await startGateway(t, { settings: { binaryIdleTimeoutMs: 60 } })
    const busy = await greet()
    broker.isHeld = true
    busy.send(produce(1))
    await until('it is in progress', () => broker.inProgress === 1)
    const idle = await greet()
    await idle.closed()
    const later = await greet()
    await later.closed()
    assert.equal(busy.isClosed, false)
    broker.release()
    assert.equal((await busy.frame()).id, 1)
    await busy.closed()
    assert.equal(gateway.probe.refused.idleTimeout, 3)
  })

  test('our own timers stand still while the broker makes the connection wait', async t => {
    const timeouts = { bodyMs: 40, idleMs: 40 }
    const { greet, broker, gateway } = await startGateway(t, { timeouts })
    const client = await greet()
    broker.isFull = true
    client.send(Buffer.concat([produce(1), produce(2).subarray(0, 15)]))
    await until('it waits', () => broker.waitingForRoom === 1)
    const idle = await greet()
    await idle.closed()
    assert.equal(gateway.probe.refused.idleTimeout, 1)
    assert.equal(client.isClosed, false)
    broker.makeRoom()
    client.send(produce(2).subarray(15))
    assert.deepEqual(
      (await client.frames(2)).map(frame => frame.id),
      [1, 2]
    )
  })

  test('a client that does not read its answers is dropped, and its reply bytes are free again', async t => {
    const { greet, broker, gateway, replyBudget } = await startGateway(t, { timeouts: { writeMs: 60 } })
    broker.bigValueBytes = 6 * MIB
    const client = await greet()
    const other = await greet()
    client.socket.pause()
    client.send(Buffer.concat(Array.from({ length: 12 }, (_, i) => consume(i))))
    await until('it was dropped', () => gateway.connectionCount === 1)
    assert.equal(gateway.probe.refused.slowReader, 1)
    await until('all was given back', () => replyBudget.usedBytes === 0)
    other.send(ping(1))
    assert.equal((await other.frame()).id, 1)
  })

  test('a client with unread answers gets no further requests taken, and goes on once it reads', async t => {
    const { greet, broker, gateway } = await startGateway(t)
    broker.bigValueBytes = 7 * MIB
    const client = await greet()
    client.socket.pause()
    client.send(consume(0, 8 * MIB))
    client.send(consume(1, 8 * MIB))
    await until('answers are stuck', () => broker.submitted >= 1 && broker.inProgress === 0)
    client.send(Buffer.concat(Array.from({ length: 20 }, (_, i) => consume(2 + i, 8 * MIB))))
    await until('the reading paused', () => gateway.probe.pauses === 1)
    assert.ok(broker.submitted < 22)
    client.socket.resume()
    assert.deepEqual(
      (await client.frames(22)).map(frame => frame.id),
      Array.from({ length: 22 }, (_, i) => i)
    )
  })
})
