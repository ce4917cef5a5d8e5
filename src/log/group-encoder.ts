/**
 * Gathers the records of many requests into one group, sorted by partition, and encodes them where they will be
 * written from: one copy of each record, ring to batch. Hot; shard thread only.
 *
 * Order of use: gather (any number) → encode → seal → [write, sync] → commit or rollback → reset. From encode on the next
 * group may be gathered by another encoder, on the same logs.
 * Offsets are given while gathering: the order of arrival is the order of the partition. A duplicate is gathered with the
 * offset of its original, and nothing of it is written.
 *
 *   logs[0] ─▶ batch ─▶ batch ─▶ …        one chain of batches for each partition of the group
 *                │
 *                ▼ record ─▶ record ─▶ …   one chain of records for each batch
 */
import { assert } from '../base/assert.ts'
import { crc32c } from '../base/crc32c.ts'
import { grownFloat64, grownInt32, grownUint16, grownUint32, grownUint8 } from '../base/grow.ts'
import { limits } from '../model/limits.ts'
import { RESULT_BYTES } from '../model/requests.ts'
import {
  BATCH_HEADER_BYTES,
  recordBodyBytes,
  recordBytes,
  sealBatch,
  writeRecord,
  writeRecordWithHeaders
} from '../wire/batch/encode.ts'
import { NO_HEADERS_BYTES, RECORD_TAIL_BYTES, headerPayloadBytes } from '../wire/produce/ring-layout.ts'
import { EncodedRuns } from './encoded-runs.ts'
import {
  BATCH_COVERED_BY_RUN,
  DirectoryEntry,
  ENTRY_BYTES,
  GROUP_HEADER_BYTES,
  PRODUCER_RUN_BYTES,
  RUN_ROLLS,
  groupBytes,
  sealGroup,
  writeEntry,
  type GroupPlace
} from './group-format.ts'
import { GroupProducers } from './group-producers.ts'
import { GroupSources } from './group-sources.ts'
import type { TopicLogs } from './log-table.ts'
import { STAGED_NUMBERS, type PartitionLog } from './partition-log.ts'
import { NEW_RECORD, type RequestSequences } from './request-sequences.ts'
import type { RingRecords } from './ring-records.ts'
import { TWO_32 } from '../wire/primitives/u64.ts'

const NONE = -1
const IS_DUPLICATE = 1
const HAS_HEADERS = 2
const FIRST_RECORDS = 4096
const FIRST_BATCHES = 256

export class GroupEncoder {
  readonly #sources = new GroupSources()
  readonly #logs: PartitionLog[] = []
  /** Those of the group; emptied by reset(). */
  readonly logs: readonly PartitionLog[] = this.#logs
  readonly #entry = new DirectoryEntry()

  #recordSource = new Uint16Array(FIRST_RECORDS)
  #recordAt = new Uint32Array(FIRST_RECORDS)
  #recordNext = new Int32Array(FIRST_RECORDS)
  #recordPartition = new Uint32Array(FIRST_RECORDS)
  #recordOffset = new Float64Array(FIRST_RECORDS)
  /** IS_DUPLICATE, HAS_HEADERS. */
  #recordFlags = new Uint8Array(FIRST_RECORDS)
  /** Gathered, duplicates included. */
  recordCount = 0
  duplicateCount = 0
  readonly #producers = new GroupProducers()
  #batchRecords = new Uint32Array(FIRST_BATCHES)
  #batchHead = new Int32Array(FIRST_BATCHES)
  #batchTail = new Int32Array(FIRST_BATCHES)
  #batchNext = new Int32Array(FIRST_BATCHES)
  #batchBytes = new Uint32Array(FIRST_BATCHES)
  #batchBase = new Float64Array(FIRST_BATCHES)
  #batchRolls = new Uint8Array(FIRST_BATCHES)
  batchCount = 0
  #firstBatch = new Int32Array(FIRST_BATCHES)
  #lastBatch = new Int32Array(FIRST_BATCHES)
  #runCount = 0
  #bodyBytes = 0
  /** key, value and header bytes gathered. */
  payloadBytes = 0

  readonly #encoded = new EncodedRuns()
  /** Receive time of the encoded group; −1: not encoded yet. */
  receiveMs = NONE
  /** Captured state of each log of the encoded group. */
  #states = new Float64Array(FIRST_BATCHES * STAGED_NUMBERS)

  get bodyBytes(): number {
    return this.#bodyBytes
  }

