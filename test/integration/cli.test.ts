/** The command line against a running broker: what people type, what they read, and the exit codes scripts rely on. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { runMillrace, startBroker } from '../support/broker.ts'
import { range } from '../support/es01-session.ts'
import { HttpApi } from '../support/http-api.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

test('a session on the command line', async t => {
  const broker = await startBroker(t)
  const api = new HttpApi(broker.url)
  const env = { MILLRACE_BROKER: broker.url }
  const run = async (command: string, ...words: readonly string[]) => {
    const { code, stdout, stderr } = await runMillrace([...command.split(' '), ...words], { env })
    return { code, stdout, stderr }
  }
  const prints = async (stdout: string, command: string, ...words: readonly string[]): Promise<void> => {
    assert.deepEqual(await run(command, ...words), { code: 0, stdout, stderr: '' })
  }

  await t.test('an empty broker lists no topics', () => prints('(no topics)\n', 'topic list'))
  await t.test('a topic is created, listed and described', async () => {
    await prints("created topic 'orders' with 3 partition(s)\n", 'topic create --name orders --partitions 3')
    await prints(
      '{"name":"prices","partitions":1}\n',
      'topic create --name prices --cleanup-policy compact --segment-bytes 16MiB --json'
    )
    await prints('orders\nprices\n', 'topic list')
    await prints('{"topics":["orders","prices"]}\n', 'topic list --json')
    const { code, stdout } = await run('topic describe --name prices')
    assert.equal(code, 0)
    assert.match(
      stdout,
      /^topic 'prices' with 1 partition\(s\)\nconfig .*cleanup_policy=compact segment_bytes=16777216 .*\npartition=0 start_offset=0 end_offset=0 segments=1 size_bytes=0\n$/
    )
    await prints(`${(await api.get('/topics/prices')).text}\n`, 'topic describe --name prices --json')
  })
  await t.test('offsets are looked up', async () => {
    const lines = [0, 1, 2].map(partition => `partition=${partition} earliest=0 latest=0 offset=0 timestamp_ms=none\n`)
    await prints(lines.join(''), 'topic offsets --name orders --time 2026-01-31T08:30:00Z')
    await prints('{"partition":1,"earliest":0,"latest":0}\n', 'topic offsets --name orders --partition 1 --json')
  })
  await t.test('a value is produced, by key, by partition and in turn', async () => {
    await prints('partition=2 offset=0\n', 'produce --topic orders --key user-1 --value checkout')
    await prints('partition=1 offset=0\n', 'produce --topic orders --partition 1', '--value', 'two words')
    await prints('{"results":[{"partition":0,"offset":0}]}\n', 'produce --topic orders --value keyless --json')
  })
  await t.test('a file is produced, a record a line, and read back', async () => {
    const file = join(temporaryDirectory(t), 'lines.txt')
    writeFileSync(
      file,
      range(2_500)
        .map(i => `line ${i} äöü`)
        .join('\n')
    )
    const { code, stdout, stderr } = await run('produce --topic prices --from-file', file)
    assert.deepEqual([code, stderr], [0, ''])
    assert.equal(
      stdout,
      range(2_500)
        .map(i => `partition=0 offset=${i}\n`)
        .join('')
    )
    const values = (await api.consumeAll('prices', 0)).map(record => record.value)
    assert.deepEqual(
      values,
      range(2_500).map(i => `line ${i} äöü`)
    )
    const read = await run('consume --topic prices --partition 0 --max 5000')
    const lines = range(2_500)
      .map(i => `offset=${i} value=line ${i} äöü\n`)
      .join('')
    assert.equal(read.stdout, `${lines}-- next_offset=2500 high_watermark=2500 (2500 record(s))\n`)
  })
  await t.test('records are consumed from an offset on, with their keys', async () => {
    await prints(
      'offset=0 key=user-1 value=checkout\n-- next_offset=1 high_watermark=1 (1 record(s))\n',
      'consume --topic orders --partition 2'
    )
    await prints(
      'offset=7 value=line 7 äöü\n-- next_offset=8 high_watermark=2500 (1 record(s))\n',
      'consume --topic prices --partition 0 --offset 7 --max 1'
    )
    assert.deepEqual(await run('consume --topic orders --partition 2 --offset 18446744073709551615'), {
      code: 0,
      stdout: '-- next_offset=18446744073709551615 high_watermark=1 (0 record(s))\n',
      stderr: 'millrace: offset 18446744073709551615 is beyond the end of partition 2, which is 1\n'
    })
    const { stdout } = await run('consume --topic orders --partition 2 --json')
    assert.deepEqual(JSON.parse(stdout), await api.consume('orders', 2, 'offset=0'))
  })
  await t.test('a refusal is told with the request and its reason, and exits with 1', async () => {
    const cases: readonly (readonly [string, RegExp])[] = [
      ['topic create --name orders', /POST .*\/topics answered 409: topic 'orders' already exists/],
      ['topic create --name x --partitions 10001', /answered 400: partitions is 10001: allowed is 1 to 10000/],
      ['topic describe --name none', /GET .*\/topics\/none answered 404: no topic named 'none'/],
      ['topic delete --name none', /DELETE .*\/topics\/none answered 404: no topic named 'none'/],
      ['produce --topic none --value v', /answered 404: no topic named 'none'/],
      ['produce --topic orders --partition 3 --value v', /answered 400: partition 3 is out of range/],
      ['consume --topic orders --partition 3', /answered 400: partition 3 is out of range/]
    ]
    for (const [command, text] of cases) {
      const { code, stdout, stderr } = await run(command)
      assert.deepEqual([code, stdout], [1, ''], command)
      assert.match(stderr, text)
      assert.match(stderr, /^millrace: [^\n]+\n$/)
    }
  })
  await t.test('wrong use exits with 2 and reaches no broker', async () => {
    const before = (await api.get('/topics')).text
    const commands = [
      'topic create',
      'topic create --name x --partitions three',
      'topic create --name x --pratitions 3',
      'produce --topic orders',
      'consume --partition 0',
      'sing'
    ]
    for (const command of commands) {
      const { code, stdout, stderr } = await run(command)
      assert.deepEqual([code, stdout], [2, ''], command)
      assert.match(stderr, /^millrace: /)
    }
    assert.equal((await api.get('/topics')).text, before)
  })
  await t.test('a topic is deleted', async () => {
    await prints("deleted topic 'orders'\n", 'topic delete --name orders')
    await prints('prices\n', 'topic list')
  })
  await t.test('a broker that is gone is told, and exits with 3', async () => {
    await broker.stop()
    const { code, stdout, stderr } = await run('topic list')
    assert.deepEqual([code, stdout], [3, ''])
    assert.match(stderr, /^millrace: cannot reach a broker at http:\/\/127\.0\.0\.1:\d+: .*millrace serve.*--broker/)
  })
})
