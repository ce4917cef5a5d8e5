/**
 * Records that another thread has decoded, as a RecordSource. Packed there, moved to the main thread, read there, freed.
 *
 *   memory   table: u32 × (count + 1), this machine's byte order  │  records in ring layout, one behind the other
 *            bits 0–30 where record i begins in this memory       │  (model/requests.ts); partition as named, else −1
 *            bit 31    record i names its partition               │
 *            the last entry is the end of the last record
 *
 * Records go to a shard by one copy of the whole region; only partitions that were not named are written over.
 */
import { assert } from '../base/assert.ts'
import { copyBytes } from '../base/copy.ts'
import type { KeyHash } from '../base/hash.ts'
import { limits } from '../model/limits.ts'
import type { RecordSource } from '../model/requests.ts'
import { readI32, readU32, writeU32 } from '../wire/es01/bytes.ts'
import {
  HEADERS_LENGTH_BYTES,
  RECORD_FIXED_BYTES,
  RECORD_TAIL_BYTES,
  headerPayloadBytes
} from '../wire/produce/ring-layout.ts'
import { freeMemory } from '../base/free-memory.ts'

/** What a record costs in the table. */
export const TABLE_ENTRY_BYTES = 4

/** Of the sequence, behind the partition. */
const SEQUENCE_AT = 4
const NAMES_PARTITION = 0x8000_0000
const START_MASK = 0x7fff_ffff
const NO_PARTITION = 0xffff_ffff

/** What packRecords made, with the counts of the scan. Moves to another thread as it is. */
export interface ScannedProduce {
  readonly kind: 'scanned'
  readonly producerId: string | null
  /** null: more records than a request may have. They were counted, and whoever looks at the count refuses them. */
  readonly memory: ArrayBuffer | null
  readonly count: number
  readonly hasHeaders: boolean
  readonly ringBytes: number
  readonly largestPayloadBytes: number
  readonly largestPayloadIndex: number
}

/** Decodes the records of a source into memory of their own. @cost one copy of each key and value. */
export function packRecords(source: RecordSource): ScannedProduce {
  const { producerId, count, hasHeaders, ringBytes, largestPayloadBytes, largestPayloadIndex } = source
  const largest = { largestPayloadBytes, largestPayloadIndex }
  const counts = { kind: 'scanned', producerId, count, hasHeaders, ringBytes, ...largest } as const
  if (count > limits.requestRecordsMax) return { ...counts, memory: null }
  const tableBytes = (count + 1) * TABLE_ENTRY_BYTES
  assert(tableBytes + ringBytes <= START_MASK, 'positions of records have 31 bits')
  const { buffer: memory } = Buffer.allocUnsafeSlow(tableBytes + ringBytes)
  const table = new Uint32Array(memory, 0, count + 1)
  const bytes = Buffer.from(memory)
  let at = tableBytes
  for (let i = 0; i < count; i++) {
    const partition = source.partitionOf(i)
    table[i] = partition < 0 ? at : at | NAMES_PARTITION
    at = source.writeRecord(i, partition < 0 ? NO_PARTITION : partition, bytes, at)
  }
  table[count] = at
  assert(at === bytes.length, 'records take the room they said')
  return { ...counts, memory }
}

const EMPTY = Buffer.alloc(0)

export class ScannedRecords implements RecordSource {
  readonly hasHeaders: boolean
  readonly producerId: string | null
  readonly count: number
  readonly ringBytes: number
  readonly largestPayloadBytes: number
  readonly largestPayloadIndex: number
  /** Of the memory that holds them. */
  readonly heldBytes: number
  readonly #memory: ArrayBuffer | null
  readonly #table: Uint32Array
  readonly #bytes: Buffer

