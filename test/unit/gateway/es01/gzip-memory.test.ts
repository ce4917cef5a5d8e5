/** What frames and answers hold of the memory while they are inflated and compressed, and that all of it comes back. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { describe, test } from 'node:test'
import type { TestContext } from 'node:test'
import { gzipSync } from 'node:zlib'
import { gzippedBytesMax } from '../../../../src/gateway/es01/gzip.ts'
import { encodeConsumeFrame } from '../../../../src/wire/es01/consume.ts'
import { encodeFrame, opcodes } from '../../../../src/wire/es01/frame.ts'
import { encodeHello } from '../../../../src/wire/es01/handshake.ts'
import { encodeProduceFrame } from '../../../../src/wire/es01/produce-frame.ts'
import { agreeOnGzip, occupyPool, plainFrame, withPayload } from '../../../support/es01-gzip.ts'
import { chosenSeed, diceOf } from '../../../support/log-random.ts'
import { startGateway, until, type Fixture, type FixtureOptions, type RawClient } from './fixture.ts'

const KIB = 1024
const MIB = 1024 * KIB

const textOf = (bytes: number): Buffer => Buffer.alloc(bytes, 'the same words over and over, 0123456789; ')
const produce = (id: number, value: Buffer | string = 'v'): Buffer =>
  withPayload(encodeProduceFrame(id, 't', [{ value, partition: 0 }]))

/** A large frame whose last member says that there is nothing. */
function liar(id: number, bytes: number): Buffer {
  return withPayload(encodeProduceFrame(id, 't', [{ value: textOf(bytes), partition: 0 }]), payload =>
    Buffer.concat([gzipSync(payload), gzipSync(Buffer.alloc(0))])
  )
}

const plainFrameOf = (id: number, bytes: number): Buffer =>
  encodeProduceFrame(id, 't', [{ value: Buffer.alloc(bytes), partition: 0 }])

/** Connections of this address that have its room for inflating: 32 MiB of the 64 in all, twice what each says. */
const FILLERS = 2
async function fill(
  { open, gateway }: Pick<Fixture, 'open' | 'gateway'>,
  t: TestContext
): Promise<{ free(): unknown }> {
  const pool = occupyPool(t)
  for (let i = 0; i < FILLERS; i++) {
    const filler = await agreeOnGzip(await open())
    filler.send(encodeFrame(0, opcodes.produce, gzipSync(Buffer.alloc(8 * MIB - 64), { level: 0 })))
    await until('it is with the pool', () => gateway.inflatingBytes > (i + 1) * 15 * MIB)
  }
  return pool
}

async function start(t: TestContext, options: FixtureOptions = {}): Promise<Fixture & { client: RawClient }> {
  const fixture = await startGateway(t, options)
  return { ...fixture, client: await agreeOnGzip(await fixture.open()) }
}

describe('request memory', () => {
  for (const [what, bytes] of [
    ['a small frame', 10 * KIB],
    ['a large frame', MIB]
  ] as const) {
    test(`counts ${what} that was inflated until the broker takes it, and it is not inflated again`, async t => {
      const { client, broker, gateway, requestBudget } = await start(t)
      broker.isFull = true
      client.send(produce(1, textOf(bytes)))
      await until('it waits for room', () => broker.waitingForRoom === 1)
      const heldBytes = requestBudget.usedBytes + gateway.inflatingBytes
      assert.ok(heldBytes >= bytes && heldBytes < bytes + 128 * KIB, `${heldBytes} bytes`)
      const { inPlainBytes } = gateway.probe.gzip
      broker.makeRoom()
      assert.equal((await plainFrame(client)).opcode, opcodes.produced)
      assert.deepEqual([requestBudget.usedBytes, gateway.inflatingBytes], [0, 0])
      assert.equal(gateway.probe.gzip.inPlainBytes, inPlainBytes)
    })
  }

  test('that is used up by frames in part keeps none waiting that is whole', async t => {
    const { client, open, gateway, requestBudget, broker } = await start(t, { requestBytes: 16 * MIB })
    const other = await open()
    const part = plainFrameOf(20, 15 * MIB)
    other.send(Buffer.concat([encodeHello('', 0), part.subarray(0, 12 * MIB)]))
    await until('it holds the memory', () => requestBudget.usedBytes > 12 * MIB)
    client.send(Buffer.concat([produce(1, textOf(8 * MIB)), produce(2)]))
    assert.deepEqual([(await plainFrame(client)).id, (await plainFrame(client)).id], [1, 2])
    assert.deepEqual([broker.submitted, gateway.inflatingBytes], [2, 0])
    other.send(part.subarray(12 * MIB))
    await other.take(13)
    assert.equal((await other.frame()).id, 20)
  })
})

