/** The inverse of decodeConsumed, written here independently of the shards' encoder: for tests that play the broker. */
import type { ConsumeAnswer } from '../../src/wire/es01/consume.ts'

function i32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32BE(value | 0)
  return bytes
}

function u64(value: number | bigint): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64BE(BigInt.asUintN(64, BigInt(value)))
  return bytes
}

/** @returns the payload of a 0x82 frame. */
export function encodeConsumed({ nextOffset, highWatermark, records }: ConsumeAnswer): Buffer {
  const parts = records.flatMap(({ partition, offset, timestampMs, key, value }) => [
    Buffer.concat([i32(partition), u64(offset), u64(timestampMs), i32(key?.length ?? -1)]),
    key ?? Buffer.alloc(0),
    i32(value.length),
    value
  ])
  return Buffer.concat([u64(nextOffset), u64(highWatermark), i32(records.length), ...parts])
}
