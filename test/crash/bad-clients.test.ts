/** Slow and dead clients under load: one that stops reading, some that die in the middle of a frame. Others go on. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { connectEs01 } from '../../src/client/es01/client.ts'
import { spawnBroker, waitFor, type SpawnedBroker } from '../support/broker.ts'
import { CrashLoad, createTopics, readTopics, type LoadTopic } from '../support/crash-load.ts'
import { seed } from '../support/crash-run.ts'
import { judge } from '../support/history.ts'
import { replayLine } from '../support/log-random.ts'
import { openHalfFrame, openStuckReader } from '../support/stuck-client.ts'

const FILE = 'test/crash/bad-clients.test.ts'
const variant = { engine: 'uws', shards: 1 } as const
const topics: readonly LoadTopic[] = [{ name: 'alpha', partitions: 3 }]
/** What the stuck readers ask for; nobody else reads it. */
const bulk: LoadTopic = { name: 'bulk', partitions: 1 }
const STUCK_READERS = 4
const HALF_FRAMES = 40

async function fillBulk(broker: SpawnedBroker): Promise<void> {
  const client = await connectEs01(broker.es01)
  const value = Buffer.alloc(1024 * 1024, 'v')
  for (let i = 0; i < 8; i++) await client.produce(bulk.name, [{ value, partition: 0 }])
  await client.close()
}

/** Longest time between two acknowledgements from now until there were `count` more. */
async function longestSilenceMs(load: CrashLoad, count: number): Promise<number> {
  const from = load.acks.length
  const startMs = Date.now()
  await waitFor(`${count} acknowledgements`, () => load.acks.length >= from + count, 20_000)
  const times = [startMs, ...load.acks.slice(from).map(ack => ack.atMs)]
  return Math.max(...times.slice(1).map((time, i) => time - (times[i] ?? 0)))
}

describe('bad clients under load', () => {
  it('one that never reads its answers, and ones that die in half a frame, stop nobody else', async t => {
    t.diagnostic(replayLine(seed, FILE))
    const broker = await spawnBroker(t, { variant })
    await createTopics(broker, [...topics, bulk])
    await fillBulk(broker)
    const load = await CrashLoad.start(broker, {
      seed,
      label: 'b',
      topics,
      es01Producers: 3,
      inFlight: 4,
      httpProducers: 2,
      hasReaders: true,
      scattered: 0.3
    })
    const before = await longestSilenceMs(load, 500)
    // More than the 32 requests that the broker takes of a connection at once, of 8 MiB each.
    const stuck = await Promise.all(
      Array.from({ length: STUCK_READERS }, () =>
        openStuckReader(t, broker.es01, { topic: bulk.name, partition: 0, requests: 40 })
      )
    )
    const halves = await Promise.all(
      Array.from({ length: HALF_FRAMES }, () => openHalfFrame(t, broker.es01, 'alpha', 256 * 1024))
    )
    const readBefore = load.read.length
    const beside = await longestSilenceMs(load, 500)
    assert.ok(load.read.length > readBefore, 'the good readers go on')
    for (const socket of [...halves, ...stuck]) socket.destroy()
    const after = await longestSilenceMs(load, 500)
    await load.stop()

    assert.deepEqual(load.refusals, [], 'nothing of the good clients was refused')
    assert.ok(Math.max(beside, after) < 2000, `the good clients waited ${beside} ms, then ${after} ms`)
    const verdict = judge(load.sent, await readTopics(broker, topics), load.read)
    assert.deepEqual(verdict.anomalies, [], 'no half frame was written, nothing is lost')
    t.diagnostic(
      `longest silence ${before} ms alone, ${beside} ms beside ${STUCK_READERS} stuck readers and ${HALF_FRAMES} half frames, ${after} ms after; ${verdict.acked} records acked`
    )
    await broker.kill('SIGKILL')
    const next = await spawnBroker(t, { dataDir: broker.dataDir, variant })
    assert.deepEqual(judge(load.sent, await readTopics(next, topics), load.read).anomalies, [])
  })
})
