/** Numbered produce, producer ids and the configuration of topics, as a user sees them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { freePort, run, startFakeBroker, type Asked, type Told } from './terminal.ts'

/** Answers every record with the next offset of partition 0. */
function appender(): (asked: Asked) => Told {
  let next = 0
  return asked => {
    const { records }: { records: unknown[] } = JSON.parse(asked.body)
    return { status: 200, body: JSON.stringify({ results: records.map(() => ({ partition: 0, offset: next++ })) }) }
  }
}

const refusal = (status: number, code: string, written: string, error = 'no'): Told => ({
  status,
  body: JSON.stringify({ error, code, written })
})

test('produce with a producer id sends its id and the sequence, digit for digit', async t => {
  const broker = await startFakeBroker(t, () => ({ status: 200, body: '{"results":[{"partition":1,"offset":7}]}' }))
  const words = ['produce', '--topic', 'orders', '--partition', '1', '--key', 'k', '--value', 'v', '--producer-id', 'p']
  for (const sequence of ['0', '9223372036854775807']) {
    const outcome = await run([...words, '--sequence', sequence, '--broker', broker.url])
    assert.deepEqual(outcome, { code: 0, stdout: 'partition=1 offset=7\n', stderr: '' })
  }
  assert.deepEqual(
    broker.asked.map(({ method, url, contentType, body }) => [method, url, contentType, body]),
    ['0', '9223372036854775807'].map(sequence => [
      'POST',
      '/topics/orders/produce',
      'application/json',
      `{"producer_id":"p","records":[{"key":"k","partition":1,"value":"v","sequence":${sequence}}]}`
    ])
  )
})

test('the sequence counts up per line of a file, also beyond what a number can hold', async t => {
  const broker = await startFakeBroker(t, appender())
  const words = ['produce', '--topic', 'x', '--partition', '0', '--from-file', '-', '--producer-id', 'p']
  const outcome = await run([...words, '--sequence', '9007199254740990', '--broker', broker.url], {
    stdin: 'a\n\nb\nc'
  })
  assert.equal(outcome.code, 0)
  assert.equal(
    broker.asked[0]?.body,
    '{"producer_id":"p","records":[{"partition":0,"value":"a","sequence":9007199254740990},' +
      '{"partition":0,"value":"b","sequence":9007199254740991},{"partition":0,"value":"c","sequence":9007199254740992}]}'
  )
})

test('a numbered file is sent in requests that can be sent again: none is longer than what a broker remembers', async t => {
  const broker = await startFakeBroker(t, appender())
  const words = ['produce', '--topic', 'x', '--partition', '0', '--from-file', '-', '--producer-id', 'p']
  const { code } = await run([...words, '--sequence', '5', '--broker', broker.url], { stdin: 'line\n'.repeat(300) })
  assert.equal(code, 0)
  const sequences = broker.asked.map(({ body }) => {
    const { records }: { records: { sequence: number }[] } = JSON.parse(body)
    return records.map(record => record.sequence)
  })
  assert.deepEqual(
    sequences.map(request => request.length),
    [128, 128, 44]
  )
  assert.deepEqual(
    sequences.flat(),
    Array.from({ length: 300 }, (_, index) => index + 5)
  )
})

test('a numbered file that stops says with which line and sequence to go on', async t => {
  const cases = [
    [refusal(503, 'SHARD_DIED', 'unknown'), 'any may have been written; go on from line 129 with --sequence 133; '],
    [refusal(507, 'DISK_FULL', 'no'), 'nothing was written; go on from line 129 with --sequence 133; '],
    // The same sequences would be refused again.
    [refusal(400, 'SEQUENCE_GAP', 'no'), 'nothing was written; ']
  ] as const
  for (const [told, words] of cases) {
    const append = appender()
    let requestCount = 0
    const broker = await startFakeBroker(t, asked => (++requestCount === 2 ? told : append(asked)))
    const command = ['produce', '--topic', 'x', '--key', 'k', '--from-file', '-', '--producer-id', 'p']
    const stdin = 'line\n'.repeat(300)
    const { code, stderr } = await run([...command, '--sequence', '5', '--broker', broker.url], { stdin })
    assert.equal(code, 1)
    assert.ok(stderr.endsWith(`; of lines 129 to 256 ${words}128 record(s) before that were written\n`), stderr)
  }
})

