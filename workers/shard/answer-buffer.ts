/**
 * The buffer in which the answer of a read grows. Shard thread only, one owner: its AnswerWriter or BatchAnswer. Used again for the next
 * read, unless it grew large.
 */
import { copyBytes } from '../../src/base/copy.ts'
import type { RecordCursor } from '../../src/wire/batch/view.ts'
import { varintBytes } from '../../src/wire/primitives/varint.ts'

const FIRST_BYTES = 64 * 1024
/** Kept between reads; a larger buffer is let go. An answer of 1 MiB, which is what most ask for, and its head fit. */
const KEPT_BYTES = 2 * 1024 * 1024
const EMPTY = Buffer.alloc(0)

/** One record as it lies in a batch; filled anew for each. Lengths −1 are null. Its bytes are the reader's. */
export class AnsweredRecord {
  partition = 0
  offset = 0
  timestampMs = 0
  bytes: Buffer = EMPTY
  keyStart = 0
  keyLength = -1
  valueStart = 0
  valueLength = -1
  headerCount = 0
  headersStart = 0
  headersEnd = 0

  /** Takes the places of key, value and headers from the cursor; offset and time are the caller's to set. */
  place(bytes: Buffer, cursor: RecordCursor): void {
    this.bytes = bytes
    this.keyStart = cursor.keyStart
    this.keyLength = cursor.keyLength
    this.valueStart = cursor.valueStart
    this.valueLength = cursor.valueLength
    this.headerCount = cursor.headerCount
    this.headersStart = cursor.headersStart
    this.headersEnd = cursor.headersEnd
  }

  /** Forgets the bytes, which may be what a batch was inflated to. */
  clear(): void {
    this.bytes = EMPTY
  }

  /** Bytes of key and value. */
  get payloadBytes(): number {
    return Math.max(0, this.keyLength) + Math.max(0, this.valueLength)
  }

  /** What headers add to that, as a produce counts them: nothing if there are none, else their number counts too. */
  get headerBytes(): number {
    if (this.headerCount === 0) return 0
    return varintBytes(this.headerCount) + this.headersEnd - this.headersStart
  }
}

export class AnswerBuffer {
  bytes = Buffer.allocUnsafe(FIRST_BYTES)
  length = 0

  /** Forgets what is in it. */
  clear(): void {
    if (this.bytes.length > KEPT_BYTES) this.bytes = Buffer.allocUnsafe(FIRST_BYTES)
    this.length = 0
  }

  /** Makes room for that many more bytes; the other calls do not look. */
  reserve(bytes: number): void {
    if (this.length + bytes <= this.bytes.length) return
    const grown = Buffer.allocUnsafe(Math.max(this.bytes.length * 2, this.length + bytes))
    this.bytes.copy(grown, 0, 0, this.length)
    this.bytes = grown
  }

  /** Whether so many more bytes fit as it is. */
  hasRoom(bytes: number): boolean {
    return this.length + bytes <= this.bytes.length
  }

  byte(value: number): void {
    this.bytes[this.length++] = value
  }

  /** Code units below 256, a byte each. */
  text(text: string): void {
    this.length += this.bytes.write(text, this.length, 'latin1')
  }

  /** A few bytes: a loop is many times faster than a call for them. */
  bytesOf(few: Uint8Array): void {
    const { bytes } = this
    let at = this.length
    for (let i = 0; i < few.length; i++) bytes[at++] = few[i] as number
    this.length = at
  }

  /** source[start, end) as it is. */
  copy(source: Buffer, start: number, end: number): void {
    this.length = copyBytes(source, start, end, this.bytes, this.length)
  }
}
