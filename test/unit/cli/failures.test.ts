/** What a person and a program are told of failures, and which broker and key a command takes. */
import assert from 'node:assert/strict'
import { createServer } from 'node:net'
import { test } from 'node:test'
import { freePort, inputFile, run, startFakeBroker } from './terminal.ts'

test('a refusal exits 1 and shows method, address, status and the text of the broker', async t => {
  const broker = await startFakeBroker(t, () => ({ status: 404, body: '{"error":"no topic named \'x\'"}' }))
  const outcome = await run(['topic', 'describe', '--name', 'x', '--broker', broker.url])
  const stderr = `millrace: GET ${broker.url}/topics/x answered 404: no topic named 'x'\n`
  assert.deepEqual(outcome, { code: 1, stdout: '', stderr })
})

test('with --json a failure is one line of JSON on stderr, with what a program needs', async t => {
  const body = '{"error":"no topic named \'x\'","code":"TOPIC_NOT_FOUND","retry":"refresh","written":"no"}'
  const broker = await startFakeBroker(t, () => ({ status: 404, body }))
  const refused = await run(['topic', 'describe', '--name', 'x', '--json', '--broker', broker.url])
  assert.deepEqual([refused.code, refused.stdout], [1, ''])
  assert.deepEqual(JSON.parse(refused.stderr), {
    error: "no topic named 'x'",
    method: 'GET',
    url: `${broker.url}/topics/x`,
    status: 404,
    code: 'TOPIC_NOT_FOUND',
    written: 'no',
    exit_code: 1
  })
  const nobody = `http://127.0.0.1:${await freePort()}`
  const { code, stderr } = await run(['topic', 'list', '--json', '--broker', nobody])
  const failure = JSON.parse(stderr) as Record<string, unknown>
  assert.deepEqual([code, failure['exit_code'], failure['status']], [3, 3, 0])
})

test('no broker exits 3, names the address and says how to start one', async () => {
  const url = `http://127.0.0.1:${await freePort()}`
  const { code, stderr } = await run(['topic', 'list'], { env: { ES_BROKER: url } })
  assert.equal(code, 3)
  assert.match(stderr, new RegExp(`cannot reach a broker at ${url}: .*ECONNREFUSED.*'millrace serve'.*--broker\\n$`))
})

test('a connection lost before the answer exits 3 and leaves open whether the write happened', async t => {
  const broker = await startFakeBroker(t, () => null)
  const { code, stderr } = await run(['produce', '--topic', 'x', '--value', 'v', '--broker', broker.url])
  assert.equal(code, 3)
  assert.match(stderr, /got no answer: .*A write may or may not have happened/)
})

test('something that is no broker is told apart', async t => {
  const broker = await startFakeBroker(t, () => ({ status: 200, body: '<html>hello</html>' }))
  const { code, stderr } = await run(['topic', 'list', '--broker', broker.url])
  assert.equal(code, 1)
  assert.match(stderr, /not JSON: is this a Millrace broker\?/)
})

test('--broker wins over MILLRACE_BROKER, that over ES_BROKER, and works before the command too', async t => {
  const broker = await startFakeBroker(t, () => ({ status: 200, body: '{"topics":[]}' }))
  const nobody = `http://127.0.0.1:${await freePort()}`
  const codes = [
    await run(['topic', 'list', '--broker', broker.url], { env: { MILLRACE_BROKER: nobody } }),
    await run(['--broker', broker.url, 'topic', 'list'], { env: { MILLRACE_BROKER: nobody } }),
    await run(['topic', 'list'], { env: { MILLRACE_BROKER: broker.url, ES_BROKER: nobody } }),
    await run(['topic', 'list', '--broker', broker.url.replace('http://', '')])
  ].map(outcome => outcome.code)
  assert.deepEqual(codes, [0, 0, 0, 0])
})

test('a key comes from --auth-file, else --auth, else MILLRACE_KEY, else ES_AUTH; empty ones do not count', async t => {
  const broker = await startFakeBroker(t, () => ({ status: 200, body: '{"topics":[]}' }))
  const file = inputFile(t, 'from-file \nsecond line\n')
  const both = { MILLRACE_KEY: 'from-millrace', ES_AUTH: 'from-es' }
  const list = ['topic', 'list', '--broker', broker.url]
  await run([...list, '--auth', 'from-flag', '--auth-file', file], { env: both })
  await run([...list, '--auth', 'from-flag'], { env: both })
  await run(list, { env: both })
  await run(list, { env: { ...both, MILLRACE_KEY: '' } })
  await run(list, { env: { MILLRACE_KEY: '', ES_AUTH: '' } })
  const expected = ['from-file', 'from-flag', 'from-millrace', 'from-es'].map(secret => `Bearer ${secret}`)
  assert.deepEqual(broker.authorizations, [...expected, undefined])
  const empty = { MILLRACE_BROKER: '', ES_BROKER: broker.url }
  assert.equal((await run(['topic', 'list'], { env: empty })).code, 0)
  assert.equal((await run(['topic', 'list', '--broker', ''], { env: empty })).code, 0)
})

test('a listener that speaks no HTTP is told as that, in one line, to people and to programs', async t => {
  const server = createServer(socket => socket.end('ES01\0'))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  const address = server.address()
  assert.ok(address !== null && typeof address === 'object')
  const host = `127.0.0.1:${address.port}`
  const reason = `what listens at ${host} does not speak HTTP; a broker's binary listener is no --broker`
  const told = await run(['topic', 'list', '--broker', host])
  assert.deepEqual(told, {
    code: 3,
    stdout: '',
    stderr: `millrace: GET http://${host}/topics got no answer: ${reason}\n`
  })
  const json = await run(['topic', 'list', '--json', '--broker', host])
  assert.equal((JSON.parse(json.stderr) as { error: string }).error, reason)
})
