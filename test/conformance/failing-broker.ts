/** A broker, as a process of its own, whose disk fails under the first records. Runs dist/. */
import type { TestContext } from 'node:test'
import { spawnBroker, type SpawnedBroker, type SpawnOptions } from '../support/broker.ts'
import { HttpApi } from '../support/http-api.ts'

/** The first group of records that shard 0 writes fails, and each one after it. */
const PLAN = '0+/group.write:1+=EIO'

/** @returns it with the topics `orders`, of two partitions, and nothing in them. */
export async function startFailing(t: TestContext, options: SpawnOptions = {}): Promise<SpawnedBroker> {
  const variant = { engine: 'node', shards: 1 } as const
  const broker = await spawnBroker(t, { variant, ...options, env: { MILLRACE_FAULTS: PLAN } })
  await new HttpApi(broker.url).createTopic('orders', 2)
  return broker
}
