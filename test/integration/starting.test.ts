/** What a broker answers while its shards still look through their journals: it lives, it says how far it is, it waits. */
import assert from 'node:assert/strict'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { Es01Error } from '../../src/client/es01/client.ts'
import { spawnBroker, waitFor, type SpawnedBroker } from '../support/broker.ts'
import { openClient } from '../support/es01-session.ts'
import { HttpApi, type HttpAnswer } from '../support/http-api.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

const flags = { '--shards': '2', '--journal-first-slot-bytes': '16MiB' }

/** A broker that was killed and starts again, shard 0 held in the middle of its journal. */
async function heldBroker(t: TestContext): Promise<{ broker: SpawnedBroker; release: () => void }> {
  const folder = temporaryDirectory(t)
  const dataDir = join(folder, 'data')
  const hold = join(folder, 'hold')
  const before = await spawnBroker(t, { dataDir, flags })
  const api = new HttpApi(before.url)
  await api.createTopic('kept', 4)
  for (let partition = 0; partition < 4; partition++) await api.produce('kept', [{ value: 'v', partition }])
  await before.kill('SIGKILL')
  writeFileSync(hold, '')
  // Header, footer, then pieces of 4 MiB: the second of those is not read before the file is gone.
  const env = { MILLRACE_FAULTS: `0/slot.read:4=hold@${hold}` }
  const broker = await spawnBroker(t, { dataDir, flags, env, untilListening: true })
  return { broker, release: () => rmSync(hold) }
}

async function startingReport(api: HttpApi): Promise<HttpAnswer> {
  return waitFor('the scan of shard 0', async () => {
    const answer = await api.get('/readyz')
    assert.equal(answer.status, 503)
    return /shard 0: scanning its journal, 4 of 16 MiB"/.test(answer.text) && !answer.text.includes('shard 1') && answer
  })
}

describe('a broker whose shards are starting', () => {
  it('answers healthz at once, and readyz with how far it is', async t => {
    const { broker } = await heldBroker(t)
    const api = new HttpApi(broker.url)
    const health = await api.get('/healthz')
    assert.deepEqual([health.status, health.text], [200, '{"status":"ok","topics_count":1}'])
    const ready = await startingReport(api)
    assert.equal(ready.headers.get('retry-after'), '1')
    const { request_id: id, ...report } = JSON.parse(ready.text) as Record<string, unknown>
    assert.match(String(id), /^[0-9a-f]{8}$/)
    assert.deepEqual(report, {
      status: 'starting',
      message: 'shard 0: scanning its journal, 4 of 16 MiB',
      // Shard 1 is ready; of shard 0 a quarter is scanned, and the scan is nine tenths of a start.
      progress: 0.613,
      error: 'the broker is not ready: shard 0: scanning its journal, 4 of 16 MiB',
      code: 'NOT_READY',
      retry: 'same',
      written: 'no'
    })
  })

  it('refuses every other route and every frame for the shard, nothing written, and serves them when it is ready', async t => {
    const { broker, release } = await heldBroker(t)
    const api = new HttpApi(broker.url)
    await startingReport(api)
    const json = { 'content-type': 'application/json' }
    const body = JSON.stringify({ records: [{ value: 'early', partition: 0 }] })
    const answers = await Promise.all([
      api.get('/topics'),
      api.get('/topics/kept'),
      api.get('/topics/kept/consume?partition=0&offset=0'),
      api.get('/admin/producers'),
      api.get('/nowhere'),
      api.call('POST', '/topics', '{"name":"new"}', json),
      api.call('POST', '/topics/kept/produce', body, json)
    ])
    for (const { status, text, headers } of answers) {
      assert.deepEqual([status, headers.get('retry-after')], [503, '1'])
      assert.match(text, /"code":"NOT_READY","retry":"same","written":"no"/)
    }
    const client = await openClient(t, broker.es01)
    await client.ping()
    const refused = async (request: Promise<unknown>): Promise<void> => {
      await assert.rejects(request, (error: unknown) => {
        assert.ok(error instanceof Es01Error)
        assert.match(error.message, /not ready: shard 0: scanning its journal, 4 of 16 MiB/)
        return true
      })
    }
    const ofHeldShard = await partitionOfShard0(api, client)
    await refused(client.produce('kept', [{ partition: ofHeldShard, value: 'early' }]))
    await refused(
      client.consume({ topic: 'kept', partition: ofHeldShard, offset: 0, maxRecords: 1, maxBytes: 1_000_000 })
    )
    release()
    await waitFor('the broker to be ready', async () => (await api.get('/readyz')).status === 200)
    for (let partition = 0; partition < 4; partition++) {
      const { records } = await api.consume('kept', partition, 'offset=0')
      assert.deepEqual(
        records.map(({ value }) => value),
        ['v']
      )
    }
  })
})

/** Over ES01 a partition is served as soon as its shard is ready: the first that is not belongs to the held one. */
async function partitionOfShard0(api: HttpApi, client: Awaited<ReturnType<typeof openClient>>): Promise<number> {
  for (let partition = 0; partition < 4; partition++) {
    const read = client.consume({ topic: 'kept', partition, offset: 0, maxRecords: 1, maxBytes: 1_000_000 })
    const isServed = await read.then(
      () => true,
      () => false
    )
    if (!isServed) return partition
  }
  throw new Error(`every partition is served at ${api.url}`)
}
