/**
 * The records of one HTTP produce body, as a scan of its form found them: one row of integers each, kept between requests,
 * and a RecordSource that writes them straight from the body into a ring. Main thread, or a thread of the background pool.
 *
 * It must never keep a view of a body after release(): the socket's memory is not ours.
 * Row (Int32): 0 key start · 1 key end · 2 key bytes decoded · 3 value start · 4 value end · 5 value bytes decoded ·
 *   6 flags · 7 partition, u32 · 8 sequence, high half · 9 sequence, low half ·
 *   10 headers start · 11 header count, 0: none · 12 header bytes in ring layout, 0: none
 */
import { assert } from '../../base/assert.ts'
import { copyBytes } from '../../base/copy.ts'
import type { KeyHash } from '../../base/hash.ts'
import type { ErrorCode } from '../../model/errors.ts'
import { limits } from '../../model/limits.ts'
import type { RecordSource } from '../../model/requests.ts'
import { base64Bytes, decodeBase64 } from '../json/base64.ts'
import { decodeJsonString } from '../json/json-string.ts'
import { writeU32 } from '../primitives/u64.ts'
import { varintBytes, writeVarint } from '../primitives/varint.ts'
import type { HeaderPart, HeaderReader } from './header-reader.ts'
import { HEADERS_LENGTH_BYTES, NO_HEADERS_BYTES, RECORD_FIXED_BYTES } from './ring-layout.ts'

/** How a scan ended. malformed: see `problem`. illTyped: see `field` and `problem`. */
export const scanOutcomes = { sound: 0, malformed: 1, illTyped: 2 } as const
export type ScanOutcome = (typeof scanOutcomes)[keyof typeof scanOutcomes]

const ROW = 13
/** Flags of a row. */
export const HAS_KEY = 1
export const KEY_ESCAPED = 2
export const VALUE_ESCAPED = 4
export const HAS_PARTITION = 8
/** Columns at which the three of a text begin. */
export const KEY_AT = 0
export const VALUE_AT = 3

const ROWS_FIRST = 1024
/** One more than a request may have, so that a request over the limit never looks like one at it. */
const ROWS_MAX = limits.requestRecordsMax + 1

/** High half of i64::MIN: no sequence. */
export const NO_SEQUENCE_HIGH = 0x8000_0000 | 0
const NO_BYTES: Buffer = Buffer.alloc(0)
const NOT_BASE64 = 'must be base64'

/** A scanner of one form of body is this, and fills it. */
export abstract class RecordRows implements RecordSource {
  /** The error that says that a body is none of this form. */
  abstract readonly malformedCode: Extract<ErrorCode, 'BODY_NOT_JSON' | 'BODY_NOT_MSGPACK'>
  /** Records in the body; beyond the limit they are counted and checked, not kept. */
  count = 0
  hasHeaders = false
  ringBytes = 0
  largestPayloadBytes = 0
  largestPayloadIndex = 0
  producerId: string | null = null
  /** Path of the ill-typed field, such as `records[3].value`. */
  field = ''
  problem = ''
  /** Of the record that `field` is in; beyond all records while there is no fault. */
  protected faultIndex = Number.MAX_SAFE_INTEGER
  protected rows = new Int32Array(ROWS_FIRST * ROW)

  readonly #reader: HeaderReader
  #source = NO_BYTES
  /** Keys, values and the values of headers are base64 of what they mean. */
  #isBase64 = false
  #withHeaders = 0
  #scratch = Buffer.alloc(256)

  constructor(reader: HeaderReader) {
    this.#reader = reader
  }

  /** Scans bytes[start, end), borrowed until release(). */
  abstract scan(bytes: Buffer, start: number, end: number): ScanOutcome

  /** Lets go of the body. The counts stay; nothing may be written or hashed any more. */
  release(): void {
    this.#source = NO_BYTES
    this.#reader.close()
  }

  /** Begins with another body, borrowed until release(). */
  protected begin(source: Buffer): void {
    this.#source = source
    this.#isBase64 = false
    this.producerId = null
    this.resetRecords()
  }

  /** Forgets the records found so far, and their faults. */
  protected resetRecords(): void {
    this.count = 0
    this.hasHeaders = false
    this.field = ''
    this.problem = ''
    this.faultIndex = Number.MAX_SAFE_INTEGER
    this.#resetCounts()
  }

