/** A broker, as a process of its own, whose disk fails under records. Runs dist/. */
import type { TestContext } from 'node:test'
import { spawnBroker, type SpawnedBroker } from '../support/broker.ts'
import { HttpApi } from '../support/http-api.ts'

/** The first group of records that shard 0 writes fails, also after it has restarted. */
const EACH_FIRST = '0+/group.write:1+=EIO'

/** @returns it with the topic `orders`, of two partitions, and nothing in it. @param plan of disk/fault-plan. */
export async function startFailing(t: TestContext, plan = EACH_FIRST): Promise<SpawnedBroker> {
  const variant = { engine: 'node', shards: 1 } as const
  const broker = await spawnBroker(t, { variant, env: { MILLRACE_FAULTS: plan } })
  await new HttpApi(broker.url).createTopic('orders', 2)
  return broker
}
