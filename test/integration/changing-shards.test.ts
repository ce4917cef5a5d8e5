/** Another number of shards for a data directory: every record, producer and topic is there as before. */
import assert from 'node:assert/strict'
import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { runMillrace, spawnBroker, startBroker, waitFor, type TestBroker } from '../support/broker.ts'
import { openClient } from '../support/es01-session.ts'
import { HttpApi } from '../support/http-api.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

const PARTITIONS = 7
const LARGE = 40_000

const withShards = (shards: number): Record<string, string> => ({ '--shards': String(shards) })

/** Small and large records, so that some partitions have files of their own and others lie in packs. */
async function writeRound(t: TestContext, broker: TestBroker, round: number): Promise<void> {
  const api = new HttpApi(broker.url)
  for (let partition = 0; partition < PARTITIONS; partition++) {
    const size = partition % 2 === 0 ? 10 : LARGE
    const values = Array.from({ length: 15 }, (_, i) => `${round}/${partition}/${i}:`.padEnd(size, 'x'))
    await api.produce(
      'kept',
      values.map(value => ({ value, partition }))
    )
  }
  const client = await openClient(t, broker.es01)
  const records = Array.from({ length: PARTITIONS }, (_, partition) => {
    return { partition, value: `idempotent ${round}`, sequence: BigInt(round) }
  })
  await client.produce('kept', records, 'one')
  const again = await client.produce('kept', records, 'one')
  assert.ok(again.every(({ duplicate }) => duplicate))
  await client.close()
}

async function contentsOf(broker: TestBroker): Promise<string[][]> {
  const api = new HttpApi(broker.url)
  const all: string[][] = []
  for (let partition = 0; partition < PARTITIONS; partition++) {
    const records = await api.consumeAll('kept', partition)
    all.push(records.map(({ offset, timestamp_ms: time, value }) => `${offset} ${time} ${value}`))
  }
  return all
}

/** Every pair of records of one producer round: sent again, all are known. */
async function assertProducerIsKnown(t: TestContext, broker: TestBroker, round: number): Promise<void> {
  const client = await openClient(t, broker.es01)
  const records = Array.from({ length: PARTITIONS }, (_, partition) => {
    return { partition, value: `idempotent ${round}`, sequence: BigInt(round) }
  })
  const results = await client.produce('kept', records, 'one')
  assert.ok(
    results.every(({ duplicate }) => duplicate),
    'what a producer sent before the change is a duplicate after it'
  )
  await client.close()
}