test('a numbered value of which nobody knows whether it was written may be sent again', async t => {
  const advice = '; sent again with the same --sequence it is written once'
  const words = ['produce', '--topic', 'x', '--value', 'v', '--producer-id', 'p', '--sequence', '3']
  const died = await startFakeBroker(t, () => refusal(503, 'SHARD_DIED', 'unknown'))
  const pinned = await run([...words, '--partition', '0', '--broker', died.url])
  assert.ok(pinned.stderr.endsWith(`; the record may have been written${advice}\n`), pinned.stderr)
  const silent = await startFakeBroker(t, () => null)
  const lost = await run([...words, '--key', 'k', '--broker', silent.url])
  assert.equal(lost.code, 3)
  assert.ok(lost.stderr.includes(advice), lost.stderr)
  // In turn it could go to another partition, where nobody knows its sequence.
  const unpinned = await run([...words, '--broker', died.url])
  assert.ok(unpinned.stderr.endsWith('; the record may have been written\n'), unpinned.stderr)
  const refused = await startFakeBroker(t, () => refusal(507, 'DISK_FULL', 'no'))
  const full = await run([...words, '--partition', '0', '--broker', refused.url])
  assert.ok(full.stderr.endsWith('; nothing was written\n'), full.stderr)
})

test('producer list prints a line per producer and partition with exact numbers, or that there is none', async t => {
  const body =
    '{"producers":[{"producer_id":"a","partitions":[{"topic":"orders","partition":2,' +
    '"last_seen_sequence":9223372036854775807,"last_offset":41},{"topic":"prices","partition":0,' +
    '"last_seen_sequence":0,"last_offset":0}]},{"producer_id":"b","partitions":[]}]}'
  const bodies = [body, body, '{"producers":[]}']
  const broker = await startFakeBroker(t, () => ({ status: 200, body: bodies.shift() ?? '' }))
  const { code, stdout } = await run(['producer', 'list', '--broker', broker.url])
  assert.equal(code, 0)
  assert.deepEqual(stdout.split('\n'), [
    'producer=a topic=orders    partition=2 last_seen_sequence=9223372036854775807 last_offset=41',
    'producer=a topic=prices    partition=0 last_seen_sequence=0                   last_offset=0',
    'producer=b (no partitions)',
    ''
  ])
  assert.equal((await run(['producer', 'list', '--json', '--broker', broker.url])).stdout, `${body}\n`)
  assert.equal((await run(['producer', 'list', '--broker', broker.url])).stdout, '(no producers)\n')
  assert.equal(`${broker.asked[0]?.method} ${broker.asked[0]?.url}`, 'GET /admin/producers')
})

test('producer revoke takes the id as a word or with --id, and needs no body in the answer', async t => {
  const broker = await startFakeBroker(t, () => ({ status: 204, body: '' }))
  const revoked = { code: 0, stdout: "revoked producer 'sh op'\n", stderr: '' }
  assert.deepEqual(await run(['producer', 'revoke', 'sh op', '--broker', broker.url]), revoked)
  assert.deepEqual(await run(['producer', 'revoke', '--id', 'sh op', '--broker', broker.url]), revoked)
  const json = await run(['producer', 'revoke', 'x', '--json', '--broker', broker.url])
  assert.deepEqual(json, { code: 0, stdout: '', stderr: '' })
  assert.deepEqual(
    broker.asked.map(({ method, url }) => `${method} ${url}`),
    ['DELETE /admin/producers/sh%20op', 'DELETE /admin/producers/sh%20op', 'DELETE /admin/producers/x']
  )
})

/** What an answer leaves out, as it is printed. */
const silentFields =
  'validate_schema=false\nmessage_timestamp_type=CreateTime\nmax_message_bytes=default\nsegment_ms=default\npartitioner=fnv1a\n'

test('topic alter sends what was given and prints the configuration as it is then', async t => {
  const body = '{"retention_ms":null,"retention_bytes":1024,"cleanup_policy":"delete","segment_bytes":1048576}'
  const broker = await startFakeBroker(t, () => ({ status: 200, body }))
  const words = ['topic', 'alter', '--name', 'or ders', '--retention-ms', '-1', '--segment-bytes', '1MiB', '--broker']
  const { code, stdout } = await run([...words, broker.url])
  assert.deepEqual(
    [code, stdout],
    [0, `retention_ms=unlimited\nretention_bytes=1024\ncleanup_policy=delete\nsegment_bytes=1048576\n${silentFields}`]
  )
  const { method, url, body: sent } = broker.asked[0] ?? assert.fail('nothing was asked')
  assert.deepEqual(
    [method, url, sent],
    ['PUT', '/topics/or%20ders/config', '{"retention_ms":-1,"segment_bytes":1048576}']
  )
})

