/**
 * Large answers go to the sockets of Kafka clients from where a shard has put them: they are the bytes that were written,
 * over TLS too, whoever stops reading, and the memory is there again afterwards.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect as connectTls } from 'node:tls'
import { test, type TestContext } from 'node:test'
import { apis } from '../../src/wire/kafka/apis/index.ts'
import { limits } from '../../src/model/limits.ts'
import { spawnBroker, startBroker, waitFor, type TestBroker } from '../support/broker.ts'
import { makeCertificate, writeCertificate } from '../support/certificate.ts'
import { atEnd } from '../support/clean-up.ts'
import { clientBatch, placed, splitBatches } from '../support/client-batches.ts'
import { HttpApi } from '../support/http-api.ts'
import { fetchBody, fetchPartitions, produceBatch } from '../support/kafka-calls.ts'
import { connectKafka, decodeResponse, KafkaClient, placeOf } from '../support/kafka-client.ts'
import { chosenSeed, diceOf, replayLine } from '../support/log-random.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

const KIB = 1024
const MIB = 1024 * KIB
const PARTITIONS = 4
/** Of each partition; an answer has 8 MiB at most. */
const PARTITION_BYTES = 3 * MIB

interface Stage {
  readonly broker: Pick<TestBroker, 'url' | 'kafka'>
  readonly connect: () => Promise<KafkaClient>
  /** By partition, as they are stored. */
  readonly written: readonly (readonly Buffer[])[]
}

/** Batches of 100 bytes to half a MiB, each unlike the others. */
async function stage(
  t: TestContext,
  flags: Readonly<Record<string, string>> = {},
  connectTo: (broker: Stage['broker']) => Promise<KafkaClient> = ({ kafka }) => connectKafka(t, kafka)
): Promise<Stage> {
  return fill(t, await startBroker(t, { flags: { '--shards': '1', ...flags } }), connectTo)
}

async function fill(
  t: TestContext,
  broker: Stage['broker'],
  connectTo: (broker: Stage['broker']) => Promise<KafkaClient>
): Promise<Stage> {
  const seed = chosenSeed()
  const dice = diceOf(seed)
  t.diagnostic(replayLine(seed, 'test/integration/kafka-lent-answers.test.ts'))
  const connect = (): Promise<KafkaClient> => connectTo(broker)
  const client = await connect()
  const topic = { name: 't', numPartitions: PARTITIONS, replicationFactor: 1, assignments: [], configs: [] }
  await client.call(apis.createTopics, 5, { topics: [topic], timeoutMs: 10_000, validateOnly: false })
  const written: Buffer[][] = []
  for (let partition = 0; partition < PARTITIONS; partition++) {
    const batches: Buffer[] = []
    for (let bytes = 0; bytes < PARTITION_BYTES;) {
      const value = `${partition}:${batches.length}:`.padEnd(
        dice.pick([100, 5 * KIB, 100 * KIB, 500 * KIB]),
        `${dice.below(10)}`
      )
      const batch = clientBatch({ records: [{ value }] })
      await produceBatch(client, 't', partition, batch)
      batches.push(placed(batch, batches.length))
      bytes += batch.length
    }
    written.push(batches)
  }
  return { broker, connect, written }
}

/** Reads all partitions to their ends, and looks at every byte. */
async function readAll(client: KafkaClient, { written }: Pick<Stage, 'written'>, maxBytes = 50 * MIB): Promise<void> {
  const offsets: Record<number, number> = {}
  for (const partition of written.keys()) offsets[partition] = 0
  while (Object.keys(offsets).length > 0) {
    const told = await fetchPartitions(client, 't', offsets, { maxBytes, partitionMaxBytes: 2 * MIB })
    for (const { partitionIndex, errorCode, records } of told) {
      assert.equal(errorCode, 0)
      const from = offsets[partitionIndex] ?? assert.fail('a partition that was asked for')
      const got = splitBatches(records ?? Buffer.alloc(0))
      const wanted = written[partitionIndex] ?? []
      assert.deepEqual(got, wanted.slice(from, from + got.length))
      offsets[partitionIndex] = from + got.length
      if (from + got.length === wanted.length) delete offsets[partitionIndex]
    }
  }
}

