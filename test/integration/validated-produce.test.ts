/** Topics with `validate_schema` on a real broker: over both protocols, all three kinds of schemas, hostile ones, restarts. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import avsc from 'avsc'
import protobuf from 'protobufjs'
import { limits } from '../../src/model/limits.ts'
import { startBroker } from '../support/broker.ts'
import { offsetsOf, openClient, range } from '../support/es01-session.ts'
import { assertRefused, HttpApi, onBothEngines, parse } from '../support/http-api.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

const order = { type: 'object', properties: { id: { type: 'integer' } }, required: ['id'] }

/** A topic whose values must match that schema. */
async function validatedTopic(
  api: HttpApi,
  name: string,
  schema: object | string,
  type = 'json_schema'
): Promise<void> {
  await api.createTopic(name, 3, { validate_schema: true })
  await register(api, name, schema, type)
}

async function register(api: HttpApi, topic: string, schema: object | string, type = 'json_schema'): Promise<number> {
  const text = typeof schema === 'string' ? schema : JSON.stringify(schema)
  const answer = await api.post('/schemas', { subject: `${topic}-value`, type, schema: text })
  return parse<{ id: number }>(answer).id
}

const sent = (api: HttpApi, topic: string, ...values: readonly string[]) =>
  api.post(`/topics/${topic}/produce`, { records: values.map(value => ({ value, partition: 0 })) })

onBothEngines('a topic that is validated', async (t, api, broker) => {
  const client = await openClient(t, broker.es01)

  await t.test('shows that it is, and one that is not shows nothing of it', async () => {
    await validatedTopic(api, 'orders', order)
    await api.createTopic('plain')
    assert.equal((await api.describe('orders')).config['validate_schema'], true)
    assert.match((await api.get('/topics/orders/config')).text, /,"validate_schema":true\}$/)
    assert.doesNotMatch((await api.get('/topics/plain/config')).text, /validate_schema/)
  })

  await t.test('takes records that match, and tombstones, over both protocols', async () => {
    assert.equal((await sent(api, 'orders', '{"id":1}', '{"id":2,"more":[]}', '')).status, 200)
    const results = await client.produce('orders', [
      { value: '{"id":3}', partition: 0 },
      { key: 'k', value: '', partition: 0 }
    ])
    assert.deepEqual(offsetsOf(results), [3, 4])
  })

  await t.test('refuses a request with the first record that does not, and writes nothing of it', async () => {
    const ends = await api.ends('orders')
    const refused = await sent(api, 'orders', '{"id":1}', '{"id":"x"}', '{}')
    const fragments = ["record 1 does not match schema 1 (version 1 of 'orders-value')", "'/id': must be integer"]
    assertRefused(refused, 400, 'SCHEMA_MISMATCH', [...fragments, 'nothing was written'])
    assertRefused(await sent(api, 'orders', 'nonsense'), 400, 'SCHEMA_MISMATCH', ['record 0', 'it is not JSON'])
    const overEs01 = client.produce('orders', [{ value: '{"id":1}' }, { value: '{}' }])
    await assert.rejects(overEs01, /^Es01Error: bad request: record 1 does not match .*required property 'id'/)
    assert.deepEqual(await api.ends('orders'), ends)
  })

  await t.test('asks for a schema where none is registered', async () => {
    await api.createTopic('empty', 1, { validate_schema: true })
    assertRefused(await sent(api, 'empty', '{}'), 400, 'SCHEMA_MISSING', ["'empty-value'", 'register one'])
    await register(api, 'empty', order)
    assert.equal((await sent(api, 'empty', '{"id":1}')).status, 200)
  })

  await t.test('matches with the latest version from when it is registered', async () => {
    await validatedTopic(api, 'growing', order)
    assert.equal((await sent(api, 'growing', '{"id":1,"name":5}')).status, 200)
    const named = { ...order, properties: { ...order.properties, name: { type: 'string' } } }
    const id = await register(api, 'growing', named)
    assertRefused(await sent(api, 'growing', '{"id":1,"name":5}'), 400, 'SCHEMA_MISMATCH', [`schema ${id} (version 2`])
  })

  await t.test('may stop to be, and begin again', async () => {
    await validatedTopic(api, 'changing', order)
    const change = (isValidated: boolean) =>
      api.call('PUT', '/topics/changing/config', `{"validate_schema":${isValidated}}`)
    assertRefused(await sent(api, 'changing', 'x'), 400, 'SCHEMA_MISMATCH')
    assert.doesNotMatch((await change(false)).text, /validate_schema/)
    assert.equal((await sent(api, 'changing', 'x')).status, 200)
    assert.match((await change(true)).text, /"validate_schema":true/)
    assertRefused(await sent(api, 'changing', 'x'), 400, 'SCHEMA_MISMATCH')
  })

  await t.test('matches values of Avro and protobuf, byte for byte', async () => {
    const avro: avsc.schema.RecordType = { type: 'record', name: 'R', fields: [{ name: 'name', type: 'string' }] }
    await validatedTopic(api, 'avro', avro, 'avro')
    const datum = avsc.Type.forSchema(avro).toBuffer({ name: 'é' })
    await client.produce('avro', [{ value: datum }, { value: Buffer.concat([Buffer.from([0, 0, 0, 0, 1]), datum]) }])
    const cut = client.produce('avro', [{ value: datum }, { value: datum.subarray(0, 2) }])
    await assert.rejects(cut, /record 1 does not match .*: at byte 1 the datum has its end/)

    const proto = 'syntax = "proto3"; message A { string s = 1; repeated int32 n = 2; }'
    await validatedTopic(api, 'proto', proto, 'protobuf')
    const message = protobuf
      .parse(proto)
      .root.lookupType('A')
      .encode({ s: 'é', n: [1, 300] })
      .finish()
    await client.produce('proto', [{ value: Buffer.from(message) }])
    await assert.rejects(client.produce('proto', [{ value: Buffer.from([0x0a, 9, 65]) }]), /record 0 .* no message A/)
  })

  await t.test('takes a body that is scanned elsewhere, and keeps keys and partitions', async () => {
    await validatedTopic(api, 'large', order)
    const value = JSON.stringify({ id: 1, text: 'x'.repeat(1000) })
    const records = range(600).map(i => ({ key: `k${i}`, value, partition: i % 3 }))
    assert.ok(JSON.stringify({ records }).length > limits.offloadedBodyBytesMin)
    await api.produce('large', records)
    const read = await api.consumeAll('large', 1)
    assert.deepEqual(
      read.map(({ key }) => key),
      records.filter(({ partition }) => partition === 1).map(({ key }) => key)
    )
    const spoiled = [...records, { key: 'last', value: '{}', partition: 0 }]
    assertRefused(await api.post('/topics/large/produce', { records: spoiled }), 400, 'SCHEMA_MISMATCH', ['record 600'])
    assert.deepEqual(await api.ends('large'), [200, 200, 200])
  })

  await t.test('keeps headers, and looks at values alone', async () => {
    await validatedTopic(api, 'headed', order)
    const headers = [
      ['trace', 'not of the schema'],
      ['none', null]
    ]
    const records = [
      { key: 'k', value: '{"id":1}', partition: 0, headers },
      { value: '{"id":2}', partition: 0 }
    ]
    assert.equal((await api.post('/topics/headed/produce', { records })).status, 200)
    assert.deepEqual(
      (await api.consumeAll('headed', 0)).map(record => [record.key, record.value, record.headers]),
      [
        ['k', '{"id":1}', headers],
        [null, '{"id":2}', undefined]
      ]
    )
  })

  await t.test('keeps the order of a connection that does not wait for answers', async () => {
    await validatedTopic(api, 'ordered', order)
    const answers = range(300).map(id => client.produce('ordered', [{ value: `{"id":${id}}`, partition: 0 }]))
    const results = (await Promise.all(answers)).flat()
    assert.deepEqual(offsetsOf(results), range(300))
    const values = (await api.consumeAll('ordered', 0)).map(({ value }) => value)
    assert.deepEqual(
      values,
      range(300).map(id => `{"id":${id}}`)
    )
  })

  await t.test('counts no sequence of a refused request, and knows duplicates', async () => {
    await validatedTopic(api, 'numbered', order)
    const numbered = (value: string, sequence: number, partition = 0) => ({ value, sequence, partition })
    const send = (...records: readonly object[]) => api.post('/topics/numbered/produce', { producer_id: 'p', records })
    assert.equal((await send(numbered('{"id":0}', 0))).status, 200)
    assertRefused(await send(numbered('{"id":1}', 1), numbered('{}', 2)), 400, 'SCHEMA_MISMATCH', ['record 1'])
    const over = await send(numbered('{"id":1}', 1), numbered('{"id":5}', 0, 1), numbered('{"id":6}', 0, 2))
    assert.equal(over.status, 200)
    assert.match((await send(numbered('{"id":1}', 1))).text, /"offset":1,"duplicate":true/)
    const pipelined = range(100, 2).map(id => {
      const record = { value: `{"id":${id}}`, partition: 0, sequence: BigInt(id) }
      return client.produce('numbered', [record], 'p')
    })
    assert.deepEqual(offsetsOf((await Promise.all(pipelined)).flat()), range(100, 2))
  })
})

