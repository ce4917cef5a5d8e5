/**
 * A shard that dies takes nothing with it: the process and the other shards go on, what was acknowledged stays, and
 * callers are told the truth about what they had in progress. A planted bug (MILLRACE_FAULTS) ends the thread as a
 * failed assertion of ours would.
 */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { spawnBroker, waitFor, type SpawnedBroker } from '../support/broker.ts'
import {
  CrashLoad,
  createTopics,
  postJson,
  readTopics,
  type LoadOptions,
  type LoadTopic
} from '../support/crash-load.ts'
import { seed } from '../support/crash-run.ts'
import { judge } from '../support/history.ts'
import { replayLine } from '../support/log-random.ts'

const FILE = 'test/crash/shard-death.test.ts'
const DEAD = 1
const threeShards = { engine: 'uws', shards: 3 } as const
/** Consecutive partitions lie on consecutive shards, so each shard has one. */
const topics: readonly LoadTopic[] = [{ name: 'alpha', partitions: 3 }]

/** Each producer stays with one partition: what waits for the dead shard holds up nobody else. */
function pinnedLoad(): LoadOptions {
  return {
    seed,
    label: 'd',
    topics,
    es01Producers: 3,
    inFlight: 4,
    httpProducers: 3,
    hasReaders: true,
    scattered: 0,
    isPinned: true
  }
}

function timeOf(line: Readonly<Record<string, unknown>>): number {
  return Date.parse(String(line['time']))
}

function timesOf(broker: SpawnedBroker, message: string): number[] {
  const isIt = (line: Readonly<Record<string, unknown>>): boolean => line['msg'] === message && line['shard'] === DEAD
  return broker.logs.filter(isIt).map(timeOf)
}

/** Longest time without an acknowledgement between two moments. */
function longestSilenceMs(times: readonly number[], startMs: number, endMs: number): number {
  const inside = [startMs, ...times.filter(time => time > startMs && time < endMs).sort((a, b) => a - b), endMs]
  return Math.max(...inside.slice(1).map((time, i) => time - (inside[i] ?? 0)))
}

async function readyz(broker: SpawnedBroker): Promise<{ status: number; text: string }> {
  const response = await fetch(`${broker.url}/readyz`)
  return { status: response.status, text: await response.text() }
}

describe('a bug that ends one of three shards under load', () => {
  for (const faults of [`${DEAD}/group.write:150=bug`, `${DEAD}/group.sync:150=bug`]) {
    it(`(${faults}) stops nobody else, and the shard is back within 2 s with all it acknowledged`, async t => {
      t.diagnostic(replayLine(seed, FILE))
      const broker = await spawnBroker(t, { variant: threeShards, env: { MILLRACE_FAULTS: faults } })
      await createTopics(broker, topics)
      const load = await CrashLoad.start(broker, pinnedLoad())
      const ended = timeOf(await broker.waitForLog(line => line['msg'] === 'shard ended'))
      const back = await waitFor(
        'the shard to be ready again',
        async () => (await readyz(broker)).status === 200 && Date.now()
      )
      // Its partition is written again, and the others still are.
      const refusedBefore = load.refusals.length
      const again = await waitFor('acknowledgements of every partition', () => {
        const late = load.acks.filter(ack => ack.atMs > back)
        return new Set(late.map(ack => ack.partition)).size === 3 && Date.now()
      })
      await load.stop()

      const verdict = judge(load.sent, await readTopics(broker, topics), load.read)
      assert.deepEqual(verdict.anomalies, [])
      assert.ok(back - ended < 2000, `the shard was away for ${back - ended} ms`)

      const dead = new Set(load.refusals.map(refusal => refusal.partition))
      assert.equal(dead.size, 1, 'requests of one partition failed, and of no other')
      const others = load.acks.filter(ack => !dead.has(ack.partition))
      const during = others.filter(ack => ack.atMs >= ended && ack.atMs <= back)
      assert.equal(new Set(during.map(ack => ack.partition)).size, 2, 'both other shards acknowledged in the meantime')
      const silenceMs = longestSilenceMs(
        others.map(ack => ack.atMs),
        ended - 200,
        again
      )
      assert.ok(silenceMs < 1000, `the other shards fell silent for ${silenceMs} ms`)

      assertTruthful(load)
      assert.ok(verdict.unknown > 0, 'requests were in progress when it died')
      assert.equal(load.refusals.length, refusedBefore, 'nothing was refused once it was ready')
      t.diagnostic(
        `away ${back - ended} ms; meanwhile ${during.length} requests acked by the others, longest silence ${silenceMs} ms; ` +
          `${verdict.acked} records acked, 0 lost; ${verdict.unknown} unknown, ${verdict.unknownFound} of them in the log; ${verdict.refused} refused`
      )
      assert.deepEqual(await broker.kill('SIGTERM'), { code: 0, signal: null })
    })
  }
})

