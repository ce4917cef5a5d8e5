/** Schemas on the command line, against a running broker. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runMillrace, startBroker } from '../support/broker.ts'

test('schemas are registered and shown on the command line', async t => {
  const broker = await startBroker(t)
  const run = (...words: readonly string[]) => runMillrace(['schema', ...words, '--broker', broker.url])
  const text = '{"type":"object","properties":{"id":{}},"required":["id"]}'
  const register = ['register', '--subject', 'orders-value', '--schema']
  assert.deepEqual(await run(...register, text), { code: 0, stdout: 'id: 1\n', stderr: '' })
  const refused = await run(
    ...register,
    text.replace('{"id":{}}', '{"id":{},"phone":{}}').replace('["id"]', '["id","phone"]')
  )
  assert.deepEqual([refused.code, refused.stdout], [1, ''])
  assert.match(refused.stderr, /answered 400: backward-incompatible: new schema adds required field 'phone'\n$/)
  const shown = await run('latest', '--subject', 'orders-value')
  const { created_at_ms: _at, ...rest } = JSON.parse(shown.stdout) as Record<string, unknown>
  assert.deepEqual(rest, { id: 1, subject: 'orders-value', type: 'json_schema', schema: text })
  assert.equal((await run('get', '1')).stdout, shown.stdout)
  assert.deepEqual(JSON.parse((await run('list')).stdout), [JSON.parse(shown.stdout)])
})
