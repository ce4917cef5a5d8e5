/** What a manifest may not say, though its checksum is right: refused when it is written and when it is read. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { BugError } from '../../../src/base/assert.ts'
import { decodeManifest, encodeManifest } from '../../../src/log/manifest-format.ts'
import {
  emptyManifest,
  type Extent,
  type Manifest,
  type ManifestPartition,
  type ManifestProducer,
  type ManifestSegment
} from '../../../src/log/manifest.ts'
import { extent, plainManifest, problemOf } from '../../support/manifest-sample.ts'

/** A manifest of one partition with one segment of 100 offsets, changed. */
interface Changes {
  readonly head?: Partial<Manifest>
  readonly partition?: Partial<ManifestPartition>
  readonly segment?: Partial<ManifestSegment>
  readonly extent?: Partial<Extent>
  readonly producer?: Partial<ManifestProducer>
}

const plainSegment: ManifestSegment = {
  baseOffset: 0,
  nextOffset: 100,
  bytes: 1000,
  receiveMsMax: 5000,
  firstReceiveMs: 4000,
  isSealed: true,
  compaction: 0,
  extents: []
}
const later: ManifestSegment = { ...plainSegment, baseOffset: 100, nextOffset: 200 }

function changedManifest(changes: Changes): Manifest {
  const producer = { number: 1, originHigh: 0, originLow: 0, next: 20, firsts: [0, 10], bases: [5, 50], usedMs: 1 }
  const segment = {
    ...plainSegment,
    extents: [{ ...extent({ nextOffset: 100 }), ...changes.extent }],
    ...changes.segment
  }
  const partition: ManifestPartition = {
    handle: 1,
    directory: 'topics/a~1/0',
    generation: 1,
    startOffset: 0,
    nextOffset: 200,
    epochs: [],
    producers: [{ ...producer, ...changes.producer }],
    segments: [segment],
    damaged: [],
    ...changes.partition
  }
  const partitions = new Map([[partition.handle, partition]])
  return { ...emptyManifest(0, 1), commit: 1, nextPack: 3, partitions, ...changes.head }
}

const twoExtents = (first: Partial<Extent>, second: Partial<Extent>): Changes => ({
  segment: { extents: [extent({ nextOffset: 50, ...first }), extent({ baseOffset: 50, nextOffset: 100, ...second })] }
})
const damagedAt = (...ranges: readonly (readonly [number, number, (string | null)?])[]): Changes => ({
  partition: { damaged: ranges.map(([firstOffset, nextOffset, path = null]) => ({ firstOffset, nextOffset, path })) }
})

