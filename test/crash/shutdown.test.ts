/**
 * SIGTERM and SIGINT: what is in progress is answered or fails cleanly, the logs are sealed, the exit is 0 and in time;
 * a second signal ends at once. Nothing that was acknowledged is missing at the next start.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { Agent, get } from 'node:http'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { connectEs01 } from '../../src/client/es01/client.ts'
import { spawnBroker, waitFor, type SpawnedBroker, type Variant } from '../support/broker.ts'
import { CrashLoad, createTopics, readTopics, type LoadTopic } from '../support/crash-load.ts'
import { seed } from '../support/crash-run.ts'
import { judge } from '../support/history.ts'
import { replayLine } from '../support/log-random.ts'
import { openStuckReader } from '../support/stuck-client.ts'

const FILE = 'test/crash/shutdown.test.ts'
const topics: readonly LoadTopic[] = [
  { name: 'alpha', partitions: 3 },
  { name: 'beta', partitions: 2 }
]
const load = { seed, topics, es01Producers: 3, inFlight: 4, httpProducers: 4, hasReaders: true, scattered: 0.3 }

async function timedKill(broker: SpawnedBroker, signal: NodeJS.Signals): Promise<{ code: number | null; ms: number }> {
  const startMs = performance.now()
  const { code } = await broker.kill(signal)
  return { code, ms: Math.round(performance.now() - startMs) }
}

/** A client that never reads its answers, with more of them waiting than sockets hold. */
async function addStuckReader(t: TestContext, broker: SpawnedBroker): Promise<void> {
  const client = await connectEs01(broker.es01)
  const value = Buffer.alloc(1024 * 1024, 'v')
  for (let i = 0; i < 8; i++) await client.produce('beta', [{ value, partition: 1 }])
  await openStuckReader(t, broker.es01, { topic: 'beta', partition: 1, requests: 8 })
  // Its requests were taken, and their answers wait, when a later one of another client is answered after them.
  await client.consume({ topic: 'beta', partition: 1, offset: 0, maxRecords: 1, maxBytes: 1 })
  await client.close()
}

describe('SIGTERM under load', () => {
  for (const variant of [
    { engine: 'uws', shards: 3 },
    { engine: 'node', shards: 1 }
  ] satisfies Variant[]) {
    it(`answers or fails cleanly, exits 0 in time, and keeps all it acknowledged (${variant.engine}, ${variant.shards} shard(s))`, async t => {
      t.diagnostic(replayLine(seed, FILE))
      const broker = await spawnBroker(t, { variant, flags: { '--shutdown-timeout': '5s' } })
      await createTopics(broker, topics)
      const running = await CrashLoad.start(broker, { ...load, label: 's' })
      await waitFor('load', () => running.acks.length > 200)
      const { code, ms } = await timedKill(broker, 'SIGTERM')
      await running.stop()
      assert.deepEqual([code, ms < 5000], [0, true], `exit ${code} after ${ms} ms`)
      for (const { protocol, status, text } of running.refusals) {
        const isClean = protocol === 'http' ? status === 0 || (status === 503 && text === 'STOPPING') : text === ''
        assert.ok(isClean, `${protocol} ${status} ${text}`)
      }
      const next = await spawnBroker(t, { dataDir: broker.dataDir, variant })
      const verdict = judge(running.sent, await readTopics(next, topics), running.read)
      assert.deepEqual(verdict.anomalies, [])
      t.diagnostic(
        `exit 0 after ${ms} ms; ${verdict.acked} records acked, 0 lost; ${verdict.unknown} without an answer, ${verdict.unknownFound} of them in the log`
      )
      const report = next.logs.find(line => line['msg'] === 'shard recovered its log')
      assert.deepEqual(
        [report?.['cutGroups'], report?.['copiedGroups']],
        [0, 0],
        'the logs were sealed: nothing was in doubt'
      )
    })
  }

  for (const engine of ['uws', 'node'] as const) {
    it(`exits 0 within --shutdown-timeout although a client does not read its answers (${engine})`, async t => {
      const variant = { engine, shards: 3 } as const
      const broker = await spawnBroker(t, { variant, flags: { '--shutdown-timeout': '2s' } })
      await createTopics(broker, topics)
      await addStuckReader(t, broker)
      const running = await CrashLoad.start(broker, { ...load, hasReaders: false, label: 's' })
      await waitFor('load', () => running.acks.length > 100)
      const { code, ms } = await timedKill(broker, 'SIGTERM')
      await running.stop()
      assert.deepEqual([code, ms < 2500], [0, true], `exit ${code} after ${ms} ms`)
      const next = await spawnBroker(t, { dataDir: broker.dataDir, variant })
      const contents = await readTopics(next, [{ name: 'alpha', partitions: 3 }])
      assert.deepEqual(
        judge(
          running.sent.filter(({ topic }) => topic === 'alpha'),
          contents
        ).anomalies,
        []
      )
    })
  }
})

