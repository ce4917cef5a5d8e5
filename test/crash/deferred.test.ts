/**
 * --flush-every-records above 1: an answer may precede the sync. A power cut may then lose it; the end of the process,
 * killed or asked, must not: what was written is in the page cache.
 */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { spawnBroker, waitFor } from '../support/broker.ts'
import { CrashLoad, createTopics, readTopics, type LoadTopic } from '../support/crash-load.ts'
import { seed } from '../support/crash-run.ts'
import { judge } from '../support/history.ts'
import { replayLine } from '../support/log-random.ts'

const FILE = 'test/crash/deferred.test.ts'
const topics: readonly LoadTopic[] = [{ name: 'alpha', partitions: 3 }]
/** The interval is out of reach, so records do wait for their sync when the end comes. */
const flags = { '--flush-every-records': '1000', '--flush-interval': '1h' }

describe('deferred syncs', () => {
  it('are announced by the ready line, the banner and readyz', async t => {
    const broker = await spawnBroker(t, { flags })
    const ready = broker.logs.find(line => line['msg'] === 'ready')
    assert.equal(ready?.['durability'], 'deferred')
    await broker.waitForLog(line => /synced every 1000 records/.test(String(line['text'])))
    const readyz = await fetch(`${broker.url}/readyz`)
    assert.deepEqual(await readyz.json(), { status: 'ready', message: 'accepting traffic', durability: 'deferred' })
  })

  for (const shards of [1, 3] as const) {
    for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
      it(`lose nothing acknowledged to ${signal} under load, on ${shards} shard(s)`, async t => {
        t.diagnostic(replayLine(seed, FILE))
        const variant = { engine: 'uws', shards } as const
        const broker = await spawnBroker(t, { variant, flags })
        await createTopics(broker, topics)
        const load = await CrashLoad.start(broker, {
          seed,
          label: 'q',
          topics,
          es01Producers: 2,
          inFlight: 4,
          httpProducers: 2,
          hasReaders: true,
          scattered: 0.3
        })
        await waitFor('load', () => load.acks.length > 700, 20_000)
        const { code } = await broker.kill(signal)
        await load.stop()
        assert.equal(code, signal === 'SIGTERM' ? 0 : null)
        const next = await spawnBroker(t, { dataDir: broker.dataDir, variant, flags })
        const verdict = judge(load.sent, await readTopics(next, topics), load.read)
        assert.deepEqual(verdict.anomalies, [])
        const reports = next.logs.filter(line => line['msg'] === 'shard recovered its log')
        const copied = reports.reduce((sum, report) => sum + Number(report['copiedGroups']), 0)
        if (signal === 'SIGTERM') assert.equal(copied, 0, 'a clean end leaves nothing unsynced')
        else assert.ok(copied > shards, `only ${copied} groups waited for their sync: the test shows nothing`)
        t.diagnostic(`${verdict.acked} records acked, 0 lost; ${copied} groups were not known to be synced`)
      })
    }
  }
})
