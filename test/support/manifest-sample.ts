/**
 * Manifests for tests: one with everything in it (the golden file is of this one), random ones, and an encoder written
 * from the drawing in docs/formats.md that follows no rule, so that broken manifests with a right checksum can be made.
 */
import assert from 'node:assert/strict'
import { crc32cPlain } from '../../src/base/crc32c.ts'
import { decodeManifest } from '../../src/log/manifest-format.ts'
import {
  emptyManifest,
  type ColdCopy,
  type Extent,
  type Manifest,
  type ManifestPartition,
  type ManifestProducer,
  type ManifestSegment
} from '../../src/log/manifest.ts'
import { packMessage } from '../../src/wire/msgpack.ts'
import type { Dice } from './log-random.ts'

const madeMs = 1_700_000_000_000

/** A sealed segment with files of its own: 300 offsets, of which a damaged range lies in a hole between its extents. */
const sealedSegment: ManifestSegment = {
  baseOffset: 100,
  nextOffset: 400,
  bytes: 90_000,
  receiveMsMax: madeMs + 60_000,
  firstReceiveMs: madeMs,
  isSealed: true,
  compaction: 0,
  extents: [
    extent({ position: 0, bytes: 50_000, baseOffset: 100, nextOffset: 250, blockCount: 11 }),
    extent({ position: 50_000, bytes: 40_000, baseOffset: 260, nextOffset: 400, blockCount: 9, blocksPosition: 352 })
  ]
}

/** An active one behind a hole: one extent in its own log with entries in a pack, one in a pack altogether. */
const activeSegment: ManifestSegment = {
  baseOffset: 405,
  nextOffset: 440,
  bytes: 12_300,
  receiveMsMax: madeMs + 90_000,
  firstReceiveMs: madeMs + 60_001,
  isSealed: false,
  compaction: 0,
  extents: [
    extent({ bytes: 12_000, baseOffset: 405, nextOffset: 430, blockCount: 3, blocksPack: 4, blocksPosition: 4096 }),
    extent({ pack: 5, position: 8, bytes: 300, baseOffset: 430, nextOffset: 440, blocksPack: 5, blocksPosition: 4128 })
  ]
}

/** An extent of one block in the segment's own files, but for what is given. */
export function extent(given: Partial<Extent>): Extent {
  const own = { pack: 0, position: 0, bytes: 100, baseOffset: 0, nextOffset: 1 }
  return { ...own, blockCount: 1, blocksPack: 0, blocksPosition: 0, ...given }
}

const producers: readonly ManifestProducer[] = [
  { number: 1, originHigh: 0, originLow: 0, next: 30, firsts: [2, 20], bases: [380, 406], usedMs: madeMs + 80_000 },
  {
    number: 77,
    originHigh: -0x8000_0000,
    originLow: 0xffff_ffff,
    next: 1,
    firsts: [0],
    bases: [439],
    usedMs: madeMs + 90_000
  }
]

/** Every kind of thing that a manifest can say. */
export function sampleManifest(): Manifest {
  const orders: ManifestPartition = {
    handle: 3,
    directory: 'topics/orders~17/0',
    generation: 6,
    startOffset: 120,
    nextOffset: 440,
    epochs: [
      { epoch: 1, startOffset: 250 },
      { epoch: 4, startOffset: 405 }
    ],
    producers,
    segments: [sealedSegment, activeSegment],
    damaged: [
      { firstOffset: 250, nextOffset: 260, path: 'quarantine/3-250' },
      { firstOffset: 400, nextOffset: 405, path: null }
    ]
  }
  const base = 2 ** 40
  const compacted: ManifestPartition = {
    handle: 200_000,
    directory: 'topics/a.b-c_D~18/9999',
    generation: 2 ** 33,
    startOffset: base,
    nextOffset: base + 10_000,
    epochs: [],
    producers: [],
    segments: [
      {
        baseOffset: base,
        nextOffset: base + 10_000,
        bytes: 700,
        receiveMsMax: madeMs,
        firstReceiveMs: madeMs,
        isSealed: true,
        compaction: 12,
        extents: [extent({ bytes: 700, baseOffset: base + 17, nextOffset: base + 9000 })]
      }
    ],
    damaged: []
  }
  const untouched: ManifestPartition = {
    handle: 4,
    directory: 'topics/orders~17/1',
    generation: 0,
    startOffset: 0,
    nextOffset: 0,
    epochs: [],
    producers: [],
    segments: [],
    damaged: []
  }
  return {
    ...emptyManifest(2, 5),
    commit: 9,
    settledSequence: 31,
    settledGroup: 123_456,
    receiveMsMax: madeMs + 90_000,
    nextPack: 6,
    // Not in the order of their handles: what is written is.
    partitions: new Map([compacted, orders, untouched].map(partition => [partition.handle, partition])),
    removals: [
      { path: 'packs/002/00000003.pack', dueMs: madeMs + 150_000 },
      { path: 'topics/orders~17/0/00000000000000000000.log', dueMs: madeMs + 150_001 }
    ]
  }
}

