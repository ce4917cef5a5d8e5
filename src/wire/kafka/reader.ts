/**
 * Reads the values of the Kafka protocol out of bytes that nobody vouches for. Pure, any thread; one per message.
 *
 * It never throws at bad bytes: the first thing that is wrong is kept with the path of its field, the rest of the message
 * counts as empty, and every further value is a zero. Nothing is allocated for a length or a count that the bytes do not
 * bear out. Integers are big-endian.
 *
 *   uvarint          7 bits a byte, lowest first; the top bit says that another byte follows; up to 5 bytes
 *   string           i16 length (−1 null) · UTF-8           compact: uvarint length + 1 (0 null) · UTF-8
 *   bytes, records   i32 length (−1 null) · bytes           compact: uvarint length + 1 (0 null) · bytes
 *   array            i32 count (−1 null) · elements         compact: uvarint count + 1 (0 null) · elements
 *   tagged fields    uvarint count · each: uvarint tag · uvarint size · value
 */
import { isUtf8 } from 'node:buffer'
import { limits } from '../../model/limits.ts'
import { readI16, readI32, readI64, readU16, readU32 } from '../primitives/u64.ts'

/** Bytes of the longest string: what the length of the older form can say, and what Kafka holds the compact one to. */
export const STRING_BYTES_MAX = 0x7fff
const I32_MAX = 0x7fff_ffff
export const UUID_BYTES = 16

export class WireReader {
  readonly bytes: Buffer
  at: number
  end: number
  hasFailed = false
  /** What is wrong with the field at #path. */
  #problem = ''
  #path = ''
  #elementsLeft: number = limits.kafkaMessageElementsMax

  /** @param bytes the message is bytes[start, end); views of it are handed out. */
  constructor(bytes: Buffer, start: number, end: number) {
    this.bytes = bytes
    this.at = start
    this.end = end
  }

  /** What is wrong, with the path of the field; to be asked after hasFailed only. */
  problem(): string {
    return `${this.#path} ${this.#problem}`
  }

  /** Keeps the first problem: a predicate whose subject is the field that is being read. */
  fail(problem: string): void {
    if (this.hasFailed) return
    this.hasFailed = true
    this.#problem = problem
    this.at = this.end
  }

  /** Called from the field that failed outwards: puts a name or an index before its path. */
  failedIn(part: string): void {
    const isFirst = this.#path === '' || this.#path.startsWith('[')
    this.#path = isFirst ? part + this.#path : `${part}.${this.#path}`
  }

