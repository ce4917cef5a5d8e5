/** The first bytes of a connection, and how many connections there may be: the rows of the protocol's table. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { silentLogger } from '../../../../src/base/logger.ts'
import { parseDescriptorLimit } from '../../../../src/base/descriptor-limit.ts'
import { connectionsFor } from '../../../../src/gateway/shared/connections-max.ts'
import { createEs01Gateway } from '../../../../src/gateway/es01/gateway.ts'
import { encodeFrame, opcodes } from '../../../../src/wire/es01/frame.ts'
import { encodeHello } from '../../../../src/wire/es01/handshake.ts'
import { encodeProduceFrame } from '../../../../src/wire/es01/produce-frame.ts'
import { defaultSettings, RawClient, startGateway, until } from './fixture.ts'

const ping = (id: number): Buffer => encodeFrame(id, opcodes.ping, Buffer.alloc(0))
const produce = (id: number): Buffer => encodeProduceFrame(id, 't', [{ value: 'v', partition: 0 }])

describe('a hello', () => {
  test('is accepted with any token while authentication is off, and no feature is promised that was not asked for', async t => {
    const { open } = await startGateway(t)
    const client = await open()
    client.send(encodeHello('no such key', 0xffff_fffe))
    assert.equal((await client.take(13)).toString('hex'), '45533031000000000000000000')
    client.send(ping(5))
    assert.deepEqual(await client.frame(), { id: 5, opcode: 0x83, payload: Buffer.alloc(0) })
  })

  test('may come byte by byte, with the first frame right behind it', async t => {
    const { open, gateway } = await startGateway(t)
    const client = await open()
    const bytes = Buffer.concat([encodeHello('token', 0), ping(1)])
    for (let i = 0; i < bytes.length; i++) {
      client.send(bytes.subarray(i, i + 1))
      await until(`byte ${i} arrived`, () => gateway.probe.receivedBytes === i + 1)
    }
    await client.take(13)
    assert.equal((await client.frame()).id, 1)
  })

  test('gets no byte before its last one has come', async t => {
    const { open, gateway } = await startGateway(t)
    const client = await open()
    client.send(encodeHello('token', 0).subarray(0, 16))
    await until('the bytes arrived', () => gateway.probe.receivedBytes === 16)
    assert.equal(client.restBytes, 0)
    client.send(Buffer.from('n'))
    assert.equal((await client.take(13))[4], 0)
  })

  test('with another magic is answered by status 1 and closed', async t => {
    const { open, gateway } = await startGateway(t)
    const client = await open()
    client.send(Buffer.from('GET / HTTP/1.1\r\n\r\n'))
    const reply = await client.take(13)
    assert.equal(reply.subarray(0, 5).toString('hex'), '4553303101')
    const message = await client.take(reply.readUInt32BE(9))
    assert.match(message.toString(), /ES01/)
    await client.closed()
    assert.equal(gateway.probe.refused.badMagic, 1)
  })

  test('with a token over 1024 bytes is answered by status 2 and closed without reading it', async t => {
    const { open, gateway } = await startGateway(t)
    const client = await open()
    client.send(Buffer.from('455330310000000000000401', 'hex'))
    assert.equal((await client.take(13))[4], 2)
    await client.closed()
    assert.equal(gateway.probe.refused.tokenTooLong, 1)
  })

  test('that does not come in time is closed without a byte', async t => {
    const { open, gateway } = await startGateway(t, { timeouts: { helloMs: 40 } })
    const silent = await open()
    const slow = await open()
    slow.send(encodeHello('', 0).subarray(0, 11))
    await silent.closed()
    await slow.closed()
    assert.deepEqual([silent.restBytes, slow.restBytes], [0, 0])
    assert.equal(gateway.probe.refused.helloTimeout, 2)
  })
})

describe('connections', () => {
  test('read straight into the memory of the gateway on this Node', async t => {
    const { greet, gateway } = await startGateway(t)
    await greet()
    await greet()
    assert.deepEqual([gateway.connectionCount, gateway.directCount], [2, 2])
  })

  test('over the limit of their address are closed without a byte, and a slot is free again when one ends', async t => {
    const { open, greet, gateway } = await startGateway(t, { settings: { binaryMaxConnectionsPerIp: 2 } })
    const first = await greet()
    await greet()
    const third = await open()
    third.send(encodeHello('', 0))
    await third.closed()
    assert.equal(third.restBytes, 0)
    assert.equal(gateway.probe.refused.connectionsPerIp, 1)
    first.socket.destroy()
    await until('the slot is free', () => gateway.connectionCount === 1)
    await greet()
  })

  test('over the limit of the process are closed without a byte', async t => {
    const { open, greet, gateway } = await startGateway(t, { connectionsMax: 1 })
    await greet()
    const second = await open()
    await second.closed()
    assert.equal(second.restBytes, 0)
    assert.equal(gateway.probe.refused.connectionsTotal, 1)
  })

  test('are bounded by half of the file descriptors, between 16 and 4096', () => {
    const limits =
      'Limit  Soft Limit  Hard Limit  Units\nMax open files            1024                 524288               files\n'
    assert.equal(parseDescriptorLimit(limits), 1024)
    assert.equal(parseDescriptorLimit('Max open files   unlimited  unlimited  files'), Infinity)
    assert.deepEqual([20, 1024, 1_000_000, Infinity].map(connectionsFor), [16, 512, 4096, 4096])
  })

  test('to a port in use by another broker are refused with one clear line', async t => {
    const { port, broker, requestBudget, replyBudget } = await startGateway(t)
    const other = createEs01Gateway({
      broker,
      requestBudget,
      replyBudget,
      logger: silentLogger,
      settings: { ...defaultSettings, bindBinary: `127.0.0.1:${port}` }
    })
    await assert.rejects(other.listen(), error => {
      assert.ok(error instanceof Error)
      assert.equal(
        error.message,
        `cannot listen for ES01 on 127.0.0.1:${port} (--bind-binary): ` +
          'the address is in use by another process: stop it or choose another --bind-binary'
      )
      return true
    })
  })
})

describe('a gateway that stops', () => {
  test('answers what is in progress, takes no further frame, then closes', async t => {
    const { greet, broker, gateway, port } = await startGateway(t)
    const client = await greet()
    broker.isHeld = true
    client.send(produce(1))
    await until('the request is in progress', () => broker.inProgress === 1)
    const stopped = gateway.stop(5_000)
    client.send(produce(2))
    await assert.rejects(RawClient.connect(port))
    broker.release()
    assert.equal((await client.frame()).id, 1)
    await client.closed()
    await stopped
    assert.equal(broker.submitted, 1)
  })

  test('cuts off at the deadline what cannot be answered', async t => {
    const { greet, broker, gateway } = await startGateway(t)
    const client = await greet()
    broker.isHeld = true
    client.send(produce(1))
    await until('the request is in progress', () => broker.inProgress === 1)
    await gateway.stop(20)
    await client.closed()
    assert.equal(gateway.connectionCount, 0)
  })

  test('closes idle connections without waiting for their clients', async t => {
    const { greet, open, gateway } = await startGateway(t)
    const greeted = await greet()
    const fresh = await open()
    await until('both are there', () => gateway.connectionCount === 2)
    await gateway.stop(5_000)
    await greeted.closed()
    await fresh.closed()
  })
})
