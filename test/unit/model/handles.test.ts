/** Handles of topics that grow: every partition keeps its own, and those in a row are one range. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { handleOf, rangesOf, withRange, withRanges, type PartitionHandles } from '../../../src/model/handles.ts'

const handlesOf = (topic: PartitionHandles): number[] =>
  Array.from({ length: topic.partitionCount }, (_, partition) => handleOf(topic, partition))

test('a topic that grew with nothing between is as one that was made so', () => {
  let topic: PartitionHandles = { firstHandle: 10, partitionCount: 1 }
  for (let next = 1; next < 5_000; next++)
    topic = withRange(topic, { firstPartition: next, firstHandle: 10 + next, partitionCount: 1 })
  assert.deepEqual(topic, { firstHandle: 10, partitionCount: 5_000 })
})

test('only ranges that follow on are joined, and each partition keeps its handle', () => {
  const later = [
    { firstPartition: 3, firstHandle: 13, partitionCount: 1 },
    { firstPartition: 4, firstHandle: 40, partitionCount: 2 },
    { firstPartition: 6, firstHandle: 42, partitionCount: 3 },
    { firstPartition: 9, firstHandle: 46, partitionCount: 1 }
  ]
  const topic = later.reduce<PartitionHandles>(withRange, { firstHandle: 10, partitionCount: 3 })
  assert.deepEqual(rangesOf(topic), [
    { firstPartition: 0, firstHandle: 10, partitionCount: 4 },
    { firstPartition: 4, firstHandle: 40, partitionCount: 5 },
    { firstPartition: 9, firstHandle: 46, partitionCount: 1 }
  ])
  assert.deepEqual(handlesOf(topic), [10, 11, 12, 13, 40, 41, 42, 43, 44, 46])
  assert.deepEqual(withRanges({ firstHandle: 10, partitionCount: 10 }, later), topic)
  assert.deepEqual(withRanges({ firstHandle: 10, partitionCount: 3 }, []), { firstHandle: 10, partitionCount: 3 })
})
