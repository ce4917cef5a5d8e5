/** `millrace top` against a running broker: as lines, as JSON, and as the screen of a terminal. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makeTestKey, startGuarded } from '../support/access.ts'
import { startBroker, waitFor } from '../support/broker.ts'
import { range } from '../support/es01-session.ts'
import { HttpApi } from '../support/http-api.ts'
import { run, start } from '../unit/cli/terminal.ts'

test('top tells what goes in and out, and how the shards are', async t => {
  const { url } = await startBroker(t, { flags: { '--shards': '2' } })
  const api = new HttpApi(url)
  await api.createTopic('orders', 2)
  await api.post('/groups/g/commit', { topic: 'orders', partition: 0, offset: 0 })
  const running = start(['top', '--interval', '50ms', '--json', '--broker', url])
  const readings = (): Record<string, unknown>[] =>
    running.stdout.text
      .split('\n')
      .slice(0, -1)
      .map(line => JSON.parse(line) as Record<string, unknown>)
  const records = range(40).map(i => ({ value: 'v', partition: i % 2 }))
  await waitFor('a reading with all of it', async () => {
    await api.produce('orders', records)
    await api.consumeAll('orders', 0)
    return readings().some(
      reading =>
        Number(reading['records_in_per_second']) > 0 &&
        Number(reading['records_out_per_second']) > 0 &&
        Number(reading['syncs_per_second']) > 0 &&
        Number(reading['sync_p99_ms']) > 0 &&
        Number(reading['group_records']) > 0 &&
        Number(reading['lag_records']) > 0 &&
        (reading['shards'] as { turn_p99_ms: number | null }[]).every(({ turn_p99_ms: turn }) => turn !== null)
    )
  })
  running.signal('SIGINT')
  const { code, stderr } = await running.outcome
  assert.deepEqual([code, stderr], [0, ''])
  const last = readings().at(-1) ?? {}
  assert.deepEqual(
    (last['shards'] as { shard: number; state: string }[]).map(({ shard, state }) => [shard, state]),
    [
      [0, 'ready'],
      [1, 'ready']
    ]
  )
  assert.ok(Number(last['resident_bytes']) > 1_000_000)
  assert.deepEqual(
    (last['groups'] as { group: string }[]).map(({ group }) => group),
    ['g']
  )
  const lines = await run(['top', '--interval', '10ms', '--count', '2', '--broker', url])
  assert.match(lines.stdout, /^(records_in=[\d.]+ .* shards_ready=2\/2 queue=\d+ .* troubles=0\n){2}$/)
})

test('at a terminal top has a screen of its own, and Ctrl-C gives the old one back', async t => {
  const { url } = await startBroker(t)
  const running = start(['top', '--interval', '20ms', '--broker', url], { isTerminal: true })
  await waitFor('two drawings', () => running.stdout.text.split('millrace top').length > 2)
  assert.ok(running.stdout.text.startsWith('\u001b[?1049h\u001b[?25l\u001b[H'))
  assert.match(running.stdout.text, /SHARD {2}STATE/)
  running.signal('SIGINT')
  const { code, stdout, stderr } = await running.outcome
  assert.deepEqual([code, stderr], [0, ''])
  assert.ok(stdout.endsWith('\u001b[?25h\u001b[?1049l'))
  assert.equal(stdout.split('\u001b[?1049h').length, 2)
})

test('what breaks the screen gives the terminal back before it is told', async t => {
  const { broker, admin } = await startGuarded(t)
  const reader = await makeTestKey(admin.api, 'read:orders')
  const env = { MILLRACE_KEY: reader.secret, MILLRACE_BROKER: broker.url }
  const running = start(['top', '--interval', '20ms'], { isTerminal: true, env })
  await waitFor('a drawing', () => running.stdout.text.includes('connections  '))
  await admin.api.call('DELETE', `/admin/keys/${reader.id}`)
  const { code, stdout, stderr } = await running.outcome
  assert.equal(code, 1)
  assert.ok(stdout.endsWith('\u001b[?25h\u001b[?1049l'))
  assert.match(stderr, /answered 401: /)
})
