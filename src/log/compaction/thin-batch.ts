/**
 * Writes a batch again without the records it loses, the way Kafka does it: base offset, last offset delta, leader epoch,
 * attributes, producer fields and base timestamp stay, so every record that stays keeps its bytes, its offset and its
 * timestamp, and readers step over the whole range. Length, count, greatest timestamp and CRC are made anew. What was
 * compressed is so again, or segments could grow beyond what positions can tell. Any thread.
 */
import { copyBytes } from '../../base/copy.ts'
import { crc32c } from '../../base/crc32c.ts'
import {
  ATTRIBUTES_AT,
  BATCH_HEADER_BYTES,
  BATCH_LENGTH_AT,
  BATCH_LENGTH_BASE,
  CODEC_MASK,
  CRC_AT,
  LOG_APPEND_TIME_BIT,
  MAX_TIMESTAMP_AT,
  RECORD_COUNT_AT
} from '../../wire/batch/layout.ts'
import type { BatchView } from '../../wire/batch/view.ts'
import { deflate, deflateCodec } from '../../wire/compression/deflate.ts'
import { write64, writeU16, writeU32 } from '../../wire/primitives/u64.ts'
import type { BatchReader } from './batch-reader.ts'
import type { Marks } from './marks.ts'
import type { SourceBatch } from './pass.ts'

/**
 * Bytes that the batch opened by `reader`, which is not compressed, has without the records in `dropped`; 0 if none is left.
 *
 * @param firstRecord ordinal of its first record.
 */
export function thinnedBytes(reader: BatchReader, dropped: Marks, firstRecord: number): number {
  const { cursor } = reader
  reader.readRecords()
  let bytes = BATCH_HEADER_BYTES
  let recordStart = reader.recordsStart
  for (let record = firstRecord; cursor.next(); record++) {
    // The headers are the last part of a record.
    if (!dropped.has(record)) bytes += cursor.headersEnd - recordStart
    recordStart = cursor.headersEnd
  }
  return bytes === BATCH_HEADER_BYTES ? 0 : bytes
}

export class BatchThinner {
  /** Holds the batch that thin() made, from its first byte, until the next call. */
  bytes = Buffer.alloc(0)

  /**
   * Makes the thinned copy of the batch that `reader` has opened on `source`.
   *
   * @param firstRecord ordinal of its first record.
   * @returns its bytes, or 0: no record is left.
   * @cost one copy of the records that stay, and their CRC; of a compressed batch, to compress them.
   */
  thin(source: SourceBatch, reader: BatchReader, dropped: Marks, firstRecord: number): number {
    reader.readRecords()
    const { view, cursor, bytes: records } = reader
    this.#reserve(BATCH_HEADER_BYTES + records.length - reader.recordsStart)
    let end = copyBytes(source.bytes, view.start, view.recordsStart, this.bytes, 0)
    let recordStart = reader.recordsStart
    // Records that stay and lie together are copied at once: records[runStart, recordStart).
    let runStart = recordStart
    let recordCount = 0
    let timestampDeltaMax = -Infinity
    for (let record = firstRecord; cursor.next(); record++) {
      if (dropped.has(record)) {
        end = copyBytes(records, runStart, recordStart, this.bytes, end)
        runStart = cursor.headersEnd
      } else {
        recordCount++
        timestampDeltaMax = Math.max(timestampDeltaMax, cursor.timestampDeltaMs)
      }
      recordStart = cursor.headersEnd
    }
    if (recordCount === 0) return 0
    end = copyBytes(records, runStart, recordStart, this.bytes, end)
    if (reader.isCompressed) end = this.#compress(view, end)
    this.#seal(reader, end, recordCount, timestampDeltaMax)
    return end
  }

  #reserve(bytes: number): void {
    if (bytes > this.bytes.length) this.bytes = Buffer.alloc(Math.max(bytes, this.bytes.length * 2))
  }

  /** Compresses the records behind the header. @returns where they end now. */
  #compress({ attributes, codec: former }: BatchView, end: number): number {
    const codec = deflateCodec(former)
    const packed = deflate(codec, this.bytes.subarray(BATCH_HEADER_BYTES, end))
    const header = Buffer.from(this.bytes.subarray(0, BATCH_HEADER_BYTES))
    this.#reserve(BATCH_HEADER_BYTES + packed.length)
    writeU16(header, ATTRIBUTES_AT, (attributes & ~CODEC_MASK) | codec)
    copyBytes(header, 0, BATCH_HEADER_BYTES, this.bytes, 0)
    return copyBytes(packed, 0, packed.length, this.bytes, BATCH_HEADER_BYTES)
  }

  #seal({ view }: BatchReader, end: number, recordCount: number, timestampDeltaMax: number): void {
    const { bytes } = this
    writeU32(bytes, BATCH_LENGTH_AT, end - BATCH_LENGTH_BASE)
    writeU32(bytes, RECORD_COUNT_AT, recordCount)
    // The broker's time of append is the time of all records, whichever stay.
    if ((view.attributes & LOG_APPEND_TIME_BIT) === 0) {
      write64(bytes, MAX_TIMESTAMP_AT, view.baseTimestampMs + timestampDeltaMax)
    }
    writeU32(bytes, CRC_AT, crc32c(bytes, ATTRIBUTES_AT, end))
  }
}
