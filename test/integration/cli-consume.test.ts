/** What a person who reads records is told: where there is nothing yet, where a group begins, when a record was written. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startBroker, waitFor } from '../support/broker.ts'
import { HttpApi } from '../support/http-api.ts'
import { run, start, type Outcome } from '../unit/cli/terminal.ts'

test('a person who reads records', async t => {
  const { url } = await startBroker(t)
  const api = new HttpApi(url)
  await api.createTopic('orders', 3)
  await api.produce(
    'orders',
    [0, 0, 0, 2, 2].map((partition, i) => ({ partition, value: `v${i}` }))
  )
  const consume = (...words: readonly string[]): Promise<Outcome> =>
    run(['consume', '--topic', 'orders', ...words, '--broker', url])

  await t.test('is warned of an offset beyond the end, whose place it is', async () => {
    assert.deepEqual(await consume('--partition', '0', '--offset', '99'), {
      code: 0,
      stdout: '-- next_offset=99 high_watermark=3 (0 record(s))\n',
      stderr: 'millrace: offset 99 is beyond the end of partition 0, which is 3\n'
    })
    for (const place of ['2', '3', 'latest']) {
      assert.equal((await consume('--partition', '0', '--offset', place)).stderr, '', place)
    }
  })

  await t.test('is warned of it by tail too, which waits there', async () => {
    const tail = start(['tail', '--topic', 'orders', '--partition', '0', '--from', '50', '--broker', url])
    await waitFor('the warning', () => tail.stderr.text !== '')
    tail.signal('SIGINT')
    assert.deepEqual(await tail.outcome, {
      code: 0,
      stdout: '',
      stderr: 'millrace: offset 50 is beyond the end of partition 0, which is 3\n-- 0 record(s)\n'
    })
    const there = await run('tail --topic orders --partition 0 --from 2 --max 1 --broker'.split(' ').concat(url))
    assert.equal(there.stderr, '-- 1 record(s)\n')
  })

  await t.test('is told that a group has nothing committed, and where it begins', async () => {
    const words = ['--partition', '0', '--group', 'analytics', '--max', '1']
    const unknown = await consume(...words)
    assert.match(unknown.stdout, /^offset=0 /)
    assert.equal(
      unknown.stderr,
      "millrace: group 'analytics' has nothing committed in partition 0, and begins at offset 0\n"
    )
    await api.post('/groups/analytics/commit', { topic: 'orders', partition: 0, offset: 1 })
    const known = await consume(...words)
    assert.match(known.stdout, /^offset=1 /)
    assert.equal(known.stderr, '')
  })

  await t.test('gets all partitions one after the other, and of each its end', async () => {
    assert.deepEqual(await consume(), {
      code: 0,
      stdout:
        'partition=0 offset=0 value=v0\npartition=0 offset=1 value=v1\npartition=0 offset=2 value=v2\n' +
        '-- partition=0 next_offset=3 high_watermark=3 (3 record(s))\n' +
        '-- partition=1 next_offset=0 high_watermark=0 (0 record(s))\n' +
        'partition=2 offset=0 value=v3\npartition=2 offset=1 value=v4\n' +
        '-- partition=2 next_offset=2 high_watermark=2 (2 record(s))\n',
      stderr: ''
    })
    const some = await consume('--max', '3')
    assert.match(some.stdout, /^(partition=0 .*\n){3}-- partition=0 .*\n$/)
    assert.equal(some.stderr, 'millrace: --max is reached: 2 partition(s) were not read\n')
    const json = (await consume('--json')).stdout.trim().split('\n')
    assert.deepEqual(
      json.map(line => (JSON.parse(line) as { records: object[] }).records.length),
      [3, 0, 2]
    )
  })

  await t.test('must say which partition where it cannot be all', async () => {
    for (const [words, says] of [
      [['--offset', '1'], '--offset with an offset needs --partition: each partition counts its own'],
      [['--wait-ms', '1'], "--wait-ms needs --partition: 'millrace tail' waits on all of a topic"]
    ] as const) {
      assert.deepEqual(await consume(...words), { code: 2, stdout: '', stderr: `millrace: ${says}\n` })
    }
  })

  await t.test('sees the time of each record with --timestamps, of consume and of tail', async () => {
    const [{ timestamp_ms: ms } = { timestamp_ms: 0 }] = (await api.consume('orders', 2, 'offset=0')).records
    const time = new Date(ms).toISOString()
    const shown = `offset=0 timestamp=${time} value=v3\n`
    assert.equal((await consume('--partition', '2', '--timestamps')).stdout.slice(0, shown.length), shown)
    const words = 'tail --topic orders --partition 2 --from earliest --max 1 --timestamps --broker'.split(' ')
    assert.equal((await run([...words, url])).stdout, `partition=2 ${shown}`)
  })
})
