/** What an idempotent client knows of a topic becomes old: it asks again while it goes on, against a peer that grows. */
import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import { fnv1a64Modulo, murmur2Modulo } from '../../../../src/base/hash.ts'
import { PipelinedClient, type PipelinedOptions } from '../../../../src/client/binary/index.ts'
import type { Frame } from '../../../../src/wire/es01/frame.ts'
import { waitFor } from '../../../support/broker.ts'
import type { PeerConnection } from '../../../support/es01-peer.ts'
import { startFakeBroker, type FakeBroker } from './fake-broker.ts'

/** As long as what a client knows holds without an option. */
const AGE_MS = 300_000
const MISSING = "not found: no topic named 't'"

/** The clock of the client, that a test moves. */
class Clock {
  #ms = 1

  constructor(t: TestContext) {
    t.mock.method(performance, 'now', () => this.#ms)
  }

  move(ms: number): void {
    this.#ms += ms
  }
}

interface Stage {
  readonly clock: Clock
  readonly broker: FakeBroker
  readonly client: PipelinedClient
  /** Sends a record with that key. @returns the partition it lies in. */
  readonly send: (key: string) => Promise<number>
}

/** A client that has written a record, and has heard what it asked behind that one. */
async function stage(t: TestContext, partitionCount: number, options: Partial<PipelinedOptions> = {}): Promise<Stage> {
  const broker = await startFakeBroker(t, partitionCount)
  const clock = new Clock(t)
  const reconnect = { initialMs: 1, maxMs: 5 }
  const client = new PipelinedClient({ ...broker.address, lingerMs: 0, reconnect, ...options })
  t.after(() => client.destroy())
  const send = async (key: string): Promise<number> => (await client.send('t', { key, value: '' })).partition
  await send('first')
  await send('second')
  assert.equal(broker.questions, 2)
  return { clock, broker, client, send }
}

/** A key that goes elsewhere when there are more partitions, or by another hash. */
function keyThatMoves(before: (key: string) => number, after: (key: string) => number): string {
  for (let i = 0; ; i++) if (before(`key-${i}`) !== after(`key-${i}`)) return `key-${i}`
}

function fnvOf(key: string, count: number): number {
  return fnv1a64Modulo(Buffer.from(key), 0, key.length, count)
}

function murmurOf(key: string, count: number): number {
  return murmur2Modulo(Buffer.from(key), 0, key.length, count)
}

/** Has the peer keep the next question, or answer it otherwise. @returns how often it was asked so. */
function onQuestions(broker: FakeBroker, answer: (frame: Frame, connection: PeerConnection) => void): () => number {
  const take = broker.take.bind(broker)
  let count = 0
  broker.take = (frame, connection) => {
    const { length } = broker.produced
    const { questions } = broker
    let refuse: (() => void) | null = null
    const held = { ...connection, refuse: (id: number, text: string) => (refuse = () => connection.refuse(id, text)) }
    take(frame, held)
    if (broker.questions > questions && broker.produced.length === length) {
      count++
      answer(frame, connection)
    } else (refuse as (() => void) | null)?.()
  }
  return () => count
}

/** A key whose partition is another one once there are 9 instead of 2. */
function keyThatMovesWithGrowth(): string {
  return keyThatMoves(
    k => fnvOf(k, 2),
    k => fnvOf(k, 9)
  )
}

describe('what an idempotent client knows of a topic', () => {
  test('holds for five minutes, then the next record asks once, and those after it go over all partitions', async t => {
    const { clock, broker, send } = await stage(t, 2)
    const key = keyThatMovesWithGrowth()
    broker.partitionCount = 9
    clock.move(AGE_MS - 1)
    assert.equal(await send(key), fnvOf(key, 2))
    assert.equal(broker.questions, 2)
    clock.move(1)
    assert.equal(await send(key), fnvOf(key, 2))
    await waitFor('the partitions that were added', async () => (await send(key)) === fnvOf(key, 9))
    await send(key)
    // One when it was old, and one behind the first record since: it may be another topic of that name.
    assert.equal(broker.questions, 4)
    clock.move(AGE_MS - 1)
    await send(key)
    assert.equal(broker.questions, 4)
  })

  test('is asked by use alone: time that passes with no record asks nothing', async t => {
    const { clock, broker, client, send } = await stage(t, 2)
    clock.move(100 * AGE_MS)
    await client.flush()
    await client.send('other', { value: '', partition: 0 })
    assert.equal(broker.questions, 2)
    await send('k')
    await send('k')
    assert.equal(broker.questions, 3)
  })

  test('holds as long as metadataMaxAgeMs says', async t => {
    const { clock, broker, send } = await stage(t, 2, { metadataMaxAgeMs: 7 })
    clock.move(6)
    await send('k')
    assert.equal(broker.questions, 2)
    clock.move(1)
    await send('k')
    await send('k')
    assert.equal(broker.questions, 3)
  })

  test('is asked in the background: records go on while nobody answers, and there is one question', async t => {
    const { clock, broker, send } = await stage(t, 2)
    const asked = onQuestions(broker, () => {})
    broker.partitionCount = 9
    for (let i = 0; i < 20; i++) {
      clock.move(AGE_MS)
      assert.equal(await send(`key-${i}`), fnvOf(`key-${i}`, 2))
    }
    assert.equal(asked(), 1)
  })

  test('is kept where asking fails, and asked again soon if that may pass, else when its time has come again', async t => {
    const { clock, broker, send } = await stage(t, 2)
    let refusal = 'unavailable: shard 0 is starting'
    const asked = onQuestions(broker, (frame, connection) => connection.refuse(frame.requestId, refusal))
    clock.move(AGE_MS)
    for (let i = 0; i < 5; i++) assert.equal(await send(`key-${i}`), fnvOf(`key-${i}`, 2))
    assert.equal(asked(), 1)
    refusal = 'forbidden: this key may not'
    // More than the longest pause.
    clock.move(5)
    await send('k')
    await send('k')
    assert.equal(asked(), 2)
    clock.move(AGE_MS - 1)
    await send('k')
    assert.equal(asked(), 2)
    clock.move(1)
    assert.equal(await send('k'), fnvOf('k', 2))
    assert.equal(asked(), 3)
  })

  test('is forgotten at once where the answer is that the topic is gone', async t => {
    const { clock, broker, send } = await stage(t, 5)
    const take = broker.take.bind(broker)
    broker.take = (frame, connection) => connection.refuse(frame.requestId, MISSING)
    clock.move(1)
    await assert.rejects(send('k'), { kind: 'refused', written: 'no' })
    broker.take = take
    broker.partitionCount = 3
    assert.equal(await send('k'), fnvOf('k', 3))
  })

  test('is forgotten too where that is the answer to the question in the background', async t => {
    const { clock, broker, send } = await stage(t, 5)
    const key = keyThatMoves(
      k => fnvOf(k, 5),
      k => fnvOf(k, 9)
    )
    const take = broker.take.bind(broker)
    onQuestions(broker, (frame, connection) => {
      broker.take = take
      broker.partitionCount = 9
      connection.refuse(frame.requestId, MISSING)
    })
    clock.move(AGE_MS)
    assert.equal(await send(key), fnvOf(key, 5))
    assert.equal(await send(key), fnvOf(key, 9))
  })

  test('is not what an answer says that comes late, after it was learnt anew', async t => {
    const { clock, broker, client, send } = await stage(t, 2)
    const key = keyThatMovesWithGrowth()
    const take = broker.take.bind(broker)
    let answerLate = (): void => {}
    onQuestions(broker, (frame, connection) => {
      broker.take = take
      const text = "bad request: partition 2147483647 is out of range: topic 't' has 2 partition(s), numbered from 0"
      answerLate = () => connection.refuse(frame.requestId, text)
    })
    clock.move(AGE_MS)
    await send(key)
    broker.partitionCount = 9
    await assert.rejects(client.send('t', { value: '', partition: 9 }), { kind: 'refused', written: 'no' })
    answerLate()
    // An answer that comes behind the late one.
    await client.send('other', { value: '', partition: 0 })
    assert.equal(await send(key), fnvOf(key, 9))
  })

  test('is another one at once where the answer is that a partition does not exist', async t => {
    const { broker, client, send } = await stage(t, 2)
    const key = keyThatMovesWithGrowth()
    broker.partitionCount = 9
    await assert.rejects(client.send('t', { value: '', partition: 9 }), { kind: 'refused', written: 'no' })
    assert.equal(await send(key), fnvOf(key, 9))
  })
})

describe('a record of an idempotent client', () => {
  test('keeps its partition and its sequence through all retries, however many partitions were added', async t => {
    const { clock, broker, send } = await stage(t, 2, { deliveryTimeoutMs: 10 * AGE_MS })
    const key = keyThatMovesWithGrowth()
    const [before, after] = [fnvOf(key, 2), fnvOf(key, 9)]
    const attempts = () => broker.produced.slice(2).filter(({ partition }) => partition === before)
    broker.fateOf = ({ partition }) => (partition === before ? { refuse: 'unavailable: the disk is full' } : 'write')
    const retried = send(key)
    await waitFor('a first retry', () => attempts().length >= 2)
    broker.partitionCount = 9
    clock.move(AGE_MS)
    // Of a key that has nothing to do with the partition in trouble.
    const other = keyThatMoves(
      k => (fnvOf(k, 2) === before || fnvOf(k, 9) === before ? 0 : fnvOf(k, 2)),
      k => (fnvOf(k, 2) === before || fnvOf(k, 9) === before ? 0 : fnvOf(k, 9))
    )
    await waitFor('the partitions that were added', async () => (await send(other)) === fnvOf(other, 9))
    assert.equal(await send(key), after)
    const refused = attempts().length
    broker.fateOf = ({ partition }) => (partition === before ? 'lose' : 'write')
    await waitFor('a copy whose answer is lost', () => attempts().length > refused)
    broker.fateOf = () => 'write'
    assert.equal(await retried, before)
    assert.equal(new Set(attempts().map(({ producerId, first }) => `${producerId} ${first}`)).size, 1)
  })

  test('goes by the hash that the topic has when it is written, if that was changed behind a refusal', async t => {
    const broker = await startFakeBroker(t, 9)
    const client = new PipelinedClient({ ...broker.address, lingerMs: 0 })
    t.after(() => client.destroy())
    const key = keyThatMoves(
      k => fnvOf(k, 9),
      k => murmurOf(k, 9)
    )
    broker.fateOf = () => ({ refuse: 'bad request: the value does not match its schema' })
    await assert.rejects(client.send('t', { key, value: '' }), { kind: 'refused', written: 'no' })
    broker.partitioner = 'murmur2'
    broker.fateOf = () => 'write'
    assert.equal((await client.send('t', { key, value: '' })).partition, murmurOf(key, 9))
  })

  test('goes by the new hash soon, if that was changed between the question and the first write', async t => {
    const broker = await startFakeBroker(t, 9)
    const client = new PipelinedClient({ ...broker.address, lingerMs: 0 })
    t.after(() => client.destroy())
    const key = keyThatMoves(
      k => fnvOf(k, 9),
      k => murmurOf(k, 9)
    )
    broker.fateOf = () => {
      broker.partitioner = 'murmur2'
      return 'write'
    }
    const send = async (): Promise<number> => (await client.send('t', { key, value: '' })).partition
    assert.equal(await send(), fnvOf(key, 9))
    await waitFor('the new hash', async () => (await send()) === murmurOf(key, 9))
    // And once more: what has another hash may be another topic.
    assert.ok(broker.questions <= 3)
  })
})
