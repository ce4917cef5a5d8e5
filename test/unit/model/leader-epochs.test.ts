import assert from 'node:assert/strict'
import { test } from 'node:test'
import { endOfEpoch, epochAt, leaderEpochOf, noEpochs } from '../../../src/model/leader-epochs.ts'

/** Two starts cut data at 10, the second before anything more was written, and one at 25. */
const epochs = [
  { epoch: 1, startOffset: 10 },
  { epoch: 2, startOffset: 10 },
  { epoch: 3, startOffset: 25 }
]

test('an offset has the epoch that it was written in, and what is written now has the last one', () => {
  assert.deepEqual(
    [0, 9, 10, 24, 25, 99].map(offset => epochAt(epochs, offset)),
    [0, 0, 2, 2, 3, 3]
  )
  assert.equal(leaderEpochOf(epochs), 3)
  assert.equal(leaderEpochOf(noEpochs(7)), 0)
  assert.equal(epochAt(noEpochs(7), 99), 0)
})

test('an epoch ends where the next one begins, the last one where the partition does, and none above it ever was', () => {
  const end = (wanted: number) => endOfEpoch(epochs, wanted, 40)
  assert.deepEqual(end(0), { epoch: 0, endOffset: 10 })
  assert.deepEqual(end(1), { epoch: 1, endOffset: 10 })
  assert.deepEqual(end(2), { epoch: 2, endOffset: 25 })
  assert.deepEqual(end(3), { epoch: 3, endOffset: 40 })
  assert.equal(end(4), null)
  assert.equal(end(-1), null)
  assert.deepEqual(endOfEpoch([], 0, 40), { epoch: 0, endOffset: 40 })
})