/** The sample with a partition of which the older segments are in cold storage, and objects that are to go from there. */
export function coldManifest(): Manifest {
  const sample = sampleManifest()
  const cold = (baseOffset: number, compaction: number, copy: ColdCopy): ManifestSegment => ({
    baseOffset,
    nextOffset: baseOffset + 100,
    bytes: 9000,
    receiveMsMax: madeMs + baseOffset,
    firstReceiveMs: madeMs,
    isSealed: true,
    compaction,
    extents: [extent({ bytes: 8192, baseOffset, nextOffset: baseOffset + 100, blockCount: 2 })],
    cold: copy
  })
  const { cold: _, ...local } = cold(200, 0, { checksum: 0, blocksChecksum: 0, timestampMax: 0 })
  const partition: ManifestPartition = {
    handle: 9,
    directory: 'topics/old~3/0',
    generation: 4,
    startOffset: 0,
    nextOffset: 300,
    epochs: [],
    producers: [],
    segments: [
      cold(0, 0, { checksum: 0xdead_beef, blocksChecksum: 1, timestampMax: madeMs }),
      cold(100, 3, { checksum: 0, blocksChecksum: 0xffff_ffff, timestampMax: Number.MIN_SAFE_INTEGER }),
      local
    ],
    damaged: []
  }
  sample.partitions.set(partition.handle, partition)
  const object = { path: 'gone~2/0/00000000000000000000.log', dueMs: madeMs + 5, isCold: true as const }
  return { ...sample, removals: [...sample.removals, object] }
}

/** A valid manifest that the dice made. */
export function randomManifest(dice: Dice): Manifest {
  const manifest: Manifest = {
    ...emptyManifest(dice.below(8), dice.below(3)),
    commit: anyNumber(dice),
    settledSequence: anyNumber(dice),
    settledGroup: anyNumber(dice),
    receiveMsMax: anyNumber(dice),
    nextPack: 1 + dice.below(1000),
    removals: Array.from({ length: dice.below(4) }, (_, i) => ({ path: `packs/000/${i}.pack`, dueMs: anyNumber(dice) }))
  }
  for (let left = dice.below(12); left > 0; left--) {
    const partition = randomPartition(dice, manifest.nextPack)
    manifest.partitions.set(partition.handle, partition)
  }
  return manifest
}

/** Whole numbers of all sizes: each way of msgpack to write one, and its edges. */
function anyNumber(dice: Dice): number {
  const power = 2 ** dice.below(53)
  return dice.pick([dice.below(200), power - 1, power, Math.floor(dice.unit() * power)])
}

function randomPartition(dice: Dice, nextPack: number): ManifestPartition {
  const segments: ManifestSegment[] = []
  let offset = dice.pick([0, dice.below(1000), 2 ** 45])
  const startOffset = offset
  for (let left = dice.below(5); left > 0; left--) {
    const segment = randomSegment(dice, { baseOffset: offset + gap(dice), nextPack, isLast: left === 1 })
    segments.push(segment)
    offset = segment.nextOffset
  }
  const nextOffset = offset + gap(dice)
  const damaged: { firstOffset: number; nextOffset: number; path: string | null }[] = []
  for (let at = gap(dice); at + 10 < nextOffset && damaged.length < 3; at += 20 + gap(dice)) {
    damaged.push({ firstOffset: at, nextOffset: at + 1 + dice.below(9), path: dice.pick([null, `quarantine/${at}`]) })
  }
  const producerCount = nextOffset < 10_000 ? 0 : dice.below(4)
  return {
    handle: dice.below(200_000),
    directory: `topics/${dice.pick(['a', 'orders.eu', '..x', 'L'.repeat(200)])}~${dice.below(9)}/${dice.below(9)}`,
    generation: anyNumber(dice),
    startOffset,
    nextOffset,
    epochs: Array.from({ length: dice.below(4) }, (_, i) => ({
      epoch: 1 + 3 * i,
      startOffset: 100 * i + dice.below(100)
    })),
    producers: Array.from({ length: producerCount }, (_, i) => randomProducer(dice, i + 1)),
    segments,
    damaged
  }
}

const gap = (dice: Dice): number => (dice.chance(0.7) ? 0 : dice.below(50))

