/** Requests of Kafka's protocol that name very many things, beside those of others. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { apis } from '../../src/wire/kafka/apis/index.ts'
import { kafkaErrors } from '../../src/wire/kafka/errors.ts'
import { startBroker } from '../support/broker.ts'
import { HttpApi } from '../support/http-api.ts'
import { connectKafka, type KafkaClient } from '../support/kafka-client.ts'

const COUNT = 5000
const names = Array.from({ length: COUNT }, (_, i) => `no-such-topic-${i}`)
const TOPIC = 2

const { UNKNOWN_TOPIC_OR_PARTITION } = kafkaErrors

/** By what is asked: a request that names them all, to the codes that it is answered. */
const requests: Readonly<Record<string, (client: KafkaClient) => Promise<number[]>>> = {
  deleteTopics: async client => {
    const { responses } = await client.call(apis.deleteTopics, 4, { topicNames: names, timeoutMs: 1000 })
    return responses.map(({ errorCode }) => errorCode)
  },
  incrementalAlterConfigs: async client => {
    const configs = [{ name: 'retention.ms', configOperation: 0, value: '1000' }]
    const resources = names.map(resourceName => ({ resourceType: TOPIC, resourceName, configs }))
    const { responses } = await client.call(apis.incrementalAlterConfigs, 1, { resources, validateOnly: false })
    return responses.map(({ errorCode }) => errorCode)
  },
  describeConfigs: async client => {
    const resources = names.map(resourceName => ({ resourceType: TOPIC, resourceName, configurationKeys: null }))
    const { results } = await client.call(apis.describeConfigs, 4, { resources })
    return results.map(({ errorCode }) => errorCode)
  }
}

/** @returns how many turns the event loop has, which is the broker's too, until the promise is fulfilled. */
async function turnsUntil(promise: Promise<unknown>): Promise<number> {
  let [turns, isOver] = [0, false]
  const count = (): void => {
    turns++
    if (!isOver) setImmediate(count)
  }
  setImmediate(count)
  await promise
  isOver = true
  return turns
}

for (const [name, ask] of Object.entries(requests))
  test(`${name} of ${COUNT} topics leaves others a turn after each hundred, and is answered in its order`, async t => {
    const client = await connectKafka(t, (await startBroker(t)).kafka)
    const asked = ask(client)
    assert.ok((await turnsUntil(asked)) >= COUNT / 100)
    assert.deepEqual(
      await asked,
      names.map(() => UNKNOWN_TOPIC_OR_PARTITION.code)
    )
  })

test('CreateTopics of very many on trial leaves others a turn after each hundred, and makes none', async t => {
  const broker = await startBroker(t)
  const client = await connectKafka(t, broker.kafka)
  const topics = names.map(name => ({ name, numPartitions: 1, replicationFactor: 1, assignments: [], configs: [] }))
  const asked = client.call(apis.createTopics, 5, { topics, timeoutMs: 1000, validateOnly: true })
  assert.ok((await turnsUntil(asked)) >= COUNT / 100)
  const told = (await asked).topics
  assert.deepEqual([told.map(({ name }) => name), told.filter(({ errorCode }) => errorCode !== 0)], [names, []])
  assert.deepEqual((await new HttpApi(broker.url).get('/topics')).text, '{"topics":[]}')
})
