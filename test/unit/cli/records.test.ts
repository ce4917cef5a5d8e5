/** Records in and out of the command line: headers, bytes that are no text, places to begin at, and waiting. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { run, startFakeBroker, type Asked, type Told } from './terminal.ts'

const base64 = (text: string): string => Buffer.from(text).toString('base64')

const produced = (): Told => ({ status: 200, body: '{"results":[{"partition":0,"offset":0}]}' })

function consumed(records: readonly object[], more: object = {}): () => Told {
  const body = { records, next_offset: records.length, high_watermark: records.length, ...more }
  return () => ({ status: 200, body: JSON.stringify(body) })
}

const record = (offset: number, value: string, more: object = {}): object => {
  return { partition: 0, offset, timestamp_ms: 1, key: null, value, ...more }
}

const consume = (url: string, ...words: readonly string[]) =>
  run(['consume', '--topic', 'x', '--partition', '0', ...words, '--broker', url])

test('produce sends headers in their order, with the same name twice, and one without a value', async t => {
  const broker = await startFakeBroker(t, produced)
  const words = ['--header', 'a=1', '--header', 'a=b=c', '--header', 'empty=', '--header', 'none']
  const { code } = await run(['produce', '--topic', 'x', '--value', 'v', ...words, '--broker', broker.url])
  const headers = '[["a","1"],["a","b=c"],["empty",""],["none",null]]'
  assert.deepEqual([code, broker.asked[0]?.body], [0, `{"records":[{"headers":${headers},"value":"v"}]}`])
  const nameless = await run(['produce', '--topic', 'x', '--value', 'v', '--header', '=1', '--broker', broker.url])
  assert.equal(nameless.code, 2)
  assert.match(nameless.stderr, /^millrace: --header '=1' has no name: write name=value\n$/)
})

test('produce says of a request in base64 that it is, numbered or not', async t => {
  const broker = await startFakeBroker(t, produced)
  const words = ['produce', '--topic', 'x', '--value', '/w==', '--encoding', 'base64', '--broker', broker.url]
  assert.equal((await run(words)).code, 0)
  assert.equal((await run([...words, '--producer-id', 'p', '--sequence', '9007199254740993'])).code, 0)
  assert.deepEqual(
    broker.asked.map(({ body }) => body),
    [
      '{"encoding":"base64","records":[{"value":"/w=="}]}',
      '{"producer_id":"p","encoding":"base64","records":[{"value":"/w==","sequence":9007199254740993}]}'
    ]
  )
  const { code, stderr } = await run([...words, '--encoding', 'hex'])
  assert.equal(code, 2)
  assert.match(stderr, /Allowed choices are utf8, base64/)
})

test('consume shows headers and text as text, and bytes that are no text in base64', async t => {
  const headers = [
    ['trace', base64('af 01')],
    ['n\n', null],
    ['raw', '/w==']
  ]
  const records = [
    record(0, base64('two words'), { key: base64('alice'), headers }),
    record(1, 'AP8=', { key: '/w==' })
  ]
  const broker = await startFakeBroker(t, consumed(records, { encoding: 'base64' }))
  assert.deepEqual((await consume(broker.url)).stdout.split('\n').slice(0, 2), [
    'offset=0 key=alice header:trace=af 01 header:n\\n header:raw_base64=/w== value=two words',
    'offset=1 key_base64=/w== value_base64=AP8='
  ])
  const exact = await consume(broker.url, '--encoding', 'base64')
  assert.match(exact.stdout, /^offset=0 key_base64=YWxpY2U= header:trace_base64=YWYgMDE= /)
})

test('consume --encoding utf8 and --json ask for text, unless base64 is wanted', async t => {
  const broker = await startFakeBroker(t, consumed([record(0, '\ufffd')]))
  assert.match((await consume(broker.url, '--encoding', 'utf8')).stdout, /^offset=0 value=\ufffd\n/)
  await consume(broker.url, '--json')
  await consume(broker.url, '--json', '--encoding', 'base64')
  assert.deepEqual(
    broker.asked.map(({ url }) => new URL(url, broker.url).searchParams.get('encoding')),
    [null, null, 'base64']
  )
})

test('consume begins at an end, an offset or a time', async t => {
  const broker = await startFakeBroker(t, consumed([]))
  const places = [
    ['earliest', 'offset=earliest'],
    ['latest', 'offset=latest'],
    ['57', 'offset=57'],
    ['1700000000000ms', 'timestamp_ms=1700000000000'],
    ['-1ms', 'timestamp_ms=-1'],
    ['2026-01-31T08:30:00Z', 'timestamp_ms=1769848200000']
  ]
  for (const [place = '', query = ''] of places) {
    assert.equal((await consume(broker.url, '--offset', place)).code, 0, place)
    assert.ok(broker.asked.at(-1)?.url.includes(`partition=0&${query}&max_records`), broker.asked.at(-1)?.url)
  }
  for (const place of ['soon', '1.5', '-1', '2026-02-31', '']) {
    assert.equal((await consume(broker.url, '--offset', place)).code, 2, place)
  }
  assert.equal(broker.asked.length, places.length)
})

/** A log whose end moves by one record for each wait, until it does not. */
function growing(count: number): (asked: Asked) => Told {
  return ({ url }) => {
    const query = new URL(url, 'http://broker').searchParams
    const at = query.get('offset') === 'latest' ? 3 : Number(query.get('offset'))
    const isThere = at < count
    const records = isThere ? [record(at, `v${at}`)] : []
    const next = isThere ? at + 1 : at
    return { status: 200, body: JSON.stringify({ records, next_offset: next, high_watermark: next }) }
  }
}

test('consume --wait-ms waits at the end until a whole wait has brought nothing', async t => {
  const broker = await startFakeBroker(t, growing(6))
  const { stdout } = await consume(broker.url, '--offset', '3', '--wait-ms', '500')
  assert.equal(
    stdout,
    'offset=3 value=v3\noffset=4 value=v4\noffset=5 value=v5\n-- next_offset=6 high_watermark=6 (3 record(s))\n'
  )
  assert.ok(broker.asked.every(({ url }) => url.endsWith('&max_wait_ms=500')))
  assert.match((await consume(broker.url, '--offset', 'latest', '--wait-ms', '1', '--max', '2')).stdout, /\(2 record/)
  const empty = await startFakeBroker(t, growing(3))
  assert.match((await consume(empty.url, '--offset', 'latest', '--wait-ms', '1')).stdout, /^-- next_offset=3 .*\(0 rec/)
  assert.equal(empty.asked.length, 1)
  assert.equal((await consume(empty.url, '--wait-ms', '60001')).code, 2)
})
