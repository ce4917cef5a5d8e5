/** The programs as a user starts them, and the watch over a child broker. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { brokerFlags, watchBroker, withDescriptors } from '../../../native-free-bench/broker-process.ts'
import { startFakeBroker } from './fake-broker.ts'

const main = fileURLToPath(new URL('../../../native-free-bench/main.ts', import.meta.url))

function temporaryFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

function run(args: readonly string[], cwd: string): Promise<{ code: number | null; stdout: string; stderr: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [main, ...args], { cwd, stdio: ['ignore', 'pipe', 'pipe'] })
    let [stdout, stderr] = ['', '']
    child.stdout.on('data', chunk => (stdout += String(chunk)))
    child.stderr.on('data', chunk => (stderr += String(chunk)))
    child.once('error', reject)
    child.once('close', code => resolve({ code, stdout, stderr }))
  })
}

describe('npm run bench', () => {
  test('measures a running broker over both protocols and writes table, JSON and HTML, leaving nothing else', async t => {
    const fake = await startFakeBroker(t)
    const folder = temporaryFolder(t)
    const broker = `127.0.0.1:${fake.http.port},127.0.0.1:${fake.es01.port}`
    const scenarios = ['--scenario', 'produce,consume,mixed', '--protocol', 'es01,http', '--rounds', '1']
    const load = ['--seconds', '0.1', '--warm-up', '0', '--records', '5', '--bytes', '50', '--connections', '2']
    const files = ['--json', 'report.json', '--html', 'report.html']
    const { code, stdout, stderr } = await run([...scenarios, ...load, ...files, '--broker', broker], folder)
    assert.equal(code, 0, stderr)
    const report = JSON.parse(readFileSync(join(folder, 'report.json'), 'utf8')) as {
      cases: { case: { id: string }; rounds: { recordsPerSecond: number }[] }[]
    }
    const ids = report.cases.map(one => one.case.id)
    assert.deepEqual(ids, ['produce/es01', 'consume/es01', 'mixed/es01', 'produce/http', 'consume/http', 'mixed/http'])
    for (const one of report.cases) {
      assert.ok((one.rounds[0]?.recordsPerSecond ?? 0) > 0, one.case.id)
      assert.ok(stdout.includes(one.case.id))
    }
    assert.deepEqual(readdirSync(folder).toSorted(), ['report.html', 'report.json'])
  })

  test('a case that fails is shown with its reason and makes the exit code 1', async t => {
    const fake = await startFakeBroker(t, { refuseWith: 'not today' })
    const args = ['--scenario', 'produce', '--rounds', '1', '--broker', `127.0.0.1:${fake.http.port}`]
    const { code, stdout } = await run(args, temporaryFolder(t))
    assert.equal(code, 1)
    assert.match(stdout, /produce\/es01: POST \/topics was answered 400: .*not today/)
  })

  test('an interrupt leaves no folder behind and ends with the code of the signal', async t => {
    const fake = await startFakeBroker(t)
    const folder = temporaryFolder(t)
    const args = [
      '--scenario',
      'produce',
      '--protocol',
      'http',
      '--seconds',
      '600',
      '--broker',
      `127.0.0.1:${fake.http.port}`
    ]
    const child = spawn(process.execPath, [main, ...args], { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] })
    child.stderr.once('data', () => {
      assert.equal(readdirSync(folder).length, 1)
      child.kill('SIGINT')
    })
    const code = await new Promise(resolve => child.once('close', resolve))
    assert.deepEqual([code, readdirSync(folder)], [130, []])
  })

  test('wrong options end with code 2 and say which', async t => {
    const { code, stdout, stderr } = await run(['--rounds', 'many'], temporaryFolder(t))
    assert.deepEqual([code, stdout], [2, ''])
    assert.match(stderr, /--rounds: 'many' is not a whole number/)
  })
})

describe('a child broker', () => {
  const ready = JSON.stringify({ msg: 'ready', httpAddress: '127.0.0.1:9000', binaryAddress: '127.0.0.1:9001' })

  /** A child that logs these lines and then waits for its end, logging more when it is asked to stop. */
  function child(lines: readonly string[], lastLines: readonly string[] = []): [string, string[]] {
    const script = `
      process.on('SIGTERM', () => { for (const line of ${JSON.stringify(lastLines)}) console.error(line); process.exit(0) })
      setInterval(() => {}, 1000)
      for (const line of ${JSON.stringify(lines)}) console.error(line)`
    return [process.execPath, ['-e', script]]
  }

  test('is ready when it says so, among other lines; its fill counts over shards; its last words are kept', async () => {
    const filled = (shard: number, bytes: number): string => JSON.stringify({ msg: 'slots filled', shard, bytes })
    const lines = ['Millrace 1.0', '{broken', filled(0, 5), filled(0, 10), filled(1, 20), ready]
    const stopped = JSON.stringify({ msg: 'stopped', syncs: 4, journalBytes: 4096, settleJobs: 7, name: 'x' })
    const broker = await watchBroker(...child(lines, [stopped]))
    assert.deepEqual(broker.addresses, {
      http: { host: '127.0.0.1', port: 9000 },
      es01: { host: '127.0.0.1', port: 9001 }
    })
    assert.equal(broker.filledBytes(), 30)
    const { figures, ...totals } = (await broker.stop()) ?? { figures: {} }
    assert.deepEqual(totals, { syncs: 4, journalBytes: 4096, slotsUnfilled: 0 })
    assert.deepEqual(figures, { syncs: 4, journalBytes: 4096, settleJobs: 7 })
  })

  test('is gone after a kill', async () => {
    const broker = await watchBroker(...child([ready]))
    await broker.kill()
    assert.throws(() => process.kill(broker.pid, 0), /ESRCH/)
  })

  test('under a limit of descriptors is still the process that was started', async () => {
    const script = `
      const limit = require('node:fs').readFileSync('/proc/self/limits', 'utf8').match(/Max open files +(\\d+)/)[1]
      setInterval(() => {}, 1000)
      console.error(JSON.stringify({ msg: 'slots filled', bytes: Number(limit) }))
      console.error(JSON.stringify({ ...${ready}, pid: process.pid }))`
    const broker = await watchBroker(...withDescriptors(100, process.execPath, ['-e', script]))
    assert.equal(broker.filledBytes(), 100)
    await broker.kill()
    assert.throws(() => process.kill(broker.pid, 0), /ESRCH/)
  })

  test('that ends before it is ready is an error with its last lines', async () => {
    const script = "console.error('millrace: the port is in use'); process.exit(1)"
    await assert.rejects(
      watchBroker(process.execPath, ['-e', script]),
      /ended with code 1\nmillrace: the port is in use/
    )
  })

  test('shares the wanted fill out over its shards', () => {
    const flags = brokerFlags({ dataDir: 'd', shards: 2, fillAheadBytes: 1000, flags: ['--log-level', 'debug'] })
    assert.equal(flags[flags.indexOf('--journal-fill-ahead-bytes') + 1], '500')
    assert.deepEqual(flags.slice(-2), ['--log-level', 'debug'])
    assert.ok(!brokerFlags({ dataDir: 'd', shards: null, fillAheadBytes: null, flags: [] }).includes('--shards'))
  })
})
