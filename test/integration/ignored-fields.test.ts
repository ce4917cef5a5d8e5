/** Fields that nobody knows: ignored, as the specification has it, and named in a header of the answer, whatever it is. */
import assert from 'node:assert/strict'
import { onBothEngines } from '../support/http-api.ts'

const ignored = ({ headers }: { headers: Headers }): string | null => headers.get('x-millrace-ignored')

onBothEngines('a misspelt field is ignored, and the answer names it', async (t, api) => {
  await t.test('of topics', async () => {
    const created = await api.post('/topics', { name: 'orders', partition: 2, config: { 'retention.ms': 2 } })
    assert.deepEqual([created.status, created.text], [201, '{"name":"orders","partitions":1}'])
    assert.equal(ignored(created), 'partition, config.retention.ms')
    const again = await api.post('/topics', { name: 'orders', partition: 2 })
    assert.deepEqual([again.status, ignored(again)], [409, 'partition'])
    const changed = await api.call('PUT', '/topics/orders/config', '{"retentionMs":5,"retention_ms":null}')
    assert.deepEqual([changed.status, ignored(changed)], [200, 'retentionMs'])
  })
  await t.test('of groups, where an answer has no body', async () => {
    const place = { topic: 'orders', partition: 0, offset: 1 }
    const committed = await api.post('/groups/g/commit', { ...place, 'meta\r\ndata': 'x' })
    assert.deepEqual([committed.status, ignored(committed)], [204, 'meta%0D%0Adata'])
    assert.equal(ignored(await api.post('/groups/g/commit', place)), null)
  })
  await t.test('of keys and schemas', async () => {
    const key = await api.post('/admin/keys', { name: 'k', acls: [{ action: 'read', topic_prefix: 'o', topic: 'o' }] })
    assert.deepEqual([key.status, ignored(key)], [201, 'acls[0].topic'])
    const schema = await api.post('/schemas', { subject: 's', schema: '{}', schemaType: 'AVRO' })
    assert.deepEqual([schema.status, ignored(schema)], [200, 'schemaType'])
  })
  await t.test("but not of produce, and not for Confluent's clients", async () => {
    const produced = await api.post('/topics/orders/produce', { records: [{ value: 'v', k: 1 }], acks: 1 })
    assert.deepEqual([produced.status, ignored(produced)], [200, null])
    const type = { 'content-type': 'application/vnd.schemaregistry.v1+json' }
    const body = '{"schema":"\\"string\\"","x":{}}'
    const registered = await api.call('POST', '/confluent/subjects/c/versions', body, type)
    assert.deepEqual([registered.status, ignored(registered)], [200, null])
  })
})

onBothEngines(
  'it comes beside the headers for pages of another origin',
  async (_, api) => {
    const headers = { 'content-type': 'application/json', origin: 'http://page.example' }
    const answer = await api.call('POST', '/topics', '{"name":"a","x":1}', headers)
    assert.deepEqual([answer.status, ignored(answer)], [201, 'x'])
    assert.equal(answer.headers.get('access-control-allow-origin'), 'http://page.example')
  },
  { flags: { '--cors-origin': 'http://page.example' } }
)
