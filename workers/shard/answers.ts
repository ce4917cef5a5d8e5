/**
 * The answers of reads of records, encoded for the caller in the shard: the payload of an ES01 0x82 frame, the JSON or
 * MessagePack body of an HTTP consume, or frames of JSON texts. Shard thread only. One answer at a time; the buffer is the writer's
 * and is used again.
 */
import { assert } from '../../src/base/assert.ts'
import { readFormats, type ReadFormat } from '../../src/model/requests.ts'
import {
  FRAMES_HEAD_BYTES,
  FRAMES_SKIPPED,
  FRAMES_SKIPPED_BYTES,
  FRAME_HEAD_BYTES
} from '../../src/wire/json/record-frames.ts'
import { MSGPACK_ARRAY_32, MSGPACK_MAP, MSGPACK_UINT_64 } from '../../src/wire/primitives/msgpack-marks.ts'
import { write64, writeU32 } from '../../src/wire/primitives/u64.ts'
import { AnswerBuffer, type AnsweredRecord } from './answer-buffer.ts'
import { writeJsonRecord } from './json-record.ts'
import { writeIntField, writeMsgpackName, writeMsgpackRecord } from './msgpack-record.ts'

/** Bytes of an ES01 payload before its records: next_offset, high_watermark, count. */
const ES01_HEAD_BYTES = 20
/** Of an ES01 record beside key and value: partition, offset, timestamp, two lengths. */
const ES01_RECORD_BYTES = 28
/** What follows the records in JSON and MessagePack: two numbers of up to 20 digits, names, the encoding. */
const TAIL_BYTES = 128
/** The field `skipped`: three numbers and names. */
const SKIPPED_BYTES = 128
/** Where the number of records stands in MessagePack: behind a map, the name `records` and the mark of an array. */
const MSGPACK_COUNT_AT = 10

/** Whether an answer can say what of the log it has passed over. */
export function saysSkipped(format: ReadFormat): boolean {
  return format !== readFormats.es01 && format !== readFormats.batches
}

export class AnswerWriter {
  readonly #out = new AnswerBuffer()
  #format: ReadFormat = readFormats.es01
  #count = 0
  #maxBytes = 0
  /** Where the read was to begin, if it did not; −1: nothing was skipped. */
  #skippedFrom = -1
  #skippedTo = -1

  /** The answer stands in buffer[0, length). */
  get buffer(): Buffer {
    return this.#out.bytes
  }

  get length(): number {
    return this.#out.length
  }

  /** Forgets the answer; a buffer that grew large is let go. */
  clear(): void {
    this.#out.clear()
  }

