/** The commands as a user sees them: what is asked of the broker, what is printed, how they exit. */
import assert from 'node:assert/strict'
import { tmpdir } from 'node:os'
import { test } from 'node:test'
import { commandTree, nodesOf } from '../../../src/cli/completion/command-tree.ts'
import { buildProgram } from '../../../src/cli/run.ts'
import { inputFile, run, startFakeBroker, type Asked, type Told } from './terminal.ts'

function valuesOf(asked: Asked): string[] {
  const body: { records: { value: string }[] } = JSON.parse(asked.body)
  return body.records.map(record => record.value)
}

/** Gives each record the next offset of partition 0. */
function appender(): (asked: Asked) => Told {
  let next = 0
  return asked => {
    const results = valuesOf(asked).map(() => ({ partition: 0, offset: next++ }))
    return { status: 200, body: JSON.stringify({ results }) }
  }
}

test('topic create sends what was given, digit for digit, and says what was made', async t => {
  const broker = await startFakeBroker(t, () => ({ status: 201, body: '{"name":"orders","partitions":3}' }))
  const outcome = await run(
    ['topic', 'create', '--name', 'orders', '--partitions', '3', '--retention-ms', '18446744073709551615'].concat([
      '--retention-bytes',
      '-1',
      '--segment-bytes',
      '1MiB',
      '--cleanup-policy',
      'compact',
      '--broker',
      `${broker.url}/`
    ])
  )
  assert.deepEqual(outcome, { code: 0, stdout: "created topic 'orders' with 3 partition(s)\n", stderr: '' })
  assert.deepEqual(broker.asked, [
    {
      method: 'POST',
      url: '/topics',
      contentType: 'application/json',
      body:
        '{"name":"orders","partitions":3,"config":{"retention_ms":18446744073709551615,"retention_bytes":-1,' +
        '"cleanup_policy":"compact","segment_bytes":1048576}}'
    }
  ])
})

test('topic list prints names, or that there are none', async t => {
  const bodies = ['{"topics":["a","b"]}', '{"topics":[]}', '{"topics":[]}']
  const broker = await startFakeBroker(t, () => ({ status: 200, body: bodies.shift() ?? '' }))
  assert.equal((await run(['topic', 'list', '--broker', broker.url])).stdout, 'a\nb\n')
  assert.equal((await run(['topic', 'list', '--broker', broker.url])).stdout, '(no topics)\n')
  assert.equal((await run(['topic', 'list', '--json', '--broker', broker.url])).stdout, '{"topics":[]}\n')
})

test('topic describe prints one line per partition with exact numbers', async t => {
  const body =
    '{"name":"orders","partitions":[{"id":0,"start_offset":0,"end_offset":9007199254740993,"segment_count":2,' +
    '"size_bytes":70}],"config":{"retention_ms":null,"retention_bytes":1024,"cleanup_policy":"delete"}}'
  const broker = await startFakeBroker(t, () => ({ status: 200, body }))
  const { stdout } = await run(['topic', 'describe', '--name', 'orders', '--broker', broker.url])
  assert.deepEqual(stdout.split('\n'), [
    "topic 'orders' with 1 partition(s)",
    'config retention_ms=unlimited retention_bytes=1024 cleanup_policy=delete validate_schema=false ' +
      'message_timestamp_type=CreateTime max_message_bytes=default segment_ms=default partitioner=fnv1a',
    'partition=0 start_offset=0 end_offset=9007199254740993 segments=2 size_bytes=70',
    ''
  ])
})

test('topic describe shows what a topic has of its own in the place of what it would have else', async t => {
  const own = { max_message_bytes: 9, partitioner: 'murmur2', message_timestamp_type: 'LogAppendTime', segment_ms: 5 }
  const body = JSON.stringify({ name: 'x', partitions: [], config: { ...own, validate_schema: true } })
  const broker = await startFakeBroker(t, () => ({ status: 200, body }))
  const { stdout } = await run(['topic', 'describe', 'x', '--broker', broker.url])
  assert.equal(
    stdout.split('\n')[1],
    'config max_message_bytes=9 partitioner=murmur2 message_timestamp_type=LogAppendTime segment_ms=5 validate_schema=true'
  )
})