describe('many connections of one address', () => {
  for (const count of [2, 9, 24, 64]) {
    test(`whose frames together exceed its memory are all answered: ${count}, and a plain one meanwhile`, async t => {
      const seed = chosenSeed() + count
      t.diagnostic(`seed ${seed}`)
      const dice = diceOf(seed)
      const { open, broker, gateway, requestBudget } = await startGateway(t, { requestBytes: 16 * MIB })
      const bystander = await open()
      const clients = await Promise.all(Array.from({ length: count }, async () => agreeOnGzip(await open())))
      for (const client of clients) client.send(produce(1, randomBytes(dice.below(960 * KIB))))
      bystander.send(Buffer.concat([encodeHello('', 0), encodeProduceFrame(5, 't', [{ value: 'v', partition: 0 }])]))
      await bystander.take(13)
      assert.equal((await bystander.frame()).id, 5)
      for (const client of clients) assert.equal((await plainFrame(client)).opcode, opcodes.produced)
      assert.deepEqual([broker.submitted, gateway.probe.refused.memory], [count + 1, 0])
      await until('all was given back', () => requestBudget.usedBytes === 0 && gateway.inflatingBytes === 0)
    })
  }
})

describe('the room for inflating', () => {
  test('that is used up keeps a large frame waiting, until some is free; small ones of others pass', async t => {
    const { client, open, gateway, broker } = await start(t)
    const other = await agreeOnGzip(await open())
    const full = await fill({ open, gateway }, t)
    const { inPlainBytes } = gateway.probe.gzip
    client.send(Buffer.concat([produce(1, textOf(MIB)), produce(2)]))
    await until('the reading paused', () => gateway.probe.pauses === 1)
    other.send(produce(3, textOf(20 * KIB)))
    assert.equal((await plainFrame(other)).id, 3)
    assert.deepEqual([broker.submitted, gateway.probe.gzip.inPlainBytes < inPlainBytes + MIB], [1, true])
    await full.free()
    assert.deepEqual([(await plainFrame(client)).id, (await plainFrame(client)).id], [1, 2])
    assert.equal(broker.log('t', 0)[0]?.value.length, 20 * KIB)
    await until('all was given back', () => gateway.inflatingBytes === 0)
  })

  test('is asked for more than a stream says before it is inflated further', async t => {
    const { client, gateway, broker } = await start(t, { requestBytes: 16 * MIB })
    client.send(Buffer.concat([liar(1, 8 * MIB), produce(2)]))
    assert.deepEqual([(await plainFrame(client)).id, (await plainFrame(client)).id], [1, 2])
    assert.equal(broker.log('t', 0)[0]?.value.length, 8 * MIB)
    assert.ok(gateway.probe.gzip.inPlainBytes < 8 * MIB + 128 * KIB, `${gateway.probe.gzip.inPlainBytes} bytes`)
    await until('all was given back', () => gateway.inflatingBytes === 0)
  })

  test('of a connection that is alone is never short because of its own frames behind', async t => {
    const { client, gateway } = await start(t, { requestBytes: 17 * MIB })
    const frames = Array.from({ length: 3 }, (_, id) => produce(id, randomBytes(5 * MIB)))
    client.send(Buffer.concat(frames))
    for (const [id] of frames.entries()) assert.equal((await plainFrame(client)).id, id)
    assert.equal(gateway.probe.refused.memory, 0)
  })
})

