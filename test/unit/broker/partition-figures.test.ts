/** What a scrape reads from the shards: all partitions of all topics, in slices, whatever lies on which shard. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readPartitionFigures, type AskedShards } from '../../../src/broker/partition-figures.ts'
import { LogTable } from '../../../src/log/log-table.ts'
import type { PartitionLog } from '../../../src/log/partition-log.ts'
import { BrokerError } from '../../../src/model/errors.ts'
import { handleOf, withRange } from '../../../src/model/handles.ts'
import { shardOf, toTopicId } from '../../../src/model/ids.ts'
import { limits } from '../../../src/model/limits.ts'
import type { PartitionFigures } from '../../../src/model/metrics.ts'
import type { Topic } from '../../../src/model/topic.ts'
import { createAsleepFlag, Doorbell } from '../../../src/ring/bell.ts'
import { createRing, RingConsumer, RingProducer } from '../../../src/ring/spsc-ring.ts'
import type { ShardLink } from '../../../src/shards/shard-link.ts'
import { sendPartitions } from '../../../workers/shard/partition-list.ts'
import { ReplyWriter } from '../../../workers/shard/reply-writer.ts'
import { chosenSeed, diceOf, replayLine } from '../../support/log-random.ts'

const topicOf = (id: number, firstHandle: number, partitionCount: number): Topic => ({
  id: toTopicId(id),
  name: `topic-${id}`,
  firstHandle,
  partitionCount,
  config: {
    retention_ms: null,
    retention_bytes: null,
    cleanup_policy: 'delete',
    segment_bytes: 1000,
    tombstone_retention_ms: 1,
    validate_schema: false,
    message_timestamp_type: 'CreateTime',
    max_message_bytes: null,
    segment_ms: null,
    partitioner: 'fnv1a'
  }
})

/** A shard with the real answer, and no thread. */
class StubShard {
  readonly table = new LogTable()
  readonly #ring = createRing(16 * 1024 * 1024)
  readonly #answers = new RingConsumer(this.#ring)
  readonly #replies = new ReplyWriter(
    new RingProducer(this.#ring),
    new Doorbell(createAsleepFlag(), { postMessage: () => undefined })
  )
  /** Entries and next handle of each answer. */
  readonly slices: { readonly count: number; readonly from: number }[] = []
  onAsked: () => void = () => undefined

