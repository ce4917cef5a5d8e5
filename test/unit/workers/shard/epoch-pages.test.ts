import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LeaderEpoch } from '../../../../src/model/leader-epochs.ts'
import { limits } from '../../../../src/model/limits.ts'
import { epochPages } from '../../../../workers/shard/epoch-pages.ts'

const epochs = (count: number): LeaderEpoch[] =>
  Array.from({ length: count }, (_, i) => ({ epoch: i + 1, startOffset: 10 * i }))
const logs = (counts: readonly number[]) => counts.map((count, handle) => ({ handle, epochs: epochs(count) }))

test('epochs are told of the partitions that have some, each once and whole, however many pages that takes', () => {
  const counts = Array.from({ length: 3 * limits.epochsPerPage }, (_, i) => i % 3)
  const told = [...epochPages(logs(counts))]
  assert.ok(told.length > 2, `${told.length} pages`)
  assert.deepEqual(
    told.flat(),
    logs(counts).filter(({ epochs: each }) => each.length > 0)
  )
  for (const page of told) {
    const weight = page.reduce((sum, { epochs: each }) => sum + 1 + each.length, 0)
    assert.ok(weight < limits.epochsPerPage + 3, `${weight} in a page`)
  }
})

test('a page has a partition of any number of epochs; where nothing was ever lost there is none', () => {
  const many = logs([1, 2 * limits.epochsPerPage, 1])
  assert.deepEqual([...epochPages(many)], [many.slice(0, 2), many.slice(2)])
  assert.deepEqual([...epochPages(logs([0, 0]))], [])
})
