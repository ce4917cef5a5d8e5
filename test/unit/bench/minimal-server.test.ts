/** The minimal server: what it refuses, that it answers after the sync, and a run of the load generator against it. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { startMinimalServer } from '../../../native-free-bench/broker-process.ts'
import type { BrokerProcess } from '../../../native-free-bench/broker-process.ts'
import { HttpJson } from '../../../native-free-bench/http-json.ts'
import { openProduceLoad } from '../../../native-free-bench/load/produce-load.ts'
import { runWindow } from '../../../native-free-bench/load/window.ts'
import { MinimalLog } from '../../../native-free-bench/minimal-log.ts'
import type { LogFile, SyncMode } from '../../../native-free-bench/minimal-log.ts'
import { createMinimalServer } from '../../../native-free-bench/minimal-server.ts'

const MIB = 1024 * 1024

/** A file that takes writes at once and keeps every sync until the test lets it end. */
class SlowFile implements LogFile {
  readonly syncs: ((error: Error | null) => void)[] = []
  onSync = (): void => {}

  write(bytes: Buffer, _position: number, done: (error: Error | null, writtenBytes: number) => void): void {
    setImmediate(() => done(null, bytes.length))
  }

  sync(done: (error: Error | null) => void): void {
    this.syncs.push(done)
    this.onSync()
  }

  close(): Promise<void> {
    return Promise.resolve()
  }
}

async function serve(t: TestContext, file: LogFile): Promise<{ http: HttpJson; port: number }> {
  const server = createMinimalServer(new MinimalLog(file, MIB, 'group'))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  assert.ok(address !== null && typeof address === 'object')
  const http = new HttpJson({ host: '127.0.0.1', port: address.port }, 4)
  t.after(async () => {
    http.close()
    server.closeAllConnections()
    await new Promise(resolve => server.close(resolve))
  })
  await http.ask('POST', '/topics', { name: 'orders', partitions: 2 })
  return { http, port: address.port }
}

/** A file whose syncs end at once. */
function quickFile(): SlowFile {
  const file = new SlowFile()
  file.onSync = () => setImmediate(() => file.syncs.shift()?.(null))
  return file
}

test('a produce is answered after the sync, with an offset for every record', async t => {
  const file = new SlowFile()
  const synced = new Promise<void>(resolve => (file.onSync = resolve))
  const { http } = await serve(t, file)
  const records = [0, 1, 1].map(partition => ({ value: 'x', partition }))
  let isAnswered = false
  const answered = http.ask('POST', '/topics/orders/produce', { records }).finally(() => (isAnswered = true))
  await synced
  // Another request goes to the server and back: an answer to the first would have been here before.
  assert.equal((await http.send('GET', '/', null)).status, 404)
  assert.equal(isAnswered, false)
  file.syncs[0]?.(null)
  assert.deepEqual(await answered, {
    results: [
      { partition: 0, offset: 0 },
      { partition: 1, offset: 0 },
      { partition: 1, offset: 1 }
    ]
  })
})

test('a failed sync is a 500, also for those who come later', async t => {
  const file = new SlowFile()
  file.onSync = () => setImmediate(() => file.syncs.shift()?.(new Error('no more')))
  const { http } = await serve(t, file)
  const body = JSON.stringify({ records: [{ value: 'x', partition: 0 }] })
  for (const words of [/may be on the disk or not/, /failed before/]) {
    const { status, body: text } = await http.send('POST', '/topics/orders/produce', body)
    assert.equal(status, 500)
    assert.match(text, words)
  }
})

