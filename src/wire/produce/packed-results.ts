/**
 * The MessagePack answer of a produce: the same fields as in JSON (wire/json/produce-results.ts). Main thread; no object per
 * record. One instance owns one scratch buffer, which grows to the largest answer seen and is overwritten by the next.
 */
import { RESULT_BYTES } from '../../model/requests.ts'
import {
  MARK_BYTES_MAX,
  MSGPACK_ARRAY_32,
  MSGPACK_MAP,
  MSGPACK_UINT_64,
  writeMsgpackInt,
  writeMsgpackStr
} from '../primitives/msgpack-marks.ts'
import { writeU32 } from '../primitives/u64.ts'

const TRUE = 0xc3

/** A short text with its head. */
function word(text: string): Buffer {
  const bytes = Buffer.alloc(MARK_BYTES_MAX + text.length)
  const at = writeMsgpackStr(bytes, 0, text.length)
  return bytes.subarray(0, at + bytes.write(text, at))
}

const RESULTS = Buffer.concat([Buffer.from([MSGPACK_MAP | 1]), word('results'), Buffer.from([MSGPACK_ARRAY_32])])
const PARTITION = word('partition')
const OFFSET = word('offset')
const DUPLICATE = Buffer.concat([word('duplicate'), Buffer.from([TRUE])])

const RESULT_PACK_BYTES_MAX = 1 + PARTITION.length + OFFSET.length + 2 * MARK_BYTES_MAX + DUPLICATE.length

function writeWord(bytes: Buffer, target: Buffer, at: number): number {
  const { length } = bytes
  for (let i = 0; i < length; i++) target[at + i] = bytes[i] as number
  return at + length
}

/** Writes an unsigned number of 64 bits, given in halves. @returns the position after it. */
function writeU64(target: Buffer, at: number, high: number, low: number): number {
  if (high === 0) return writeMsgpackInt(target, at, low)
  target[at] = MSGPACK_UINT_64
  return writeU32(target, writeU32(target, at + 1, high), low)
}

export class PackedResultsWriter {
  #scratch = Buffer.alloc(4 * 1024)

  /**
   * `{results: [{partition, offset}, …]}`; `duplicate: true` only where it is.
   *
   * @param source results at source[start, start + RESULT_BYTES × count), borrowed until return.
   * @returns a view of the scratch: valid until the next call.
   */
  write(source: Buffer, start: number, count: number): Buffer {
    const bytesMax = RESULTS.length + 4 + count * RESULT_PACK_BYTES_MAX
    if (this.#scratch.length < bytesMax) this.#scratch = Buffer.alloc(bytesMax)
    const target = this.#scratch
    let to = writeWord(RESULTS, target, 0)
    writeU32(target, to, count)
    to += 4
    for (let i = 0; i < count; i++) {
      const at = start + i * RESULT_BYTES
      const isDuplicate = source[at + 12] !== 0
      target[to++] = MSGPACK_MAP | (isDuplicate ? 3 : 2)
      to = writeWord(PARTITION, target, to)
      to = writeU64(target, to, 0, source.readUInt32BE(at))
      to = writeWord(OFFSET, target, to)
      to = writeU64(target, to, source.readUInt32BE(at + 4), source.readUInt32BE(at + 8))
      if (isDuplicate) to = writeWord(DUPLICATE, target, to)
    }
    return target.subarray(0, to)
  }
}
