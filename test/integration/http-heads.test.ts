/** HEAD is GET without the body: on every route that has a GET, of answers and of refusals. */
import assert from 'node:assert/strict'
import { routes } from '../../src/gateway/http/routes.ts'
import { samples } from '../support/bad-input.ts'
import { CONFLUENT_TYPE } from '../support/confluent.ts'
import { onBothEngines } from '../support/http-api.ts'
import { sendRaw } from '../support/raw-http.ts'

onBothEngines('HEAD has the status and the headers of GET, and no body, on every route', async (t, api) => {
  await api.createTopic('there', 2)
  await api.produce('there', [{ value: 'v', partition: 0 }])
  for (const { pattern } of routes.filter(({ method }) => method === 'GET')) {
    await t.test(pattern, async () => {
      const { path = '', query } = samples[`GET ${pattern}`] ?? {}
      const search = Object.entries(query ?? {}).map(([name, { value }]) => `${name}=${value}`)
      const target = `${path}?${search.join('&')}`
      const get = await sendRaw(api.url, { method: 'GET', path: target })
      const head = await sendRaw(api.url, { method: 'HEAD', path: target })
      const facts = ({ status, headers }: typeof get): unknown[] => [
        status,
        headers.get('content-type'),
        headers.get('content-length')
      ]
      assert.equal(head.body, '')
      assert.equal(Buffer.byteLength(get.body), Number(get.headers.get('content-length')))
      // Metrics count the requests for them: the next page is another.
      if (pattern === '/metrics') assert.ok(Number(head.headers.get('content-length')) > 1000)
      else assert.deepEqual(facts(head), facts(get))
      // The text of this refusal names the method, so its length is another.
      const refused = await sendRaw(api.url, { method: 'HEAD', path: `${path}/nowhere/at/all` })
      const type = pattern.startsWith('/confluent/') ? CONFLUENT_TYPE : 'application/json'
      assert.deepEqual([refused.status, refused.headers.get('content-type'), refused.body], [404, type, ''])
    })
  }
})
