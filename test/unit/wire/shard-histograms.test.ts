/** The shared block of a shard: counters and histograms do not touch each other. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { counterIndex, createCounters, readCounters, shardCounters } from '../../../src/wire/shard/counters.ts'
import {
  readHistograms,
  shardHistogram,
  shardHistograms,
  type ShardHistogram
} from '../../../src/wire/shard/histograms.ts'

test('what is counted in one place is read in that place, and nowhere else', () => {
  const shared = createCounters()
  const counters = new Float64Array(shared)
  shardCounters.forEach((name, i) => (counters[counterIndex[name]] = i + 1))
  const names = Object.keys(shardHistograms) as ShardHistogram[]
  names.forEach((name, i) => {
    for (let times = 0; times <= i; times++) shardHistogram(counters, name).observe(2 ** 40)
  })
  assert.deepEqual(
    Object.values(readCounters(shared)),
    shardCounters.map((_, i) => i + 1)
  )
  const read = readHistograms(shared)
  assert.deepEqual(
    names.map(name => [read[name].bounds, read[name].counts.at(-1), read[name].sum]),
    names.map((name, i) => [shardHistograms[name], i + 1, (i + 1) * 2 ** 40])
  )
  for (const name of names)
    assert.equal(
      read[name].counts.slice(0, -1).every(count => count === 0),
      true,
      name
    )
})
