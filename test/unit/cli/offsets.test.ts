/** `topic offsets` and `commit` as a user sees them: what is asked of the broker, and what is printed. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { run, startFakeBroker } from './terminal.ts'

const words = ['topic', 'offsets', '--name', 'orders']

test('topic offsets prints one line per partition, with exact numbers', async t => {
  const body =
    '{"partitions":[{"partition":0,"earliest":5,"latest":9007199254740993},{"partition":1,"earliest":0,"latest":0}]}'
  const broker = await startFakeBroker(t, () => ({ status: 200, body }))
  const { code, stdout } = await run([...words, '--broker', broker.url])
  const lines = 'partition=0 earliest=5 latest=9007199254740993\npartition=1 earliest=0 latest=0\n'
  assert.deepEqual([code, stdout, broker.asked[0]?.url], [0, lines, '/topics/orders/offsets'])
  assert.equal((await run([...words, '--json', '--broker', broker.url])).stdout, `${body}\n`)
})

test('topic offsets of one partition at a time prints the record found, or that none is so late', async t => {
  const bodies = [
    '{"partition":2,"earliest":0,"latest":9,"offset":7,"timestamp_ms":1700000000001}',
    '{"partition":2,"earliest":0,"latest":9,"offset":9,"timestamp_ms":null}'
  ]
  const broker = await startFakeBroker(t, () => ({ status: 200, body: bodies.shift() ?? '' }))
  const asked = [...words, '--partition', '2', '--broker', broker.url]
  const found = await run([...asked, '--time', '1700000000000'])
  assert.equal(found.stdout, 'partition=2 earliest=0 latest=9 offset=7 timestamp_ms=1700000000001\n')
  const none = await run([...asked, '--time', '18446744073709551615'])
  assert.equal(none.stdout, 'partition=2 earliest=0 latest=9 offset=9 timestamp_ms=none\n')
  assert.deepEqual(
    broker.asked.map(({ url }) => url),
    [
      '/topics/orders/offsets?partition=2&timestamp_ms=1700000000000',
      '/topics/orders/offsets?partition=2&timestamp_ms=18446744073709551615'
    ]
  )
})

test('a time may be Unix milliseconds or ISO 8601 with its zone', async t => {
  const broker = await startFakeBroker(t, () => ({ status: 200, body: '{"partitions":[]}' }))
  const times = [
    ['-5', '-5'],
    ['1700000000000ms', '1700000000000'],
    ['2026-01-31', '1769817600000'],
    ['2026-01-31T08:30Z', '1769848200000'],
    ['2026-01-31T08:30:00+01:00', '1769844600000'],
    ['2024-02-29T23:59:59.123Z', '1709251199123'],
    ['1969-12-31T23:59:59Z', '-1000']
  ] as const
  for (const [time, milliseconds] of times) {
    assert.equal((await run([...words, '--time', time, '--broker', broker.url])).code, 0, time)
    assert.equal(broker.asked.at(-1)?.url, `/topics/orders/offsets?timestamp_ms=${milliseconds}`)
  }
})

test('a time that could mean more than one moment, or none, is refused before anything is asked', async t => {
  const broker = await startFakeBroker(t, () => ({ status: 200, body: '{"partitions":[]}' }))
  const times = [
    '2026-01-31T08:30',
    '2026-02-31',
    '2026-13-01',
    '31.01.2026',
    'noon',
    '',
    '1e3',
    '18446744073709551616'
  ]
  for (const time of times) {
    const { code, stderr } = await run([...words, '--time', time, '--broker', broker.url])
    assert.equal(code, 2, time)
    assert.ok(stderr.includes(`--time '${time}' is n`), stderr)
  }
  assert.equal(broker.asked.length, 0)
})

test('topic delete-records sends the exact offset, and prints where the partition starts now', async t => {
  const body = '{"partition":1,"start_offset":9007199254740993}'
  const broker = await startFakeBroker(t, () => ({ status: 200, body }))
  const asked = ['topic', 'delete-records', '--name', 'orders', '--partition', '1', '--offset', '9007199254740993']
  const { code, stdout } = await run([...asked, '--broker', broker.url])
  assert.deepEqual([code, stdout], [0, 'partition=1 start_offset=9007199254740993\n'])
  const { method, url, body: sent } = broker.asked[0] ?? {}
  assert.deepEqual(
    [method, url, sent],
    ['POST', '/topics/orders/delete-records', '{"partition":1,"offset":9007199254740993}']
  )
  assert.equal((await run([...asked, '--json', '--broker', broker.url])).stdout, `${body}\n`)
})

test('topic delete-records deletes nothing when a flag is missing or is no offset', async t => {
  const broker = await startFakeBroker(t, () => ({ status: 200, body: '{}' }))
  const all = { '--name': 'orders', '--partition': '0', '--offset': '5' }
  for (const [flag, value, reason] of [
    ['--name', null, '--name is missing'],
    ['--partition', null, '--partition is missing'],
    ['--offset', null, '--offset is missing'],
    ['--offset', 'latest', "--offset 'latest'"],
    ['--offset', '-1', "--offset '-1'"]
  ] as const) {
    const flags = Object.entries({ ...all, [flag]: value }).flatMap(([name, text]) =>
      text === null ? [] : [name, text]
    )
    const { code, stderr } = await run(['topic', 'delete-records', ...flags, '--broker', broker.url])
    assert.equal(code, 2, flag)
    assert.ok(stderr.includes(reason), stderr)
  }
  assert.equal(broker.asked.length, 0)
})

const commitWords = ['commit', '--group', 'g', '--topic', 'orders', '--partition', '1', '--offset']

test('commit warns of an offset that the partition does not have, and has committed it all the same', async t => {
  const body = '{"partition":1,"earliest":5,"latest":9007199254740993}'
  const broker = await startFakeBroker(t, ({ method }) =>
    method === 'POST' ? { status: 204, body: '' } : { status: 200, body }
  )
  const outcomeAt = (offset: string) => run([...commitWords, offset, '--broker', broker.url])
  for (const offset of ['5', '9007199254740993']) {
    assert.deepEqual(await outcomeAt(offset), { code: 0, stdout: 'committed\n', stderr: '' }, offset)
  }
  assert.deepEqual(
    broker.asked.slice(0, 2).map(({ method, url }) => `${method} ${url}`),
    ['POST /groups/g/commit', 'GET /topics/orders/offsets?partition=1']
  )
  const beyond = 'millrace: offset 9007199254740994 is beyond the end of partition 1, which is 9007199254740993\n'
  assert.deepEqual(await outcomeAt('9007199254740994'), { code: 0, stdout: 'committed\n', stderr: beyond })
  const before = 'millrace: offset 4 is before the beginning of partition 1, which is 5\n'
  assert.deepEqual(await outcomeAt('4'), { code: 0, stdout: 'committed\n', stderr: before })
  assert.deepEqual(await run([...commitWords, '4', '--json', '--broker', broker.url]), {
    code: 0,
    stdout: '',
    stderr: before
  })
})

test('a commit that was done stays done when nobody says where the partition ends; one that is refused warns of nothing', async t => {
  const answers = [
    { status: 204, body: '' },
    { status: 404, body: '{"error":"no topic"}' },
    { status: 404, body: '{"error":"no topic"}' }
  ]
  const broker = await startFakeBroker(t, () => answers.shift() ?? assert.fail('asked too often'))
  const words = [...commitWords, '4', '--broker', broker.url]
  assert.deepEqual(await run(words), {
    code: 0,
    stdout: 'committed\n',
    stderr: 'millrace: it is not known whether partition 1 has offset 4: no topic\n'
  })
  const refused = await run(words)
  assert.deepEqual([refused.code, refused.stdout], [1, ''])
  assert.match(refused.stderr, /^millrace: POST \S+ answered 404: no topic\n$/)
})
