/** Producers that other brokers were reported to refuse, or to write twice: kafka-reports-rows.ts says whose they are. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { apis } from '../../src/wire/kafka/apis/index.ts'
import { kafkaErrors } from '../../src/wire/kafka/errors.ts'
import { spawnBroker } from '../support/broker.ts'
import { placed, splitBatches } from '../support/client-batches.ts'
import { HttpApi } from '../support/http-api.ts'
import { fetchPartitions, newProducer, produceBatch, produceBody } from '../support/kafka-calls.ts'
import { connectKafka, decodeResponse } from '../support/kafka-client.ts'
import { batchOf, kafkaStage, TOPIC, topicIdOf } from './kafka-stage.ts'

/** Batches of one partition that a client may have on their way. */
const IN_FLIGHT = 5

test('redpanda#3826: batches of an idempotent producer that are sent one behind the other are all in order', async t => {
  const { api, client } = await kafkaStage(t)
  const producerId = await newProducer(client)
  for (let round = 0; round < 4; round++) {
    const sequences = Array.from({ length: IN_FLIGHT }, (_, i) => round * IN_FLIGHT + i)
    for (const sequence of sequences) {
      client.send(apis.produce, 9, produceBody(TOPIC, 0, batchOf(`${sequence}`, { producerId, sequence })))
    }
    for (const sequence of sequences) {
      const answer = await client.next()
      assert.ok(answer !== null)
      const [told] = decodeResponse(apis.produce, 9, answer).responses[0]?.partitionResponses ?? []
      assert.deepEqual([told?.errorCode, told?.baseOffset], [0, sequence])
    }
  }
  assert.deepEqual(await api.ends(TOPIC), [4 * IN_FLIGHT])
})

test('redpanda#3039: a batch that comes again is written once, each of the last five', async t => {
  const { api, client } = await kafkaStage(t)
  const producerId = await newProducer(client)
  const batches = Array.from({ length: IN_FLIGHT }, (_, sequence) => batchOf(`${sequence}`, { producerId, sequence }))
  for (const batch of batches) await produceBatch(client, TOPIC, 0, batch)
  for (const [offset, batch] of batches.entries()) {
    const again = await produceBatch(client, TOPIC, 0, batch)
    assert.deepEqual([again.errorCode, again.baseOffset], [0, offset])
  }
  assert.deepEqual(await api.ends(TOPIC), [IN_FLIGHT])
})

test('redpanda#22670: a producer of whom nothing is known may begin with any sequence, as after its state was dropped', async t => {
  const { api, client } = await kafkaStage(t)
  const producerId = await newProducer(client)
  assert.equal((await produceBatch(client, TOPIC, 0, batchOf('a', { producerId, sequence: 0 }))).errorCode, 0)
  // The topic is made anew: nothing of the producer is known there, who goes on where it was.
  await api.call('DELETE', `/topics/${TOPIC}`)
  await api.createTopic(TOPIC)
  const told = await produceBatch(client, TOPIC, 0, batchOf('b', { producerId, sequence: 1 }))
  assert.deepEqual([told.errorCode, told.baseOffset], [0, 0])
  const next = await produceBatch(client, TOPIC, 0, batchOf('c', { producerId, sequence: 2 }))
  assert.deepEqual([next.errorCode, next.baseOffset], [0, 1])
})

test('redpanda#5355: a shard that dies is told by codes that a producer retries, and its retries write nothing twice', async t => {
  const broker = await spawnBroker(t, {
    variant: { engine: 'uws', shards: 1 },
    env: { MILLRACE_FAULTS: '0/group.sync:20=bug' }
  })
  await new HttpApi(broker.url).createTopic(TOPIC)
  const client = await connectKafka(t, broker.kafka)
  const producerId = await newProducer(client)
  const { REQUEST_TIMED_OUT, LEADER_NOT_AVAILABLE, NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR } = kafkaErrors
  const retried = [REQUEST_TIMED_OUT, LEADER_NOT_AVAILABLE, NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR]
  let failures = 0
  for (let sequence = 0; sequence < 60;) {
    const batch = batchOf(`${sequence}`, { producerId, sequence })
    const { errorCode, baseOffset } = await produceBatch(client, TOPIC, 0, batch, 9)
    if (errorCode === 0) {
      assert.equal(baseOffset, sequence++)
      continue
    }
    failures++
    assert.ok(
      retried.some(({ code }) => code === errorCode),
      `code ${errorCode}`
    )
  }
  assert.ok(failures > 0, 'the shard has died')
  const ends = await new HttpApi(broker.url).ends(TOPIC)
  assert.deepEqual(ends, [60])
})

