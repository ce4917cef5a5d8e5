import assert from 'node:assert/strict'
import { test } from 'node:test'
import { noEpochs } from '../../../src/model/leader-epochs.ts'
import { LeaderEpochs } from '../../../src/shards/leader-epochs.ts'

/** Its third partition was added later, when other topics had handles. */
const topic = {
  firstHandle: 10,
  partitionCount: 3,
  added: [{ firstPartition: 2, firstHandle: 40, partitionCount: 1 }]
}
const first = { epoch: 1, startOffset: 5 }
const second = { epoch: 2, startOffset: 9 }

test('what shards find is told by partition, also of those added later, and goes with its topic', () => {
  const table = new LeaderEpochs()
  assert.equal(table.of(topic), noEpochs)
  table.note([
    { handle: 40, epochs: [first] },
    { handle: 12, epochs: [second] }
  ])
  assert.deepEqual([0, 1, 2].map(table.of(topic)), [[], [], [first]])
  // Behind its first two partitions stands another topic.
  assert.deepEqual([-1, 1, 29].map(table.of({ firstHandle: 11, partitionCount: 1 })), [[], [], []])
  table.forget(topic)
  assert.deepEqual(table.of(topic)(2), [])
  assert.deepEqual(table.of({ firstHandle: 12, partitionCount: 1 })(0), [second])
})

test('a shard that starts again and lost nothing changes nothing; a new loss is a change', () => {
  const table = new LeaderEpochs()
  assert.equal(table.changes, 0)
  table.note([{ handle: 11, epochs: [first] }])
  table.note([{ handle: 11, epochs: [first] }])
  assert.equal(table.changes, 1)
  table.note([{ handle: 11, epochs: [first, second] }])
  assert.equal(table.changes, 2)
})
