/** `tiered list` as a user sees it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { run, startFakeBroker } from './terminal.ts'

test('tiered list prints one base offset a line, exactly, or that there is none', async t => {
  const bodies = ['{"segments":[0,9007199254740993]}', '{"segments":[]}', '{"segments":[5]}']
  const broker = await startFakeBroker(t, () => ({ status: 200, body: bodies.shift() ?? '' }))
  const words = ['tiered', 'list', '--topic', 'a.b', '--partition', '3', '--broker', broker.url]
  const told: string[] = []
  for (const more of [[], [], ['--json']]) told.push((await run([...words, ...more])).stdout)
  assert.deepEqual(told, ['0\n9007199254740993\n', '(no segments in cold storage)\n', '{"segments":[5]}\n'])
  assert.deepEqual([broker.asked[0]?.method, broker.asked[0]?.url], ['GET', '/admin/tiered/a.b/3'])
})

test('tiered list without a topic or a partition asks no broker', async t => {
  const broker = await startFakeBroker(t, () => ({ status: 200, body: '{}' }))
  for (const flags of [
    ['--topic', 'a'],
    ['--partition', '0'],
    ['--topic', 'a', '--partition', '-1']
  ]) {
    assert.equal((await run(['tiered', 'list', ...flags, '--broker', broker.url])).code, 2, flags.join())
  }
  assert.equal(broker.asked.length, 0)
})