const broken: readonly (readonly [string, Changes, RegExp])[] = [
  ['a negative shard', { head: { shard: -1 } }, /shard/],
  ['a negative commit', { head: { commit: -1 } }, /commit/],
  ['a pack number 0', { head: { nextPack: 0 } }, /nextPack/],
  ['a removal above the data directory', { head: { removals: [{ path: '../etc/passwd', dueMs: 1 }] } }, /to remove/],
  ['a removal of an absolute path', { head: { removals: [{ path: '/etc/passwd', dueMs: 1 }] } }, /to remove/],
  ['a removal before all times', { head: { removals: [{ path: 'a', dueMs: -1 }] } }, /time to remove/],
  ['a handle beyond 32 bits', { partition: { handle: 2 ** 32 } }, /handle/],
  ['a directory that climbs', { partition: { directory: 'topics/../../x' } }, /directory/],
  ['a directory without a name', { partition: { directory: '' } }, /directory/],
  ['a negative start offset', { partition: { startOffset: -1 } }, /startOffset/],
  ['epoch 0', { partition: { epochs: [{ epoch: 0, startOffset: 0 }] } }, /epoch 0/],
  [
    'epochs that go back',
    {
      partition: {
        epochs: [
          { epoch: 1, startOffset: 9 },
          { epoch: 2, startOffset: 8 }
        ]
      }
    },
    /epoch 2/
  ],
  ['a next offset inside a segment', { partition: { nextOffset: 99, producers: [] } }, /beyond its next offset/],
  ['a producer without a number', { producer: { number: 0 } }, /number/],
  ['a sequence beyond 64 bits', { producer: { originHigh: 2 ** 31 } }, /first sequence/],
  ['a producer without runs', { producer: { firsts: [], bases: [] } }, /runs are incomplete/],
  ['runs of sequences that go back', { producer: { firsts: [10, 10] } }, /holds no sequence/],
  ['runs of offsets that overlap', { producer: { bases: [5, 14] } }, /beyond the offsets/],
  ['a producer ahead of its partition', { producer: { bases: [5, 191] } }, /beyond the offsets/],
  ['segments that overlap', { partition: { segments: [plainSegment, { ...later, baseOffset: 99 }] } }, /overlaps/],
  ['segments out of order', { partition: { segments: [later, plainSegment] } }, /overlaps/],
  [
    'two segments to append to',
    { partition: { segments: [{ ...plainSegment, isSealed: false }, later] } },
    /before is not sealed/
  ],
  ['an empty segment', { segment: { nextOffset: 0, extents: [] } }, /holds no offset/],
  ['a segment of too many offsets', { segment: { nextOffset: 2 ** 33 } }, /more offsets/],
  ['a segment newer than its newest record', { segment: { firstReceiveMs: 5001 } }, /began after/],
  [
    'an extent before its segment',
    { segment: { ...later, extents: [extent({ baseOffset: 99 })] } },
    /no offset|overlaps/
  ],
  ['an extent beyond its segment', { extent: { nextOffset: 101 } }, /beyond its segment/],
  ['an extent without bytes', { extent: { bytes: 0 } }, /length/],
  ['an extent without blocks', { extent: { blockCount: 0 } }, /blocks/],
  ['an extent in a pack file to come', { extent: { pack: 3 } }, /never made/],
  ['block entries in a pack file to come', { extent: { blocksPack: 3 } }, /never made/],
  ['a log beyond 4 GiB', { extent: { position: 2 ** 32 - 50 } }, /larger than/],
  ['extents that share offsets', twoExtents({}, { baseOffset: 49, position: 100 }), /overlaps what is before/],
  ['extents that share bytes of the log', twoExtents({}, { position: 99 }), /overlaps another in the \.log/],
  ['an empty damaged range', damagedAt([5, 5]), /empty/],
  ['damaged ranges that overlap', damagedAt([5, 7], [6, 8]), /overlaps/],
  ['a damaged range to come', damagedAt([199, 201]), /beyond the next offset/],
  ['damaged bytes kept elsewhere', damagedAt([1, 2, '../x']), /no valid path/]
]

describe('a manifest that says', () => {
  it('nothing wrong is written and read', () => {
    for (const good of [
      {},
      twoExtents({}, { position: 100 }),
      twoExtents({ pack: 1 }, { pack: 2 }),
      damagedAt([1, 2])
    ]) {
      assert.ok(encodeManifest(changedManifest(good)).equals(plainManifest(changedManifest(good))))
      assert.equal(decodeManifest(plainManifest(changedManifest(good))).kind, 'manifest')
    }
  })

  for (const [what, changes, reason] of broken) {
    it(`${what} is neither read nor written`, () => {
      assert.match(problemOf(plainManifest(changedManifest(changes))), reason)
      assert.throws(
        () => encodeManifest(changedManifest(changes)),
        error => error instanceof BugError && reason.test(error.message)
      )
    })
  }

  it('the same producer twice is neither read nor written', () => {
    const [partition] = changedManifest({}).partitions.values()
    const producers = [...(partition?.producers ?? []), ...(partition?.producers ?? [])]
    assert.match(
      problemOf(plainManifest(changedManifest({ partition: { producers } }))),
      /producer 1 stands there twice/
    )
    assert.throws(() => encodeManifest(changedManifest({ partition: { producers } })), BugError)
  })
})