  #resetCounts(): void {
    this.ringBytes = 0
    this.largestPayloadBytes = 0
    this.largestPayloadIndex = 0
    this.#withHeaders = 0
  }

  /** Notes a fault of the body, unless there is one. */
  protected fault(field: string, problem: string): void {
    if (this.field !== '') return
    this.field = field
    this.problem = problem
  }

  /** Notes a fault of the record at hand, unless there is one. @param path behind its index, such as `.value`. */
  protected recordFault(path: string, problem: string): void {
    if (this.field !== '') return
    this.faultIndex = this.count
    this.fault(`records[${this.count}]${path}`, problem)
  }

  /** An empty row for the record being scanned. Past the limit the last row is written again and again. */
  protected nextRow(): number {
    const index = this.count < ROWS_MAX ? this.count : ROWS_MAX - 1
    if ((index + 1) * ROW > this.rows.length) {
      const grown = new Int32Array(Math.min(this.rows.length * 2, ROWS_MAX * ROW))
      grown.set(this.rows)
      this.rows = grown
    }
    const row = index * ROW
    const { rows } = this
    for (let column = row; column < row + ROW; column++) rows[column] = 0
    rows[row + 8] = NO_SEQUENCE_HIGH
    return row
  }

  /** Notes where the headers of a record stand. @param bytes of the pairs in ring layout; count 0: it has none. */
  protected keepHeaders(row: number, start: number, count: number, bytes: number): void {
    this.rows[row + 10] = start
    this.rows[row + 11] = count
    this.rows[row + 12] = count === 0 ? 0 : varintBytes(count) + bytes
  }

  /** Counts the record of that row, the record at hand, when all of it is known. */
  protected countRecord(row: number): void {
    this.#countPayload(row, this.count)
    this.count++
  }

  #countPayload(row: number, index: number): void {
    const { rows } = this
    const hasKey = ((rows[row + 6] as number) & HAS_KEY) !== 0
    const headerBytes = rows[row + 12] as number
    const payloadBytes = (hasKey ? (rows[row + 2] as number) : 0) + (rows[row + 5] as number) + headerBytes
    this.ringBytes += RECORD_FIXED_BYTES + payloadBytes
    if (headerBytes > 0) this.#withHeaders++
    if (payloadBytes > this.largestPayloadBytes) {
      this.largestPayloadBytes = payloadBytes
      this.largestPayloadIndex = index
    }
  }

  /** After the last record: whether any has headers, and so all of them a place for them. */
  protected endRecords(isBase64: boolean): void {
    if (isBase64) this.#useBase64()
    if (this.#withHeaders === 0) return
    this.hasHeaders = true
    this.ringBytes += this.count * HEADERS_LENGTH_BYTES + (this.count - this.#withHeaders) * NO_HEADERS_BYTES
  }

  /** Keys and values are base64: what they decode to is what counts. Records from a fault on are not looked at. */
  #useBase64(): void {
    const end = Math.min(this.count, ROWS_MAX, this.faultIndex)
    this.#isBase64 = true
    this.#resetCounts()
    for (let index = 0; index < end; index++) {
      const path = this.#measureBase64(index * ROW)
      if (path !== '') {
        this.field = `records[${index}]${path}`
        this.problem = NOT_BASE64
        return
      }
      this.#countPayload(index * ROW, index)
    }
  }

  /** @returns the path of what is no base64; empty: all is. */
  #measureBase64(row: number): string {
    const { rows } = this
    const flags = rows[row + 6] as number
    if ((flags & HAS_KEY) !== 0) {
      rows[row + 2] = this.#base64BytesOf(rows[row] as number, rows[row + 1] as number, (flags & KEY_ESCAPED) !== 0)
      if ((rows[row + 2] as number) < 0) return '.key'
    }
    const isEscaped = (flags & VALUE_ESCAPED) !== 0
    rows[row + 5] = this.#base64BytesOf(rows[row + 3] as number, rows[row + 4] as number, isEscaped)
    if ((rows[row + 5] as number) < 0) return '.value'
    const count = rows[row + 11] as number
    if (count === 0) return ''
    let bytes = varintBytes(count)
    this.#reader.open(this.#source, rows[row + 10] as number)
    for (let i = 0; i < count; i++) {
      this.#reader.next()
      const { name, value } = this.#reader
      bytes += varintBytes(name.bytes) + name.bytes
      const valueBytes = value.bytes < 0 ? -1 : this.#base64BytesOf(value.start, value.end, value.isEscaped)
      if (valueBytes < 0 && value.bytes >= 0) return `.headers[${i}][1]`
      bytes += varintBytes(valueBytes) + Math.max(0, valueBytes)
    }
    rows[row + 12] = bytes
    return ''
  }

  #base64BytesOf(start: number, end: number, isEscaped: boolean): number {
    if (!isEscaped) return base64Bytes(this.#source, start, end)
    return base64Bytes(this.#scratch, 0, this.#unescape(start, end))
  }

  /** Writes a text without its escapes to the scratch. @returns its length. */
  #unescape(start: number, end: number): number {
    this.#reserveScratch(end - start)
    return decodeJsonString(this.#source, start, end, this.#scratch, 0)
  }

  #reserveScratch(bytes: number): void {
    if (this.#scratch.length < bytes) this.#scratch = Buffer.alloc(bytes * 2)
  }

  payloadBytesOf(i: number): number {
    const row = this.#rowOf(i)
    const { rows } = this
    const keyBytes = (rows[row + 6] as number) & HAS_KEY ? (rows[row + 2] as number) : 0
    return keyBytes + (rows[row + 5] as number) + (rows[row + 12] as number)
  }

  ringBytesOf(i: number): number {
    const bytes = RECORD_FIXED_BYTES + this.payloadBytesOf(i)
    if (!this.hasHeaders) return bytes
    return bytes + HEADERS_LENGTH_BYTES + (this.rows[i * ROW + 12] === 0 ? NO_HEADERS_BYTES : 0)
  }

  partitionOf(i: number): number {
    const row = this.#rowOf(i)
    return (this.rows[row + 6] as number) & HAS_PARTITION ? (this.rows[row + 7] as number) >>> 0 : -1
  }

  hashKeyOf(i: number, partitionCount: number, hash: KeyHash): number {
    const row = this.#rowOf(i)
    const { rows } = this
    const flags = rows[row + 6] as number
    if (!(flags & HAS_KEY)) return -1
    const start = rows[row] as number
    const end = rows[row + 1] as number
    const isEscaped = (flags & KEY_ESCAPED) !== 0
    if (!isEscaped && !this.#isBase64) return hash(this.#source, start, end, partitionCount)
    this.#reserveScratch(end - start)
    this.#writeText(start, end, isEscaped, this.#scratch, 0)
    return hash(this.#scratch, 0, rows[row + 2] as number, partitionCount)
  }

  sequenceHighOf(i: number): number {
    return this.rows[this.#rowOf(i) + 8] as number
  }

  sequenceLowOf(i: number): number {
    return (this.rows[this.#rowOf(i) + 9] as number) >>> 0
  }

  writeRecord(i: number, partition: number, target: Buffer, at: number): number {
    const row = this.#rowOf(i)
    const { rows } = this
    const flags = rows[row + 6] as number
    let to = at + 4
    if (flags & HAS_KEY) {
      writeU32(target, at, rows[row + 2] as number)
      to = this.#writeText(rows[row] as number, rows[row + 1] as number, (flags & KEY_ESCAPED) !== 0, target, to)
    } else writeU32(target, at, -1)
    writeU32(target, to, rows[row + 5] as number)
    const isEscaped = (flags & VALUE_ESCAPED) !== 0
    to = this.#writeText(rows[row + 3] as number, rows[row + 4] as number, isEscaped, target, to + 4)
    writeU32(target, to, partition)
    writeU32(target, to + 4, rows[row + 8] as number)
    writeU32(target, to + 8, rows[row + 9] as number)
    return this.hasHeaders ? this.#writeHeaders(row, target, to + 12) : to + 12
  }

  /** Length and headers of one record; of one that has none a count of 0. */
  #writeHeaders(row: number, target: Buffer, at: number): number {
    const bytes = this.rows[row + 12] as number
    const count = this.rows[row + 11] as number
    writeU32(target, at, count === 0 ? NO_HEADERS_BYTES : bytes)
    let to = writeVarint(target, at + HEADERS_LENGTH_BYTES, count)
    if (count === 0) return to
    const reader = this.#reader
    reader.open(this.#source, this.rows[row + 10] as number)
    for (let i = 0; i < count; i++) {
      reader.next()
      to = this.#writeName(reader.name, target, writeVarint(target, to, reader.name.bytes))
      to = this.#writeValue(reader.value, target, to)
    }
    assert(to === at + HEADERS_LENGTH_BYTES + bytes, 'headers take the room that was counted')
    return to
  }

  /** A name is text whatever the encoding. */
  #writeName({ start, end, isEscaped }: HeaderPart, target: Buffer, at: number): number {
    if (isEscaped) return decodeJsonString(this.#source, start, end, target, at)
    return copyBytes(this.#source, start, end, target, at)
  }

  #writeValue({ start, end, bytes, isEscaped }: HeaderPart, target: Buffer, at: number): number {
    if (bytes < 0) return writeVarint(target, at, -1)
    const length = this.#isBase64 ? this.#base64BytesOf(start, end, isEscaped) : bytes
    return this.#writeText(start, end, isEscaped, target, writeVarint(target, at, length))
  }

  /** What a text of the body means, which may be written over the scratch. @returns the position after it. */
  #writeText(start: number, end: number, isEscaped: boolean, target: Buffer, at: number): number {
    const source = this.#source
    if (this.#isBase64) {
      if (isEscaped) return decodeBase64(this.#scratch, 0, this.#unescape(start, end), target, at)
      return decodeBase64(source, start, end, target, at)
    }
    return isEscaped ? decodeJsonString(source, start, end, target, at) : copyBytes(source, start, end, target, at)
  }

  writeAll(partitions: Uint32Array, target: Buffer, at: number): number {
    let to = at
    for (let i = 0; i < this.count; i++) to = this.writeRecord(i, partitions[i] as number, target, to)
    return to
  }

  #rowOf(i: number): number {
    assert(i >= 0 && i < this.count && i < ROWS_MAX, 'a record is asked for that the scan did not keep')
    return i * ROW
  }
}