test('topic delete says which topic is gone', async t => {
  const broker = await startFakeBroker(t, () => ({ status: 200, body: '{"name":"or ders","partitions":3}' }))
  const { code, stdout } = await run(['topic', 'delete', '--name', 'or ders', '--broker', broker.url])
  assert.deepEqual([code, stdout], [0, "deleted topic 'or ders'\n"])
  assert.equal(`${broker.asked[0]?.method} ${broker.asked[0]?.url}`, 'DELETE /topics/or%20ders')
})

test('produce of one value prints where it went, and marks a duplicate', async t => {
  const body = '{"results":[{"partition":1,"offset":57,"duplicate":true}]}'
  const broker = await startFakeBroker(t, () => ({ status: 200, body }))
  const words = ['produce', '--topic', 'orders', '--key', 'alice', '--partition', '1', '--value', '--json']
  const { code, stdout } = await run([...words, '--broker', broker.url])
  assert.deepEqual([code, stdout], [0, 'partition=1 offset=57 (duplicate)\n'])
  assert.equal(broker.asked[0]?.url, '/topics/orders/produce')
  assert.equal(broker.asked[0]?.body, '{"records":[{"key":"alice","partition":1,"value":"--json"}]}')
})

test('produce --from-file sends each non-empty line verbatim, in order, in several requests', async t => {
  const broker = await startFakeBroker(t, appender())
  const lines = Array.from(
    { length: 2_500 },
    (_, index) => `  line ${index} é "quoted" \t${index % 2 === 0 ? '' : '\r'}`
  )
  const file = inputFile(t, `\n${lines.slice(0, 1_200).join('\n')}\n\n${lines.slice(1_200).join('\n')}`)
  const { code, stdout } = await run(['produce', '--topic', 'x', '--from-file', file, '--broker', broker.url])
  assert.equal(code, 0)
  assert.deepEqual(broker.asked.flatMap(valuesOf), lines)
  assert.equal(broker.asked.length, 3)
  assert.deepEqual(
    stdout.trim().split('\n'),
    lines.map((_, index) => `partition=0 offset=${index}`)
  )
})

test('produce reads stdin for a dash, and prints one answer per request with --json', async t => {
  const broker = await startFakeBroker(t, appender())
  const words = ['produce', '--topic', 'x', '--from-file', '-', '--json', '--broker', broker.url]
  const { code, stdout } = await run(words, { stdin: 'a\nb' })
  assert.deepEqual([code, stdout], [0, '{"results":[{"partition":0,"offset":0},{"partition":0,"offset":1}]}\n'])
})

test('a refusal in the middle of a file says how far it came and what became of the lines', async t => {
  const cases = [
    [400, '{"error":"record 3 is over the limit","code":"RECORD_TOO_LARGE","written":"no"}', 'nothing was written'],
    // The status alone says nothing: a full disk is a 507, and nothing was written.
    [507, '{"error":"the disk is full","code":"DISK_FULL","written":"no"}', 'nothing was written'],
    [503, '{"error":"shard 1 stopped","code":"SHARD_DIED","written":"unknown"}', 'any may have been written'],
    [404, '{"error":"a proxy knows nothing"}', 'any may have been written']
  ] as const
  for (const [status, body, fate] of cases) {
    const append = appender()
    let requestCount = 0
    const broker = await startFakeBroker(t, asked => (++requestCount === 2 ? { status, body } : append(asked)))
    const file = inputFile(t, 'line\n'.repeat(3_000))
    const { code, stderr } = await run(['produce', '--topic', 'x', '--from-file', file, '--broker', broker.url])
    assert.equal(code, 1)
    const { error }: { error: string } = JSON.parse(body)
    assert.equal(
      stderr,
      `millrace: POST ${broker.url}/topics/x/produce answered ${status}: ${error}; ` +
        `of lines 1001 to 2000 ${fate}; 1000 record(s) before that were written\n`
    )
  }
})

