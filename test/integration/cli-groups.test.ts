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
    assert.deepEqual(await run('commit --group g --topic orders --partition 1 --offset 18446744073709551615'), {
      code: 0,
      stdout: 'committed\n',
      stderr: 'millrace: offset 18446744073709551615 is beyond the end of partition 1, which is 0\n'
    })
    await prints('commit --group g --topic orders --partition 0 --offset 3', 'committed')
    await prints('commit --group g --topic orders --partition 0 --offset 1 --json')
    const commitAs = 'commit --group g --topic orders --partition 0 --offset 1 --member-id m'
    await fails(commitAs, 2, /--generation is missing/)
    await fails(`${commitAs} --generation 1`, 1, /group 'g' has no member 'm'/)
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
    assert.deepEqual(await run(`${consume} --group new --max 1`), {
      code: 0,
      stdout: 'offset=0 value=a\n-- next_offset=1 high_watermark=3 (1 record(s))\n',
      stderr: "millrace: group 'new' has nothing committed in partition 0, and begins at offset 0\n"
    })
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
    assert.match(
      head ?? '',
      /^group=g owner=anonymous kind=http state=Stable generation=1 members=1 lag_records=2 lag_seconds=\d+(\.\d+)?$/
    )
    assert.deepEqual(rest, [
      'member_id=m topics=orders partitions=2',
      'topic=orders partition=0 offset=1',
      'topic=orders partition=1 offset=18446744073709551615',
      ''
    ])
    assert.match(
      (await run('group list')).stdout,
      /^group=g owner=anonymous kind=http state=Stable generation=1 members=1 /
    )
    assert.match((await run('group list --json')).stdout, /^\{"groups":\[\{"group":"g",/)
    await fails('group delete --name g', 1, /answered 409: group 'g' has 1 member/)
    await fails('group join --name g', 2, /--topic is missing/)
    await prints('group leave --name g --member-id m', "left group 'g'")
    await prints('group leave --name g --member-id m --json')
  })
  await t.test('show their lag by partition, of one or of all', async () => {
    await api.post('/groups/other/commit', { topic: 'orders', partition: 1, offset: 1498 })
    const { stdout } = await run('group lag --name g')
    const [head, ...rest] = stdout.split('\n')
    assert.match(
      head ?? '',
      /^group=g owner=anonymous kind=none state=Empty generation=2 members=0 lag_records=2 lag_seconds=\d+(\.\d+)?$/
    )
    assert.deepEqual(rest, [
      'TOPIC   PARTITION             COMMITTED   END  LAG',
      'orders          0                     1     3    2',
      'orders          1  18446744073709551615  1500    0',
      ''
    ])
    const lines = (await run('group lag --json')).stdout.trim().split('\n')
    const [first, second] = lines.map(
      line => JSON.parse(line) as { group: string; lag_records: number; partitions: object[] }
    )
    assert.match(lines[0] ?? '', /"committed":18446744073709551615,/)
    assert.deepEqual([first?.group, first?.partitions.length, second?.group, second?.lag_records], ['g', 2, 'other', 2])
    assert.deepEqual(second?.partitions, [
      { topic: 'orders', partition: 0, committed: null, end: 3, lag: null },
      { topic: 'orders', partition: 1, committed: 1498, end: 1500, lag: 2 }
    ])
    assert.match((await run('group lag --name g --topic none')).stdout, /\n\(no offsets\)\n$/)
    await fails('group lag --name none', 1, /answered 404: no group 'none'/)
    await prints('group delete --name other', "deleted group 'other'")
  })
  await t.test('show what a reset would change, and change nothing', async () => {
    const before = (await api.get('/groups/g/offsets')).text
    await prints(
      'group reset --name g --topic orders --to latest --dry-run',
      'PARTITION                BEFORE  AFTER                 CHANGE',
      '        0                     1      3                     +2',
      '        1  18446744073709551615   1500  -18446744073709550115',
      '(dry run: nothing was changed)'
    )
    await prints(
      'group reset --name new --topic orders --partition 0 --to 2 --dry-run --json',
      '{"group":"new","topic":"orders","partition":0,"before":null,"after":2}'
    )
    assert.equal((await api.get('/groups/g/offsets')).text, before)
    assert.equal((await api.get('/groups/new')).status, 404)
  })
  await t.test('are reset to an offset that is there, and to no other', async () => {
    await prints(
      'group reset --name g --topic orders --partition 0 --to 2',
      'topic=orders partition=0 offset=2',
      'topic=orders partition=1 offset=18446744073709551615'
    )
    const time = 'group reset --name g --topic orders --partition 0 --to 1700000000000'
    await fails(time, 2, /is no offset of partition 0, which has 0 to 3; a time is written 1700000000000ms/)
    await fails('group reset --name g --topic orders --to 4', 2, /is no offset of partition 0, which has 0 to 3/)
    await prints(
      `${time}ms`,
      'topic=orders partition=0 offset=0',
      'topic=orders partition=1 offset=18446744073709551615'
    )
  })
  await t.test('are reset under running members with a warning', async () => {
    await run('group join --name g --topic orders --member-id m')
    const { code, stderr } = await run('group reset --name g --topic orders --partition 0 --to earliest')
    assert.deepEqual(
      [code, stderr],
      [0, "millrace: group 'g' has 1 member(s): those that run go on from where they are\n"]
    )
    await run('group leave --name g --member-id m')
  })
  await t.test('are reset, together or alone, and deleted', async () => {
    const planned = await run('reset-offsets --topic orders --dry-run')
    assert.match(
      planned.stdout,
      /^GROUP +PARTITION +BEFORE +AFTER +CHANGE\n(g +[01] +\d+ +0 +-?\d+\n){2}\(dry run: nothing was changed\)\n$/
    )
    assert.equal((await run('reset-offsets --topic orders --dry-run')).stdout, planned.stdout)
    const rows = (await run('reset-offsets --topic orders --dry-run --json')).stdout.trim().split('\n')
    assert.deepEqual(
      rows.map(row => Object.keys(JSON.parse(row) as object).join()),
      Array.from({ length: 2 }, () => 'group,topic,partition,before,after')
    )
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
    await fails('group reset --name g --topic orders --to tomorrow', 2, /--to 'tomorrow' is no place/)
    await prints('group delete --name g', "deleted group 'g'")
    await fails('group show --name g', 1, /answered 404: no group 'g'/)
  })
})