  constructor(scanned: ScannedProduce) {
    const { memory, count, ringBytes } = scanned
    this.producerId = scanned.producerId
    this.count = count
    this.hasHeaders = scanned.hasHeaders
    this.ringBytes = ringBytes
    this.largestPayloadBytes = scanned.largestPayloadBytes
    this.largestPayloadIndex = scanned.largestPayloadIndex
    this.#memory = memory
    this.heldBytes = memory?.byteLength ?? 0
    const tableBytes = (count + 1) * TABLE_ENTRY_BYTES
    assert(memory === null || memory.byteLength === tableBytes + ringBytes, 'records lie behind their table')
    this.#table = memory === null ? new Uint32Array(0) : new Uint32Array(memory, 0, count + 1)
    this.#bytes = memory === null ? EMPTY : Buffer.from(memory)
  }

  /** Gives the memory back; nothing may be asked of the records any more. */
  free(): void {
    if (this.#memory !== null) freeMemory(this.#memory)
  }

  payloadBytesOf(i: number): number {
    const bytes = this.ringBytesOf(i) - RECORD_FIXED_BYTES
    if (!this.hasHeaders) return bytes
    const headersLength = readU32(this.#bytes, this.#tailOf(i) + RECORD_TAIL_BYTES)
    return bytes - HEADERS_LENGTH_BYTES - headersLength + headerPayloadBytes(headersLength)
  }

  /** A view of the value of record i. */
  valueOf(i: number): Uint8Array {
    const valueAt = this.#valueAt(i)
    return this.#bytes.subarray(valueAt + 4, valueAt + 4 + readU32(this.#bytes, valueAt))
  }

  partitionOf(i: number): number {
    return this.#namesPartition(i) ? readU32(this.#bytes, this.#tailOf(i)) : -1
  }

  hashKeyOf(i: number, partitionCount: number, hash: KeyHash): number {
    const start = this.#startOf(i)
    const keyBytes = readI32(this.#bytes, start)
    return keyBytes < 0 ? -1 : hash(this.#bytes, start + 4, start + 4 + keyBytes, partitionCount)
  }

  ringBytesOf(i: number): number {
    return this.#startOf(i + 1) - this.#startOf(i)
  }

  sequenceHighOf(i: number): number {
    return readI32(this.#bytes, this.#tailOf(i) + SEQUENCE_AT)
  }

  sequenceLowOf(i: number): number {
    return readU32(this.#bytes, this.#tailOf(i) + SEQUENCE_AT + 4)
  }

  writeRecord(i: number, partition: number, target: Buffer, at: number): number {
    const start = this.#startOf(i)
    const end = copyBytes(this.#bytes, start, this.#startOf(i + 1), target, at)
    writeU32(target, at + this.#tailOf(i) - start, partition)
    return end
  }

  writeAll(partitions: Uint32Array, target: Buffer, at: number): number {
    if (this.count === 0) return at
    const first = this.#startOf(0)
    const end = copyBytes(this.#bytes, first, this.#startOf(this.count), target, at)
    for (let i = 0; i < this.count; i++) {
      if (this.#namesPartition(i)) continue
      writeU32(target, at + this.#tailOf(i) - first, partitions[i] as number)
    }
    return end
  }

  #namesPartition(i: number): boolean {
    assert(i >= 0 && i + 1 < this.#table.length, 'no such record in this request')
    return (this.#table[i] as number) >= NAMES_PARTITION
  }

  /** Where partition and sequence of record i are: at its end, but for headers. */
  #tailOf(i: number): number {
    if (!this.hasHeaders) return this.#startOf(i + 1) - RECORD_TAIL_BYTES
    const valueAt = this.#valueAt(i)
    return valueAt + 4 + readU32(this.#bytes, valueAt)
  }

  /** Where the length of the value of record i is. */
  #valueAt(i: number): number {
    const start = this.#startOf(i)
    return start + 4 + Math.max(0, readI32(this.#bytes, start))
  }

  /** Where record i begins; for i = count, where the last one ends. */
  #startOf(i: number): number {
    assert(i >= 0 && i < this.#table.length, 'no such record in this request')
    return (this.#table[i] as number) & START_MASK
  }
}