test('a value that is refused comes with whether it was written, said once', async t => {
  const cases = [
    ['{"error":"too large; nothing was written","written":"no"}', 'too large; nothing was written'],
    ['{"error":"no such topic","written":"no"}', 'no such topic; nothing was written'],
    ['{"error":"the shard died","written":"unknown"}', 'the shard died; the record may have been written']
  ] as const
  for (const [body, words] of cases) {
    const broker = await startFakeBroker(t, () => ({ status: 500, body }))
    const { stderr } = await run(['produce', '--topic', 'x', '--value', 'v', '--broker', broker.url])
    assert.ok(stderr.endsWith(`answered 500: ${words}\n`), stderr)
  }
})

test('a long file on a terminal shows a progress bar on stderr and a tally on stdout', async t => {
  const broker = await startFakeBroker(t, appender())
  const file = inputFile(t, `${'x'.repeat(999)}\n`.repeat(1_200))
  const words = ['produce', '--topic', 'x', '--from-file', file, '--broker', broker.url]
  const onTerminal = await run(words, { isTerminal: true })
  assert.equal(onTerminal.stdout, "produced 1200 record(s) to topic 'x'\n")
  assert.match(onTerminal.stderr, /\d+% \| \d+ records/)
  const piped = await run(words)
  assert.equal(piped.stderr, '')
  assert.equal(piped.stdout.split('\n').length, 1_201)
})

test('a line that is not UTF-8 stops with its number and nothing of it is sent', async t => {
  const broker = await startFakeBroker(t, appender())
  const file = inputFile(t, Buffer.concat([Buffer.from('fine\n'), Buffer.from([0xff, 0xfe, 0x0a])]))
  const { code, stderr } = await run(['produce', '--topic', 'x', '--from-file', file, '--broker', broker.url])
  assert.equal(code, 2)
  assert.match(stderr, /input\.txt, line 2: not UTF-8 text; .*; 0 record\(s\) before that were written/)
  assert.equal(broker.asked.length, 0)
})

test('a file that cannot be read is an error of use', async () => {
  const missing = await run(['produce', '--topic', 'x', '--from-file', '/nonexistent/file'])
  assert.equal(missing.code, 2)
  assert.match(missing.stderr, /cannot read --from-file \/nonexistent\/file/)
  assert.equal((await run(['produce', '--topic', 'x', '--from-file', tmpdir()])).code, 2)
})

/** A log of `count` records, of which at most `perRequest` come at once. */
function log(count: number, perRequest: number): (asked: Asked) => Told {
  return asked => {
    const query = new URL(asked.url, 'http://broker').searchParams
    const start = Number(query.get('offset'))
    const length = Math.max(0, Math.min(Number(query.get('max_records')), perRequest, count - start))
    const records = Array.from({ length }, (_, index) => ({
      partition: 0,
      offset: start + index,
      timestamp_ms: 1,
      key: index % 2 === 0 ? 'alice' : null,
      value: `v${start + index}`
    }))
    const body = { records, next_offset: start + length, high_watermark: count }
    return { status: 200, body: JSON.stringify(body) }
  }
}

test('consume prints one line per record and the position', async t => {
  const broker = await startFakeBroker(t, log(2, 100))
  const { code, stdout } = await run(['consume', '--topic', 'x', '--partition', '0', '--broker', broker.url])
  assert.equal(code, 0)
  assert.equal(
    stdout,
    'offset=0 key=alice value=v0\noffset=1 value=v1\n-- next_offset=2 high_watermark=2 (2 record(s))\n'
  )
  assert.equal(broker.asked[0]?.url, '/topics/x/consume?partition=0&offset=0&max_records=100&encoding=base64')
})

