/**
 * What Kafka's clients sent, under the tools for the directory of a stopped broker and under compaction: batches whose records
 * cannot be decoded are no damage, are counted, and stay byte for byte what they were.
 */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { runMillrace, spawnBroker, startBroker, waitFor, type SpawnedBroker } from '../support/broker.ts'
import { clientBatch, gzip, lz4, placed, snappy, zstd } from '../support/client-batches.ts'
import { HttpApi } from '../support/http-api.ts'
import { newProducer, produceBatch } from '../support/kafka-calls.ts'
import { connectKafka, type KafkaClient } from '../support/kafka-client.ts'
import { fetchBatches } from '../support/kafka-contents.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

const flags = { '--settle-idle': '20ms', '--settle-age': '50ms', '--shards': '1' }
const compressions = [{}, gzip, snappy, lz4, zstd] as const
const garbage = Buffer.alloc(70, 0xee)

/** Under right checksums: records that are none, or not what the codec says, or that would never end. */
const undecodable = [
  clientBatch({ body: garbage, count: 3 }),
  clientBatch({ body: garbage, count: 2, codec: 1 }),
  clientBatch({ body: garbage, count: 2, codec: 4 }),
  clientBatch({ body: Buffer.alloc(40 * 1024 * 1024), count: 2, ...gzip })
]

async function produceAll(client: KafkaClient, batches: readonly Buffer[]): Promise<void> {
  for (const batch of batches) assert.equal((await produceBatch(client, 't', 0, batch)).errorCode, 0)
}

async function sentBatches(client: KafkaClient): Promise<Buffer[]> {
  const producerId = await newProducer(client)
  const good = compressions.map((codec, i) =>
    clientBatch({ records: [{ key: `k${i}`, value: `v${i}` }], producerId, epoch: 0, sequence: i, ...codec })
  )
  return [...good, ...undecodable]
}

/** @returns the rows of --json. */
async function inspect(dataDir: string, what: string): Promise<Record<string, unknown>[]> {
  const place = what === 'manifest' ? [] : ['--topic', 't', '--partition', '0']
  const { code, stdout, stderr } = await runMillrace(['inspect', what, '--data-dir', dataDir, ...place, '--json'])
  assert.deepEqual([code, stderr], [0, ''], stdout)
  const lines = stdout.trim().split('\n')
  return lines.map(line => JSON.parse(line) as Record<string, unknown>)
}

/** What was sent, twice: once in the life of a broker that is killed, which the next one settles, and once in that one. */
async function fill(t: TestContext): Promise<{ broker: SpawnedBroker; sent: readonly Buffer[] }> {
  const first = await spawnBroker(t, { flags })
  await new HttpApi(first.url).createTopic('t')
  const client = await connectKafka(t, first.kafka)
  const batches = await sentBatches(client)
  await produceAll(client, batches)
  await first.kill('SIGKILL')
  const broker = await spawnBroker(t, { dataDir: first.dataDir, flags })
  const page = async (): Promise<boolean> =>
    /^millrace_settle_jobs_total\{shard="0",result="done"\} [1-9]/m.test(
      (await new HttpApi(broker.url).get('/metrics')).text
    )
  await waitFor('the first half to be settled', page)
  // Batches of the producer are the second time duplicates, and are not stored again.
  await produceAll(await connectKafka(t, broker.kafka), batches)
  return { broker, sent: [...batches, ...undecodable] }
}

test('batches that cannot be decoded are no damage to verify and inspect, and are the same bytes after dump and restore', async t => {
  const { broker, sent } = await fill(t)
  const { dataDir } = broker
  const before = await fetchBatches(await connectKafka(t, broker.kafka), 't', 0)
  let offset = 0
  for (const [i, batch] of sent.entries()) {
    assert.deepEqual(before[i], placed(batch, offset), `batch ${i}`)
    offset += batch.readInt32BE(57)
  }
  const records = await new HttpApi(broker.url).consumeAll('t', 0)
  assert.deepEqual(
    records.map(({ value }) => value),
    ['v0', 'v1', 'v2', 'v3', 'v4']
  )
  await broker.kill('SIGTERM')

  const verified = await runMillrace(['verify', '--data-dir', dataDir])
  assert.deepEqual([verified.code, verified.stderr], [0, ''], verified.stdout)
  assert.match(verified.stdout, /\n {2}the records of 8 batch\(es\) of this shard cannot be decoded/)
  assert.match(verified.stdout, /\nno damage found/)

  const batches = await inspect(dataDir, 'batches')
  assert.deepEqual(
    batches.map(({ codec }) => codec),
    ['none', 'gzip', 'snappy', 'lz4', 'zstd', ...Array(2).fill(['none', 'gzip', 'zstd', 'gzip']).flat()]
  )
  const producer = batches[3] ?? {}
  assert.deepEqual(
    ['records', 'producer_id', 'producer_epoch', 'base_sequence'].map(name => producer[name]),
    [1, 1, 0, 3]
  )
  const shown = await inspect(dataDir, 'records')
  assert.deepEqual(
    shown.map(({ value, problem }) => value ?? (problem !== undefined && 'a problem')),
    ['v0', 'v1', 'v2', 'v3', 'v4', ...Array(8).fill('a problem')]
  )
  const [, partition] = await inspect(dataDir, 'manifest')
  const [known] = partition?.['producers'] as Record<string, unknown>[]
  assert.deepEqual([known?.['accepted'], known?.['producer_epoch'], known?.['next_sequence']], [5, 0, 5])

  const [archive, restored] = [join(temporaryDirectory(t), 'a.tar.gz'), join(temporaryDirectory(t), 'restored')]
  for (const words of [
    ['dump', '--data-dir', dataDir, '--output', archive, '--verify'],
    ['restore', '--input', archive, '--data-dir', restored]
  ]) {
    const { code, stderr } = await runMillrace(words)
    assert.equal(code, 0, stderr)
  }
  const again = await spawnBroker(t, { dataDir: restored, flags })
  const client = await connectKafka(t, again.kafka)
  assert.deepEqual(await fetchBatches(client, 't', 0), before)
  assert.deepEqual(await new HttpApi(again.url).consumeAll('t', 0), records)
  assert.equal((await produceBatch(client, 't', 0, sent[4] as Buffer)).baseOffset, 4, 'its producer is known there')
})

test('compaction keeps batches that cannot be decoded as they are, and counts them', async t => {
  const broker = await startBroker(t, { flags: { '--shards': '1' } })
  const api = new HttpApi(broker.url)
  await api.createTopic('t', 1, { segment_bytes: 1000, tombstone_retention_ms: 0 })
  const client = await connectKafka(t, broker.kafka)
  const small = undecodable.slice(0, 3)
  await produceAll(client, small)
  // A compacted topic would not have taken them.
  assert.equal((await api.call('PUT', '/topics/t/config', '{"cleanup_policy":"compact"}')).status, 200)
  const filler = (value: string): Buffer => clientBatch({ records: [{ key: 'k', value: value.padEnd(600, '.') }] })
  await produceAll(client, ['a', 'b', 'c', 'd'].map(filler))
  assert.equal((await api.post('/admin/run-compaction', '')).status, 204)
  const kept = await fetchBatches(client, 't', 0)
  assert.deepEqual(kept.slice(0, 3), [
    placed(small[0] as Buffer, 0),
    placed(small[1] as Buffer, 3),
    placed(small[2] as Buffer, 5)
  ])
  assert.ok(kept.length < 7, 'and drops what it can look into')
  assert.match((await api.get('/metrics')).text, /^millrace_compaction_opaque_batches_total 3$/m)
})
