/** Batches whose header and checksum are right and whose records are anything, as a client may send them. */
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { clientBatch, codecs, encodeRecord, gzip, varint, zstd } from './client-batches.ts'
import { goldenBatch } from './golden-batches.ts'
import type { Dice } from './log-random.ts'

/** Records that are nearly right, or anything, perhaps compressed, or said to be. Its header and checksum are right. */
export function hostileBatch(dice: Dice): Buffer {
  const count = 1 + dice.below(6)
  const records = Array.from({ length: count }, (_, i) =>
    encodeRecord(
      {
        key: dice.chance(0.3) ? null : `k${dice.below(5)}`,
        value: dice.chance(0.2) ? null : dice.bytes(dice.below(60)),
        headers: dice.chance(0.3) ? [['h', dice.chance(0.5) ? null : 'x']] : [],
        timestampDelta: dice.chance(0.1) ? Number.MAX_SAFE_INTEGER : dice.below(1000)
      },
      dice.chance(0.1) ? dice.below(20) : i
    )
  )
  const body = dice.chance(0.2) ? dice.bytes(7 * count + dice.below(100)) : Buffer.concat(records)
  if (dice.chance(0.5)) for (let i = dice.below(4); i > 0; i--) body[dice.below(body.length)] = dice.below(256)
  const times = {
    baseTimestamp: dice.pick([-1, 0, 1_700_000_000_000, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER]),
    maxTimestamp: dice.pick([-1, 1_700_000_000_000, Number.MAX_SAFE_INTEGER])
  }
  const kind = dice.below(8)
  if (kind === 0) return clientBatch({ body, count, ...times, ...gzip })
  if (kind === 1) return clientBatch({ body, count, ...times, ...zstd })
  if (kind === 2) return clientBatch({ body, count, ...times, codec: 1 + dice.below(4) })
  if (kind === 3) {
    const codec = dice.pick(['gzip', 'snappy', 'lz4', 'zstd'] as const)
    const golden = Buffer.from(goldenBatch(codec).subarray(61, 3000))
    for (let i = dice.below(3); i > 0; i--) golden[dice.below(golden.length)] = dice.below(256)
    const attributes = goldenBatch(codec).readInt16BE(21)
    return clientBatch({ body: golden, count: 1 + dice.below(60), ...times, attributes })
  }
  return clientBatch({ body, count, ...times })
}

const MIB = 1024 * 1024
/** More than any reader may inflate of one batch. */
const BOMB_BYTES = 40 * MIB

/**
 * Little that stands for very much, or says so: one for each codec. The first two are good records but for their size: who
 * inflated all of it would read them. The others have counts that they could bear.
 */
export function bombs(): Buffer[] {
  const large = encodeRecord({ value: Buffer.alloc(BOMB_BYTES) }, 0)
  const frame = Buffer.from([0x04, 0x22, 0x4d, 0x18, 0x60, 0x70, 0x73])
  // One literal, then a match of a distance of 1 whose length goes on for as long as there are bytes of 255.
  const match = Buffer.concat([
    Buffer.from([0x1f, 0, 1, 0]),
    Buffer.alloc(BOMB_BYTES / 255, 255),
    Buffer.from([0, 0x10, 0])
  ])
  const size = Buffer.alloc(4)
  size.writeUInt32LE(match.length)
  const copies = Buffer.alloc(3 * (MIB / 2))
  for (let at = 0; at < copies.length; at += 3) copies.set([0xfe, 1, 0], at)
  const bodies: readonly (readonly [number, number, Buffer])[] = [
    [codecs.gzip, 1, gzipSync(large)],
    [codecs.zstd, 1, zstdCompressSync(large)],
    [codecs.lz4, 1000, Buffer.concat([frame, size, match, Buffer.alloc(4)])],
    [codecs.snappy, 1000, Buffer.concat([Buffer.from([0x81, 0x80, 0x80, 0x10, 0, 0]), copies])],
    // It says 4 GiB, and ends.
    [codecs.snappy, 1000, Buffer.from([0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0])]
  ]
  return bodies.map(([codec, count, body]) => clientBatch({ body, codec, count }))
}

/** Lengths within lengths that say more than there is, each at another place of a record. */
export function lyingLengths(): Buffer[] {
  const huge = varint(2 ** 31 - 1)
  const nothing = varint(-1)
  const zero = varint(0)
  const start = [Buffer.from([0]), zero, zero]
  const bodies = [
    [huge],
    [varint(60), ...start, huge],
    [varint(60), ...start, nothing, huge],
    [varint(60), ...start, nothing, nothing, huge],
    [varint(60), ...start, nothing, nothing, varint(1), huge],
    [varint(60), ...start, nothing, nothing, varint(1), varint(1), Buffer.from('h'), huge],
    [varint(-(2 ** 31))],
    [Buffer.alloc(20, 0x80)]
  ]
  return bodies.map(parts => {
    const body = Buffer.concat([...parts, Buffer.alloc(60)])
    return clientBatch({ body: body.subarray(0, 61), count: 1 })
  })
}
