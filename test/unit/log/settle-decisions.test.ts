/** What a settle job does with a handle, and what a shard makes of the changes that it is told (V4, V6, S2). */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { BugError } from '../../../src/base/assert.ts'
import type { ManifestPartition, ManifestSegment } from '../../../src/log/manifest.ts'
import { placeOfHandle } from '../../../src/log/settle/handle-place.ts'
import { applyChange, changeOf } from '../../../src/log/settle/partition-change.ts'

describe('the data of a handle', () => {
  const topics = [
    { firstPartition: 0, firstHandle: 10, partitionCount: 3, directory: 'topics/live~1' },
    { firstPartition: 0, firstHandle: 20, partitionCount: 2, directory: null }
  ]

  it('goes where its topic is, and is dropped only if its topic is known to be deleted', () => {
    assert.deepEqual(placeOfHandle(topics, 12), { kind: 'kept', directory: 'topics/live~1/2' })
    for (const handle of [20, 21]) assert.deepEqual(placeOfHandle(topics, handle), { kind: 'dropped' })
  })

  it('of a partition that was added is under its number in the topic', () => {
    const grown = [...topics, { firstPartition: 3, firstHandle: 30, partitionCount: 2, directory: 'topics/live~1' }]
    assert.deepEqual(placeOfHandle(grown, 31), { kind: 'kept', directory: 'topics/live~1/4' })
  })

  it('that is neither live nor deleted is kept', () => {
    for (const handle of [1, 9, 13, 19, 22, 2 ** 31])
      assert.deepEqual(placeOfHandle(topics, handle), { kind: 'kept', directory: `topics/unknown~h${handle}/0` })
    assert.equal(placeOfHandle([], 5).kind, 'kept')
  })
})

describe('a change of the segments of a partition', () => {
  const segment = (baseOffset: number): ManifestSegment => ({
    baseOffset,
    nextOffset: baseOffset + 10,
    bytes: 100,
    firstReceiveMs: 1,
    receiveMsMax: 2,
    isSealed: true,
    compaction: 0,
    extents: []
  })
  const partition = (generation: number, segments: readonly ManifestSegment[]): ManifestPartition => ({
    handle: 7,
    directory: 'topics/t~1/0',
    generation,
    startOffset: segments[0]?.baseOffset ?? 0,
    nextOffset: segments.at(-1)?.nextOffset ?? 0,
    epochs: [],
    producers: [],
    segments,
    damaged: []
  })
  const [a, b, c, d] = [0, 10, 20, 30].map(segment)
  assert.ok(a !== undefined && b !== undefined && c !== undefined && d !== undefined)

  it('told to who has the generation before gives what the settler has', () => {
    const old = partition(3, [a, b, c])
    for (const segments of [[a, b, c, d], [b, c, d], [c], [], [a, { ...b, compaction: 4 }, c]]) {
      const now = partition(4, segments)
      assert.deepEqual(applyChange(old, changeOf(old, now)), now)
      assert.deepEqual(applyChange(null, changeOf(undefined, now)), now, 'told whole')
    }
  })

  it('is a bug, and nothing is adopted, if the shard has another generation', () => {
    const change = changeOf(partition(3, [a, b]), partition(4, [a, b, c]))
    for (const has of [null, partition(2, [a]), partition(4, [a, b, c])]) {
      assert.throws(() => applyChange(has, change), BugError)
    }
  })
})
