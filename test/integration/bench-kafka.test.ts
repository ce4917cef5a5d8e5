/** The topics that the load generator makes over the Kafka protocol, on a real broker. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseAddress } from '../../native-free-bench/drivers/driver.ts'
import { createTopic } from '../../native-free-bench/kafka/admin.ts'
import { startBroker } from '../support/broker.ts'

test('a topic is made as it was asked for', async t => {
  const broker = await startBroker(t)
  await createTopic(parseAddress(broker.kafka), { name: 'load', partitions: 12, configs: { 'retention.ms': '1000' } })
  const topic = (await (await fetch(`${broker.url}/topics/load`)).json()) as {
    partitions: unknown[]
    config: Record<string, unknown>
  }
  assert.equal(topic.partitions.length, 12)
  assert.equal(topic.config['retention_ms'], 1000)
})

test('a topic that is refused is an error with the words of the broker, and so is a broker that is gone', async t => {
  const broker = await startBroker(t)
  const address = parseAddress(broker.kafka)
  const shape = { name: 'load', partitions: 1, configs: { 'no.such.config': '1' } }
  await assert.rejects(createTopic(address, shape), /the topic load was refused: error 40 .*no\.such\.config/)
  await broker.stop()
  await assert.rejects(createTopic(address, shape), /ECONNREFUSED/)
})
