/**
 * Writes the values of the Kafka protocol, with integers big-endian and lengths as in reader.ts. Pure, any thread; one per
 * message. The message comes out as pieces to be written one behind another: bytes made here, and between them the records,
 * which are not copied.
 *
 * A value that the protocol cannot say is a bug of ours: asserted.
 */
import { assert } from '../../base/assert.ts'
import { write64, writeU16, writeU32 } from '../primitives/u64.ts'
import { STRING_BYTES_MAX, UUID_BYTES } from './reader.ts'

const FIRST_CHUNK_BYTES = 512

export class WireWriter {
  #chunk: Buffer
  /** chunk[start, at) is written and in no piece yet. */
  #start = 0
  #at = 0
  readonly #pieces: Buffer[] = []
  #pieceBytes = 0
  /** Codes of errors that were written, in their order. */
  readonly errorCodes: number[] = []

  constructor() {
    this.#chunk = Buffer.allocUnsafe(FIRST_CHUNK_BYTES)
  }

  /** Bytes of all that was written. */
  get length(): number {
    return this.#pieceBytes + this.#at - this.#start
  }

  /** Makes room for so many bytes behind #at. */
  #reserve(length: number): void {
    if (length <= this.#chunk.length - this.#at) return
    const kept = this.#at - this.#start
    const chunk = Buffer.allocUnsafe(2 * (kept + length))
    this.#chunk.copy(chunk, 0, this.#start, this.#at)
    this.#chunk = chunk
    this.#start = 0
    this.#at = kept
  }

  writeBool(value: boolean): void {
    this.writeInt8(value ? 1 : 0)
  }

  writeInt8(value: number): void {
    assert(value === (value << 24) >> 24, 'an int8 takes −128 to 127')
    this.#reserve(1)
    this.#chunk[this.#at++] = value
  }

  writeInt16(value: number): void {
    assert(value === (value << 16) >> 16, 'an int16 takes −32768 to 32767')
    this.#reserve(2)
    this.#at = writeU16(this.#chunk, this.#at, value)
  }

  /** An int16 that says whether there was an error: 0 if not. */
  writeErrorCode(value: number): void {
    this.writeInt16(value)
    if (value !== 0) this.errorCodes.push(value)
  }

  writeUint16(value: number): void {
    assert(value === (value & 0xffff), 'a uint16 takes 0 to 65535')
    this.#reserve(2)
    this.#at = writeU16(this.#chunk, this.#at, value)
  }

  writeInt32(value: number): void {
    assert(value === (value | 0), 'an int32 takes −2^31 to 2^31 − 1')
    this.#reserve(4)
    this.#at = writeU32(this.#chunk, this.#at, value)
  }

  writeUint32(value: number): void {
    assert(value === value >>> 0, 'a uint32 takes 0 to 2^32 − 1')
    this.#reserve(4)
    this.#at = writeU32(this.#chunk, this.#at, value)
  }

  writeInt64(value: number): void {
    this.#reserve(8)
    write64(this.#chunk, this.#at, value)
    this.#at += 8
  }

  writeInt64Exact(value: bigint): void {
    this.#reserve(8)
    this.#at = this.#chunk.writeBigInt64BE(value, this.#at)
  }

  writeFloat64(value: number): void {
    this.#reserve(8)
    this.#at = this.#chunk.writeDoubleBE(value, this.#at)
  }

  writeUuid(value: string): void {
    this.#reserve(UUID_BYTES)
    const written = this.#chunk.write(value, this.#at, UUID_BYTES, 'base64url')
    assert(written === UUID_BYTES && value.length === 22, 'a uuid is 22 characters of base64url')
    this.#at += UUID_BYTES
  }

  writeUvarint(value: number): void {
    this.#reserve(5)
    this.#at = writeUvarintAt(this.#chunk, this.#at, value)
  }

  /** @param value null: the caller knows that it may be. */
  writeText(value: string | null, isCompact: boolean): void {
    const length = value === null ? -1 : Buffer.byteLength(value)
    assert(length <= STRING_BYTES_MAX, 'a string takes up to 32767 bytes')
    if (isCompact) this.writeUvarint(length + 1)
    else this.writeInt16(length)
    if (value === null) return
    this.#reserve(length)
    this.#at += this.#chunk.write(value, this.#at, length)
  }

  /** Length of bytes, or count of a list. @param length −1: null. */
  writeLength(length: number, isCompact: boolean): void {
    if (isCompact) this.writeUvarint(length + 1)
    else this.writeInt32(length)
  }

  /** Bytes with their length, copied. */
  writeBytes(value: Buffer | null, isCompact: boolean): void {
    this.writeLength(value === null ? -1 : value.length, isCompact)
    if (value === null) return
    this.#reserve(value.length)
    value.copy(this.#chunk, this.#at)
    this.#at += value.length
  }

  /** Records with their length, as pieces of the message: borrowed until it is sent. */
  writeRecords(value: Buffer | readonly Buffer[] | null, isCompact: boolean): void {
    const parts = value === null ? [] : Buffer.isBuffer(value) ? [value] : value
    const length = parts.reduce((bytes, part) => bytes + part.length, 0)
    this.writeLength(value === null ? -1 : length, isCompact)
    if (length === 0) return
    this.cut()
    for (const part of parts) if (part.length > 0) this.#pieces.push(part)
    this.#pieceBytes += length
  }

  /** Makes a piece of what was written since the last one: it is not moved any more. Not within a tagged field. */
  cut(): void {
    if (this.#at === this.#start) return
    this.#pieces.push(this.#chunk.subarray(this.#start, this.#at))
    this.#pieceBytes += this.#at - this.#start
    this.#start = this.#at
  }

  /** Begins a value that stands behind its size as uvarint. @returns what endSized wants. */
  beginSized(): number {
    // One byte is enough for nearly all sizes.
    this.writeUvarint(0)
    return this.length
  }

  /** Ends it, and writes the size. No records may be within. */
  endSized(begun: number): void {
    const size = this.length - begun
    assert(begun > this.#pieceBytes, 'a tagged field has no records')
    const sizeBytes = uvarintBytes(size)
    this.#reserve(sizeBytes - 1)
    const from = this.#at - size
    this.#chunk.copyWithin(from + sizeBytes - 1, from, this.#at)
    writeUvarintAt(this.#chunk, from - 1, size)
    this.#at += sizeBytes - 1
  }

  /** Ends the message. @returns its pieces in order; they are the caller's. Nothing may be written any more. */
  finish(): Buffer[] {
    this.cut()
    return this.#pieces
  }
}

function uvarintBytes(value: number): number {
  let bytes = 1
  for (let rest = value >>> 7; rest > 0; rest >>>= 7) bytes++
  return bytes
}

function writeUvarintAt(target: Buffer, at: number, value: number): number {
  assert(value === value >>> 0, 'a uvarint takes 0 to 2^32 − 1')
  let rest = value
  while (rest >= 0x80) {
    target[at++] = (rest & 0x7f) | 0x80
    rest >>>= 7
  }
  target[at++] = rest
  return at
}
