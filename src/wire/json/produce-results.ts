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

/** True if the result at source[at] is of the same partition as the one before it, and of the next offset; neither is a duplicate. */
function isNext(source: DataView, at: number): boolean {
  const before = at - RESULT_BYTES
  const low = source.getUint32(at + 8)
  return (
    low !== 0 &&
    low - 1 === source.getUint32(before + 8) &&
    source.getUint32(at + 4) === source.getUint32(before + 4) &&
    source.getUint32(at) === source.getUint32(before) &&
    source.getUint8(at + 12) === 0 &&
    source.getUint8(before + 12) === 0
  )
}

/**
 * Writes the text target[from, end) of a result again, with the next offset.
 * @returns the position after it, or `to` if the offset has a digit more: nothing is written then.
 */
function writeNext(target: Buffer, from: number, end: number, to: number): number {
  const shift = to - from
  let digit = end - 2
  while (target[digit] === 0x39) digit--
  if ((target[digit] as number) < 0x30 || (target[digit] as number) > 0x39) return to
  for (let i = from; i < digit; i++) target[i + shift] = target[i] as number
  target[digit + shift] = (target[digit] as number) + 1
  for (let i = digit + 1; i < end - 1; i++) target[i + shift] = 0x30
  target[end - 1 + shift] = 0x7d
  return end + shift
}

function writeResult(source: DataView, at: number, target: Buffer, position: number): number {
  let to = writeWord(PARTITION, target, position)
  to = writeDecimal(target, to, 0, source.getUint32(at))
  to = writeWord(OFFSET, target, to)
  to = writeDecimal(target, to, source.getUint32(at + 4), source.getUint32(at + 8))
  if (source.getUint8(at + 12) !== 0) to = writeWord(DUPLICATE, target, to)
  target[to] = 0x7d
  return to + 1
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
    const results = new DataView(source.buffer, source.byteOffset + start, count * RESULT_BYTES)
    let to = writeWord(OPEN, target, 0)
    let last = 0
    let lastEnd = 0
    for (let i = 0; i < count; i++) {
      const at = i * RESULT_BYTES
      if (i > 0) target[to++] = 0x2c
      const from = to
      if (i > 0 && isNext(results, at)) to = writeNext(target, last, lastEnd, to)
      if (to === from) to = writeResult(results, at, target, to)
      last = from
      lastEnd = to
    }
    to = writeWord(CLOSE, target, to)
    return target.subarray(0, to)
  }
}
