/** `millrace tail` against real brokers: what is printed, what a restart does to it, and how it ends. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { test } from 'node:test'
import { makeTestKey, startGuarded } from '../support/access.ts'
import { spawnBroker, startBroker, waitFor } from '../support/broker.ts'
import { makeCertificate, writeCertificate } from '../support/certificate.ts'
import { atEnd } from '../support/clean-up.ts'
import { range } from '../support/es01-session.ts'
import { HttpApi, parse } from '../support/http-api.ts'
import { repository } from '../support/repository.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import { freePort, run, start, type Capture } from '../unit/cli/terminal.ts'

const linesOf = ({ text }: Capture): string[] => text.split('\n').slice(0, -1)

test('tail prints records of all partitions as they come, and Ctrl-C ends it with the count', async t => {
  const { url } = await startBroker(t)
  const api = new HttpApi(url)
  await api.createTopic('orders', 2)
  await api.produce('orders', [{ key: 'k', value: 'before', partition: 1 }])
  const tail = start(['tail', '--topic', 'orders', '--from', 'earliest', '--broker', url])
  await waitFor('the record that was there', () => linesOf(tail.stdout).length === 1)
  const headers = [
    ['trace', 'af 01'],
    ['none', null]
  ]
  await api.post('/topics/orders/produce', { records: [{ value: 'a\nb', partition: 0, headers }] })
  await waitFor('the next', () => linesOf(tail.stdout).length === 2)
  const bytes = { value: '/wA=', key: '/w==', partition: 0 }
  await api.post('/topics/orders/produce', { encoding: 'base64', records: [bytes] })
  await waitFor('bytes that are no text', () => linesOf(tail.stdout).length === 3)
  tail.signal('SIGINT')
  assert.deepEqual(await tail.outcome, {
    code: 0,
    stdout:
      'partition=1 offset=0 key=k value=before\n' +
      'partition=0 offset=0 header:trace=af 01 header:none value=a\\nb\n' +
      'partition=0 offset=1 key_base64=/w== value_base64=/wA=\n',
    stderr: '-- 3 record(s)\n'
  })
})

test('tail begins where it is told, takes one partition or one key, and ends after --max', async t => {
  const { url } = await startBroker(t)
  const api = new HttpApi(url)
  await api.createTopic('t', 2)
  await api.produce(
    't',
    range(10).map(i => ({ key: i % 2 === 0 ? 'even' : 'odd', value: `${i}`, partition: 1 }))
  )
  const values = async (...words: readonly string[]): Promise<string[]> => {
    const { code, stdout } = await run(['tail', '--topic', 't', '--json', '--broker', url, ...words])
    assert.equal(code, 0)
    return stdout
      .trim()
      .split('\n')
      .map(line => (JSON.parse(line) as { value: string }).value)
  }
  assert.deepEqual(await values('--partition', '1', '--from', '7', '--max', '2'), ['7', '8'])
  assert.deepEqual(await values('--from', 'earliest', '--key', 'odd', '--max', '3'), ['1', '3', '5'])
  assert.deepEqual(await values('--from', '2020-01-01', '--max', '1', '--encoding', 'base64'), ['MA=='])
  assert.deepEqual(await values('--from', '0ms', '--max', '1', '--encoding', 'utf8', '--key', 'odd'), ['1'])
})

test('each line of tail --json is one record, exact also where its bytes are no text', async t => {
  const { url } = await startBroker(t)
  const api = new HttpApi(url)
  await api.createTopic('t')
  await api.post('/topics/t/produce', { records: [{ value: 'ä', headers: [['h', 'x']] }] })
  await api.post('/topics/t/produce', { encoding: 'base64', records: [{ key: 'YQ==', value: '/w==' }] })
  const { stdout } = await run(['tail', '--topic', 't', '--from', 'earliest', '--max', '2', '--json', '--broker', url])
  const records = stdout
    .trim()
    .split('\n')
    .map(line => JSON.parse(line) as Record<string, unknown>)
  assert.deepEqual(
    records.map(({ timestamp_ms: _, ...rest }) => rest),
    [
      { partition: 0, offset: 0, key: null, value: 'ä', headers: [['h', 'x']] },
      { partition: 0, offset: 1, key: 'YQ==', value: '/w==', encoding: 'base64' }
    ]
  )
})

test('tail tells what was passed over, and goes on', async t => {
  const { url } = await startBroker(t)
  const api = new HttpApi(url)
  await api.createTopic('t')
  await api.produce(
    't',
    range(5).map(i => ({ value: `${i}` }))
  )
  await api.post('/topics/t/delete-records', { partition: 0, offset: 3 })
  const words = ['tail', '--topic', 't', '--partition', '0', '--from', '1', '--max', '2', '--broker', url]
  const { stdout, stderr } = await run(words)
  assert.equal(stdout, 'partition=0 offset=3 value=3\npartition=0 offset=4 value=4\n')
  assert.match(stderr, /partition=0 -- skipped requested=1 earliest=3: .*\n-- 2 record\(s\)\n$/)
})

test('tail loses no record and prints none twice although its broker is killed and starts again', async t => {
  const dataDir = temporaryDirectory(t)
  const flags = { '--bind': `127.0.0.1:${await freePort()}` }
  let broker = await spawnBroker(t, { dataDir, flags })
  const api = new HttpApi(broker.url)
  await api.createTopic('t', 3)
  const script = join(repository, 'dist/src/main.js')
  const child = spawn(process.execPath, [script, 'tail', '--topic', 't', '--from', 'earliest', '--broker', broker.url])
  atEnd(t, () => void child.kill('SIGKILL'))
  let stdout = ''
  let stderr = ''
  child.stdout.on('data', (text: Buffer) => (stdout += String(text)))
  child.stderr.on('data', (text: Buffer) => (stderr += String(text)))
  const count = (): number => stdout.split('\n').length - 1
  const rounds = 3
  for (const round of range(rounds)) {
    const records = range(30).map(i => ({ value: `${round}.${i}`, partition: i % 3 }))
    await api.produce('t', records)
    // In the round between it is killed while the last records are on their way to the client.
    if (round % 2 === 0) await waitFor('what was produced', () => count() === (round + 1) * 30)
    await broker.kill('SIGKILL')
    broker = await spawnBroker(t, { dataDir, flags })
  }
  await waitFor('all of it', () => count() === rounds * 30, 20_000)
  const exited = once(child, 'exit')
  child.kill('SIGINT')
  assert.deepEqual(await exited, [0, null])
  const seen = stdout.trim().split('\n')
  const expected = range(rounds * 30).map(i => `value=${Math.floor(i / 30)}.${i % 30}`)
  assert.deepEqual(seen.map(line => line.split(' ').at(-1) ?? '').sort(), expected.sort())
  for (const partition of range(3)) {
    const offsets = seen.flatMap(line => {
      const [, at, offset] = /^partition=(\d) offset=(\d+) /.exec(line) ?? []
      return Number(at) === partition ? [Number(offset)] : []
    })
    assert.deepEqual(offsets, range(rounds * 10), `partition ${partition} in order`)
  }
  assert.match(stderr, /millrace: (the connection broke|read ECONNRESET); trying again\nmillrace: connected again\n/)
  assert.match(stderr, new RegExp(`-- ${rounds * 30} record\\(s\\)\\n$`))
})

test('tail works over TLS with a key, and ends when the key is revoked', async t => {
  const files = writeCertificate(temporaryDirectory(t), makeCertificate('tail'))
  const secure = await startBroker(t, { flags: { '--tls-cert': files.cert, '--tls-key': files.key } })
  const access = ['--broker', `https://${secure.server.httpAddress}`, '--tls-ca', files.cert]
  assert.equal((await run(['topic', 'create', '--name', 't', ...access])).code, 0)
  assert.equal((await run(['produce', '--topic', 't', '--value', 'v', ...access])).code, 0)
  const overTls = await run(['tail', '--topic', 't', '--from', 'earliest', '--max', '1', ...access])
  assert.deepEqual([overTls.code, overTls.stdout], [0, 'partition=0 offset=0 value=v\n'])
  const untrusted = await run(['tail', '--topic', 't', '--broker', `https://${secure.server.httpAddress}`])
  assert.equal(untrusted.code, 3)

  const { broker, admin } = await startGuarded(t)
  await admin.api.createTopic('t')
  await admin.api.produce('t', [{ value: 'v' }])
  const reader = await makeTestKey(admin.api, 'read:t')
  const env = { MILLRACE_KEY: reader.secret, MILLRACE_BROKER: broker.url }
  const tail = start(['tail', '--topic', 't', '--from', 'earliest'], { env })
  await waitFor('the record', () => tail.stdout.text !== '')
  assert.equal((await admin.api.call('DELETE', `/admin/keys/${reader.id}`)).status, 204)
  const { code, stderr } = await tail.outcome
  assert.equal(code, 1)
  assert.match(stderr, /GET .*\/topics\/t\/stream\?.* answered 401: /)
})

test('tail of what is not there, or of no broker, fails at once', async t => {
  const { url, stop } = await startBroker(t)
  const missing = await run(['tail', '--topic', 'none', '--broker', url])
  assert.equal(missing.code, 1)
  assert.match(missing.stderr, /answered 404: no topic named 'none'/)
  assert.deepEqual(parse(await new HttpApi(url).get('/topics')), { topics: [] })
  await stop()
  assert.equal((await run(['tail', '--topic', 'none', '--broker', url])).code, 3)
})