describe('a connection that goes away gives all back', () => {
  /** What it is doing then: brings it there, and says what holds the memory of others meanwhile, and ends the wait. */
  type Stage = (fixture: Fixture & { client: RawClient }, t: TestContext) => Promise<() => unknown>

  const inflating: Stage = async ({ client, gateway }, t) => {
    const pool = occupyPool(t)
    client.send(produce(1, randomBytes(4 * MIB)))
    await until('it is with the pool', () => gateway.inflatingBytes > 8 * MIB)
    return () => pool.free()
  }
  const waiting: Stage = async ({ client, gateway, open }, t) => {
    const full = await fill({ gateway, open }, t)
    client.send(produce(1, textOf(4 * MIB)))
    await until('it waits for room', () => gateway.probe.pauses === 1)
    return () => full.free()
  }
  const inflated: Stage = async ({ client, broker }) => {
    broker.isFull = true
    client.send(produce(1, textOf(4 * MIB)))
    await until('it waits for room', () => broker.waitingForRoom === 1)
    return () => broker.makeRoom()
  }
  const inProgress: Stage = async ({ client, broker }) => {
    broker.isHeld = true
    const { submitted } = broker
    client.send(produce(1, textOf(4 * MIB)))
    await until('it is with the broker', () => broker.submitted > submitted)
    return () => broker.release()
  }
  const compressing: Stage = async ({ client, broker, replyBudget }, t) => {
    broker.bigValueBytes = 2 * MIB
    const pool = occupyPool(t)
    client.send(
      withPayload(encodeConsumeFrame(1, { topic: 't', partition: 0, offset: 0, maxRecords: 1, maxBytes: 3 * MIB }))
    )
    await until('the broker has answered', () => broker.submitted === 1 && broker.inProgress === 0)
    assert.ok(replyBudget.usedBytes > 3 * MIB)
    return () => pool.free()
  }

  /** An answer that is owed: a paused connection is not read from, and hears of its end when it writes. */
  async function owe({ client, broker }: Fixture & { client: RawClient }): Promise<void> {
    const { inProgress } = broker
    broker.isHeld = true
    client.send(produce(0))
    await until('it is in progress', () => broker.inProgress === inProgress + 1)
  }

  const stages = { inflating, waiting, inflated, inProgress, compressing }
  for (const [name, bring] of Object.entries(stages)) {
    test(`when its frame is ${name}`, async t => {
      const fixture = await start(t)
      if (bring !== compressing) await owe(fixture)
      const end = await bring(fixture, t)
      if (bring === compressing) await owe(fixture)
      const { client, broker, gateway, requestBudget, replyBudget } = fixture
      const heldBytes = [requestBudget.usedBytes, gateway.inflatingBytes]
      client.socket.resetAndDestroy()
      await once(client.socket, 'close')
      broker.release()
      const others = name === 'waiting' ? FILLERS : 0
      await until('the connection is gone', () => gateway.connectionCount === others)
      if (name === 'inflating') {
        assert.deepEqual([requestBudget.usedBytes, gateway.inflatingBytes], heldBytes, 'the pool has its bytes still')
        assert.ok(requestBudget.usedBytes >= 4 * MIB, 'and what it reads')
      }
      await end()
      await until('all request bytes were given back', () => requestBudget.usedBytes === 0)
      await until('all reply bytes were given back', () => replyBudget.usedBytes === 0)
      await until('all the room was given back', () => gateway.inflatingBytes === 0)
      assert.equal(gateway.probe.refused.bug, 0)
    })

    test(`when the broker stops and its frame is ${name}`, async t => {
      const fixture = await start(t)
      const end = await bring(fixture, t)
      const { client, gateway, requestBudget, replyBudget } = fixture
      const stopped = gateway.stop(5_000)
      await end()
      await stopped
      await client.closed()
      await until('all was given back', () => requestBudget.usedBytes === 0 && replyBudget.usedBytes === 0)
      await until('all the room was given back', () => gateway.inflatingBytes === 0)
      assert.equal(gateway.probe.refused.bug, 0)
    })
  }
})

describe('an answer', () => {
  test('takes no more than was reserved for it, however badly it compresses', () => {
    for (const bytes of [0, 1, 9, 1000, 16 * KIB, 16 * KIB + 1, 65_535, 65_536, 300_000, MIB, 8 * MIB]) {
      const compressed = gzipSync(randomBytes(bytes), { level: 1 })
      assert.ok(compressed.length <= gzippedBytesMax(bytes), `${compressed.length} of ${bytes}`)
    }
  })

  test('that its client does not read holds its bytes, and gives them back when the client is dropped', async t => {
    const { client, gateway, replyBudget } = await start(t, { timeouts: { writeMs: 60 } })
    client.send(produce(0, randomBytes(6 * MIB)))
    await plainFrame(client)
    client.socket.pause()
    const fields = { topic: 't', partition: 0, offset: 0, maxRecords: 1, maxBytes: 7 * MIB }
    client.send(Buffer.concat(new Array<Buffer>(12).fill(withPayload(encodeConsumeFrame(1, fields)))))
    await until('it was dropped', () => gateway.connectionCount === 0)
    assert.equal(gateway.probe.refused.slowReader, 1)
    await until('all reply bytes were given back', () => replyBudget.usedBytes === 0)
  })
})
