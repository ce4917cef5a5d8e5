/** Idempotent producers and the configuration of topics on the command line, against a running broker. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { runMillrace, startBroker } from '../support/broker.ts'
import { range } from '../support/es01-session.ts'
import { HttpApi } from '../support/http-api.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

test('a numbered producer on the command line', async t => {
  const broker = await startBroker(t)
  const api = new HttpApi(broker.url)
  const env = { MILLRACE_BROKER: broker.url }
  const run = (command: string, ...words: readonly string[]) => runMillrace([...command.split(' '), ...words], { env })
  const prints = async (stdout: string, command: string, ...words: readonly string[]): Promise<void> => {
    assert.deepEqual(await run(command, ...words), { code: 0, stdout, stderr: '' })
  }
  await api.createTopic('orders', 2)
  const produce = 'produce --topic orders --partition 1 --producer-id shop-1'

  await t.test('has a value that is sent twice written once', async () => {
    await prints('partition=1 offset=0\n', `${produce} --sequence 0 --value v`)
    await prints('partition=1 offset=0 (duplicate)\n', `${produce} --sequence 0 --value v`)
    assert.equal((await api.consumeAll('orders', 1)).length, 1)
  })
  await t.test('has the last request of a file answered as duplicates when it is sent again', async () => {
    const folder = temporaryDirectory(t)
    const [all, tail] = [join(folder, 'all.txt'), join(folder, 'tail.txt')]
    writeFileSync(all, `${range(300, 1).join('\n')}\n`)
    writeFileSync(tail, `${range(128, 173).join('\n')}\n`)
    const lines = range(300, 1).map(offset => `partition=1 offset=${offset}\n`)
    await prints(lines.join(''), `${produce} --sequence 1 --from-file`, all)
    const repeated = range(128, 173).map(offset => `partition=1 offset=${offset} (duplicate)\n`)
    await prints(repeated.join(''), `${produce} --sequence 173 --from-file`, tail)
    const values = (await api.consumeAll('orders', 1)).map(record => record.value)
    assert.deepEqual(values, ['v', ...range(300, 1).map(String)])
  })
  await t.test('is refused a gap, and nothing is written', async () => {
    const { code, stdout, stderr } = await run(`${produce} --sequence 400 --value v`)
    assert.deepEqual([code, stdout], [1, ''])
    assert.match(stderr, /answered 400: sequence gap of producer id 'shop-1' .*expected 301, got 400/)
    assert.equal((await api.consumeAll('orders', 1)).length, 301)
  })
  await t.test('is listed, revoked, and starts afresh', async () => {
    await prints('producer=shop-1 topic=orders partition=1 last_seen_sequence=300 last_offset=300\n', 'producer list')
    await prints(`${(await api.get('/admin/producers')).text}\n`, 'producer list --json')
    await prints("revoked producer 'shop-1'\n", 'producer revoke shop-1')
    await prints('(no producers)\n', 'producer list')
    await prints('partition=1 offset=301\n', `${produce} --sequence 0 --value v`)
    const { code, stderr } = await run('producer revoke --id nobody')
    assert.equal(code, 1)
    assert.match(stderr, /DELETE .*\/admin\/producers\/nobody answered 404: no producer id 'nobody'/)
  })
})

test('the configuration of a topic is changed and shown on the command line', async t => {
  const broker = await startBroker(t)
  const api = new HttpApi(broker.url)
  await api.createTopic('orders', 1)
  const run = (command: string) => runMillrace(command.split(' '), { env: { MILLRACE_BROKER: broker.url } })
  const config = (retention: string, segmentBytes: number) =>
    `retention_ms=${retention}\nretention_bytes=unlimited\ncleanup_policy=delete\nsegment_bytes=${segmentBytes}\n` +
    'tombstone_retention_ms=86400000\nvalidate_schema=false\nmessage_timestamp_type=CreateTime\n' +
    'max_message_bytes=default\nsegment_ms=default\npartitioner=fnv1a\n'
  const altered = await run('topic alter --name orders --retention-ms 18446744073709551615 --segment-bytes 1MiB')
  assert.deepEqual(altered, { code: 0, stdout: config('18446744073709551615', 1_048_576), stderr: '' })
  assert.equal((await run('topic show-config --name orders')).stdout, altered.stdout)
  const { stdout: json } = await run('topic show-config --name orders --json')
  assert.equal(json, `${(await api.get('/topics/orders/config')).text}\n`)
  const cleared = await run('topic alter --name orders --retention-ms -1')
  assert.equal(cleared.stdout, config('unlimited', 1_048_576))
  const refused = await run('topic alter --name orders --segment-bytes 1')
  assert.equal(refused.code, 1)
  assert.match(refused.stderr, /PUT .*\/topics\/orders\/config answered 400: /)
  assert.equal((await run('topic show-config --name orders')).stdout, cleared.stdout)
  const validated = await run('topic alter --name orders --validate-schema true')
  assert.equal(validated.stdout, cleared.stdout.replace('validate_schema=false', 'validate_schema=true'))
  assert.equal((await run('topic show-config --name orders')).stdout, validated.stdout)
  assert.equal((await run('topic alter --name orders --validate-schema false')).stdout, cleared.stdout)
  const unclear = await run('topic alter --name orders --validate-schema yes')
  assert.match(unclear.stderr, /--validate-schema 'yes' is neither true nor false/)
})
