/** `millrace bench` against a real broker: over both protocols, with an end, and without a trace. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { describe, test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { formatBench, type BenchReport } from '../../src/cli/bench-report.ts'
import { describeHost } from '../../src/client/load/host.ts'
import { LoadMeter } from '../../src/client/load/meter.ts'
import { readBootstrapSecret } from '../support/access.ts'
import { spawnBroker, startBroker, type TestBroker } from '../support/broker.ts'
import { makeCertificate, writeCertificate } from '../support/certificate.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import { run } from '../unit/cli/terminal.ts'

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))

function binaryOf({ es01 }: Pick<TestBroker, 'es01'>): string {
  return `${es01.host}:${es01.port}`
}

async function topicsOf({ url }: Pick<TestBroker, 'url'>): Promise<readonly string[]> {
  const answer = (await (await fetch(`${url}/topics`)).json()) as { topics: string[] }
  return answer.topics
}

async function recordsIn(
  { url }: Pick<TestBroker, 'url'>,
  topic: string
): Promise<{ partitions: number; records: number }> {
  const answer = (await (await fetch(`${url}/topics/${topic}`)).json()) as { partitions: { end_offset: number }[] }
  const records = answer.partitions.reduce((sum, { end_offset: end }) => sum + end, 0)
  return { partitions: answer.partitions.length, records }
}

/** A topic that has records says that the load runs. */
async function topicUnderLoad(broker: Pick<TestBroker, 'url'>): Promise<string> {
  let topic: string | undefined
  while (topic === undefined || (await recordsIn(broker, topic)).records === 0) [topic] = await topicsOf(broker)
  return topic
}

/** Runs it as a process of its own. */
function launch(t: TestContext, words: readonly string[]) {
  const child = spawn(process.execPath, [main, 'bench', ...words], { stdio: ['ignore', 'pipe', 'pipe'] })
  t.after(() => child.kill('SIGKILL'))
  const output = { stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output.stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output.stderr += text))
  const ended = once(child, 'close').then(([code]: unknown[]) => ({ code, ...output }))
  return { child, ended }
}

function readReport(stdout: string): BenchReport {
  return JSON.parse(stdout) as BenchReport
}

