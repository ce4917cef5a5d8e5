/** A topic or a group is named behind the command, with its flag, or with the flag's other name. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { run, startFakeBroker } from './terminal.ts'

test('a name behind the command is as good as its flag', async t => {
  const broker = await startFakeBroker(t, () => ({ status: 404, body: '{"error":"none","code":"TOPIC_NOT_FOUND"}' }))
  for (const [words, request] of [
    ['topic create orders', 'POST /topics'],
    ['topic describe orders', 'GET /topics/orders'],
    ['topic describe --name orders', 'GET /topics/orders'],
    ['topic describe --topic orders', 'GET /topics/orders'],
    ['topic describe orders --name orders', 'GET /topics/orders'],
    ['topic alter orders --segment-bytes 1MiB', 'PUT /topics/orders/config'],
    ['topic offsets orders', 'GET /topics/orders/offsets'],
    ['topic show-config orders', 'GET /topics/orders/config'],
    ['topic delete-records orders --partition 0 --offset 1', 'POST /topics/orders/delete-records'],
    ['topic delete orders', 'DELETE /topics/orders'],
    ['group show analytics', 'GET /groups/analytics'],
    ['group show --group analytics', 'GET /groups/analytics'],
    ['group lag analytics', 'GET /groups/analytics'],
    ['group join analytics --topic orders', 'POST /groups/analytics/join'],
    ['group reset analytics --topic orders --to latest', 'GET /groups/analytics'],
    ['group delete analytics', 'DELETE /groups/analytics'],
    ['produce orders --value x', 'POST /topics/orders/produce'],
    ['consume orders', 'GET /topics/orders'],
    ['tail orders', 'GET /topics/orders']
  ] as const) {
    const before = broker.asked.length
    const { stderr } = await run([...words.split(' '), '--broker', broker.url])
    const { method = '', url = '' } = broker.asked[before] ?? {}
    assert.equal(`${method} ${url.replace(/\?.*/, '')}`, request, `${words}: ${stderr}`)
  }
  assert.match(broker.asked[0]?.body ?? '', /"name":"orders"/)
})

test('two names are refused, and none is missed', async () => {
  for (const [words, says] of [
    ['topic delete orders --name prices', "two names are given: topic 'orders', and 'prices'"],
    ['topic delete --topic orders --name prices', "two names are given: topic 'prices', and 'orders'"],
    ['group delete a --group b', "two names are given: group 'a', and 'b'"],
    ['tail orders --topic prices', "two names are given: topic 'orders', and 'prices'"],
    ['topic delete', '--name is missing'],
    ['consume', '--topic is missing'],
    ['topic delete orders prices', "too many arguments for 'delete'"]
  ] as const) {
    const { code, stdout, stderr } = await run(words.split(' '))
    assert.deepEqual([code, stdout], [2, ''], words)
    assert.ok(stderr.startsWith(`millrace: ${says}`), stderr)
  }
})
