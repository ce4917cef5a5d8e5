/**
 * The answer of a read as frames: the JSON text of each record by itself, for who sends records on one by one. The shard
 * encodes it, main takes it apart here. Pure; main thread; big-endian.
 *
 *    0  u64  next_offset
 *    8  u64  high_watermark
 *   16  u32  count of records
 *   20  u32  flags: 1, `skipped` follows
 *   24       skipped, only then: requested u64 · earliest u64 · latest u64
 *   then, for each record: offset u64 · text length u32 · text
 *
 * The text is the record as it stands in a JSON answer, UTF-8 without any line break.
 */
import { assert } from '../../base/assert.ts'
import { readU32, readU64 } from '../primitives/u64.ts'

export const FRAMES_HEAD_BYTES = 24
export const FRAMES_SKIPPED_BYTES = 24
/** Of a record, before its text. */
export const FRAME_HEAD_BYTES = 12
export const FRAMES_SKIPPED = 1

/** What a read passed over: it was asked for `requested`, and `earliest` is where it went on. */
export interface Skipped {
  readonly requested: number
  readonly earliest: number
  /** The high watermark. */
  readonly latest: number
}

/** Puts an answer that came in several chunks together. One answer at a time. */
export class FramesGather {
  #gathered: Buffer | null = null
  #length = 0

  /**
   * Takes what ReadCaller.onReadChunk is given.
   * @returns the whole answer, with the last chunk: that chunk itself if it is the only one, borrowed as it is; else a
   *   buffer that is the caller's. null: more is to come.
   */
  add(bytes: Buffer, start: number, end: number, totalBytes: number): Buffer | null {
    if (this.#gathered === null && end - start === totalBytes) return bytes.subarray(start, end)
    this.#gathered ??= Buffer.allocUnsafe(totalBytes)
    assert(this.#length + end - start <= this.#gathered.length, 'chunks are no longer than the answer they are of')
    this.#length += bytes.copy(this.#gathered, this.#length, start, end)
    if (this.#length < this.#gathered.length) return null
    const whole = this.#gathered
    this.clear()
    return whole
  }

  /** Forgets an answer that broke off. */
  clear(): void {
    this.#gathered = null
    this.#length = 0
  }
}

/** Steps through the records of a whole answer, which is borrowed until the last next(). Used again and again. */
export class RecordFrames {
  /** Where the next read goes on: a u64, because an offset beyond the end is kept as it was asked for. */
  nextOffset = 0n
  highWatermark = 0
  count = 0
  /** null: nothing was passed over. */
  skipped: Skipped | null = null
  /** Of the record that next() stepped to. */
  offset = 0
  /** Its text: bytes[textStart, textEnd). */
  textStart = 0
  textEnd = 0
  bytes: Buffer = Buffer.alloc(0)
  #at = 0
  #left = 0

  /** Begins before the first record. */
  open(answer: Buffer): void {
    assert(answer.length >= FRAMES_HEAD_BYTES, 'an answer in frames has a head')
    this.bytes = answer
    this.nextOffset = answer.readBigUInt64BE(0)
    this.highWatermark = readU64(answer, 8)
    this.count = readU32(answer, 16)
    this.skipped = null
    this.#at = FRAMES_HEAD_BYTES
    this.#left = this.count
    if ((readU32(answer, 20) & FRAMES_SKIPPED) === 0) return
    this.#at += FRAMES_SKIPPED_BYTES
    assert(answer.length >= this.#at, 'an answer in frames has what its flags say')
    this.skipped = { requested: readU64(answer, 24), earliest: readU64(answer, 32), latest: readU64(answer, 40) }
  }

  /** @returns true: offset and text are those of one more record. False: there are no more. */
  next(): boolean {
    if (this.#left === 0) {
      assert(this.#at === this.bytes.length, 'an answer in frames ends with its last record')
      return false
    }
    this.#left--
    assert(this.#at + FRAME_HEAD_BYTES <= this.bytes.length, 'an answer in frames has as many records as it says')
    this.offset = readU64(this.bytes, this.#at)
    this.textStart = this.#at + FRAME_HEAD_BYTES
    this.textEnd = this.textStart + readU32(this.bytes, this.#at + 8)
    assert(this.textEnd <= this.bytes.length, 'the text of a record lies inside its answer')
    this.#at = this.textEnd
    return true
  }
}
