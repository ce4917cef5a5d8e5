/** What the engine tells all shards, whatever their number. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ByteBudget } from '../../../src/base/byte-budget.ts'
import { LocalEngine, OpenTopics } from '../../../src/broker/local-engine.ts'
import { LeaderEpochs } from '../../../src/shards/leader-epochs.ts'
import { limits } from '../../../src/model/limits.ts'
import type { ShardLink } from '../../../src/shards/shard-link.ts'
import type { ShardSet } from '../../../src/shards/shard-set.ts'
import { packMessage } from '../../../src/wire/msgpack.ts'
import type { ControlMessage } from '../../../src/wire/shard/messages.ts'

test('as many producers as there can be are forgotten at once, in messages that the control ring takes', async () => {
  const messages: ControlMessage[] = []
  const link = { control: async (make: (id: number) => ControlMessage) => void messages.push(make(1)) }
  const shards = {
    broadcast: async (send: (link: ShardLink) => Promise<unknown>) => void (await send(link as unknown as ShardLink))
  }
  const engine = new LocalEngine(shards as unknown as ShardSet, new OpenTopics(), new LeaderEpochs(), new ByteBudget(1))
  const numbers = Array.from({ length: limits.producersTotalMax }, (_, i) => 2 ** 40 + i)
  await engine.forgetProducers(numbers)
  assert.deepEqual(
    messages.flatMap(message => (message.kind === 'producers-forgotten' ? message.numbers : [])),
    numbers
  )
  assert.ok(messages.every(message => packMessage(message).length < 128 * 1024))
})