describe('a change of the number of shards', () => {
  it('keeps every record, time and producer, up and down, and leaves nothing of the old layout', async t => {
    const folder = temporaryDirectory(t)
    const dataDir = join(folder, 'data')
    let before: string[][] | null = null
    const counts = [2, 5, 1, 3]
    for (const [round, shards] of counts.entries()) {
      const broker = await startBroker(t, { dataDir, flags: withShards(shards) })
      assert.equal(broker.server.shards, shards)
      if (before === null) await new HttpApi(broker.url).createTopic('kept', PARTITIONS)
      else {
        assert.deepEqual(await contentsOf(broker), before)
        await assertProducerIsKnown(t, broker, round - 1)
      }
      await writeRound(t, broker, round)
      before = await contentsOf(broker)
      await broker.stop()
      const journal = readdirSync(join(dataDir, 'journal'))
      assert.deepEqual(journal, round === 0 ? ['000', '001'] : [`e${round + 1}`])
      if (round > 0) {
        assert.equal(readdirSync(join(dataDir, 'journal', `e${round + 1}`)).length, shards)
        const packs = join(dataDir, 'packs')
        assert.deepEqual(existsSync(packs) ? readdirSync(packs) : [], [`e${round + 1}`])
      }
    }
    const again = await startBroker(t, { dataDir })
    assert.equal(again.server.shards, 3, 'the count stays when nobody asks for another')
    assert.deepEqual(await contentsOf(again), before)
    await again.stop()
    const { code, stdout } = await runMillrace(['verify', '--data-dir', dataDir])
    assert.equal(code, 0, stdout)
    const archive = join(folder, 'archive.tar')
    const dumped = await runMillrace(['dump', '--output', archive, '--data-dir', dataDir])
    assert.equal(dumped.code, 0, dumped.stderr)
    const restored = join(folder, 'restored')
    const made = await runMillrace(['restore', '--input', archive, '--data-dir', restored])
    assert.equal(made.code, 0, made.stderr)
    assert.deepEqual(await contentsOf(await startBroker(t, { dataDir: restored })), before)
  })

  it('is announced by readyz while it is under way, and serves nothing before it is done', async t => {
    const folder = temporaryDirectory(t)
    const dataDir = join(folder, 'data')
    const first = await startBroker(t, { dataDir, flags: withShards(2) })
    await new HttpApi(first.url).createTopic('kept', PARTITIONS)
    await writeRound(t, first, 0)
    await first.stop()
    const hold = join(folder, 'hold')
    writeFileSync(hold, '')
    const env = { MILLRACE_FAULTS: `change/manifest.rename:1=hold@${hold}` }
    const broker = await spawnBroker(t, { dataDir, flags: withShards(3), env, untilListening: true })
    const api = new HttpApi(broker.url)
    const report = await waitFor('the change', async () => {
      const { status, text } = await api.get('/readyz')
      assert.equal(status, 503)
      const body = JSON.parse(text) as Record<string, unknown>
      return /^changing from 2 to 3 shards: settling shard 0/.test(String(body['message'])) && body
    })
    assert.equal(report['status'], 'starting')
    assert.equal(report['code'], 'NOT_READY')
    assert.ok(typeof report['progress'] === 'number' && report['progress'] < 0.5)
    assert.equal((await api.get('/healthz')).status, 200)
    assert.equal((await api.get('/topics')).status, 503)
    const client = await openClient(t, broker.es01)
    await assert.rejects(client.produce('kept', [{ partition: 0, value: 'early' }]), /not ready: shard \d: waiting/)
    rmSync(hold)
    await waitFor('the broker to be ready', async () => (await api.get('/readyz')).status === 200)
  })

  it('that was not finished goes on by itself, and is given up by asking for the old number', async t => {
    const dataDir = temporaryDirectory(t)
    const first = await startBroker(t, { dataDir, flags: withShards(2) })
    await new HttpApi(first.url).createTopic('kept', PARTITIONS)
    await writeRound(t, first, 0)
    const before = await contentsOf(first)
    await first.stop()
    const failing = { MILLRACE_FAULTS: 'change/manifest.sync:3=EIO' }
    const refused = spawnBroker(t, { dataDir, flags: withShards(3), env: failing })
    await assert.rejects(refused, /cannot be changed from 2 to 3: EIO .*nothing is lost: set shards to 2 to go on/)
    const back = await startBroker(t, { dataDir, flags: withShards(2) })
    assert.equal(back.server.shards, 2)
    assert.deepEqual(await contentsOf(back), before)
    await back.stop()
    assert.deepEqual(readdirSync(join(dataDir, 'journal')), ['000', '001'])
    await assert.rejects(spawnBroker(t, { dataDir, flags: withShards(3), env: failing }), /cannot be changed/)
    const on = await startBroker(t, { dataDir })
    assert.equal(on.server.shards, 3)
    assert.deepEqual(await contentsOf(on), before)
  })

  it('does not begin while one of the old shards needs somebody, and says which', async t => {
    const dataDir = temporaryDirectory(t)
    const first = await startBroker(t, { dataDir, flags: withShards(2) })
    await new HttpApi(first.url).createTopic('kept', PARTITIONS)
    await writeRound(t, first, 0)
    await first.stop()
    for (const name of readdirSync(join(dataDir, 'journal', '001'))) {
      if (name.endsWith('.slot')) rmSync(join(dataDir, 'journal', '001', name))
    }
    await assert.rejects(
      startBroker(t, { dataDir, flags: withShards(3) }),
      /cannot be changed from 2 to 3: the journal .*journal\/001 ends with slot 0, but slot \d was written/
    )
  })

  it('is no reason to refuse a start after a topic was deleted and its files are gone, and the broker was killed', async t => {
    const dataDir = temporaryDirectory(t)
    const first = await spawnBroker(t, { dataDir, flags: withShards(1) })
    for (const name of ['kept', 'gone']) await new HttpApi(first.url).createTopic(name, PARTITIONS)
    const fill = async (broker: Pick<TestBroker, 'url'>): Promise<void> => {
      const records = Array.from({ length: PARTITIONS }, (_, partition) => ({ partition, value: 'v'.repeat(200_000) }))
      for (const name of ['kept', 'gone']) await new HttpApi(broker.url).produce(name, records)
    }
    await fill(first)
    await first.kill('SIGTERM')
    const flags = { ...withShards(2), '--segment-delete-grace': '0s' }
    const second = await spawnBroker(t, { dataDir, flags })
    await fill(second)
    const folders = (): number => readdirSync(join(dataDir, 'topics')).length
    assert.equal(folders(), 2)
    await new HttpApi(second.url).call('DELETE', '/topics/gone')
    await waitFor('the files of the deleted topic to go', () => folders() === 1)
    await second.kill('SIGKILL')
    const { code, stdout } = await runMillrace(['verify', '--data-dir', dataDir])
    assert.equal(code, 0, stdout)
    const third = await startBroker(t, { dataDir, flags })
    assert.equal((await new HttpApi(third.url).consumeAll('kept', 0)).length, 2)
  })

  it('whose new journal is lost later is refused, not answered with empty partitions', async t => {
    const dataDir = temporaryDirectory(t)
    const first = await startBroker(t, { dataDir, flags: withShards(2) })
    await new HttpApi(first.url).createTopic('kept', PARTITIONS)
    await first.stop()
    const second = await startBroker(t, { dataDir, flags: withShards(1) })
    await second.stop()
    rmSync(join(dataDir, 'journal', 'e2', '000'), { recursive: true })
    await assert.rejects(startBroker(t, { dataDir }), /journal\/e2\/000\/manifest is missing/)
  })
})
