/**
 * Kill −9 under load over Kafka's protocol: idempotent producers, of ours as Java's does it and KafkaJS, with every codec,
 * through kills, lost connections and failures of a shard. What was acknowledged is there once, at its offset, in the order
 * in which each producer sent it; Fetch and HTTP say the same; batches are the bytes that were sent. 4 rounds in the normal
 * run, 100 with MILLRACE_LONG=1, as many as KAFKA_ROUNDS says.
 */
import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { spawnBroker, waitFor, type SpawnedBroker, type Variant } from '../support/broker.ts'
import { atEnd } from '../support/clean-up.ts'
import { placed } from '../support/client-batches.ts'
import { createTopics, type LoadTopic } from '../support/crash-load.ts'
import { isLong, seed } from '../support/crash-run.ts'
import { judge, type PartitionContents } from '../support/history.ts'
import { HttpApi } from '../support/http-api.ts'
import { connectKafka } from '../support/kafka-client.ts'
import { fetchBatches, recordsOf } from '../support/kafka-contents.ts'
import { KafkaLoad, keyOf, placeOfBatch, type SentBatch } from '../support/kafka-load.ts'
import { kafkaJs } from '../support/kafkajs.ts'
import { KafkaJsLoad } from '../support/kafkajs-load.ts'
import { diceOf, replayLine, type Dice } from '../support/log-random.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

const FILE = 'test/crash/kafka-rounds.test.ts'
const ROUNDS = Number(process.env['KAFKA_ROUNDS'] ?? (isLong ? 100 : 4))
delete process.env['KAFKA_ROUNDS']
const PRODUCERS = 4
const topics: readonly LoadTopic[] = [
  { name: 'alpha', partitions: 3 },
  { name: 'beta', partitions: 2 }
]
/** What the log settles between the rounds: later rounds find it in segments, earlier ones in the journal. */
const flags = { '--settle-idle': '50ms', '--settle-age': '100ms' }
/** Before and after the moment that makes a batch durable; some leave the process alive, and its shard begins anew. */
const faults = [
  'group.write:N=kill',
  'group.write:N=short-kill',
  'group.sync:N=kill',
  'group.sync:N=kill-after',
  'group.sync:N=bug',
  'group.sync:N=EIO',
  'group.write:N=short-ENOSPC'
] as const

class Rounds {
  readonly loads: readonly KafkaLoad[]
  readonly #t: TestContext
  readonly #dice: Dice
  readonly #variant: Variant
  readonly #dataDir: string
  /** The address stays, for KafkaJS and for what Kafka's clients know of it. */
  #address = '127.0.0.1:0'

  constructor(t: TestContext, shards: 1 | 3) {
    this.#t = t
    this.#dice = diceOf(seed + shards)
    this.#variant = { engine: this.#dice.pick(['uws', 'node'] as const), shards }
    this.#dataDir = temporaryDirectory(t)
    this.loads = Array.from({ length: PRODUCERS }, (_, i) => new KafkaLoad(`p${i}`, topics, diceOf(seed + 100 * i)))
  }

  /** Batches acknowledged to producers of ours. */
  get acked(): number {
    return this.loads.reduce((sum, load) => sum + load.acked, 0)
  }

  /** Batches that they sent again on another connection. */
  get retries(): number {
    return this.loads.reduce((sum, load) => sum + load.retries, 0)
  }

