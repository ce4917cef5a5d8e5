/**
 * Clients that fetch at random from a log that grows, with sessions and without, in all sizes, that go away amid answers or
 * do not read them, beside topics that come and go and records that are deleted, with little memory for answers. What they
 * get are the bytes that were written, in order; nothing breaks, and nothing stays held. 300 fetches a run; 30,000 with
 * MILLRACE_LONG=1; as many as FUZZ_FETCHES says.
 */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { batchStatus, checkBatch } from '../../src/wire/batch/view.ts'
import { apis } from '../../src/wire/kafka/apis/index.ts'
import { kafkaErrors } from '../../src/wire/kafka/errors.ts'
import { startGuarded, type KeyAnswer, type TestKey } from '../support/access.ts'
import { startBroker, waitFor, type TestBroker } from '../support/broker.ts'
import { clientBatch, codecs, splitBatches, zstd } from '../support/client-batches.ts'
import { isLong, seed } from '../support/crash-run.ts'
import { HttpApi, parse } from '../support/http-api.ts'
import { fetchBody, produceBatch } from '../support/kafka-calls.ts'
import { openKafka, type KafkaClient } from '../support/kafka-client.ts'
import { nextOffsetOf } from '../support/kafka-contents.ts'
import { loginPlain } from '../support/kafka-login.ts'
import { diceOf, replayLine, type Dice } from '../support/log-random.ts'
import { heldBytes, untilWatching } from '../support/metrics-held.ts'

const FILE = 'test/fuzz/kafka-fetches.test.ts'
const wanted = Number(process.env['FUZZ_FETCHES'] ?? (isLong ? 30_000 : 300))
const READERS = 10
const PARTITIONS = 5
/** Enough for most fetches, not for all. */
const QUOTA = 50_000_000
const KIB = 1024
const MIB = 1024 * KIB
const { NONE, OFFSET_OUT_OF_RANGE, UNSUPPORTED_COMPRESSION_TYPE } = kafkaErrors
/** What a topic answers that is deleted and made anew meanwhile. */
const PASSING: readonly number[] = [
  kafkaErrors.UNKNOWN_TOPIC_OR_PARTITION.code,
  kafkaErrors.LEADER_NOT_AVAILABLE.code,
  kafkaErrors.NOT_LEADER_OR_FOLLOWER.code
]

/** Of a key. */
type Login = Pick<TestKey, 'id' | 'secret'>

/** What all clients of a run share. */
class Run {
  readonly broker: TestBroker
  readonly api: HttpApi
  /** Batches that were sent to a partition of `kept`, and were taken. */
  readonly written = Array.from({ length: PARTITIONS }, () => [] as Buffer[])
  fetches = 0
  readBytes = 0
  cutOff = 0

  readonly #writer: Login | null
  readonly #reader: Login | null

  /** @param writer a key that may do anything. @param reader one with a quota; null: nobody logs in. */
  constructor(broker: TestBroker, writer: TestKey | null, reader: Login | null) {
    this.broker = broker
    this.api = writer?.api ?? new HttpApi(broker.url)
    this.#writer = writer
    this.#reader = reader
  }

  get isOver(): boolean {
    return this.fetches >= wanted
  }

  connect(login = this.#reader): Promise<KafkaClient> {
    return openKafka(this.broker.kafka).then(async client => {
      if (login !== null) assert.equal(await loginPlain(client, login.id, login.secret), NONE.code)
      return client
    })
  }