test('consume says what it passed over, ahead of the records', async t => {
  const broker = await startFakeBroker(t, () => {
    const record = { partition: 0, offset: 7, timestamp_ms: 1, key: null, value: 'v' }
    const skipped = { requested: 2, earliest: 7, latest: 8 }
    return { status: 200, body: JSON.stringify({ records: [record], next_offset: 8, high_watermark: 8, skipped }) }
  })
  const { stdout } = await run(['consume', '--topic', 'x', '--partition', '0', '--offset', '2', '--broker', broker.url])
  assert.deepEqual(stdout.split('\n').slice(0, 2), [
    '-- skipped requested=2 earliest=7: what was between is gone or damaged',
    'offset=7 value=v'
  ])
})

test('consume goes on after short answers until --max is satisfied', async t => {
  const broker = await startFakeBroker(t, log(50, 7))
  const words = ['consume', '--topic', 'x', '--partition', '0', '--offset', '3', '--max', '20', '--broker', broker.url]
  const { stdout } = await run(words)
  const lines = stdout.trim().split('\n')
  assert.deepEqual(
    lines.slice(0, 20).map(line => line.split(' ')[0]),
    Array.from({ length: 20 }, (_, i) => `offset=${i + 3}`)
  )
  assert.equal(lines[20], '-- next_offset=23 high_watermark=50 (20 record(s))')
  assert.equal(broker.asked.length, 3)
})

test('consume stops at the end of the log, and beyond it at once', async t => {
  const broker = await startFakeBroker(t, log(10, 4))
  const all = await run(['consume', '--topic', 'x', '--partition', '0', '--max', '1000', '--broker', broker.url])
  assert.match(all.stdout, /-- next_offset=10 high_watermark=10 \(10 record\(s\)\)\n$/)
  const offset = '18446744073709551615'
  const words = ['consume', '--topic', 'x', '--partition', '0', '--offset', offset, '--broker']
  const beyond = await startFakeBroker(t, () => ({
    status: 200,
    body: `{"records":[],"next_offset":${offset},"high_watermark":10}`
  }))
  assert.equal((await run([...words, beyond.url])).stdout, `-- next_offset=${offset} high_watermark=10 (0 record(s))\n`)
  assert.match(beyond.asked[0]?.url ?? '', new RegExp(`offset=${offset}&`))
})

test('consume does not ask for ever when the next offset stands still below the watermark', async t => {
  const broker = await startFakeBroker(t, () => ({
    status: 200,
    body: '{"records":[],"next_offset":5,"high_watermark":9}'
  }))
  const words = ['consume', '--topic', 'x', '--partition', '0', '--offset', '5', '--broker', broker.url]
  assert.equal((await run(words)).code, 0)
  assert.equal(broker.asked.length, 1)
})

test('control characters of a value cannot break the line or steer the terminal', async t => {
  const value = 'a\nb\u001b[2Jc\td'
  const body = JSON.stringify({
    records: [{ partition: 0, offset: 0, timestamp_ms: 1, key: 'k\r', value }],
    next_offset: 1,
    high_watermark: 1
  })
  const broker = await startFakeBroker(t, () => ({ status: 200, body }))
  const words = ['consume', '--topic', 'x', '--partition', '0', '--broker', broker.url]
  assert.equal((await run(words)).stdout.split('\n')[0], 'offset=0 key=k\\r value=a\\nb\\x1b[2Jc\td')
  assert.equal((await run([...words, '--json'])).stdout, `${body}\n`)
})

