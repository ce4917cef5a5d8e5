/** Answers of reads in frames (src/wire/json/record-frames.ts), written as plainly as possible. */
import type { Skipped } from '../../src/wire/json/record-frames.ts'

export interface FramesToEncode {
  readonly nextOffset: bigint
  readonly highWatermark: number
  readonly records: readonly { readonly offset: number; readonly text: string }[]
  readonly skipped?: Skipped
}

export function encodeFrames({ nextOffset, highWatermark, records, skipped }: FramesToEncode): Buffer {
  const head = Buffer.alloc(24)
  head.writeBigUInt64BE(nextOffset, 0)
  head.writeBigUInt64BE(BigInt(highWatermark), 8)
  head.writeUInt32BE(records.length, 16)
  head.writeUInt32BE(skipped === undefined ? 0 : 1, 20)
  const parts = [head]
  for (const offset of skipped === undefined ? [] : [skipped.requested, skipped.earliest, skipped.latest]) {
    const field = Buffer.alloc(8)
    field.writeBigUInt64BE(BigInt(offset))
    parts.push(field)
  }
  for (const { offset, text } of records) {
    const frame = Buffer.alloc(12)
    frame.writeBigUInt64BE(BigInt(offset), 0)
    frame.writeUInt32BE(Buffer.byteLength(text), 8)
    parts.push(frame, Buffer.from(text))
  }
  return Buffer.concat(parts)
}
