/** The seed's first session, digit for digit, on both HTTP engines with 1 and with 3 shards. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { startBroker, variants } from '../support/broker.ts'

const json = { 'content-type': 'application/json' }

for (const variant of variants) {
  describe(`first session on ${variant.engine} with ${variant.shards} shard(s)`, () => {
    it('creates, produces and consumes as the specification shows', async t => {
      const { url } = await startBroker(t, { variant })
      const created = await fetch(`${url}/topics`, {
        method: 'POST',
        headers: json,
        body: '{"name":"orders","partitions":2}'
      })
      assert.deepEqual([created.status, await created.text()], [201, '{"name":"orders","partitions":2}'])
      const produced = await fetch(`${url}/topics/orders/produce`, {
        method: 'POST',
        headers: json,
        body: '{"records":[{"key":"user-1","value":"checkout"},{"key":"user-2","value":"signup"}]}'
      })
      assert.deepEqual(
        [produced.status, await produced.text()],
        [200, '{"results":[{"partition":0,"offset":0},{"partition":1,"offset":0}]}']
      )
      const consumed = await fetch(`${url}/topics/orders/consume?partition=0&offset=0`)
      const text = await consumed.text()
      assert.match(
        text,
        /^\{"records":\[\{"partition":0,"offset":0,"timestamp_ms":\d{13},"key":"user-1","value":"checkout"\}\],"next_offset":1,"high_watermark":1\}$/
      )
      const committed = await fetch(`${url}/groups/analytics/commit`, {
        method: 'POST',
        headers: json,
        body: '{"topic":"orders","partition":0,"offset":1}'
      })
      assert.deepEqual([committed.status, await committed.text()], [204, ''])
      const looked = await fetch(`${url}/groups/analytics/offsets`)
      assert.deepEqual([looked.status, await looked.text()], [200, '{"offsets":{"orders":{"0":1}}}'])
    })
  })
}
