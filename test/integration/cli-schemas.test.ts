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

test('the mode of a subject is chosen on the command line, and counts', async t => {
  const broker = await startBroker(t)
  const run = (...words: readonly string[]) => runMillrace(['schema', ...words, '--broker', broker.url])
  const mode = ['compatibility', '--subject', 'orders-value']
  const integer = '{"type":"object","properties":{"id":{"type":"integer"}}}'
  const register = (schema: string) => run('register', '--subject', 'orders-value', '--schema', schema)
  assert.equal((await run('compatibility')).stdout, 'compatibility: default\n')
  assert.equal((await register(integer)).code, 0)
  assert.equal((await run(...mode)).stdout, 'compatibility: inherit (the general mode counts)\n')
  assert.equal((await run(...mode, '--set', 'full')).stdout, 'compatibility: full\n')
  const other = integer.replace('integer', 'string')
  assert.equal((await register(other)).code, 1)
  assert.equal((await run(...mode, '--set', 'none', '--json')).stdout, '{"compatibility":"none"}\n')
  assert.equal((await register(other)).code, 0)
  assert.equal((await run(...mode, '--set', 'inherit')).stdout, 'compatibility: inherit (the general mode counts)\n')
  assert.equal((await run('compatibility', '--set', 'backward')).stdout, 'compatibility: backward\n')
  assert.equal((await run('subjects')).stdout, 'orders-value\n')
  assert.equal((await run('versions', '--subject', 'orders-value')).stdout, '1\n2\n')
  const shown = await run('get', '--subject', 'orders-value', '--version', '2', '--json')
  assert.equal((JSON.parse(shown.stdout) as { schema: string }).schema, other)
  const wrong = await run(...mode, '--set', 'loose')
  assert.equal(wrong.code, 2)
  assert.match(wrong.stderr, /Allowed choices are default, none, backward/)
})