  async write(dice: Dice): Promise<void> {
    const client = await this.connect(this.#writer)
    while (!this.isOver) {
      const partition = dice.below(PARTITIONS)
      const serial = this.written[partition]?.length ?? 0
      const length = dice.pick([50, 3 * KIB, 70 * KIB, 300 * KIB, 900 * KIB])
      // Some stay large as zstd, too.
      const value = dice.chance(0.5) ? dice.bytes(length) : Buffer.alloc(length, serial % 251)
      const packed = dice.chance(0.2) ? zstd : {}
      const batch = clientBatch({ records: [{ key: `${partition}:${serial}`, value }], ...packed })
      this.written[partition]?.push(batch)
      assert.equal((await produceBatch(client, 'kept', partition, batch)).errorCode, NONE.code)
      await produceBatch(client, 'passing', partition, batch)
      if (dice.chance(0.05)) await this.#disturb(dice)
    }
    client.socket.destroy()
  }

  async #disturb(dice: Dice): Promise<void> {
    if (dice.chance(0.5)) {
      const partition = dice.below(PARTITIONS)
      const offset = dice.below(1 + (this.written[partition]?.length ?? 0) / 2)
      await this.api.post('/topics/kept/delete-records', { partition, offset })
      return
    }
    await this.api.call('DELETE', '/topics/passing')
    await this.api.createTopic('passing', PARTITIONS)
  }
}

/** One connection after the other, each with places of its own. */
class Reader {
  readonly #run: Run
  readonly #dice: Dice
  readonly #hasSession: boolean
  readonly #version: number
  #client: KafkaClient | null = null
  #offsets: number[] = []
  #asked = new Set<number>()
  #sessionId = 0
  #epoch = 0

  constructor(run: Run, dice: Dice, hasSession: boolean) {
    this.#run = run
    this.#dice = dice
    this.#hasSession = hasSession
    // The first ones do not know zstd.
    this.#version = hasSession ? dice.pick([7, 9, 10, 12]) : dice.pick([4, 7, 11, 12])
  }

  async run(): Promise<void> {
    while (!this.#run.isOver) {
      const client = await this.#run.connect()
      this.#client = client
      this.#offsets = Array.from({ length: PARTITIONS }, () => 0)
      this.#forget()
      for (let left = this.#dice.below(30); left >= 0 && !this.#run.isOver && !client.socket.destroyed; left--)
        await this.#step(client)
      client.socket.destroy()
    }
  }

  close(): void {
    this.#client?.socket.destroy()
  }

  #forget(): void {
    this.#sessionId = 0
    this.#epoch = this.#hasSession ? 0 : -1
    this.#asked.clear()
  }

  async #step(client: KafkaClient): Promise<void> {
    const dice = this.#dice
    const body = this.#body()
    if (dice.chance(0.08)) return this.#leave(client, body)
    const response = await client.call(apis.fetch, this.#version, body)
    this.#run.fetches++
    if (response.errorCode !== NONE.code) return this.#forget()
    if (this.#hasSession) {
      this.#sessionId = response.sessionId
      this.#epoch = response.sessionId === 0 ? 0 : this.#epoch + 1
      if (response.sessionId === 0) this.#asked.clear()
    }
    for (const { topic, partitions } of response.responses) {
      for (const { partitionIndex, errorCode, records } of partitions) {
        if (topic === 'kept') this.#take(partitionIndex, errorCode, records ?? Buffer.alloc(0))
        else
          assert.ok(
            errorCode === NONE.code ||
              PASSING.includes(errorCode) ||
              errorCode === OFFSET_OUT_OF_RANGE.code ||
              errorCode === UNSUPPORTED_COMPRESSION_TYPE.code
          )
      }
    }
    // While it works on that, what it asks for next is read.
    if (dice.chance(0.2)) await client.call(apis.apiVersions, 2, {})
  }