test('what is wrong is refused and takes no offset', async t => {
  const { http } = await serve(t, quickFile())
  const fit = { value: 'x', partition: 0 }
  const wrong: [string, number][] = [
    ['{"records":[', 400],
    ['', 400],
    ['null', 400],
    ['{"records":{}}', 400],
    ['{"records":[]}', 400],
    [JSON.stringify({ records: [fit, null] }), 400],
    [JSON.stringify({ records: [fit, { partition: 0 }] }), 400],
    [JSON.stringify({ records: [fit, { value: 1, partition: 0 }] }), 400],
    [JSON.stringify({ records: [fit, { value: 'x' }] }), 400],
    ...[2, -1, 0.5, '0'].map((partition): [string, number] => [
      JSON.stringify({ records: [fit, { value: 'x', partition }] }),
      400
    ]),
    [JSON.stringify({ records: [{ value: 'x'.repeat(MIB), partition: 0 }] }), 507]
  ]
  for (const [body, status] of wrong) {
    const answer = await http.send('POST', '/topics/orders/produce', body)
    assert.deepEqual([answer.status, answer.body.startsWith('{"error":"')], [status, true], body.slice(0, 100))
  }
  for (const topic of ['{"name":"a"}', '{"name":"a/b","partitions":1}', '{"name":"a","partitions":10001}', '7'])
    assert.equal((await http.send('POST', '/topics', topic)).status, 400, topic)
  assert.equal((await http.send('POST', '/topics', '{"name":"orders","partitions":2}')).status, 409)
  assert.equal((await http.send('POST', '/topics/other/produce', JSON.stringify({ records: [fit] }))).status, 404)
  assert.deepEqual(await http.ask('POST', '/topics/orders/produce', { records: [fit] }), {
    results: [{ partition: 0, offset: 0 }]
  })
})

test('a body that is too large is refused before it is whole', async t => {
  const { port } = await serve(t, quickFile())
  const socket = connect(port, '127.0.0.1')
  t.after(() => socket.destroy())
  const head = `POST /topics/orders/produce HTTP/1.1\r\nHost: x\r\nContent-Length: ${40 * MIB}\r\n\r\n`
  socket.write(head)
  socket.write(Buffer.alloc(11 * MIB, 0x20))
  const [first] = await once(socket, 'data')
  assert.match(String(first), /^HTTP\/1\.1 413 /)
})

for (const mode of ['group', 'each'] as const) {
  test(`in a process of its own it carries a load of JSON, sync mode ${mode}, and tells of its syncs`, async t => {
    const { server, path } = await start(t, mode)
    const http = new HttpJson(server.addresses.http, 1)
    t.after(() => http.close())
    await http.ask('POST', '/topics', { name: 'bench', partitions: 3 })
    const shape = { topic: 'bench', records: 10, valueBytes: 1024, keyed: false }
    const load = await openProduceLoad({
      protocol: 'http',
      addresses: server.addresses,
      shape,
      partitions: 3,
      connections: 4,
      inFlight: 1,
      rate: null
    })
    t.after(() => load.close())
    const { sums, refusals } = await runWindow(load, {
      warmUpMs: 0,
      windowMs: 100,
      bytesMax: 4 * MIB,
      brokerPid: server.pid
    })
    assert.ok(sums.requests > 0 && sums.records === sums.requests * 10)
    assert.equal(refusals, 0)
    const totals = await server.stop()
    assert.ok(totals !== null)
    // Every record is there: 16 bytes and the value.
    const records = totals.journalBytes / (16 + 1024)
    const [first, last] = [0, totals.journalBytes - 1040].map(at => readFileSync(path).readUInt32BE(at + 4))
    assert.deepEqual([first, last, readFileSync(path).readUInt32BE(totals.journalBytes)], [1024, 1024, 0x5a5a5a5a])
    assert.ok(records >= sums.records)
    if (mode === 'each') assert.equal(totals.syncs, records / 10)
    else assert.ok(totals.syncs > 0 && totals.syncs <= records / 10)
  })
}

async function start(t: TestContext, mode: SyncMode): Promise<{ server: BrokerProcess; path: string }> {
  const dataDir = mkdtempSync(join(tmpdir(), 'millrace-minimal-'))
  t.after(() => rmSync(dataDir, { recursive: true, force: true }))
  const server = await startMinimalServer({ dataDir, mode, fileBytes: 8 * MIB })
  t.after(() => server.kill())
  assert.equal(server.filledBytes(), 8 * MIB)
  return { server, path: join(dataDir, 'log.bin') }
}