describe('millrace bench', () => {
  for (const protocol of ['es01', 'http'] as const) {
    test(`writes and reads back what it says over ${protocol}, and deletes its topic`, async t => {
      const broker = await startBroker(t)
      const way = protocol === 'es01' ? ['--binary', binaryOf(broker)] : ['--http']
      const load = ['--records', '1005', '--batch', '100', '--connections', '2', '--in-flight', '3', '--bytes', '50']
      const { code, stdout, stderr } = await run([
        'bench',
        '--broker',
        broker.url,
        ...way,
        ...load,
        '--consume',
        '--json'
      ])
      assert.equal(code, 0, stderr)
      const report = readReport(stdout)
      assert.match(report.topic, /^millrace-bench-[0-9a-f]{8}$/)
      const { produce, consume } = report
      assert.deepEqual([produce.records, produce.bytes, produce.errors], [1005, 1005 * 50, 0])
      assert.deepEqual([consume?.records, consume?.bytes, consume?.errors], [1005, 1005 * 50, 0])
      assert.ok(produce.requests >= 11 && produce.latency.p50Ms > 0)
      assert.ok(produce.latency.p50Ms <= produce.latency.p99Ms && produce.latency.p99Ms <= produce.latency.maxMs * 1.01)
      assert.deepEqual(
        [report.protocol, report.partitions, report.durability, report.isInterrupted],
        [protocol, 12, 'synced', false]
      )
      assert.deepEqual(await topicsOf(broker), [])
    })
  }

  for (const protocol of ['es01', 'http'] as const) {
    test(`reads back over ${protocol} all that it counted in its time, and nothing else`, async t => {
      const broker = await startBroker(t)
      const way = protocol === 'es01' ? ['--binary', binaryOf(broker)] : ['--http']
      const words = ['bench', '--broker', broker.url, ...way, '--seconds', '1', '--batch', '300', '--consume']
      const { code, stdout, stderr } = await run([...words, '--json'])
      assert.equal(code, 0, stderr)
      const { produce, consume, recordsToRead } = readReport(stdout)
      assert.ok(produce.records > 0)
      assert.deepEqual([consume?.records, recordsToRead], [produce.records, produce.records])
    })
  }

  test('says how much it read where that is not all', () => {
    const figures = new LoadMeter().read()
    const report = {
      protocol: 'es01',
      asksGzip: false,
      topic: 't',
      partitions: 1,
      valueBytes: 1,
      keyed: false
    } as const
    const run = { batchRecords: 1, connections: 1, inFlight: 1, isInterrupted: true, durability: 'synced' } as const
    const text = formatBench({
      ...report,
      ...run,
      host: describeHost(),
      produce: { ...figures, records: 7 },
      consume: { ...figures, records: 3 },
      recordsToRead: 7
    })
    assert.match(text, /^produce .*\(7 records, /m)
    assert.match(text, /^consume .*\(3 of 7 records, /m)
  })

  test('says in one line that one side wants TLS and the other does not, and which listener it took', async t => {
    const broker = await startBroker(t)
    const plain = await startBroker(t)
    const words = ['bench', '--records', '1', '--insecure']
    const files = writeCertificate(temporaryDirectory(t), makeCertificate('bench'))
    const secure = await startBroker(t, { flags: { '--tls-cert': files.cert, '--tls-key': files.key } })
    const url = secure.url.replace('http:', 'https:')
    const toPlain = await run([...words, '--broker', url, '--binary', binaryOf(plain)])
    assert.match(
      toPlain.stderr,
      /^millrace: what listens at [\d.:]+ does not speak TLS, and --broker is an https address\. [^\n]+\n$/
    )
    const toSecure = await run([...words, '--broker', broker.url, '--binary', binaryOf(secure)])
    assert.match(toSecure.stderr, /^millrace: [^\n]+; if it wants TLS, write https:\/\/ in --broker\. [^\n]+\n$/)
    const guessed = await run([...words, '--broker', 'http://127.0.0.2:1'])
    assert.match(
      guessed.stderr,
      /^millrace: without --binary, the binary listener is looked for at 127\.0\.0\.2:9001\n/
    )
  })

  test('writes to a topic that is named, and leaves it with all that it counted', async t => {
    const broker = await startBroker(t, { flags: { '--flush-every-records': '100' } })
    await fetch(`${broker.url}/topics`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"name":"mine","partitions":3}'
    })
    const words = ['bench', '--broker', broker.url, '--binary', binaryOf(broker), '--topic', 'mine', '--keyed']
    const { code, stdout, stderr } = await run([...words, '--records', '500', '--consume'])
    assert.equal(code, 0, stderr)
    assert.match(stdout, /^load +es01: 4 connections × 4 in flight × 100 × 256 B, by key over 3 partition\(s\)$/m)
    assert.match(stdout, /^durability +an acknowledgement may precede the sync$/m)
    assert.match(stdout, /^produce +\S+.* records\/s, .*\/s \(500 records, /m)
    assert.match(stdout, /^consume +\S+.* records\/s, .*\/s \(500 records, /m)
    assert.match(stdout, /^latency +p50 \S+, p90 \S+, p99 \S+, max \S+ ms over \d+ request\(s\)$/m)
    assert.deepEqual(await recordsIn(broker, 'mine'), { partitions: 3, records: 500 })
  })

  test('speaks with a broker that asks for keys and has a certificate, on both listeners', async t => {
    const folder = temporaryDirectory(t)
    const files = writeCertificate(folder, makeCertificate('bench'))
    const flags = { '--tls-cert': files.cert, '--tls-key': files.key, '--auth': 'required' }
    const broker = await startBroker(t, { flags })
    const url = broker.url.replace('http:', 'https:')
    const words = ['bench', '--broker', url, '--binary', binaryOf(broker), '--tls-ca', files.cert, '--records', '100']
    const { code, stdout, stderr } = await run([...words, '--json'], {
      env: { MILLRACE_KEY: readBootstrapSecret(broker.dataDir).trim() }
    })
    assert.equal(code, 0, stderr)
    assert.equal(readReport(stdout).produce.records, 100)
    const stranger = await run(words)
    assert.equal(stranger.code, 1)
    assert.match(
      stranger.stderr,
      /^millrace: [^\n]+ refused the handshake: [^\n]+\. Give a key with --auth-file[^\n]+\n$/
    )
    const { stderr: refusal } = await run([...words, '--json'])
    const { error, exit_code: exitCode } = JSON.parse(refusal) as Record<string, unknown>
    assert.match(String(error), /refused the handshake/)
    assert.equal(exitCode, 1)
  })

  test('speaks gzip with --gzip', async t => {
    const broker = await startBroker(t)
    const words = ['bench', '--broker', broker.url, '--binary', binaryOf(broker), '--gzip', '--consume', '--json']
    const { code, stdout, stderr } = await run([...words, '--records', '400'])
    assert.equal(code, 0, stderr)
    const { asksGzip, produce, consume } = readReport(stdout)
    assert.deepEqual([asksGzip, produce.records, consume?.records], [true, 400, 400])
    const page = await (await fetch(`${broker.url}/metrics`)).text()
    for (const direction of ['in', 'out']) {
      const bytes = new RegExp(`^millrace_es01_gzip_bytes_total\\{direction="${direction}",[^}]*\\} (\\d+)$`, 'm').exec(
        page
      )
      assert.ok(Number(bytes?.[1]) > 0, direction)
    }
  })

  test('keeps the topic that it made with --keep', async t => {
    const broker = await startBroker(t)
    const words = ['bench', '--broker', broker.url, '--binary', binaryOf(broker), '--keep', '--partitions', '2']
    const { stdout } = await run([...words, '--records', '10', '--json'])
    const { topic } = readReport(stdout)
    assert.deepEqual(await recordsIn(broker, topic), { partitions: 2, records: 10 })
  })

  test('counts what the broker refuses, ends early, and says so with its exit code', async t => {
    const broker = await startBroker(t, { flags: { '--max-record-bytes': '1KiB' } })
    const words = ['bench', '--broker', broker.url, '--binary', binaryOf(broker), '--bytes', '2KiB', '--batch', '1']
    const { code, stdout } = await run([...words, '--records', '100000'])
    assert.equal(code, 1)
    assert.match(stdout, /^errors +1\d\d; the first: .*1024/m)
    assert.match(stdout, /\(0 records, /)
    assert.deepEqual(await topicsOf(broker), [])
  })

  test('says where to look when there is no binary listener', async t => {
    const broker = await startBroker(t)
    const { code, stderr } = await run(['bench', '--broker', broker.url, '--binary', '127.0.0.1:1'])
    assert.equal(code, 3)
    assert.match(stderr, /cannot connect to 127\.0\.0\.1:1: .*--binary, or measure over HTTP with --http/)
    const told = await run(['bench', '--broker', broker.url, '--binary', '127.0.0.1:1', '--json'])
    const { url, written, exit_code: exitCode } = JSON.parse(told.stderr) as Record<string, unknown>
    assert.deepEqual([told.code, url, written, exitCode], [3, 'es01://127.0.0.1:1', 'no', 3])
    assert.deepEqual(await topicsOf(broker), [])
  })

  test('counts a connection that the broker cuts for a record too large, and deletes its topic all the same', async t => {
    const broker = await startBroker(t)
    const words = ['bench', '--broker', broker.url, '--binary', binaryOf(broker), '--bytes', '32MiB', '--batch', '1']
    const { code, stdout } = await run([...words, '--connections', '1', '--in-flight', '1', '--records', '3', '--json'])
    const { produce } = readReport(stdout)
    assert.deepEqual([code, produce.records, produce.errors], [1, 0, 3])
    assert.deepEqual(await topicsOf(broker), [])
  })

  for (const signal of ['SIGINT', 'SIGHUP'] as const) {
    test(`${signal} ends it early, with its figures and without its topic`, async t => {
      const broker = await startBroker(t)
      const bench = launch(t, ['--broker', broker.url, '--binary', binaryOf(broker), '--seconds', '600', '--json'])
      const topic = await topicUnderLoad(broker)
      bench.child.kill(signal)
      bench.child.kill(signal)
      const { code, stdout, stderr } = await bench.ended
      assert.equal(code, 0)
      assert.equal(readReport(stdout).isInterrupted, true)
      const waits = String.raw`(, waiting for \d+ request\(s\), 5 s at most)?`
      const leaves = `; Ctrl-C again ends at once, and leaves the topic '${topic}'`
      assert.match(stderr, new RegExp(`^millrace: ending${waits}${leaves}\\n$`))
      assert.deepEqual(await topicsOf(broker), [])
    })
  }

  test('refuses what it cannot do', async () => {
    for (const [words, says] of [
      [['--http', '--binary', '127.0.0.1:9001'], /exclude each other/],
      [['--http', '--gzip'], /exclude each other/],
      [['--binary', 'nowhere'], /--binary 'nowhere' is not an address/],
      [['--connections', '0'], /--connections '0'/],
      [['--bytes', 'much'], /--bytes 'much'/],
      [['--bytes', '33MiB'], /--bytes '34603008' is not a whole number from 0 to 33554432/],
      [
        ['--bytes', '32MiB', '--batch', '2'],
        /^millrace: --bytes × .* is 1\.0+ GiB under way at once, above 1\S* GiB: lower one$/m
      ],
      [['--bytes', '0', '--batch', '100000', '--connections', '1000', '--in-flight', '32'], /under way at once/],
      [
        ['--bytes', '1MiB', '--batch', '100', '--connections', '1', '--in-flight', '1'],
        /a request of 100\S* MiB, and no/
      ]
    ] as const) {
      const { code, stderr } = await run(['bench', ...words])
      assert.equal(code, 2)
      assert.match(stderr, says)
    }
  })
})

// Both mostly wait, each for processes of its own.
describe('millrace bench, whose broker does not answer any more,', { concurrency: 2 }, () => {
  test('prints what it measured of a broker that died, and names the topic that it could not delete', async t => {
    const broker = await spawnBroker(t)
    const bench = launch(t, [
      '--broker',
      broker.url,
      '--binary',
      binaryOf(broker),
      '--seconds',
      '3',
      '--consume',
      '--json'
    ])
    const topic = await topicUnderLoad(broker)
    await broker.kill('SIGKILL')
    const { code, stdout, stderr } = await bench.ended
    assert.equal(code, 1)
    const { produce, consume, topic: named } = readReport(stdout)
    assert.ok(produce.errors > 0 && produce.firstError !== null)
    assert.deepEqual([named, consume], [topic, null])
    const [unread = '', left = ''] = stderr.trim().split('\n')
    assert.match(String((JSON.parse(unread) as Record<string, unknown>)['error']), /^nothing is read back: /)
    const { error, method } = JSON.parse(left) as Record<string, unknown>
    assert.match(String(error), new RegExp(`^the topic '${topic}' could not be deleted: .*ECONNREFUSED`))
    assert.equal(method, 'DELETE')
  })

  test('an interrupt ends it also where the broker does not answer any more, and says what it waits for', async t => {
    const broker = await spawnBroker(t)
    const bench = launch(t, ['--broker', broker.url, '--binary', binaryOf(broker), '--seconds', '600'])
    const topic = await topicUnderLoad(broker)
    broker.child.kill('SIGSTOP')
    t.after(() => broker.child.kill('SIGCONT'))
    bench.child.kill('SIGINT')
    const { code, stdout, stderr } = await bench.ended
    assert.equal(code, 1)
    assert.match(stdout, /^errors +16; the first: no answer within 5 s of the end$/m)
    assert.match(stderr, /^millrace: ending, waiting for 16 request\(s\), 5 s at most; Ctrl-C again/)
    assert.match(
      stderr,
      new RegExp(`^millrace: the topic '${topic}' could not be deleted: no answer within 5000 ms$`, 'm')
    )
  })
})
