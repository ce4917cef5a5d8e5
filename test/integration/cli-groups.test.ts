/** Consumer groups on the command line, against a running broker. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runMillrace, startBroker } from '../support/broker.ts'
import { HttpApi } from '../support/http-api.ts'

test('consumer groups on the command line', async t => {
  const broker = await startBroker(t)
  const api = new HttpApi(broker.url)
  const env = { MILLRACE_BROKER: broker.url }
  const run = (command: string) => runMillrace(command.split(' '), { env })
  const prints = async (command: string, ...lines: readonly string[]): Promise<void> => {
    assert.deepEqual(await run(command), { code: 0, stdout: lines.map(line => `${line}\n`).join(''), stderr: '' })
  }
  const fails = async (command: string, code: number, text: RegExp): Promise<void> => {
    const outcome = await run(command)
    assert.deepEqual([outcome.code, outcome.stdout], [code, ''])
    assert.match(outcome.stderr, text)
  }
  await api.createTopic('orders', 2)
  await api.produce(
    'orders',
    ['a', 'b', 'c'].map(value => ({ value, partition: 0 }))
  )

  await t.test('commit, also what no number holds', async () => {
    await prints('group list', '(no groups)')
    await prints('commit --group g --topic orders --partition 1 --offset 18446744073709551615', 'committed')
    await prints('commit --group g --topic orders --partition 0 --offset 1 --json')
    await fails('commit --group g --topic orders --partition 0', 2, /--offset is missing/)
    await fails('commit --group g --topic orders --partition 0 --offset -1', 2, /--offset '-1' is not a whole number/)
    await fails(
      'commit --group g --topic nothing --partition 0 --offset 1',
      1,
      /answered 404: no topic named 'nothing'/
    )
  })
  await t.test('consume from where they are, over several requests', async () => {
    const consume = 'consume --topic orders --partition 0'
    await prints(
      `${consume} --group g`,
      'offset=1 value=b',
      'offset=2 value=c',
      '-- next_offset=3 high_watermark=3 (2 record(s))'
    )
    await prints(
      `${consume} --group new --max 1`,
      'offset=0 value=a',
      '-- next_offset=1 high_watermark=3 (1 record(s))'
    )
    await fails(`${consume} --group g --offset 1`, 2, /--group.* cannot be used with .*--offset/)
    const values = Array.from({ length: 1500 }, (_, i) => ({ value: `${i}`, partition: 1 }))
    await api.produce('orders', values)
    const { stdout } = await run('consume --topic orders --partition 1 --group new --max 5000')
    assert.equal(stdout.split('\n').length, 1500 + 2)
    assert.match(stdout, /next_offset=1500 high_watermark=1500 \(1500 record\(s\)\)\n$/)
  })
  await t.test('join, live, and leave', async () => {
    await prints(
      'group join --name g --topic orders --member-id m',
      'member_id=m generation=1',
      'topic=orders partition=0',
      'topic=orders partition=1'
    )
    await prints('group heartbeat --name g --member-id m --generation 1', 'status=ok generation=1')
    await prints('group heartbeat --name g --member-id m --generation 9', 'status=rebalance_required generation=1')
    await prints('group heartbeat --name g --member-id x --generation 9', 'status=unknown_member generation=1')
    await prints(
      'group assignment --name g --member-id m',
      'generation=1',
      'topic=orders partition=0',
      'topic=orders partition=1'
    )
    const { stdout } = await run('group show --name g')
    const [head, ...rest] = stdout.split('\n')
    assert.match(head ?? '', /^group=g owner=anonymous generation=1 members=1 lag_records=2 lag_seconds=\d+(\.\d+)?$/)
    assert.deepEqual(rest, [
      'member_id=m topics=orders partitions=2',
      'topic=orders partition=0 offset=1',
      'topic=orders partition=1 offset=18446744073709551615',
      ''
    ])
    assert.match((await run('group list')).stdout, /^group=g owner=anonymous generation=1 members=1 /)
    assert.match((await run('group list --json')).stdout, /^\{"groups":\[\{"group":"g",/)
    await fails('group delete --name g', 1, /answered 409: group 'g' has 1 member/)
    await fails('group join --name g', 2, /--topic is missing/)
    await prints('group leave --name g --member-id m', "left group 'g'")
    await prints('group leave --name g --member-id m --json')
  })
  await t.test('are reset, together or alone, and deleted', async () => {
    await prints('reset-offsets --topic orders', 'reset 2 entries across 1 group(s)')
    await prints('reset-offsets --topic orders --json', '{"groups_affected":1,"entries_reset":2}')
    await prints(
      'group reset --name g --topic orders --to latest',
      'topic=orders partition=0 offset=3',
      'topic=orders partition=1 offset=1500'
    )
    await prints(
      'group reset --name g --topic orders --partition 0 --to 2026-01-31T08:30:00Z',
      'topic=orders partition=0 offset=0',
      'topic=orders partition=1 offset=1500'
    )
    await fails('group reset --name g --topic orders --to tomorrow', 2, /--to 'tomorrow' is neither/)
    await prints('group delete --name g', "deleted group 'g'")
    await fails('group show --name g', 1, /answered 404: no group 'g'/)
  })
})