describe('SIGTERM to a broker without work', () => {
  it('exits 0 at once, idle connections of both protocols notwithstanding', async t => {
    const broker = await spawnBroker(t)
    const client = await connectEs01(broker.es01)
    t.after(() => client.destroy())
    await client.ping()
    const agent = new Agent({ keepAlive: true })
    t.after(() => agent.destroy())
    const [response] = (await once(get(`${broker.url}/healthz`, { agent }), 'response')) as [NodeJS.ReadableStream]
    await once(response.resume(), 'end')
    const { code, ms } = await timedKill(broker, 'SIGTERM')
    assert.deepEqual([code, ms < 2000], [0, true], `exit ${code} after ${ms} ms`)
  })
})

describe('a second signal', () => {
  for (const [first, second] of [
    ['SIGTERM', 'SIGINT'],
    ['SIGTERM', 'SIGTERM']
  ] as const) {
    it(`${first} then ${second} ends a slow stop at once, with a failure; the log is whole nevertheless`, async t => {
      const variant = { engine: 'uws', shards: 1 } as const
      const broker = await spawnBroker(t, { variant })
      await createTopics(broker, topics)
      await addStuckReader(t, broker)
      const running = await CrashLoad.start(broker, { ...load, hasReaders: false, label: 's' })
      await waitFor('load', () => running.acks.length > 100)
      const startMs = performance.now()
      broker.child.kill(first)
      await broker.waitForLog(line => line['msg'] === 'stopping')
      // The same signal within half a second is an echo of the first, so it is sent until it is heard.
      while (broker.child.exitCode === null && performance.now() - startMs < 10_000) {
        broker.child.kill(second)
        await pause(20)
      }
      const ms = performance.now() - startMs
      await running.stop()
      assert.equal(broker.child.exitCode, 1)
      assert.ok(ms < 2000, `ended after ${ms} ms`)
      if (first === second) assert.ok(ms >= 500, `an echo after ${ms} ms was taken for a second signal`)
      const next = await spawnBroker(t, { dataDir: broker.dataDir, variant })
      const contents = await readTopics(next, [{ name: 'alpha', partitions: 3 }])
      assert.deepEqual(
        judge(
          running.sent.filter(({ topic }) => topic === 'alpha'),
          contents
        ).anomalies,
        []
      )
    })
  }
})

/** Starts a broker and sends SIGTERM after that long, wherever it is by then. */
async function startAndStop(
  dataDir: string,
  delayMs: number
): Promise<{ code: number | null; signal: string | null; wasReady: boolean }> {
  const main = fileURLToPath(new URL('../../dist/src/main.js', import.meta.url))
  const flags = ['--data-dir', dataDir, '--bind', '127.0.0.1:0', '--journal-fill-ahead-bytes', '0', '--shards', '3']
  const child = spawn(process.execPath, [main, 'serve', ...flags], { stdio: ['ignore', 'ignore', 'pipe'] })
  let log = ''
  child.stderr.on('data', (chunk: Buffer) => (log += chunk.toString()))
  const closed = once(child, 'close')
  await pause(delayMs)
  const wasReady = log.includes('"msg":"ready"')
  child.kill('SIGTERM')
  await closed
  assert.doesNotMatch(log, /cannot start|"level":"?(error|50)/)
  return { code: child.exitCode, signal: child.signalCode, wasReady }
}

describe('SIGTERM while the broker recovers', () => {
  it('ends it cleanly wherever it is, and the next start recovers the rest', async t => {
    t.diagnostic(replayLine(seed, FILE))
    const variant = { engine: 'uws', shards: 3 } as const
    const spawnedMs = performance.now()
    const broker = await spawnBroker(t, { variant })
    const startMs = performance.now() - spawnedMs
    await createTopics(broker, topics)
    const running = await CrashLoad.start(broker, { ...load, label: 's' })
    await waitFor('load', () => running.acks.length > 200)
    await broker.kill('SIGKILL')
    await running.stop()
    const outcomes: string[] = []
    for (let share = 0.4; share < 1.1; share += 0.1) {
      const delayMs = Math.round(startMs * share)
      const { code, signal, wasReady } = await startAndStop(broker.dataDir, delayMs)
      // Before the program has begun to listen for signals, the system ends it.
      assert.ok(code === 0 || signal === 'SIGTERM', `exit ${code} ${signal} at ${delayMs} ms`)
      outcomes.push(`${delayMs} ms: ${signal ?? (wasReady ? 'after ready' : 'before ready')}`)
    }
    t.diagnostic(outcomes.join(', '))
    const next = await spawnBroker(t, { dataDir: broker.dataDir, variant })
    assert.deepEqual(judge(running.sent, await readTopics(next, topics), running.read).anomalies, [])
  })
})
