/** A disk that fails under a broker: what a client of ES01 is told, what the log has, and that nobody else hears of it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeProduced } from '../../src/wire/es01/produce-frame.ts'
import { waitFor } from '../support/broker.ts'
import { HttpApi } from '../support/http-api.ts'
import { goesOn, greet, produce } from './es01-stage.ts'
import { startFailing } from './failing-broker.ts'

const told = /^internal error \(id ([0-9a-f]{8})\) \(written: unknown\)$/
/** What only the log may say. */
const details = /EIO|group|WRITE_FAILED|INTERNAL|shard|journal|\.slot|at .*\.[jt]s/

test('each internal failure has an id of its own, under which the log alone has the rest', async t => {
  const broker = await startFailing(t)
  const api = new HttpApi(broker.url)
  const client = await greet(t, broker)
  const ids = new Set<string>()
  await waitFor('three internal failures', async () => {
    client.send(produce(ids.size, [{ value: 'v', partition: 0 }]))
    const text = await client.errorText(ids.size)
    // Between two of them the shard is on its way back, and says so.
    if (text.startsWith('unavailable: ')) return false
    const id = told.exec(text)?.[1]
    assert.ok(id !== undefined && !ids.has(id), text)
    ids.add(id)
    return ids.size === 3
  })
  for (const id of ids) {
    const line = await broker.waitForLog(entry => entry['request_id'] === id)
    assert.deepEqual([line['level'], line['code']], ['error', 'WRITE_FAILED'])
    assert.match(String(line['text']), /shard 0/)
    assert.equal(line['remoteAddress'], '127.0.0.1')
    assert.equal(broker.logs.filter(entry => JSON.stringify(entry).includes(id)).length, 1, 'it stands there once')
  }
  await goesOn(client)

  const pages = await Promise.all(['/metrics', '/healthz', '/readyz', '/topics'].map(path => api.get(path)))
  for (const { text } of pages) for (const id of ids) assert.ok(!text.includes(id), 'an id stands in the log alone')
  const overHttp = await waitFor('an internal failure over HTTP', async () => {
    const answer = await api.post('/topics/orders/produce', { records: [{ value: 'v', partition: 0 }] })
    return answer.status === 500 ? answer.text : false
  })
  const body = JSON.parse(overHttp) as { readonly error: string }
  assert.match(body.error, /^internal error \(id [0-9a-f]{8}\)$/)
  assert.doesNotMatch(body.error, details)
})

test('a broker whose disk works again takes records on the same connection', async t => {
  const broker = await startFailing(t, '0/group.write:1=EIO')
  const client = await greet(t, broker)
  client.send(produce(1, [{ value: 'lost', partition: 0 }]))
  assert.match(await client.errorText(1), told)
  const results = await waitFor('the shard to be back', async () => {
    client.send(produce(2, [{ value: 'kept', partition: 0 }]))
    const { opcode, payload } = await client.frame()
    if (opcode === 0x81) return decodeProduced(payload)
    assert.match(payload.toString(), /^unavailable: /)
    return false
  })
  assert.ok(typeof results !== 'string')
  const { records } = await new HttpApi(broker.url).consume('orders', 0, 'offset=0')
  assert.equal(records.at(-1)?.value, 'kept')
  assert.equal(records.at(-1)?.offset, results[0]?.offset)
})