  /** @param maxBytes also bounds the encoded answer, the first record excepted. */
  begin(format: ReadFormat, maxBytes: number): void {
    const out = this.#out
    assert(format !== readFormats.batches, 'whole batches are an answer of another kind')
    out.clear()
    this.#format = format
    this.#maxBytes = maxBytes
    this.#count = 0
    this.#skippedFrom = -1
    this.#skippedTo = -1
    if (format === readFormats.es01) out.length = ES01_HEAD_BYTES
    else if (this.#isFrames) out.length = FRAMES_HEAD_BYTES
    else if (format === readFormats.msgpack) this.#beginMsgpack()
    else out.text('{"records":[')
  }

  /**
   * Says in the answer that nothing could be read from `requested` on, before `earliest`. Again: the first `requested` and
   * the last `earliest` count. Only before the first record, and where saysSkipped() is true.
   */
  skip(requested: number, earliest: number): void {
    assert(this.#count === 0 && saysSkipped(this.#format), 'a read skips before its first record only')
    if (this.#skippedFrom < 0) {
      this.#skippedFrom = requested
      // Frames have it before the records.
      if (this.#isFrames) this.#out.length += FRAMES_SKIPPED_BYTES
    }
    this.#skippedTo = earliest
  }

  /** Adds a record. @returns false, and nothing is added, if the answer would pass maxBytes. */
  add(record: AnsweredRecord): boolean {
    const out = this.#out
    const before = out.length
    if (this.#format === readFormats.es01) this.#addEs01(record)
    else if (this.#isFrames) this.#addFrame(record)
    else if (this.#format === readFormats.msgpack) writeMsgpackRecord(out, record)
    else this.#addJson(record)
    if (this.#count > 0 && out.length + this.#tailBytes > this.#maxBytes) {
      out.length = before
      return false
    }
    this.#count++
    return true
  }

  /** Completes the answer. `nextOffset` is a u64. */
  finish(nextOffset: bigint, highWatermark: number): void {
    const out = this.#out
    out.reserve(this.#tailBytes)
    if (this.#format === readFormats.es01 || this.#isFrames) {
      out.bytes.writeBigUInt64BE(nextOffset, 0)
      write64(out.bytes, 8, highWatermark)
      writeU32(out.bytes, 16, this.#count)
      if (this.#isFrames) this.#finishFrames(highWatermark)
    } else if (this.#format === readFormats.msgpack) this.#finishMsgpack(nextOffset, highWatermark)
    else this.#finishJson(nextOffset, highWatermark)
  }

  get #isFrames(): boolean {
    return this.#format === readFormats.framesUtf8 || this.#format === readFormats.framesBase64
  }

  /** What finish() adds at most. */
  get #tailBytes(): number {
    if (this.#format === readFormats.es01 || this.#isFrames) return 0
    return this.#skippedFrom < 0 ? TAIL_BYTES : TAIL_BYTES + SKIPPED_BYTES
  }

  #addEs01(record: AnsweredRecord): void {
    const out = this.#out
    const keyBytes = Math.max(0, record.keyLength)
    const valueBytes = Math.max(0, record.valueLength)
    out.reserve(ES01_RECORD_BYTES + keyBytes + valueBytes)
    const at = out.length
    writeU32(out.bytes, at, record.partition)
    write64(out.bytes, at + 4, record.offset)
    write64(out.bytes, at + 12, record.timestampMs)
    writeU32(out.bytes, at + 20, record.keyLength)
    out.length = at + 24
    out.copy(record.bytes, record.keyStart, record.keyStart + keyBytes)
    out.length = writeU32(out.bytes, out.length, valueBytes)
    out.copy(record.bytes, record.valueStart, record.valueStart + valueBytes)
  }

  #addJson(record: AnsweredRecord): void {
    this.#out.reserve(1)
    if (this.#count > 0) this.#out.byte(0x2c)
    writeJsonRecord(this.#out, record, this.#format === readFormats.jsonBase64)
  }

  #addFrame(record: AnsweredRecord): void {
    const out = this.#out
    out.reserve(FRAME_HEAD_BYTES)
    const at = out.length
    out.length = at + FRAME_HEAD_BYTES
    writeJsonRecord(out, record, this.#format === readFormats.framesBase64)
    write64(out.bytes, at, record.offset)
    writeU32(out.bytes, at + 8, out.length - at - FRAME_HEAD_BYTES)
  }

  #finishJson(nextOffset: bigint, highWatermark: number): void {
    const encoding = this.#format === readFormats.jsonBase64 ? ',"encoding":"base64"' : ''
    const skipped =
      this.#skippedFrom < 0
        ? ''
        : `,"skipped":{"requested":${this.#skippedFrom},"earliest":${this.#skippedTo},"latest":${highWatermark}}`
    this.#out.text(`],"next_offset":${nextOffset},"high_watermark":${highWatermark}${encoding}${skipped}}`)
  }

  #finishFrames(highWatermark: number): void {
    const { bytes } = this.#out
    const isSkipped = this.#skippedFrom >= 0
    writeU32(bytes, 20, isSkipped ? FRAMES_SKIPPED : 0)
    if (!isSkipped) return
    write64(bytes, FRAMES_HEAD_BYTES, this.#skippedFrom)
    write64(bytes, FRAMES_HEAD_BYTES + 8, this.#skippedTo)
    write64(bytes, FRAMES_HEAD_BYTES + 16, highWatermark)
  }

  /** The number of records is set at the end, and so is the number of fields: their places stay. */
  #beginMsgpack(): void {
    const out = this.#out
    out.byte(MSGPACK_MAP)
    writeMsgpackName(out, 'records')
    out.byte(MSGPACK_ARRAY_32)
    assert(out.length === MSGPACK_COUNT_AT, 'the number of records has its place')
    out.length = MSGPACK_COUNT_AT + 4
  }

  #finishMsgpack(nextOffset: bigint, highWatermark: number): void {
    const out = this.#out
    const isSkipped = this.#skippedFrom >= 0
    out.bytes[0] = MSGPACK_MAP | (isSkipped ? 4 : 3)
    writeU32(out.bytes, MSGPACK_COUNT_AT, this.#count)
    if (nextOffset <= BigInt(Number.MAX_SAFE_INTEGER)) writeIntField(out, 'next_offset', Number(nextOffset))
    else {
      writeMsgpackName(out, 'next_offset')
      out.byte(MSGPACK_UINT_64)
      out.length = out.bytes.writeBigUInt64BE(nextOffset, out.length)
    }
    writeIntField(out, 'high_watermark', highWatermark)
    if (!isSkipped) return
    writeMsgpackName(out, 'skipped')
    out.byte(MSGPACK_MAP | 3)
    writeIntField(out, 'requested', this.#skippedFrom)
    writeIntField(out, 'earliest', this.#skippedTo)
    writeIntField(out, 'latest', highWatermark)
  }
}
