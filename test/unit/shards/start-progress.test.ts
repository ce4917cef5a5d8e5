import assert from 'node:assert/strict'
import { test } from 'node:test'
import { describeChange, describeStart, shareChanged, shareStarted } from '../../../src/shards/start-progress.ts'

const MIB = 1024 * 1024
const scanning = (doneBytes: number, totalBytes: number) => {
  return { isRunning: true, isRecovered: false, scan: { doneBytes, totalBytes } }
}

test('a start is told step by step', () => {
  const none = { doneBytes: 0, totalBytes: 0 }
  assert.deepEqual(
    [
      { isRunning: false, isRecovered: false, scan: none },
      scanning(0, 0),
      scanning(45.9 * MIB, 127.5 * MIB),
      scanning(8 * MIB, 8 * MIB),
      { isRunning: true, isRecovered: true, scan: none }
    ].map(shard => describeStart(3, shard)),
    [
      'shard 3: waiting to start',
      'shard 3: opening its journal',
      'shard 3: scanning its journal, 45 of 128 MiB',
      'shard 3: making its last groups safe',
      'shard 3: opening its topics'
    ]
  )
})

test('the share of a start rises with every shard, and ends below 1', () => {
  const shares = [
    shareStarted([scanning(0, 0), scanning(0, 0)], 2),
    shareStarted([scanning(0, 0), scanning(5, 10)], 2),
    shareStarted([scanning(10, 10), { ...scanning(10, 10), isRecovered: true }], 2),
    shareStarted([{ ...scanning(10, 10), isRecovered: true }], 2)
  ]
  assert.deepEqual(
    shares,
    shares.toSorted((a, b) => a - b)
  )
  assert.equal(shares[0], 0)
  assert.ok((shares.at(-1) ?? 1) < 1)
})

test('a change of the number of shards is told shard by shard, and its share rises', () => {
  const counts = { from: 2, to: 3 }
  const steps = [
    { phase: 'settling', shard: 0, doneBytes: 0, totalBytes: 0 },
    { phase: 'settling', shard: 1, doneBytes: 5 * MIB, totalBytes: 10 * MIB },
    { phase: 'writing', shard: 0, doneBytes: 0, totalBytes: 0 },
    { phase: 'writing', shard: 2, doneBytes: MIB, totalBytes: MIB }
  ] as const
  assert.deepEqual(
    steps.map(step => shareChanged(counts, step)),
    [0, 0.6, 0.8, 1]
  )
  assert.equal(describeChange(counts, steps[1]), 'changing from 2 to 3 shards: settling shard 1, 5 of 10 MiB')
  assert.equal(describeChange(counts, steps[2]), 'changing from 2 to 3 shards: writing new shard 0')
})
