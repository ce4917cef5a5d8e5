/**
 * The payload of a produce request (0x01): layout, the listener's decoder, the client's encoder. Pure, any thread.
 *
 *   topic_len u16 · topic, UTF-8 · producer_id_len i32 (negative: none) · producer_id, UTF-8 · count u32 · records
 *   a record:  key_len i32 (negative: no key) · key · value_len u32 · value · partition i32 (negative: route by key)
 *              · sequence i64 (i64::MIN: none)
 *
 * The ring layout of a record (model/requests.ts) is this layout with the partition resolved, so records go to a
 * shard by one copy of the whole region, and only the partitions that were not named are written over.
 */
import { assert } from '../../base/assert.ts'
import { copyBytes } from '../../base/copy.ts'
import type { KeyHash } from '../../base/hash.ts'
import { limits } from '../../model/limits.ts'
import type { RecordSource } from '../../model/requests.ts'
import { RECORD_FIXED_BYTES, RECORD_TAIL_BYTES, SEQUENCE_BYTES } from '../produce/ring-layout.ts'
import { readI32, readU16, readU32, writeU32 } from './bytes.ts'
import { NameReader } from './names.ts'

/** Records whose places are kept. One more than may be produced; beyond it they are only counted. */
const STORED_RECORDS_MAX = limits.requestRecordsMax + 1
/** What a decoder holds between two requests. */
const NO_BYTES: Buffer = Buffer.alloc(0)

/**
 * Walks the records of one payload in place and answers for them as a RecordSource. Re-used for every request.
 * Keeps one number per record, and none before the bytes that would hold that many records have arrived.
 * What it says is valid until the next decode, and only while the caller keeps the payload where it is.
 */
export class ProduceDecoder implements RecordSource {
  readonly hasHeaders = false
  topic = ''
  producerId: string | null = null
  count = 0
  ringBytes = 0
  largestPayloadBytes = 0
  largestPayloadIndex = 0
  /** What is wrong with the payload after decode answered false. */
  problem = ''
  readonly #names = new NameReader()
  #bytes = NO_BYTES
  /** Where record i begins; one entry more marks the end of the last. */
  #starts = new Uint32Array(1024)
  /** Does any record leave its partition open, or write "no key" as another number than −1? Then bytes are patched. */
  #patches = false

  /**
   * @param bytes borrowed until the next decode or release; the payload is bytes[start, end).
   * @returns false if the payload is malformed: `problem` says how. Bytes after the last record are ignored.
   * @cost one pass over the record headers, no allocation once the table is large enough.
   */
  decode(bytes: Buffer, start: number, end: number): boolean {
    this.count = 0
    this.#bytes = bytes
    if (end - start < 2) return this.#fail('the payload ends inside topic_len')
    const topicStart = start + 2
    const topicEnd = topicStart + readU16(bytes, start)
    if (topicEnd > end) return this.#fail('the payload ends inside topic')
    const topic = this.#names.read(bytes, topicStart, topicEnd)
    if (topic === null) return this.#fail('topic is not UTF-8')
    this.topic = topic

    if (end - topicEnd < 4) return this.#fail('the payload ends inside the length of producer_id')
    const producerIdStart = topicEnd + 4
    const producerIdBytes = readI32(bytes, topicEnd)
    if (producerIdBytes > end - producerIdStart) return this.#fail('the payload ends inside producer_id')
    const countStart = producerIdStart + Math.max(0, producerIdBytes)
    const producerId = this.#names.read(bytes, producerIdStart, countStart)
    if (producerId === null) return this.#fail('producer_id is not UTF-8')
    this.producerId = producerIdBytes < 0 ? null : producerId

    if (end - countStart < 4) return this.#fail('the payload ends inside count')
    const count = readU32(bytes, countStart)
    const recordsStart = countStart + 4
    if (count * RECORD_FIXED_BYTES > end - recordsStart) {
      return this.#fail(`count is ${count}, but only ${end - recordsStart} bytes follow`)
    }
    this.#growFor(count)
    return this.#walk(count, recordsStart, end)
  }

  /** Lets go of the payload. */
  release(): void {
    this.#bytes = NO_BYTES
    this.count = 0
  }

  payloadBytesOf(i: number): number {
    return this.ringBytesOf(i) - RECORD_FIXED_BYTES
  }