  /** The position of a value of so many bytes, which are passed; −1: they are not there. */
  #take(length: number): number {
    const at = this.at
    if (length > this.end - at) {
      this.fail('is cut off by the end of the message')
      return -1
    }
    this.at = at + length
    return at
  }

  readBool(): boolean {
    const at = this.#take(1)
    return at >= 0 && this.bytes[at] !== 0
  }

  readInt8(): number {
    const at = this.#take(1)
    return at < 0 ? 0 : ((this.bytes[at] as number) << 24) >> 24
  }

  readInt16(): number {
    const at = this.#take(2)
    return at < 0 ? 0 : readI16(this.bytes, at)
  }

  readUint16(): number {
    const at = this.#take(2)
    return at < 0 ? 0 : readU16(this.bytes, at)
  }

  readInt32(): number {
    const at = this.#take(4)
    return at < 0 ? 0 : readI32(this.bytes, at)
  }

  readUint32(): number {
    const at = this.#take(4)
    return at < 0 ? 0 : readU32(this.bytes, at)
  }

  readInt64(): number {
    const at = this.#take(8)
    if (at < 0) return 0
    const value = readI64(this.bytes, at)
    if (!Number.isNaN(value)) return value
    this.fail(`is ${this.bytes.readBigInt64BE(at)}: beyond 2^53 − 1`)
    return 0
  }

  readInt64Clamped(): number {
    const at = this.#take(8)
    if (at < 0) return 0
    const value = readI64(this.bytes, at)
    if (!Number.isNaN(value)) return value
    return readI32(this.bytes, at) < 0 ? Number.MIN_SAFE_INTEGER : Number.MAX_SAFE_INTEGER
  }

  readInt64Exact(): bigint {
    const at = this.#take(8)
    return at < 0 ? 0n : this.bytes.readBigInt64BE(at)
  }

  readFloat64(): number {
    const at = this.#take(8)
    return at < 0 ? 0 : this.bytes.readDoubleBE(at)
  }

  readUuid(): string {
    const at = this.#take(UUID_BYTES)
    return at < 0 ? '' : this.bytes.toString('base64url', at, at + UUID_BYTES)
  }

  readUvarint(): number {
    let value = 0
    for (let shift = 0; shift < 35; shift += 7) {
      if (this.at >= this.end) {
        this.fail('is cut off by the end of the message')
        return 0
      }
      const byte = this.bytes[this.at++] as number
      value |= (byte & 0x7f) << shift
      if (byte < 0x80) {
        // The fifth byte has room for 4 bits only.
        if (shift === 28 && byte > 0x0f) break
        return value >>> 0
      }
    }
    this.fail('has a varint of more than 32 bits')
    return 0
  }

  /** A length or a count in the compact form. @returns −1: null. */
  readCompactLength(): number {
    return this.readUvarint() - 1
  }

  /** A string of that many bytes. @param length as it was read: −1 is null, and wrong here if `isNullable` is false. */
  readText(length: number, isNullable: boolean): string | null {
    if (!this.#admitsLength(length, STRING_BYTES_MAX, isNullable)) return null
    const start = this.at
    this.at = start + length
    const text = this.bytes.toString('utf8', start, this.at)
    // The mark of what is not UTF-8 may stand in the text itself.
    if (text.includes('\ufffd') && !isUtf8(this.bytes.subarray(start, start + length))) this.fail('is not UTF-8')
    return text
  }

  /** A view of that many bytes. @param length likewise. */
  readView(length: number, isNullable: boolean): Buffer | null {
    if (!this.#admitsLength(length, I32_MAX, isNullable)) return null
    const start = this.at
    this.at = start + length
    return this.bytes.subarray(start, this.at)
  }

  /** False: null, which is no failure where `isNullable`; or a length that is not so. */
  #admitsLength(length: number, max: number, isNullable: boolean): boolean {
    if (this.hasFailed) return false
    if (length >= 0 && length <= max && length <= this.end - this.at) return true
    if (length === -1) {
      if (!isNullable) this.fail('is null')
    } else if (length < 0 || length > max) this.fail(`has the length ${length}`)
    else this.fail(`has ${length} bytes, but ${this.end - this.at} are left`)
    return false
  }

  /** Whether a list of that many elements is to be read. @param elementBytes the least that one takes. */
  admitsCount(count: number, elementBytes: number, isNullable: boolean): boolean {
    if (this.hasFailed) return false
    if (count === -1) {
      if (!isNullable) this.fail('is null')
      return false
    }
    const left = this.end - this.at
    if (count < 0) this.fail(`has the length ${count}`)
    else if (count > limits.kafkaListElementsMax || count > this.#elementsLeft) {
      this.fail(`has ${count} elements: more than are read`)
    } else if (count * elementBytes > left) this.fail(`has ${count} elements, but ${left} bytes are left`)
    this.#elementsLeft -= count
    return !this.hasFailed
  }

  /** Passes tagged fields, all of them unknown. */
  skipTaggedFields(): void {
    let count = this.readUvarint()
    while (count-- > 0 && !this.hasFailed) {
      this.readUvarint()
      this.skip(this.readUvarint())
    }
  }

  /** Passes so many bytes. */
  skip(length: number): void {
    if (length > this.end - this.at) this.fail(`has ${length} bytes, but ${this.end - this.at} are left`)
    else this.at += length
  }
}
