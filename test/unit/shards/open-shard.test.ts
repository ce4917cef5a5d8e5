/** What a shard is told when it has recovered: all topics, in messages that its ring can take. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { withRange } from '../../../src/model/handles.ts'
import { limits } from '../../../src/model/limits.ts'
import { openShard } from '../../../src/shards/open-shard.ts'
import { CONTROL_RING_BYTES } from '../../../src/shards/shard-link.ts'
import { packMessage } from '../../../src/wire/msgpack.ts'
import type { ControlMessage, ShardTopic } from '../../../src/wire/shard/messages.ts'

/** Of the control ring's 256 KiB: much room is left for fields to come. */
const MESSAGE_BYTES_MAX = 128 * 1024
const BIG = 2n ** 64n - 1n

/** A topic in so many ranges, with the numbers that take most room. */
function topicIn(firstHandle: number, ranges: number): ShardTopic {
  let topic: ShardTopic = {
    firstHandle,
    partitionCount: 65_536,
    segmentBytes: limits.segmentBytesHard,
    segmentMs: BIG,
    retention: { retentionMs: BIG, retentionBytes: BIG, cleanupPolicy: 'compact' }
  }
  for (let i = 1; i < ranges; i++)
    topic = withRange(topic, {
      firstPartition: topic.partitionCount,
      firstHandle: firstHandle + 100_000 * i,
      partitionCount: 65_536
    })
  return topic
}

async function sentFor(topics: readonly ShardTopic[]): Promise<{ handles: number[]; sizes: number[] }> {
  const messages: ControlMessage[] = []
  const control = (make: (id: number) => ControlMessage): Promise<void> => {
    messages.push(make(0xffff_ffff))
    return Promise.resolve()
  }
  await openShard({ control }, { topics: () => [...topics], producers: () => [] })
  assert.equal(messages.at(-1)?.kind, 'opened')
  return {
    handles: messages.flatMap(each => (each.kind === 'open' ? each.topics.map(({ firstHandle }) => firstHandle) : [])),
    sizes: messages.map(each => packMessage(each).length)
  }
}

for (const [count, ranges] of [
  [2_000, 1],
  [600, 2],
  [500, 13],
  [500, limits.topicRangesMax]
] as const) {
  test(`${count} topics of ${ranges} range(s) are sent once each, in messages that are far from too large`, async () => {
    const topics = Array.from({ length: count }, (_, i) => topicIn(2 ** 31 + 7_000_000 - 1_000 * i, ranges))
    const { handles, sizes } = await sentFor(topics)
    assert.deepEqual(
      handles,
      topics.map(({ firstHandle }) => firstHandle).sort((a, b) => a - b)
    )
    assert.ok(Math.max(...sizes) <= MESSAGE_BYTES_MAX, String(Math.max(...sizes)))
  })
}

test('a topic of more ranges than a message holds of others, as older versions left them, is sent alone, and fits', async () => {
  const most = limits.partitionsMax
  const { handles, sizes } = await sentFor([topicIn(1, 1), topicIn(2, most), topicIn(3, 1)])
  assert.deepEqual(handles, [1, 2, 3])
  assert.equal(sizes.length, 4)
  assert.ok(Math.max(...sizes) < CONTROL_RING_BYTES / 4, String(Math.max(...sizes)))
})