test('wrong use exits 2 with one line that helps', async () => {
  const cases: [string[], RegExp][] = [
    [['topci', 'list'], /unknown command 'topci': did you mean topic\?/],
    [['consume', '--partitions', '3'], /unknown option '--partitions': did you mean --partition\?/],
    [['topic', '--nam', 'x'], /unknown option '--nam'/],
    [['topic', 'create', '--nam', 'x'], /unknown option '--nam': did you mean --name\?/],
    [['topic', 'create'], /--name is missing/],
    [['topic', 'create', '--name', 'x', '--partitions', 'two'], /--partitions 'two' is not a whole number/],
    [['topic', 'list', '--broker', 'ftp://x'], /--broker 'ftp:\/\/x' is not an http address/],
    [['produce', '--topic', 'x'], /give --value or --from-file/],
    [['produce', '--topic', 'x', '--value', 'a', '--from-file', 'b'], /cannot be used with/],
    [['consume', '--partition', '0'], /--topic is missing/],
    [['consume', '--topic', 'x', '--partition', '0', '--max', '0'], /--max '0' is not a whole number from 1/],
    [
      ['consume', '--topic', 'x', '--partition', '0', '--offset', '18446744073709551616'],
      /--offset '18446744073709551616'/
    ],
    [['config', 'explain', '--prot', '1'], /unknown flag --prot/],
    [['serve', '--bidn', 'x'], /unknown flag --bidn: did you mean --bind\?/],
    [['serve', 'now'], /unexpected argument 'now'/]
  ]
  for (const [words, message] of cases) {
    const { code, stdout, stderr } = await run(words)
    assert.equal(code, 2, words.join(' '))
    assert.equal(stdout, '')
    assert.match(stderr, message)
    assert.match(stderr, /^millrace: [^\n]*\n$/)
  }
})

test('several faults of a configuration come as one list', async () => {
  const words = ['config', 'explain', '--shards', '0', '--dta-dir', 'x', '--bind']
  const { code, stderr } = await run([...words, '0.0.0.0:1'], { env: { MILLRACE_AUHT: 'x' } })
  assert.equal(code, 2)
  assert.equal(stderr.split('\n')[0], 'millrace: 4 faults in the configuration:')
  assert.equal(stderr.trim().split('\n').length, 5)
})

test('config explain takes the flags of serve and prints text or JSON', async () => {
  const words = [
    'config',
    'explain',
    '--shards',
    '3',
    '--allowed-host',
    'a',
    '--allowed-host',
    'b',
    '--http-engine=node'
  ]
  const text = await run([...words, '--allow-remote-unauthenticated'], { env: { MILLRACE_LOG_LEVEL: 'warn' } })
  assert.equal(text.code, 0)
  assert.match(text.stdout, /^allowed_host +a, b +flag --allowed-host$/m)
  assert.match(text.stdout, /^allow_remote_unauthenticated +true +flag/m)
  assert.match(text.stdout, /^log_level +warn +env MILLRACE_LOG_LEVEL$/m)
  assert.match(text.stdout, /^total +[\d.]+ MiB$/m)
  const json = await run([...words, '--json'])
  const explanation: { settings: { key: string; value: unknown }[]; memory: { totalBytes: number } } = JSON.parse(
    json.stdout
  )
  assert.equal(explanation.settings.find(row => row.key === 'shards')?.value, 3)
  assert.ok(explanation.memory.totalBytes > 0)
})

test('every command has --help with examples and exit codes', async () => {
  const io = { stdin: process.stdin, stdout: process.stdout, stderr: process.stderr, env: {} }
  const leaves = nodesOf(commandTree(buildProgram(io, () => undefined))).filter(({ path, commands }) => {
    return commands.length === 0 && path.at(-1) !== 'help'
  })
  assert.ok(leaves.length > 45)
  for (const { path } of leaves) {
    const command = path.join(' ')
    const { code, stdout, stderr } = await run([...path, '--help'])
    assert.deepEqual([code, stderr], [0, ''], command)
    assert.match(stdout, new RegExp(`Examples:\\n +\\$ (.*)millrace ${command}`), command)
    assert.match(stdout, /Exit codes:/)
    for (const [example] of stdout.matchAll(/^ +\$ .+$/gm))
      assert.doesNotMatch(example.replaceAll(/'[^']*'/g, ''), /\*/, 'a shell would look for files of that name')
  }
})

test('--version prints the version of the package', async () => {
  const { code, stdout } = await run(['--version'])
  assert.equal(code, 0)
  assert.match(stdout, /^\d+\.\d+\.\d+\n$/)
})
