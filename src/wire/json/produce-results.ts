/**
 * The JSON answer of a produce, from the thirteen-byte results of the rings. Main thread; no object per record.
 * One instance owns one scratch buffer, which grows to the largest answer seen and is overwritten by the next.
 */
import { RESULT_BYTES } from '../../model/requests.ts'
import { U64_DIGITS, writeDecimal } from './decimal.ts'

const OPEN = Buffer.from('{"results":[')
const PARTITION = Buffer.from('{"partition":')
const OFFSET = Buffer.from(',"offset":')
const DUPLICATE = Buffer.from(',"duplicate":true')
const CLOSE = Buffer.from(']}')

/** One result at its longest: the words, a u32, a u64, and `},`. */
const RESULT_TEXT_BYTES_MAX = PARTITION.length + 10 + OFFSET.length + U64_DIGITS + DUPLICATE.length + 2

function writeWord(word: Buffer, target: Buffer, at: number): number {
  const length = word.length
  for (let i = 0; i < length; i++) target[at + i] = word[i] as number
  return at + length
}

export class ProduceResultsWriter {
  #scratch = Buffer.alloc(64 * 1024)

  /**
   * `{"results":[{"partition":0,"offset":0},…]}`; `"duplicate":true` only where it is.
   *
   * @param source results at source[start, start + RESULT_BYTES × count), borrowed until return.
   * @returns a view of the scratch: valid until the next call.
   */
  write(source: Buffer, start: number, count: number): Buffer {
    const bytesMax = OPEN.length + count * RESULT_TEXT_BYTES_MAX + CLOSE.length
    if (this.#scratch.length < bytesMax) this.#scratch = Buffer.alloc(bytesMax)
    const target = this.#scratch
    let to = writeWord(OPEN, target, 0)
    for (let i = 0; i < count; i++) {
      const at = start + i * RESULT_BYTES
      if (i > 0) target[to++] = 0x2c
      to = writeWord(PARTITION, target, to)
      to = writeDecimal(target, to, 0, source.readUInt32BE(at))
      to = writeWord(OFFSET, target, to)
      to = writeDecimal(target, to, source.readUInt32BE(at + 4), source.readUInt32BE(at + 8))
      if (source[at + 12] !== 0) to = writeWord(DUPLICATE, target, to)
      target[to++] = 0x7d
    }
    to = writeWord(CLOSE, target, to)
    return target.subarray(0, to)
  }
}