test('topic alter takes times and sizes as people write them, and words for no limit', async t => {
  const broker = await startFakeBroker(t, () => ({ status: 200, body: '{}' }))
  for (const [words, sent] of [
    ['--retention-ms 7d', '{"retention_ms":604800000}'],
    ['--retention-ms 86400000', '{"retention_ms":86400000}'],
    ['--retention-ms never --retention-bytes unlimited', '{"retention_ms":-1,"retention_bytes":-1}'],
    [
      '--retention-bytes 10GiB --tombstone-retention-ms 1h',
      '{"retention_bytes":10737418240,"tombstone_retention_ms":3600000}'
    ]
  ] as const) {
    const { code, stderr } = await run(['topic', 'alter', 'x', ...words.split(' '), '--broker', broker.url])
    assert.deepEqual([code, broker.asked.at(-1)?.body], [0, sent], stderr)
  }
  const bad = await run(['topic', 'alter', 'x', '--retention-ms', 'soon'])
  assert.equal(bad.stderr, "millrace: --retention-ms 'soon' is not a duration: write 150ms, 10m, 1h or 7d\n")
  assert.equal((await run(['topic', 'alter', 'x', '--retention-ms', '-2'])).code, 2)
})

test('topic show-config prints a field per line, and with --json the answer as it came', async t => {
  const body = '{"retention_ms":18446744073709551615,"retention_bytes":null}'
  const broker = await startFakeBroker(t, () => ({ status: 200, body }))
  const words = ['topic', 'show-config', '--name', 'x', '--broker', broker.url]
  assert.equal(
    (await run(words)).stdout,
    `retention_ms=18446744073709551615\nretention_bytes=unlimited\n${silentFields}`
  )
  assert.equal((await run([...words, '--json'])).stdout, `${body}\n`)
  assert.equal(`${broker.asked[0]?.method} ${broker.asked[0]?.url}`, 'GET /topics/x/config')
})

test('failures of these commands are told apart as those of all others', async t => {
  const refused = await startFakeBroker(t, () => refusal(404, 'PRODUCER_NOT_FOUND', 'no', "no producer id 'x'"))
  assert.deepEqual(await run(['producer', 'revoke', 'x', '--broker', refused.url]), {
    code: 1,
    stdout: '',
    stderr: `millrace: DELETE ${refused.url}/admin/producers/x answered 404: no producer id 'x'\n`
  })
  const proxy = await startFakeBroker(t, () => ({ status: 502, body: 'bad gateway' }))
  assert.match((await run(['producer', 'list', '--broker', proxy.url])).stderr, /answered 502: bad gateway\n$/)
  const foreign = await startFakeBroker(t, () => ({ status: 200, body: '<html>' }))
  assert.match((await run(['producer', 'list', '--broker', foreign.url])).stderr, /not JSON: is this a Millrace/)
  const nobody = `http://127.0.0.1:${await freePort()}`
  const unreachable = await run(['producer', 'list', '--broker', nobody])
  assert.equal(unreachable.code, 3)
  assert.match(unreachable.stderr, /cannot reach a broker at .*ECONNREFUSED/)
  const silent = await startFakeBroker(t, () => null)
  const lost = await run(['producer', 'list', '--broker', silent.url])
  assert.equal(lost.code, 3)
  assert.match(lost.stderr, /got no answer: /)
})

test('wrong use of these commands exits 2 with one line that helps, and asks no broker', async t => {
  const broker = await startFakeBroker(t, () => ({ status: 200, body: '{}' }))
  const produce = ['produce', '--topic', 'x', '--value', 'v']
  const cases: [string[], RegExp][] = [
    [[...produce, '--producer-id', 'p'], /--producer-id needs --sequence/],
    [[...produce, '--sequence', '0'], /--sequence means nothing without --producer-id/],
    [[...produce, '--producer-id', '', '--sequence', '0'], /--producer-id must not be empty/],
    [[...produce, '--producer-id', 'p', '--sequence', '-1'], /--sequence '-1' is not a whole number from 0/],
    [
      [...produce, '--producer-id', 'p', '--sequence', '9223372036854775808'],
      /--sequence '9223372036854775808' is not a whole number .* to 9223372036854775807/
    ],
    [['producer', 'revoke'], /--id is missing/],
    [['producer', 'revoke', ''], /--id must not be empty/],
    [['producer', 'revoke', 'a', '--id', 'b'], /the id is given twice/],
    [['producer', 'lst'], /unknown command 'lst': did you mean list\?/],
    [['topic', 'alter', '--name', 'x'], /nothing to change/],
    [['topic', 'alter', '--retention-ms', '1'], /--name is missing/],
    [['topic', 'alter', '--name', 'x', '--partitions', '3'], /unknown option '--partitions'/],
    [['topic', 'show-config'], /--name is missing/]
  ]
  for (const [words, message] of cases) {
    const { code, stdout, stderr } = await run([...words, '--broker', broker.url])
    assert.deepEqual([code, stdout], [2, ''], words.join(' '))
    assert.match(stderr, message)
    assert.match(stderr, /^millrace: [^\n]*\n$/)
  }
  assert.deepEqual(broker.asked, [])
})