  readonly ask: ShardLink['ask'] = ({ type, numbers }, request) => {
    assert.equal(type, 'partitions')
    const [from = -1] = numbers
    setImmediate(() => {
      this.onAsked()
      sendPartitions(this.table, this.#replies, 0, from)
      this.#replies.flush()
      const at = this.#answers.next()
      const { length, buffer } = this.#answers
      this.slices.push({ count: Math.floor((length - 12) / 48), from })
      request.onReply(buffer[at] ?? 0, buffer, at, at + length, true)
      this.#answers.release()
    })
    return true
  }
}

/** @param down shards that do not answer. */
function shardsOf(stubs: readonly StubShard[], down: ReadonlySet<number> = new Set()): AskedShards {
  return {
    shardCount: stubs.length,
    link: shard => (down.has(shard) ? null : (stubs[shard] ?? null)),
    refusal: shard => new BrokerError('SHARD_DOWN', { shard }),
    publishSoon: () => undefined,
    whenRoom: () => assert.fail('there is always room')
  }
}

function open(stubs: readonly StubShard[], topic: Topic): void {
  for (const { table } of stubs)
    table.open({ firstHandle: topic.firstHandle, partitionCount: topic.partitionCount, segmentBytes: 1000 })
}

/** One to twenty partitions more, from that handle on. */
function grown(stubs: readonly StubShard[], topic: Topic, firstHandle: number, partitionCount: number): Topic {
  const wider = withRange(topic, { firstPartition: topic.partitionCount, firstHandle, partitionCount })
  for (const { table } of stubs) table.configure({ ...wider, segmentBytes: 1000 })
  return wider
}

function logOf(stubs: readonly StubShard[], topic: Topic, partition: number): PartitionLog {
  const stub = stubs[shardOf(handleOf(topic, partition), stubs.length)]
  const log = stub?.table.topic(topic.firstHandle)?.log(partition)
  assert.ok(log !== undefined)
  return log
}

/** Where a partition ends, as told; null: nothing is known. */
function endsOf(figures: PartitionFigures): (number | null)[][] {
  return figures.topics.map(({ partitionCount }, i) =>
    Array.from({ length: partitionCount }, (_, partition) => {
      const place = (figures.places[i] ?? 0) + partition
      return figures.isKnown[place] === 1 ? (figures.endOffset[place] ?? -1) : null
    })
  )
}

test('every partition is told with its own numbers, whatever topics and shards there are', async t => {
  const seed = chosenSeed()
  t.diagnostic(replayLine(seed, 'test/unit/broker/partition-figures.test.ts'))
  const dice = diceOf(seed)
  for (let round = 0; round < 30; round++) {
    const stubs = Array.from({ length: 1 + dice.below(4) }, () => new StubShard())
    const topics: Topic[] = []
    const expected: number[][] = []
    let handle = 1
    for (let id = 1; id <= 1 + dice.below(20); id++) {
      handle += dice.below(3) * dice.below(1000)
      const topic = topicOf(id, handle, 1 + dice.below(dice.chance(0.1) ? 5000 : 20))
      handle += topic.partitionCount
      topics.push(topic)
      open(stubs, topic)
    }
    for (let times = dice.below(30); times > 0; times--) {
      const i = dice.below(topics.length)
      const more = 1 + dice.below(20)
      handle += dice.below(100)
      topics[i] = grown(stubs, topics[i] as Topic, handle, more)
      handle += more
    }
    for (const topic of topics) {
      const ends = Array.from({ length: topic.partitionCount }, () => (dice.chance(0.6) ? 1 + dice.below(1000) : 0))
      expected.push(ends)
      ends.forEach((end, partition) => {
        if (end > 0) logOf(stubs, topic, partition).highWatermark = end
      })
    }
    assert.deepEqual(endsOf(await readPartitionFigures(shardsOf(stubs), topics)), expected)
    for (const { slices } of stubs) for (const { count } of slices) assert.ok(count <= limits.partitionsPerAnswer)
  }
})

test('one answer tells of no more partitions than the limit says, and passes over very many empty ones quickly', async () => {
  const stub = new StubShard()
  const [full, empty, last] = [topicOf(1, 1, 2500), topicOf(2, 10_000, 200_000), topicOf(3, 500_000, 1)]
  for (const topic of [full, empty, last]) open([stub], topic)
  for (let partition = 0; partition < full.partitionCount; partition++) logOf([stub], full, partition).highWatermark = 1
  logOf([stub], last, 0).highWatermark = 7
  const ends = endsOf(await readPartitionFigures(shardsOf([stub]), [full, empty, last]))
  assert.deepEqual([ends[0]?.every(end => end === 1), ends[1]?.every(end => end === 0), ends[2]], [true, true, [7]])
  assert.deepEqual(
    stub.slices.slice(0, 2).map(({ count }) => count),
    [1000, 1000]
  )
  assert.ok(stub.slices.length > 5, 'the empty ones were not passed over in one go')
})

test('of a shard that is down nothing is known, and the others are told', async () => {
  const stubs = [new StubShard(), new StubShard()]
  const topic = topicOf(1, 10, 5)
  open(stubs, topic)
  logOf(stubs, topic, 2).highWatermark = 9
  const figures = await readPartitionFigures(shardsOf(stubs, new Set([1])), [topic])
  assert.deepEqual(endsOf(figures), [[0, null, 9, null, 0]])
})

test('a topic or partition that is made meanwhile is not told, one that is deleted spoils no other', async () => {
  const stub = new StubShard()
  const topics = [topicOf(1, 10, 2), topicOf(2, 20, 2), topicOf(4, 40, 2)]
  for (const topic of topics) open([stub], topic)
  const [first, second, fourth] = topics
  assert.ok(first !== undefined && second !== undefined && fourth !== undefined)
  for (const topic of topics) logOf([stub], topic, 1).highWatermark = topic.id
  stub.onAsked = () => {
    const made = topicOf(3, 30, 2)
    open([stub], made)
    logOf([stub], made, 0).highWatermark = 33
    logOf([stub], grown([stub], first, 50, 1), 2).highWatermark = 50
    stub.table.drop(second.firstHandle)
  }
  const figures = await readPartitionFigures(shardsOf([stub]), topics)
  assert.deepEqual(endsOf(figures), [
    [0, 1],
    [0, 0],
    [0, 4]
  ])
})