  partitionOf(i: number): number {
    return Math.max(-1, readI32(this.#bytes, this.#endOf(i) - RECORD_TAIL_BYTES))
  }

  hashKeyOf(i: number, partitionCount: number, hash: KeyHash): number {
    const at = this.#startOf(i)
    const keyBytes = readI32(this.#bytes, at)
    return keyBytes < 0 ? -1 : hash(this.#bytes, at + 4, at + 4 + keyBytes, partitionCount)
  }

  sequenceHighOf(i: number): number {
    return readI32(this.#bytes, this.#endOf(i) - SEQUENCE_BYTES)
  }

  sequenceLowOf(i: number): number {
    return readU32(this.#bytes, this.#endOf(i) - SEQUENCE_BYTES / 2)
  }

  ringBytesOf(i: number): number {
    return this.#endOf(i) - this.#startOf(i)
  }

  writeRecord(i: number, partition: number, target: Buffer, at: number): number {
    const start = this.#startOf(i)
    const end = copyBytes(this.#bytes, start, this.#endOf(i), target, at)
    writeU32(target, end - RECORD_TAIL_BYTES, partition)
    if (readI32(this.#bytes, start) < 0) writeU32(target, at, -1)
    return end
  }

  writeAll(partitions: Uint32Array, target: Buffer, at: number): number {
    if (this.count === 0) return at
    const first = this.#startOf(0)
    const end = copyBytes(this.#bytes, first, this.#endOf(this.count - 1), target, at)
    if (!this.#patches) return end
    const bytes = this.#bytes
    for (let i = 0; i < this.count; i++) {
      const start = this.#starts[i] as number
      const partitionAt = (this.#starts[i + 1] as number) - RECORD_TAIL_BYTES
      if (readI32(bytes, partitionAt) < 0) writeU32(target, at + partitionAt - first, partitions[i] as number)
      if (readI32(bytes, start) < 0) writeU32(target, at + start - first, -1)
    }
    return end
  }

  #startOf(i: number): number {
    assert(i >= 0 && i < this.count && i < STORED_RECORDS_MAX, 'no such record in this request')
    return this.#starts[i] as number
  }

  #endOf(i: number): number {
    assert(i >= 0 && i < this.count && i < STORED_RECORDS_MAX, 'no such record in this request')
    return this.#starts[i + 1] as number
  }

  #growFor(count: number): void {
    const wanted = Math.min(count, STORED_RECORDS_MAX) + 1
    if (wanted <= this.#starts.length) return
    this.#starts = new Uint32Array(Math.min(Math.max(wanted, 2 * this.#starts.length), STORED_RECORDS_MAX + 1))
  }

  #walk(count: number, recordsStart: number, end: number): boolean {
    const bytes = this.#bytes
    const starts = this.#starts
    let at = recordsStart
    let largest = 0
    let largestIndex = 0
    let patches = false
    for (let i = 0; i < count; i++) {
      if (end - at < RECORD_FIXED_BYTES) return this.#fail(`the payload ends inside record ${i}`)
      if (i < STORED_RECORDS_MAX) starts[i] = at
      const keyBytes = readI32(bytes, at)
      let position = at + 4
      if (keyBytes > 0) {
        if (keyBytes > end - position - 4) return this.#fail(`record ${i}: key_len is ${keyBytes}, beyond the payload`)
        position += keyBytes
      }
      const valueBytes = readU32(bytes, position)
      position += 4
      if (valueBytes > end - position - RECORD_TAIL_BYTES) {
        return this.#fail(`record ${i}: value_len is ${valueBytes}, beyond the payload`)
      }
      position += valueBytes
      if ((bytes[position] as number) >= 0x80 || keyBytes < -1) patches = true
      position += RECORD_TAIL_BYTES
      if (position - at > largest) {
        largest = position - at
        largestIndex = i
      }
      at = position
    }
    starts[Math.min(count, STORED_RECORDS_MAX)] = at
    this.count = count
    this.ringBytes = at - recordsStart
    this.largestPayloadBytes = Math.max(0, largest - RECORD_FIXED_BYTES)
    this.largestPayloadIndex = largestIndex
    this.#patches = patches
    return true
  }

  #fail(problem: string): false {
    this.problem = problem
    this.count = 0
    this.ringBytes = 0
    return false
  }
}