  async spawn(hasFault: boolean): Promise<SpawnedBroker> {
    const broker = await spawnBroker(this.#t, {
      dataDir: this.#dataDir,
      variant: this.#variant,
      flags: { ...flags, '--bind-kafka': this.#address },
      env: hasFault ? { MILLRACE_FAULTS: this.#drawFault() } : {}
    })
    this.#address = broker.kafka
    return broker
  }

  /** Where nobody knows of it: what a client that was left may still send does not come. */
  async spawnAlone(): Promise<SpawnedBroker> {
    this.#address = '127.0.0.1:0'
    return this.spawn(false)
  }

  /** Load until some were acknowledged, or a fault has ended the broker; then kill −9. */
  async play(broker: SpawnedBroker): Promise<void> {
    const running = this.loads.map((load, i) => this.#produce(broker, load, i))
    const failed = Promise.all(running)
    failed.catch(() => undefined)
    const enough = this.acked + 30 + this.#dice.below(150)
    const ended = waitFor('answers', () => this.acked >= enough || broker.child.signalCode !== null, 30_000)
    await Promise.race([ended, failed.then(() => ended)])
    await broker.kill('SIGKILL')
    await failed
  }

  /** All that has no answer yet gets one. */
  async drain(broker: SpawnedBroker): Promise<void> {
    for (const load of this.loads) load.drain()
    await Promise.all(this.loads.map(async load => load.run(await connectKafka(this.#t, broker.kafka))))
  }

  /** One producer, whose connection is lost now and then with requests in flight: it comes back while they are worked on. */
  async #produce(broker: SpawnedBroker, load: KafkaLoad, number: number): Promise<void> {
    const dice = diceOf(this.#dice.below(2 ** 31) + number)
    while (broker.child.signalCode === null) {
      const client = await connectKafka(this.#t, broker.kafka).catch(() => null)
      // Who refuses a connection has ended.
      if (client === null) return void (await waitFor('the end', () => broker.child.signalCode !== null))
      const until = load.acked + 10 + dice.below(60)
      const isOver = (): boolean => load.acked >= until || client.socket.destroyed
      const cut = waitFor('a connection to be cut', isOver, 60_000).then(() => client.socket.destroy())
      await Promise.all([load.run(client), cut])
    }
  }

  #drawFault(): string {
    const dice = this.#dice
    return `${dice.below(this.#variant.shards)}/${dice.pick(faults).replace('N', String(5 + dice.below(40)))}`
  }
}

/** @returns all partitions as Fetch brings them, after a look that HTTP says the same and that batches are as they were sent. */
async function contentsOf(
  t: TestContext,
  broker: SpawnedBroker,
  sent: ReadonlyMap<string, SentBatch>
): Promise<{ readonly contents: PartitionContents[]; readonly verbatim: number }> {
  const client = await connectKafka(t, broker.kafka)
  const api = new HttpApi(broker.url)
  const contents: PartitionContents[] = []
  let verbatim = 0
  for (const { name: topic, partitions } of topics) {
    for (let partition = 0; partition < partitions; partition++) {
      const batches = await fetchBatches(client, topic, partition)
      for (const batch of batches) verbatim += isVerbatim(batch, `${topic}/${partition}`, sent) ? 1 : 0
      const epochs = batches.map(batch => batch.readInt32BE(12))
      assert.deepEqual(
        epochs,
        epochs.toSorted((a, b) => a - b),
        `${topic}/${partition}: leader epochs`
      )
      const records = batches.flatMap(recordsOf)
      const overHttp = await api.consumeAll(topic, partition)
      assert.deepEqual(
        overHttp.map(({ offset, key, value }) => ({ offset, key, value })),
        records,
        `${topic}/${partition} over HTTP and over Kafka`
      )
      for (const { key, value } of records) assert.equal(key, keyOf(value))
      const found = records.map(({ offset, value }) => ({ topic, partition, offset, value }))
      contents.push({ topic, partition, firstOffset: 0, records: found })
    }
  }
  return { contents, verbatim }
}

/** @returns whether the batch is of a producer of ours; then its bytes are those that were sent. */
function isVerbatim(stored: Buffer, place: string, sent: ReadonlyMap<string, SentBatch>): boolean {
  const [id, epoch, sequence] = [stored.readBigInt64BE(43), stored.readInt16BE(51), stored.readInt32BE(53)] as const
  const batch = sent.get(placeOfBatch(place, id, epoch, sequence))
  if (batch === undefined) return false
  // A start that cut a torn tail began another leader epoch.
  const [baseOffset, leaderEpoch] = [Number(stored.readBigInt64BE(0)), stored.readInt32BE(12)]
  assert.deepEqual(stored, placed(batch.bytes, baseOffset, leaderEpoch), `${place}: the bytes that were sent`)
  return true
}

describe('kill −9 under load over Kafka’s protocol', () => {
  for (const shards of [1, 3] as const) {
    it(`loses, doubles and reorders nothing, in ${ROUNDS} rounds with ${shards} shard(s)`, async t => {
      t.diagnostic(replayLine(seed, FILE))
      const rounds = new Rounds(t, shards)
      const { loads } = rounds
      let broker = await rounds.spawn(false)
      await createTopics(broker, topics)
      const kafka = kafkaJs(broker.kafka, { retry: { initialRetryTime: 20, maxRetryTime: 200, retries: 500 } })
      const other = new KafkaJsLoad(kafka, 'js', topics, diceOf(seed + 7))
      atEnd(t, () => other.abort())
      const running = other.run()
      running.catch(() => undefined)
      // A kill may meet nobody with a request in flight: then it takes more of them until there is something to show.
      for (let round = 0; round < ROUNDS || (rounds.retries <= ROUNDS && round < 5 * ROUNDS); round++) {
        await rounds.play(broker)
        broker = await rounds.spawn(round % 2 === 0 && round < ROUNDS - 1)
      }
      await rounds.drain(broker)
      // KafkaJS waits longer before it comes back than all rounds may take.
      await waitFor('sends of KafkaJS', () => other.acked > ROUNDS, 60_000)
      other.stop()
      await running
      await broker.kill('SIGKILL')
      broker = await rounds.spawnAlone()

      const sent = [...loads.flatMap(load => load.sent), ...other.sent]
      const batches = new Map(loads.flatMap(load => [...load.batches]))
      const { contents, verbatim } = await contentsOf(t, broker, batches)
      const verdict = judge(sent, contents)
      assert.deepEqual(verdict.anomalies, [])
      const ids = loads.flatMap(load => load.producerIds)
      assert.equal(new Set(ids).size, ids.length, 'no producer id is given out twice')
      const sumOf = (of: (load: KafkaLoad) => number): number => loads.reduce((sum, load) => sum + of(load), 0)
      const { retries } = rounds
      const [copies, abandoned] = [sumOf(l => l.copies), sumOf(l => l.abandoned)]
      t.diagnostic(
        `${verdict.acked} records acknowledged, 0 lost, 0 doubled; ${verdict.unknown} without an answer, ` +
          `${verdict.unknownFound} of them in the log; ${retries} batches sent again, ${copies} copies, ` +
          `${abandoned} given up, ${verbatim} verbatim; KafkaJS: ${other.acked} sends, ${other.failed} given up, ${other.left} calls without an end`
      )
      assert.ok(verbatim >= rounds.acked, 'all that was acknowledged to producers of ours is there as they sent it')
      assert.ok(retries > ROUNDS, 'kills met requests in flight')
      assert.ok(other.left <= 2 * ROUNDS, 'KafkaJS is answered but for what kills interrupt')
      assert.deepEqual(await broker.kill('SIGTERM'), { code: 0, signal: null })
    })
  }
})