/** The words and codes that callers were given are those of the two errors, over both protocols. */
function assertTruthful(load: CrashLoad): void {
  for (const { protocol, status, text, told } of load.refusals) {
    if (protocol === 'http') {
      assert.equal(status, 503)
      assert.equal(text, told === 'refused' ? 'SHARD_DOWN' : 'SHARD_DIED')
      continue
    }
    const words =
      told === 'refused'
        ? 'is not running; it is being restarted'
        : 'stopped while the request was in progress (written: unknown)'
    assert.equal(text, `unavailable: shard ${DEAD} ${words}`)
  }
  for (const protocol of ['es01', 'http']) {
    assert.ok(
      load.refusals.some(refusal => refusal.protocol === protocol),
      `requests over ${protocol} were caught`
    )
  }
}

describe('requests over several shards, one of which fails', () => {
  for (const fault of [
    'group.write:100=bug',
    'group.sync:100=bug',
    'group.sync:100=EIO',
    'group.write:100-110=ENOSPC'
  ]) {
    it(`(${fault}) are told no only if nothing of them was written`, async t => {
      t.diagnostic(replayLine(seed, FILE))
      const broker = await spawnBroker(t, { variant: threeShards, env: { MILLRACE_FAULTS: `${DEAD}/${fault}` } })
      await createTopics(broker, topics)
      const options = { ...pinnedLoad(), isPinned: false, scattered: 1, httpProducers: 6 }
      const load = await CrashLoad.start(broker, options)
      await waitFor('the fault', () => load.refusals.length > 0, 20_000)
      const before = load.acks.length
      await waitFor('acknowledgements after it', () => load.acks.length > before + 50, 20_000)
      await load.stop()
      await waitFor('the shard to be back', async () => (await readyz(broker)).status === 200)
      const verdict = judge(load.sent, await readTopics(broker, topics), load.read)
      assert.deepEqual(verdict.anomalies, [])
      assert.ok(verdict.unknown > 0, 'some were written in part')
      t.diagnostic(
        `${verdict.acked} records acked; ${verdict.unknown} unknown, ${verdict.unknownFound} of them in the log; ${verdict.refused} refused`
      )
    })
  }
})

describe('a shard that dies of every restart', () => {
  it('is restarted with growing waits, then stays red and says why, while the others go on', async t => {
    t.diagnostic(replayLine(seed, FILE))
    const broker = await spawnBroker(t, {
      variant: threeShards,
      env: { MILLRACE_FAULTS: `${DEAD}+/group.sync:20=bug` }
    })
    await createTopics(broker, topics)
    const load = await CrashLoad.start(broker, pinnedLoad())
    await broker.waitForLog(line => line['msg'] === 'shard is down', 30_000)
    const red = Date.now()
    await waitFor('acknowledgements of the others', () => {
      const late = load.acks.filter(ack => ack.atMs > red)
      return new Set(late.map(ack => ack.partition)).size === 2
    })
    await load.stop()

    const { status, text } = await readyz(broker)
    assert.equal(status, 503)
    assert.match(text, /shard 1 is down: it failed 6 times, last by a bug/)
    const healthz = await fetch(`${broker.url}/healthz`)
    assert.equal(healthz.status, 200)

    const dead = load.refusals[0]?.partition ?? -1
    const refused = await postJson(
      `${broker.url}/topics/alpha/produce`,
      `{"records":[{"value":"v","partition":${dead}}]}`
    )
    assert.equal(refused.status, 503)
    const body = refused.body as { error: string; code: string; written: string }
    assert.deepEqual([body.code, body.written], ['NOT_READY', 'no'])
    assert.match(body.error, /shard 1 is down/)
    const read = await fetch(`${broker.url}/topics/alpha/consume?partition=${dead}&offset=0`)
    assert.equal(read.status, 503)
    // Topics are made while a shard is down; of three with one partition each, one lies there.
    await createTopics(
      broker,
      ['x', 'y', 'z'].map(name => ({ name, partitions: 1 }))
    )
    const described = await Promise.all(['x', 'y', 'z'].map(name => fetch(`${broker.url}/topics/${name}`)))
    assert.deepEqual(described.map(answer => answer.status).sort(), [200, 200, 503])

    const ends = timesOf(broker, 'shard ended')
    const starts = timesOf(broker, 'shard recovered its log').slice(1)
    assert.deepEqual([ends.length, starts.length], [6, 5])
    const waits = starts.map((start, i) => start - (ends[i] ?? 0))
    for (const [i, atLeastMs] of [0, 100, 400, 1600, 6400].entries())
      assert.ok((waits[i] ?? 0) >= atLeastMs, `wait ${i}: ${waits[i]} ms`)
    t.diagnostic(`red after 6 deaths; waits ${waits.join(', ')} ms`)

    // The operator restarts the process: nothing that was acknowledged on that shard is lost.
    assert.deepEqual(await broker.kill('SIGTERM'), { code: 0, signal: null })
    const next = await spawnBroker(t, { dataDir: broker.dataDir, variant: threeShards })
    assert.deepEqual(judge(load.sent, await readTopics(next, topics), load.read).anomalies, [])
  })
})