function randomSegment(
  dice: Dice,
  { baseOffset, nextPack, isLast }: { baseOffset: number; nextPack: number; isLast: boolean }
): ManifestSegment {
  const extents: Extent[] = []
  let offset = baseOffset
  let position = 0
  for (let left = dice.below(4); left > 0; left--) {
    const base = offset + gap(dice)
    const bytes = 1 + dice.below(100_000)
    offset = base + 1 + dice.below(20_000)
    const pack = dice.below(nextPack)
    const blocks = {
      blockCount: 1 + dice.below(500),
      blocksPack: dice.below(nextPack),
      blocksPosition: dice.below(1e6)
    }
    extents.push({ pack, position, bytes, baseOffset: base, nextOffset: offset, ...blocks })
    position += bytes + dice.below(2) * 4096
  }
  const firstReceiveMs = anyNumber(dice)
  return {
    baseOffset,
    nextOffset: Math.max(offset, baseOffset + 1) + gap(dice),
    bytes: anyNumber(dice),
    receiveMsMax: Math.min(Number.MAX_SAFE_INTEGER, firstReceiveMs + dice.below(1e9)),
    firstReceiveMs,
    isSealed: !isLast || dice.chance(0.5),
    compaction: dice.below(3),
    extents
  }
}

/** Of a partition with 10,000 offsets at least. */
function randomProducer(dice: Dice, number: number): ManifestProducer {
  const firsts: number[] = []
  const bases: number[] = []
  let next = anyNumber(dice) % 2 ** 40
  let base = dice.below(100)
  for (let left = 1 + dice.below(20); left > 0; left--) {
    const count = 1 + dice.below(128)
    firsts.push(next)
    bases.push(base)
    next += count
    base += count + 1 + dice.below(50)
  }
  const origin = { originHigh: dice.below(2 ** 32) - 2 ** 31, originLow: dice.below(2 ** 32) }
  return { number, ...origin, next, firsts, bases, usedMs: anyNumber(dice) }
}

/** What is said against a file that is no manifest. */
export function problemOf(file: Buffer): string {
  const verdict = decodeManifest(file)
  assert.ok(verdict.kind === 'damaged', `it was taken for ${verdict.kind}`)
  return verdict.problem
}

/** A manifest file as the drawing says, whatever `manifest` holds. */
export function plainManifest(manifest: Manifest): Buffer {
  const { shard, placementEpoch, commit, settledSequence, settledGroup, receiveMsMax, nextPack, removals } = manifest
  const head = [shard, placementEpoch, commit, settledSequence, settledGroup, receiveMsMax, nextPack]
  const partitions = [...manifest.partitions.values()].sort((a, b) => a.handle - b.handle)
  return sealedFile([
    packMessage([...head, partitions.length, ...counted(removals.map(({ path, dueMs }) => [path, dueMs]))]),
    ...partitions.map(partition => packMessage(plainPartition(partition)))
  ])
}

/** The parts of a manifest with lengths, first fields and a right checksum around them. */
export function sealedFile(parts: readonly Buffer[], version = 1): Buffer {
  const body = parts.flatMap(part => {
    const length = Buffer.alloc(4)
    length.writeUInt32BE(part.length)
    return [length, part]
  })
  const prefix = Buffer.alloc(24)
  prefix.write('MILLMANI', 'latin1')
  prefix.writeUInt32BE(version, 8)
  return resealed(Buffer.concat([prefix, ...body]))
}

/** The same file with the length and the checksum that its bytes ask for. */
export function resealed(file: Buffer): Buffer {
  const bytes = Buffer.from(file)
  bytes.writeBigUInt64BE(BigInt(bytes.length), 12)
  bytes.writeUInt32BE(crc32cPlain(bytes, 24, bytes.length, crc32cPlain(bytes, 0, 20)), 20)
  return bytes
}

const counted = (items: readonly unknown[][]): unknown[] => [items.length, ...items.flat()]

function plainPartition(partition: ManifestPartition): unknown[] {
  const { handle, directory, generation, startOffset, nextOffset, segments } = partition
  return [
    handle,
    directory,
    generation,
    startOffset,
    nextOffset,
    ...counted(partition.epochs.map(({ epoch, startOffset: start }) => [epoch, start])),
    ...counted(partition.producers.map(plainProducer)),
    ...counted(segments.map((segment, i) => plainSegment(segment, segments[i - 1]?.nextOffset ?? 0))),
    ...counted(partition.damaged.map(({ firstOffset, nextOffset: next, path }) => [firstOffset, next, path]))
  ]
}

function plainProducer({ number, originHigh, originLow, next, usedMs, firsts, bases }: ManifestProducer): unknown[] {
  return [number, originHigh, originLow, next, usedMs, ...counted(firsts.map((first, run) => [first, bases[run]]))]
}

function plainSegment(segment: ManifestSegment, before: number): unknown[] {
  const { baseOffset, nextOffset, bytes, receiveMsMax, firstReceiveMs, isSealed, compaction, extents } = segment
  const span = receiveMsMax - firstReceiveMs
  return [
    ...[baseOffset - before, nextOffset - baseOffset, bytes, receiveMsMax, span, isSealed, compaction],
    ...counted(
      extents.map((one, i) => [
        ...[one.pack, one.position, one.bytes],
        ...[one.baseOffset - (extents[i - 1]?.nextOffset ?? baseOffset), one.nextOffset - one.baseOffset],
        ...[one.blockCount, one.blocksPack, one.blocksPosition]
      ])
    )
  ]
}