  #body() {
    const dice = this.#dice
    const offsets: Record<number, number> = {}
    for (const [partition, offset] of this.#offsets.entries()) {
      if (this.#asked.has(partition) && dice.chance(0.95)) continue
      offsets[partition] = offset
      if (this.#sessionId !== 0 || this.#hasSession) this.#asked.add(partition)
    }
    const asked = {
      maxWaitMs: dice.pick([0, 5, 50]),
      minBytes: dice.pick([1, 1, 2 * MIB]),
      maxBytes: dice.pick([50 * MIB, 5 * MIB, 700 * KIB, 1]),
      partitionMaxBytes: dice.pick([MIB, 4 * MIB, 100 * KIB]),
      sessionId: this.#sessionId,
      sessionEpoch: this.#epoch
    }
    const body = fetchBody('kept', offsets, asked)
    const passing = fetchBody('passing', { [dice.below(PARTITIONS)]: 0 }, asked)
    return dice.chance(0.3) ? { ...body, topics: [...body.topics, ...passing.topics] } : body
  }

  /** Its client reads nothing of the answer, or some of it, and goes. */
  async #leave(client: KafkaClient, body: ReturnType<typeof fetchBody>): Promise<void> {
    this.#run.cutOff++
    this.#run.fetches++
    if (this.#dice.chance(0.5)) client.socket.pause()
    client.send(apis.fetch, this.#version, body)
    // Others are answered meanwhile.
    const other = await this.#run.connect()
    for (let left = this.#dice.below(20); left >= 0; left--) await other.call(apis.apiVersions, 2, {})
    other.socket.destroy()
    client.socket.destroy()
  }

  #take(partition: number, errorCode: number, records: Buffer): void {
    const asked = this.#offsets[partition] ?? assert.fail('a partition that there is')
    const where = `partition ${partition}, offset ${asked}`
    if (errorCode === OFFSET_OUT_OF_RANGE.code) {
      // Records were deleted: it goes on at the end.
      this.#goTo(partition, this.#run.written[partition]?.length ?? 0)
      return
    }
    if (errorCode === UNSUPPORTED_COMPRESSION_TYPE.code) {
      assert.ok(this.#version < 10, where)
      this.#goTo(partition, asked + 1)
      return
    }
    assert.equal(errorCode, NONE.code, where)
    let expected = asked
    for (const batch of splitBatches(records)) {
      assert.equal(Number(batch.readBigInt64BE(0)), expected, where)
      assert.equal(checkBatch(batch, 0, batch.length), batchStatus.ok, where)
      assert.ok(this.#version >= 10 || (batch.readInt16BE(21) & 7) !== codecs.zstd, where)
      // Behind its first 21 bytes it is what was sent.
      assert.ok(this.#run.written[partition]?.[expected]?.subarray(21).equals(batch.subarray(21)), where)
      expected = nextOffsetOf(batch)
    }
    this.#run.readBytes += records.length
    if (expected !== asked) this.#goTo(partition, expected)
  }

  #goTo(partition: number, offset: number): void {
    this.#offsets[partition] = offset
    this.#asked.delete(partition)
  }
}

const flagsOf = (shards: number) => ({ '--shards': String(shards), '--reply-memory-bytes': '20MiB' })

async function play(t: TestContext, run: Run): Promise<void> {
  t.diagnostic(replayLine(seed, FILE))
  for (const topic of ['kept', 'passing']) await run.api.createTopic(topic, PARTITIONS)
  const readers = Array.from({ length: READERS }, (_, i) => new Reader(run, diceOf(seed + i), i % 3 > 0))
  await Promise.all([run.write(diceOf(seed - 1)), ...readers.map(reader => reader.run())])
  for (const reader of readers) reader.close()
  t.diagnostic(`${run.fetches} fetches, ${run.readBytes} bytes read, ${run.cutOff} went amid an answer`)
  assert.ok(run.readBytes > 0 && run.cutOff > 0)
  await waitFor('nothing to be held', async () => (await heldBytes(run.api)).replies === 0)
  await untilWatching(run, 0)
  const page = (await run.api.get('/metrics')).text
  for (const [, name, value] of page.matchAll(/\n(millrace_read_lent_bytes\S*|millrace_kafka_read_ahead_bytes) (\d+)/g))
    assert.equal(value, '0', name)
}

for (const shards of [1, 3]) {
  test(`random fetches, with ${shards} shard(s)`, async t => {
    await play(t, new Run(await startBroker(t, { flags: flagsOf(shards) }), null, null))
  })
}

test('random fetches of a key with a quota, which read in turn', async t => {
  const { broker, admin } = await startGuarded(t, { flags: flagsOf(1) })
  const acls = [{ action: 'read', topic_prefix: '*' }]
  const made = await admin.api.post('/admin/keys', { name: 'reader', acls, consume_bytes_per_sec: QUOTA })
  const { key, secret } = parse<{ key: KeyAnswer; secret: string }>(made)
  await play(t, new Run(broker, admin, { id: key.key_id, secret }))
})