test('franz-go#1229: a batch with leader epoch 0, or any other, is taken', async t => {
  const { client } = await kafkaStage(t)
  for (const epoch of [0, -1, 7]) {
    assert.equal((await produceBatch(client, TOPIC, 0, placed(batchOf('v'), 0, epoch))).errorCode, 0)
  }
})

test('franz-go#1281: an idempotent producer begins where it likes, and goes on from there alone', async t => {
  const { client } = await kafkaStage(t)
  const { OUT_OF_ORDER_SEQUENCE_NUMBER } = kafkaErrors
  const LAST = 0x7fff_ffff
  for (const first of [0, 1, 1000, LAST]) {
    const producerId = await newProducer(client)
    const codeOf = async (sequence: number): Promise<number> =>
      (await produceBatch(client, TOPIC, 0, batchOf('v', { producerId, sequence }))).errorCode
    assert.equal(await codeOf(first), 0)
    const next = first === LAST ? 0 : first + 1
    assert.equal(await codeOf(next + 1), OUT_OF_ORDER_SEQUENCE_NUMBER.code)
    assert.equal(await codeOf(next), 0, 'behind the last of all sequences comes 0')
  }
})

test('franz-go PR 1203: leader epochs are told as 0, and a client that knows none is served', async t => {
  const { client } = await kafkaStage(t)
  await produceBatch(client, TOPIC, 0, batchOf('v'))
  for (let version = 7; version <= apis.metadata.versions.last; version++) {
    const { topics } = await client.call(apis.metadata, version, { topics: [{ name: TOPIC }] })
    assert.equal(topics[0]?.partitions[0]?.leaderEpoch, 0, `version ${version}`)
  }
  for (const currentLeaderEpoch of [-1, 0]) {
    const [told] = await fetchPartitions(client, TOPIC, { 0: 0 }, { currentLeaderEpoch })
    assert.equal(told?.errorCode, 0)
  }
})

test('tektite#200: InitProducerId gives an id in each version, under which batches are written', async t => {
  const { client } = await kafkaStage(t)
  const given = new Set<bigint>()
  for (let version = 0; version <= apis.initProducerId.versions.last; version++) {
    const body = { transactionalId: null, transactionTimeoutMs: 60_000 }
    const { errorCode, producerId, producerEpoch } = await client.call(apis.initProducerId, version, body)
    assert.deepEqual([errorCode, producerEpoch], [0, 0])
    assert.ok(producerId >= 0n && !given.has(producerId))
    given.add(producerId)
    assert.equal((await produceBatch(client, TOPIC, 0, batchOf('v', { producerId, sequence: 0 }))).errorCode, 0)
  }
})

test('librdkafka#4870: every topic has an id from its creation, which is not zero and no other has', async t => {
  const { api, client } = await kafkaStage(t)
  const before = await topicIdOf(client)
  for (const name of ['a', 'b', 'c']) await api.createTopic(name)
  await api.call('DELETE', `/topics/${TOPIC}`)
  await api.createTopic(TOPIC)
  const { topics } = await client.call(apis.metadata, 12, { topics: null })
  const ids = topics.map(({ topicId }) => topicId)
  assert.equal(new Set([...ids, before]).size, 5, 'that of a topic that is gone neither comes again')
  for (const id of ids) assert.doesNotMatch(id, /^0{8}-0{4}-0{4}-0{4}-0{12}$/)
})

test('redpanda#395: a topic that is made because it was asked for is in the next metadata, and can be written', async t => {
  const { client } = await kafkaStage(t, { flags: { '--auto-create-topics': true } })
  const ask = (version: number, name: string) => client.call(apis.metadata, version, { topics: [{ name }] })
  for (const [version, name] of [
    [0, 'first'],
    [1, 'second'],
    [6, 'third'],
    [12, 'fourth']
  ] as const) {
    const [made] = (await ask(version, name)).topics
    assert.ok([0, kafkaErrors.LEADER_NOT_AVAILABLE.code].includes(made?.errorCode ?? -1), `version ${version}`)
    const [known] = (await ask(version, name)).topics
    assert.deepEqual([known?.errorCode, known?.partitions.length, known?.partitions[0]?.leaderId], [0, 1, 1])
    assert.equal((await produceBatch(client, name, 0, batchOf('v'))).errorCode, 0)
    const [told] = await fetchPartitions(client, name, { 0: 0 })
    assert.equal(splitBatches(told?.records ?? Buffer.alloc(0)).length, 1)
  }
  const off = await kafkaStage(t)
  const { topics } = await off.client.call(apis.metadata, 6, { topics: [{ name: 'wanted' }] })
  assert.equal(topics[0]?.errorCode, kafkaErrors.UNKNOWN_TOPIC_OR_PARTITION.code)
  assert.equal((await off.client.call(apis.metadata, 6, { topics: null })).topics.length, 1)
})