  get directoryBytes(): number {
    return this.#runCount * ENTRY_BYTES + this.#producers.count * PRODUCER_RUN_BYTES
  }

  get producerRunCount(): number {
    return this.#producers.count
  }

  get totalBytes(): number {
    return groupBytes(this.directoryBytes, this.#bodyBytes)
  }

  /**
   * Takes the records of a request; they must stay where they are until encode.
   * The main thread checked their form, and every partition is below topic.partitionCount.
   * @param sequences just checked for these very records; absent: they have none.
   * @returns the index of the first of them; their results are asked for by index.
   */
  gather(topic: TopicLogs, records: RingRecords, sequences?: RequestSequences): number {
    const { source, hasHeaders, count } = records
    const first = this.recordCount
    if (first + count > this.#recordAt.length) this.#growRecords(first + count)
    const sourceIndex = this.#sources.indexOf(source)
    const view = this.#sources.view(sourceIndex)
    const flags = hasHeaders ? HAS_HEADERS : 0
    let position = records.at
    for (let record = first; record < first + count; record++) {
      const keyLength = view.getInt32(position)
      const valueAt = position + 4 + (keyLength > 0 ? keyLength : 0)
      const valueLength = view.getUint32(valueAt)
      const tail = valueAt + 4 + valueLength
      const partition = view.getUint32(tail)
      assert(partition < topic.partitionCount, 'main checked the partition')
      this.#recordSource[record] = sourceIndex
      this.#recordAt[record] = position
      this.#recordNext[record] = NONE
      this.#recordPartition[record] = partition
      this.#recordFlags[record] = flags
      position = tail + RECORD_TAIL_BYTES
      let headersLength = NO_HEADERS_BYTES
      if (hasHeaders) {
        headersLength = view.getUint32(position)
        position += 4 + headersLength
      }
      const original = sequences === undefined ? NEW_RECORD : (sequences.offsets[record - first] as number)
      if (original !== NEW_RECORD) {
        this.#recordFlags[record] = flags | IS_DUPLICATE
        this.#recordOffset[record] = original
        this.duplicateCount++
        continue
      }
      const log = topic.logs[partition] ?? topic.log(partition)
      this.payloadBytes += valueLength + (keyLength > 0 ? keyLength : 0) + headerPayloadBytes(headersLength)
      this.#place(log, record, recordBodyBytes(keyLength, valueLength, headersLength))
      if (sequences === undefined) continue
      const batch = this.#lastBatch[log.groupPlace] as number
      const beginsEntry = this.#batchRolls[batch] === 1 && this.#batchRecords[batch] === 1
      this.#producers.accept(log, sequences.producer, view.getInt32(tail + 4), view.getUint32(tail + 8), beginsEntry)
    }
    assert(position === records.end, 'records end where their request says')
    this.recordCount = first + count
    return first
  }

  /** Puts a record into the open batch of its log, or into a new one. */
  #place(log: PartitionLog, record: number, bodyBytes: number): void {
    if (log.groupPlace === NONE) this.#join(log)
    const place = log.groupPlace
    let batch = this.#lastBatch[place] as number
    let bytes = 0
    if (batch !== NONE) {
      bytes = recordBytes(this.#batchRecords[batch] as number, bodyBytes)
      if ((this.#batchBytes[batch] as number) + bytes > limits.batchBytesTarget || log.mustRoll(bytes)) batch = NONE
    }
    if (batch === NONE) {
      bytes = recordBytes(0, bodyBytes)
      batch = this.#openBatch(log, place, bytes)
      bytes += BATCH_HEADER_BYTES
    }
    const tail = this.#batchTail[batch] as number
    if (tail === NONE) this.#batchHead[batch] = record
    else this.#recordNext[tail] = record
    this.#batchTail[batch] = record
    this.#batchRecords[batch] = (this.#batchRecords[batch] as number) + 1
    this.#batchBytes[batch] = (this.#batchBytes[batch] as number) + bytes
    this.#bodyBytes += bytes
    this.#recordOffset[record] = log.nextOffset
    log.nextOffset++
    log.stageBytes(bytes)
  }

  #join(log: PartitionLog): void {
    const place = this.#logs.length
    if (place === this.#firstBatch.length) {
      this.#firstBatch = grownInt32(this.#firstBatch, place * 2)
      this.#lastBatch = grownInt32(this.#lastBatch, place * 2)
    }
    log.groupPlace = place
    this.#logs.push(log)
    this.#firstBatch[place] = NONE
    this.#lastBatch[place] = NONE
    this.#runCount++
  }

  #openBatch(log: PartitionLog, place: number, firstRecordBytes: number): number {
    const batch = this.batchCount++
    if (batch === this.#batchHead.length) this.#growBatches()
    const rolls = log.mustRoll(BATCH_HEADER_BYTES + firstRecordBytes)
    const previous = this.#lastBatch[place] as number
    if (rolls) {
      log.stageRoll()
      if (previous !== NONE) this.#runCount++
    }
    if (previous === NONE) this.#firstBatch[place] = batch
    else this.#batchNext[previous] = batch
    this.#lastBatch[place] = batch
    this.#batchNext[batch] = NONE
    this.#batchHead[batch] = NONE
    this.#batchTail[batch] = NONE
    this.#batchRecords[batch] = 0
    // The header's bytes come with the first record's.
    this.#batchBytes[batch] = 0
    this.#batchBase[batch] = log.nextOffset
    this.#batchRolls[batch] = rolls ? 1 : 0
    return batch
  }

  /**
   * Encodes directory and bodies at target[at…], room for totalBytes of it. After this the sources are no longer needed,
   * and the logs may take records of the next group.
   */
  encode(target: Buffer, at: number, receiveMs: number, seed: number): void {
    let directoryAt = at + GROUP_HEADER_BYTES
    const bodyAt = directoryAt + this.directoryBytes
    let position = bodyAt
    this.receiveMs = receiveMs
    this.#encoded.begin(this.#runCount)
    if (this.#states.length < this.#logs.length * STAGED_NUMBERS) {
      this.#states = new Float64Array(this.#firstBatch.length * STAGED_NUMBERS)
    }
    for (let i = 0; i < this.#logs.length; i++) {
      let batch = this.#firstBatch[i] as number
      while (batch !== NONE) {
        batch = this.#encodeRun(i, batch, target, position, seed)
        this.#entry.position = position - at
        directoryAt = writeEntry(target, directoryAt, this.#entry)
        this.#encoded.add(i, this.#entry.baseOffset, position - at, this.#entry.bytes)
        position += this.#entry.bytes
      }
    }
    assert(directoryAt === bodyAt && position === bodyAt + this.#bodyBytes, 'a group encodes to what was planned')
    this.#leaveLogs()
  }

  /** The logs may be gathered into by another encoder from here on. */
  #leaveLogs(): void {
    for (let i = 0; i < this.#logs.length; i++) {
      const log = this.#logs[i] as PartitionLog
      assert(log.encodedEnd === log.nextOffset, 'every offset that was given lies in a run')
      log.capture(this.#states, i * STAGED_NUMBERS, this.receiveMs)
      log.groupPlace = NONE
    }
    this.#sources.clear()
  }

  /** Completes the encoded group: what its header says is known only when it is about to be written. */
  seal(target: Buffer, at: number, place: GroupPlace): void {
    const header = {
      number: place.number,
      lastSynced: place.lastSynced,
      totalBytes: this.totalBytes,
      directoryBytes: this.directoryBytes,
      bodyBytes: this.#bodyBytes,
      entryCount: this.#runCount,
      receiveMs: this.receiveMs,
      slotSequence: place.slotSequence
    }
    sealGroup(target, at, header, place.seed)
  }

  /** Encodes batches of one log up to the next roll, fills the entry. @returns the batch that begins the next run, or NONE. */
  #encodeRun(logIndex: number, firstBatch: number, target: Buffer, at: number, seed: number): number {
    const log = this.#logs[logIndex] as PartitionLog
    const entry = this.#entry
    entry.flags = this.#batchRolls[firstBatch] === 1 ? RUN_ROLLS : 0
    entry.handle = log.handle
    entry.baseOffset = this.#batchBase[firstBatch] as number
    entry.receiveMs = this.receiveMs
    entry.leaderEpoch = log.leaderEpoch
    entry.batchCount = 0
    entry.recordCount = 0
    let checksum = seed
    let position = at
    let batch = firstBatch
    do {
      const count = this.#batchRecords[batch] as number
      const end = this.#encodeBatch(batch, target, position)
      assert(end - position === this.#batchBytes[batch], 'a batch encodes to what was planned')
      sealBatch(target, position, end, {
        baseOffset: this.#batchBase[batch] as number,
        leaderEpoch: log.leaderEpoch,
        timestampMs: this.receiveMs,
        recordCount: count
      })
      checksum = crc32c(target, position, position + BATCH_COVERED_BY_RUN, checksum)
      entry.batchCount++
      entry.recordCount += count
      position = end
      batch = this.#batchNext[batch] as number
    } while (batch !== NONE && this.#batchRolls[batch] !== 1)
    entry.nextOffset = entry.baseOffset + entry.recordCount
    assert(entry.baseOffset === log.encodedEnd, 'a run begins where the one before it ends')
    log.encodedEnd = entry.nextOffset
    entry.bytes = position - at
    entry.checksum = checksum
    entry.producers = this.#producers.take(logIndex, entry.nextOffset)
    return batch
  }

  #encodeBatch(batch: number, target: Buffer, at: number): number {
    const { buffers } = this.#sources
    let position = at + BATCH_HEADER_BYTES
    let record = this.#batchHead[batch] as number
    let delta = 0
    while (record !== NONE) {
      const source = buffers[this.#recordSource[record] as number] as Buffer
      const sourceAt = this.#recordAt[record] as number
      if (((this.#recordFlags[record] as number) & HAS_HEADERS) === 0)
        position = writeRecord(target, position, delta++, source, sourceAt)
      else position = writeRecordWithHeaders(target, position, delta++, source, sourceAt)
      record = this.#recordNext[record] as number
    }
    return position
  }

  /**
   * The group is durable: its runs are indexed and readable.
   * @param slot ordinal, @param groupPosition in the slot, @param memoryPlace of the group in the encode buffer or −1.
   */
  commit(slot: number, groupPosition: number, memoryPlace: number): void {
    this.#encoded.index(this.#logs, slot, groupPosition, memoryPlace)
    for (let i = 0; i < this.#logs.length; i++) (this.#logs[i] as PartitionLog).commit(this.#states, i * STAGED_NUMBERS)
  }

  /** The group was not written: offsets and sizes go back, those of a group gathered after it too. */
  rollback(): void {
    for (let i = 0; i < this.#logs.length; i++) (this.#logs[i] as PartitionLog).rollback()
  }

  /** Writes the results of `count` records from index `first`, in order. @returns the position after them. */
  writeResults(first: number, count: number, target: Buffer, at: number): number {
    const view = new DataView(target.buffer, target.byteOffset, target.length)
    let position = at
    for (let record = first; record < first + count; record++) {
      const offset = this.#recordOffset[record] as number
      const high = Math.floor(offset / TWO_32)
      view.setUint32(position, this.#recordPartition[record] as number)
      view.setUint32(position + 4, high)
      view.setUint32(position + 8, offset - high * TWO_32)
      view.setUint8(position + 12, (this.#recordFlags[record] as number) & IS_DUPLICATE)
      position += RESULT_BYTES
    }
    return position
  }

  /** Ready for the next group. Call after commit or rollback, and after the results were written. */
  reset(): void {
    // An encoded group has left its logs already: their marks may be another encoder's.
    if (this.receiveMs === NONE)
      for (let i = 0; i < this.#logs.length; i++) (this.#logs[i] as PartitionLog).groupPlace = NONE
    this.receiveMs = NONE
    this.#logs.length = 0
    this.#sources.clear()
    this.recordCount = 0
    this.batchCount = 0
    this.#runCount = 0
    this.#bodyBytes = 0
    this.payloadBytes = 0
    this.duplicateCount = 0
    this.#producers.reset()
  }

  #growRecords(needed: number): void {
    const capacity = Math.max(needed, this.#recordAt.length * 2)
    this.#recordSource = grownUint16(this.#recordSource, capacity)
    this.#recordAt = grownUint32(this.#recordAt, capacity)
    this.#recordNext = grownInt32(this.#recordNext, capacity)
    this.#recordPartition = grownUint32(this.#recordPartition, capacity)
    this.#recordOffset = grownFloat64(this.#recordOffset, capacity)
    this.#recordFlags = grownUint8(this.#recordFlags, capacity)
  }

  #growBatches(): void {
    const capacity = this.#batchHead.length * 2
    this.#batchRecords = grownUint32(this.#batchRecords, capacity)
    this.#batchHead = grownInt32(this.#batchHead, capacity)
    this.#batchTail = grownInt32(this.#batchTail, capacity)
    this.#batchNext = grownInt32(this.#batchNext, capacity)
    this.#batchBytes = grownUint32(this.#batchBytes, capacity)
    this.#batchBase = grownFloat64(this.#batchBase, capacity)
    this.#batchRolls = grownUint8(this.#batchRolls, capacity)
  }
}