onBothEngines('a pattern that never ends', async (t, api, broker) => {
  const client = await openClient(t, broker.es01)
  await validatedTopic(api, 'hostile', { type: 'string', pattern: '^(a+)+$' })
  await validatedTopic(api, 'orders', order)
  await api.createTopic('plain')
  assert.equal((await sent(api, 'hostile', '"aaa"')).status, 200)

  const startMs = performance.now()
  let isAnswered = false
  const hostile = sent(api, 'hostile', '"aaa"', `"${'a'.repeat(64)}!"`).finally(() => (isAnswered = true))
  let besides = 0
  while (!isAnswered) {
    assert.equal((await sent(api, 'plain', 'x')).status, 200)
    assert.equal((await sent(api, 'orders', '{"id":1}')).status, 200)
    await client.produce('orders', [{ value: '{"id":2}' }])
    besides++
  }
  const { validationMs } = limits
  assertRefused(await hostile, 400, 'VALIDATION_LIMIT', ['schema 1 ', `more than ${validationMs + 1} ms`])
  const tookMs = performance.now() - startMs
  t.diagnostic(`refused after ${Math.round(tookMs)} ms; meanwhile ${besides} rounds of produces to other topics`)
  assert.ok(tookMs >= validationMs && besides > 10, `${tookMs} ms, ${besides} rounds`)
  assert.equal((await sent(api, 'hostile', '"aaa"')).status, 200, 'the next request has a new thread')
  assert.deepEqual(await api.ends('hostile'), [2, 0, 0])
})

test('a topic is validated after a restart as before', async t => {
  const dataDir = temporaryDirectory(t)
  const first = await startBroker(t, { dataDir })
  await validatedTopic(new HttpApi(first.url), 'orders', order)
  await first.stop()
  const { url } = await startBroker(t, { dataDir })
  const api = new HttpApi(url)
  assert.equal((await sent(api, 'orders', '{"id":1}')).status, 200)
  assertRefused(await sent(api, 'orders', '{}'), 400, 'SCHEMA_MISMATCH', ['record 0'])
})