async function lentBytes({ broker }: Stage): Promise<number> {
  const found = /\nmillrace_read_lent_bytes\{shard="0"\} (\d+)\n/.exec(
    (await new HttpApi(broker.url).get('/metrics')).text
  )
  return Number(found?.[1] ?? assert.fail('a series of each shard'))
}

/** A client that has asked for all that there is, and reads nothing of it. */
async function stuck({ connect }: Stage): Promise<KafkaClient> {
  const client = await connect()
  client.socket.pause()
  const offsets = Object.fromEntries(Array.from({ length: PARTITIONS }, (_, partition) => [partition, 0]))
  client.send(apis.fetch, 11, fetchBody('t', offsets, { partitionMaxBytes: 2 * MIB }))
  return client
}

test('large answers are the bytes that were written, and leave no memory taken', async t => {
  const s = await stage(t)
  const client = await s.connect()
  const paused = await stuck(s)
  await waitFor('memory to be lent', async () => (await lentBytes(s)) > 0)
  paused.socket.destroy()
  await readAll(client, s)
  // Answers that end amid a chunk, and small ones between them.
  await readAll(client, s, 700 * KIB)
  await readAll(client, s, 30 * KIB)
  await waitFor('all of it to be given back', async () => (await lentBytes(s)) === 0)
})

test('large answers over TLS are the bytes that were written', async t => {
  const certificate = makeCertificate('lent')
  const { cert, key } = writeCertificate(temporaryDirectory(t), certificate)
  const s = await stage(t, { '--tls-cert': cert, '--tls-key': key }, async ({ kafka }) => {
    const socket = connectTls({ ...placeOf(kafka), ca: certificate.cert })
    atEnd(t, () => void socket.destroy())
    await once(socket, 'secureConnect')
    return new KafkaClient(socket)
  })
  await readAll(await s.connect(), s)
  await readAll(await s.connect(), s, 700 * KIB)
})

test('clients that read nothing take what there is; others get theirs, and it is there again when those are gone', async t => {
  // So that the share of one address is no bound.
  const s = await stage(t, { '--reply-memory-bytes': '1GiB' })
  const clients: KafkaClient[] = []
  const most = limits.lentAnswerBytes
  // Each has one answer of 8 MiB under way, of which sockets hold some.
  for (let i = 0; i < (4 * most) / (8 * MIB); i++) clients.push(await stuck(s))
  await waitFor('most of it to be taken', async () => (await lentBytes(s)) > most / 2)
  const honest = await s.connect()
  await readAll(honest, s)
  for (const client of clients) client.socket.destroy()
  await waitFor('it to be given back', async () => (await lentBytes(s)) === 0)
  await readAll(honest, s)
})

test('a shard that dies leaves what it has lent to those who have it', async t => {
  const flags = { '--shards': '1', '--bind-kafka': '127.0.0.1:0' }
  // Behind all that the stage writes.
  const broker = await spawnBroker(t, { flags, env: { MILLRACE_FAULTS: '0/group.write:300=EIO' } })
  const s = await fill(t, broker, ({ kafka }) => connectKafka(t, kafka))
  const held = await stuck(s)
  await waitFor('memory to be lent', async () => (await lentBytes(s)) > 0)
  const client = await s.connect()
  const last = PARTITIONS - 1
  let groups = 0
  const isTaken = async (): Promise<boolean> =>
    (await produceBatch(client, 't', last, clientBatch({ records: [{ value: 'v' }] }))).errorCode === 0
  while (await isTaken()) assert.ok(groups++ < 600, 'the fault comes')
  await broker.waitForLog(({ msg }) => String(msg).startsWith('shard stops'))
  await waitFor('the shard', isTaken)
  // The new one lends other memory: what the first client has is as it was.
  await readAll(await s.connect(), { ...s, written: s.written.slice(0, last) })
  held.socket.resume()
  const answer = decodeResponse(apis.fetch, 11, (await held.next()) ?? assert.fail('an answer'))
  const told = answer.responses.flatMap(({ partitions }) => partitions)
  let bytes = 0
  for (const { partitionIndex, records } of told) {
    const got = splitBatches(records ?? Buffer.alloc(0))
    assert.deepEqual(got, s.written[partitionIndex]?.slice(0, got.length))
    bytes += records?.length ?? 0
  }
  assert.ok(bytes > 4 * MIB)
})
