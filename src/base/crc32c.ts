/**
 * CRC32C (Castagnoli), the checksum of RecordBatch v2 and of the journal. Pure, any thread, also over shared memory.
 * Short inputs are computed here by slicing-by-8; longer ones by the native package where it loaded. Both give the same
 * value for every input and every seed; a test compares them.
 */
import { assert } from './assert.ts'
import { nativeCrc32c } from './crc32c-native.ts'

/** The Castagnoli polynomial, bits reversed. */
const POLYNOMIAL = 0x82f63b78

/** From this length on the call into native code (and the view it needs) costs less than the loop here (measured). */
const NATIVE_BYTES_MIN = 192

/** Eight tables of 256: table[k × 256 + b] is the effect of byte b followed by k zero bytes. */
const table = buildTable()

function buildTable(): Int32Array {
  const entries = new Int32Array(8 * 256)
  for (let byte = 0; byte < 256; byte++) {
    let crc = byte
    for (let bit = 0; bit < 8; bit++) crc = (crc & 1) === 1 ? (crc >>> 1) ^ POLYNOMIAL : crc >>> 1
    entries[byte] = crc
  }
  for (let i = 256; i < entries.length; i++) {
    const before = entries[i - 256] as number
    entries[i] = (before >>> 8) ^ (entries[before & 0xff] as number)
  }
  return entries
}

/**
 * CRC32C of bytes[start, end).
 *
 * @param seed the CRC of the bytes before, to continue it; 0 or absent to begin.
 * @returns u32.
 * @cost one small view from 192 B up, unless the range is the whole array; below, and without the package, no allocation.
 */
export function crc32c(bytes: Uint8Array, start: number, end: number, seed = 0): number {
  assert(start >= 0 && start <= end && end <= bytes.length, 'the checksummed range must lie inside its bytes')
  if (nativeCrc32c === null || end - start < NATIVE_BYTES_MIN) return crc32cPlain(bytes, start, end, seed)
  if (start === 0 && end === bytes.length) return nativeCrc32c(bytes, seed)
  return nativeCrc32c(bytes.subarray(start, end), seed)
}

/** The same without native code: what crc32c() does for short ranges, and everywhere if the package did not load. */
export function crc32cPlain(bytes: Uint8Array, start: number, end: number, seed = 0): number {
  let crc = ~seed
  let i = start
  for (const wordsEnd = start + ((end - start) & ~7); i < wordsEnd; i += 8) {
    const first =
      crc ^
      ((bytes[i] as number) |
        ((bytes[i + 1] as number) << 8) |
        ((bytes[i + 2] as number) << 16) |
        ((bytes[i + 3] as number) << 24))
    crc =
      (table[0x700 | (first & 0xff)] as number) ^
      (table[0x600 | ((first >>> 8) & 0xff)] as number) ^
      (table[0x500 | ((first >>> 16) & 0xff)] as number) ^
      (table[0x400 | (first >>> 24)] as number) ^
      (table[0x300 | (bytes[i + 4] as number)] as number) ^
      (table[0x200 | (bytes[i + 5] as number)] as number) ^
      (table[0x100 | (bytes[i + 6] as number)] as number) ^
      (table[bytes[i + 7] as number] as number)
  }
  for (; i < end; i++) crc = (crc >>> 8) ^ (table[(crc ^ (bytes[i] as number)) & 0xff] as number)
  return ~crc >>> 0
}
