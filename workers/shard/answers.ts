/**
 * The answers of reads, encoded for the caller in the shard: the payload of an ES01 0x82 frame, or the JSON body of an
 * HTTP consume. One answer at a time; the buffer is the writer's and is used again.
 */
import { isAscii, isUtf8 } from 'node:buffer'
import { copyBytes } from '../../src/base/copy.ts'
import { readFormats, type ReadFormat } from '../../src/model/requests.ts'
import { write64 } from '../../src/wire/primitives/u64.ts'

const FIRST_BYTES = 64 * 1024
/** Kept between reads; a larger buffer is let go. */
const KEPT_BYTES = 1024 * 1024
/** Bytes of an ES01 payload before its records: next_offset, high_watermark, count. */
const ES01_HEAD_BYTES = 20
/** Most that JSON makes of one byte of text: \u00XX. */
const JSON_GROWTH = 6
/** A record's JSON beside key and value: names, punctuation, three numbers. */
const JSON_RECORD_BYTES = 160
/** What follows the records in JSON: two numbers of up to 20 digits, names, the encoding. */
const JSON_TAIL_BYTES = 128

/** One record as it lies in a batch. Lengths −1 are null. */
export interface RecordPlace {
  readonly bytes: Buffer
  readonly keyStart: number
  readonly keyLength: number
  readonly valueStart: number
  readonly valueLength: number
}

export class AnswerWriter {
  buffer = Buffer.allocUnsafe(FIRST_BYTES)
  length = 0
  #format: ReadFormat = readFormats.es01
  #count = 0
  #maxBytes = 0

  /** @param maxBytes also bounds the encoded answer, the first record excepted. */
  begin(format: ReadFormat, maxBytes: number): void {
    if (this.buffer.length > KEPT_BYTES) this.buffer = Buffer.allocUnsafe(FIRST_BYTES)
    this.#format = format
    this.#maxBytes = maxBytes
    this.#count = 0
    this.length = 0
    if (format === readFormats.es01) this.length = ES01_HEAD_BYTES
    else this.#text('{"records":[')
  }

  /** Adds a record. @returns false, and nothing is added, if the answer would pass maxBytes. */
  add(partition: number, offset: number, timestampMs: number, record: RecordPlace): boolean {
    const before = this.length
    if (this.#format === readFormats.es01) this.#addEs01(partition, offset, timestampMs, record)
    else this.#addJson(partition, offset, timestampMs, record)
    const tail = this.#format === readFormats.es01 ? 0 : JSON_TAIL_BYTES
    if (this.#count > 0 && this.length + tail > this.#maxBytes) {
      this.length = before
      return false
    }
    this.#count++
    return true
  }

  /** Completes the answer: buffer[0, length). `nextOffset` is a u64 in decimal. */
  finish(nextOffset: bigint, highWatermark: number): void {
    if (this.#format === readFormats.es01) {
      this.buffer.writeBigUInt64BE(nextOffset, 0)
      write64(this.buffer, 8, highWatermark)
      this.buffer.writeUInt32BE(this.#count, 16)
      return
    }
    const encoding = this.#format === readFormats.jsonBase64 ? ',"encoding":"base64"' : ''
    this.#reserve(JSON_TAIL_BYTES)
    this.#text(`],"next_offset":${nextOffset},"high_watermark":${highWatermark}${encoding}}`)
  }

  #addEs01(partition: number, offset: number, timestampMs: number, record: RecordPlace): void {
    const keyBytes = Math.max(0, record.keyLength)
    const valueBytes = Math.max(0, record.valueLength)
    this.#reserve(28 + keyBytes + valueBytes)
    const buffer = this.buffer
    let at = buffer.writeUInt32BE(partition, this.length)
    write64(buffer, at, offset)
    write64(buffer, at + 8, timestampMs)
    at = buffer.writeInt32BE(record.keyLength, at + 16)
    at = copyBytes(record.bytes, record.keyStart, record.keyStart + keyBytes, buffer, at)
    at = buffer.writeUInt32BE(valueBytes, at)
    this.length = copyBytes(record.bytes, record.valueStart, record.valueStart + valueBytes, buffer, at)
  }

  #addJson(partition: number, offset: number, timestampMs: number, record: RecordPlace): void {
    const payload = Math.max(0, record.keyLength) + Math.max(0, record.valueLength)
    this.#reserve(JSON_RECORD_BYTES + payload * JSON_GROWTH + JSON_TAIL_BYTES)
    const comma = this.#count > 0 ? ',' : ''
    this.#text(`${comma}{"partition":${partition},"offset":${offset},"timestamp_ms":${timestampMs},"key":`)
    if (record.keyLength < 0) this.#text('null')
    else this.#string(record.bytes, record.keyStart, record.keyLength)
    this.#text(',"value":')
    this.#string(record.bytes, record.valueStart, Math.max(0, record.valueLength))
    this.#text('}')
  }

  #string(bytes: Buffer, start: number, length: number): void {
    const buffer = this.buffer
    buffer[this.length++] = 0x22
    if (this.#format === readFormats.jsonBase64) {
      this.length += buffer.write(bytes.toString('base64', start, start + length), this.length, 'latin1')
    } else {
      this.#utf8(bytes, start, start + length)
    }
    buffer[this.length++] = 0x22
  }

  /** Text as it is where it needs no escape; invalid UTF-8 becomes U+FFFD (spec 5). */
  #utf8(bytes: Buffer, start: number, end: number): void {
    const text = bytes.subarray(start, end)
    if (isAscii(text) || isUtf8(text)) {
      this.#escaped(bytes, start, end)
      return
    }
    const replaced = Buffer.from(text.toString('utf8'), 'utf8')
    this.#reserve(replaced.length * JSON_GROWTH + JSON_TAIL_BYTES)
    this.#escaped(replaced, 0, replaced.length)
  }

  /** Copies runs that need no escape, escapes the bytes between them. */
  #escaped(bytes: Buffer, start: number, end: number): void {
    let from = start
    for (let i = start; i < end; i++) {
      const byte = bytes[i] as number
      if (byte >= 0x20 && byte !== 0x22 && byte !== 0x5c) continue
      if (i > from) this.length = copyBytes(bytes, from, i, this.buffer, this.length)
      this.#text(jsonEscapes[byte] ?? '')
      from = i + 1
    }
    if (end > from) this.length = copyBytes(bytes, from, end, this.buffer, this.length)
  }

  #text(text: string): void {
    this.length += this.buffer.write(text, this.length, 'latin1')
  }

  #reserve(bytes: number): void {
    if (this.length + bytes <= this.buffer.length) return
    const grown = Buffer.allocUnsafe(Math.max(this.buffer.length * 2, this.length + bytes))
    this.buffer.copy(grown, 0, 0, this.length)
    this.buffer = grown
  }
}

/** JSON escape of each byte that needs one. */
const jsonEscapes: readonly (string | undefined)[] = Array.from({ length: 0x5d }, (_, byte) =>
  byte < 0x20 || byte === 0x22 || byte === 0x5c ? JSON.stringify(String.fromCharCode(byte)).slice(1, -1) : undefined
)
