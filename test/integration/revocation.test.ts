/** A revoked key on a real broker: nothing is served for it after the 204, also of what it asked before. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { connectEs01, type Es01Client } from '../../src/client/es01/client.ts'
import { makeTestKey, revokeKey, startGuarded, type TestKey } from '../support/access.ts'
import { waitFor, type TestBroker } from '../support/broker.ts'
import { atEnd } from '../support/clean-up.ts'
import { assertRefused, type HttpAnswer } from '../support/http-api.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

async function connectWith(t: TestContext, { es01 }: TestBroker, { secret }: TestKey): Promise<Es01Client> {
  const client = await connectEs01({ ...es01, token: secret })
  atEnd(t, () => client.destroy())
  return client
}

test('an open ES01 connection is told at its next frame, and cut; those of other keys go on', async t => {
  const { broker, admin } = await startGuarded(t)
  await admin.api.createTopic('orders')
  const writer = await makeTestKey(admin.api, 'write:orders')
  const [client, again, other] = [
    await connectWith(t, broker, writer),
    await connectWith(t, broker, writer),
    await connectWith(t, broker, admin)
  ]
  await client.produce('orders', [{ value: 'before' }])
  await revokeKey(admin.api, writer.id)
  await assert.rejects(client.produce('orders', [{ value: 'after' }]), { message: 'key revoked', written: 'no' })
  await assert.rejects(client.ping(), { kind: 'connection' })
  await assert.rejects(again.consume({ topic: 'orders', partition: 0, offset: 0, maxRecords: 1, maxBytes: 1 }), {
    message: 'key revoked'
  })
  await other.produce('orders', [{ value: 'another' }])
  assert.deepEqual(await admin.api.ends('orders'), [2])
  await assert.rejects(connectWith(t, broker, writer), /status 2/)
})

for (const engine of ['uws', 'node'] as const) {
  test(`a request whose body is still coming is refused when it is there, on ${engine}`, async t => {
    const { broker, admin } = await startGuarded(t, { variant: { engine, shards: 1 } })
    await admin.api.createTopic('orders')
    const { id, secret } = await makeTestKey(admin.api, 'write:orders')
    const body = '{"records":[{"value":"late"}]}'
    const address = new URL(broker.url)
    const socket = connect({ host: address.hostname, port: Number(address.port), noDelay: true })
    atEnd(t, () => socket.destroy())
    await once(socket, 'connect')
    socket.write(
      `POST /topics/orders/produce HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer ${secret}\r\n` +
        `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body.slice(0, 12)}`
    )
    let received = ''
    socket.on('data', chunk => (received += String(chunk)))
    // It was sent before this one, so it was read before this one was answered.
    await admin.api.get('/topics')
    await revokeKey(admin.api, id)
    assert.equal(received, '', 'its head was let in')
    socket.write(body.slice(12))
    await waitFor('the answer', () => received.includes('}'))
    assert.match(received, /^HTTP\/1\.1 401 /)
    assert.match(received, /"code":"KEY_REVOKED"/)
    assert.deepEqual(await admin.api.ends('orders'), [0])
  })
}

test('a numbered produce over two shards whose check is under way writes nothing', async t => {
  const hold = join(temporaryDirectory(t), 'hold')
  process.env['MILLRACE_FAULTS'] = `0/group.write:1+=hold@${hold}`
  atEnd(t, () => rmSync(hold, { force: true }))
  const { broker, admin } = await startGuarded(t, { flags: { '--http-engine': 'node', '--shards': '2' } }).finally(
    () => delete process.env['MILLRACE_FAULTS']
  )
  await admin.api.createTopic('orders', 2)
  const writer = await makeTestKey(admin.api, 'write:orders')
  const numbered = (sequence: number): Promise<HttpAnswer> =>
    writer.api.post('/topics/orders/produce', {
      producer_id: 'p',
      records: [0, 1].map(partition => ({ value: `v${sequence}`, partition, sequence }))
    })
  assert.equal((await numbered(0)).status, 200)

  // Shard 0 stands in a write: what comes to it waits in its ring.
  writeFileSync(hold, '')
  const [first, second] = broker.server.shardSet.links()
  assert.ok(first !== undefined && second !== undefined)
  const writes = [0, 1].map(partition => admin.api.produce('orders', [{ value: 'other', partition }]))
  await Promise.race(writes)
  const before = first.requests.position()
  const late = numbered(1)
  await waitFor('the check to be in the ring', () => first.requests.position() > before)
  await revokeKey(admin.api, writer.id)
  rmSync(hold)
  assertRefused(await late, 401, 'KEY_REVOKED')
  await Promise.all(writes)
  assert.deepEqual(await admin.api.ends('orders'), [2, 2])
  // The same producer of an administrator's key is another's: the claim of the revoked key stays.
  assert.equal((await admin.api.call('DELETE', '/admin/producers/p')).status, 204)
})
