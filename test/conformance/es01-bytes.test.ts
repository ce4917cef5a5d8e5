/**
 * ES01 byte for byte as the seed's specification lays it out: these bytes were written by hand from that page and go
 * through no encoder of ours. Golden: never edited, only added to.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startBroker } from '../support/broker.ts'
import { openRaw } from '../support/es01-session.ts'
import { HttpApi } from '../support/http-api.ts'

const bytes = (...parts: readonly string[]): Buffer => Buffer.from(parts.join('').replaceAll(' ', ''), 'hex')

test('a client written from the specification alone can produce, consume and ping', async t => {
  const broker = await startBroker(t)
  await new HttpApi(broker.url).createTopic('t', 2)
  const client = await openRaw(t, broker.es01)

  await t.test('the handshake: magic, features, token; answered by magic, status, features, message', async () => {
    client.send(bytes('45533031', '00000000', '00000003', '616263'))
    assert.deepEqual(await client.take(13), bytes('45533031', '00', '00000000', '00000000'))
  })

  await t.test('a produce of two records: one with a key, one without key for partition 1', async () => {
    client.send(
      bytes(
        '00000041 0a0b0c0d 01',
        '0001 74 ffffffff 00000002',
        '00000006 757365722d31 00000002 6869 ffffffff 8000000000000000',
        'ffffffff 00000001 ff 00000001 8000000000000000'
      )
    )
    assert.deepEqual(
      await client.take(9 + 4 + 2 * 13),
      bytes('00000023 0a0b0c0d 81', '00000002', '00000000 0000000000000000 00', '00000001 0000000000000000 00')
    )
  })

  await t.test('a consume of partition 0: its record, its end', async () => {
    client.send(bytes('0000001c 00000007 02', '0001 74 00000000 0000000000000000 0000000a 00001000'))
    const answer = await client.take(9 + 20 + 28 + 8)
    assert.deepEqual(
      answer.subarray(0, 9 + 20 + 12),
      bytes('0000003d 00000007 82', '0000000000000001 0000000000000001 00000001', '00000000 0000000000000000')
    )
    const timestampMs = Number(answer.readBigInt64BE(9 + 20 + 12))
    assert.ok(Math.abs(timestampMs - Date.now()) < 60_000, `timestamp ${timestampMs}`)
    assert.deepEqual(answer.subarray(9 + 20 + 20), bytes('00000006 757365722d31 00000002 6869'))
  })

  await t.test('an offset of 2^64 - 1 comes back as it is', async () => {
    client.send(bytes('0000001c 00000008 02', '0001 74 00000001 ffffffffffffffff 00000001 00000001'))
    assert.deepEqual(await client.take(29), bytes('00000019 00000008 82', 'ffffffffffffffff 0000000000000001 00000000'))
  })

  await t.test('a ping, its payload ignored', async () => {
    client.send(bytes('00000007 ffffffff 03 beef'))
    assert.deepEqual(await client.take(9), bytes('00000005 ffffffff 83'))
  })

  await t.test('an error: opcode ff, the request id, a text', async () => {
    client.send(bytes('0000001c 00000009 02', '0001 7a 00000000 0000000000000000 0000000a 00001000'))
    const head = await client.take(9)
    assert.deepEqual(head.subarray(4), bytes('00000009 ff'))
    assert.equal((await client.take(head.readUInt32BE(0) - 5)).toString(), "not found: no topic named 'z'")
  })
})
