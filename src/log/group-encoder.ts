/**
 * Gathers the records of many requests into one group, sorted by partition, and encodes it where it will be written from.
 * What the batches hold is written by group-bodies.ts. Hot; shard thread only.
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
import { grownInt32 } from '../base/grow.ts'
import { limits } from '../model/limits.ts'
import { BATCH_HEADER_BYTES, recordBodyBytes, recordBytes } from '../wire/batch/encode.ts'
import { NO_HEADERS_BYTES, RECORD_TAIL_BYTES, headerPayloadBytes } from '../wire/produce/ring-layout.ts'
import type { BatchSequences } from './batch-sequences.ts'
import { EncodedRuns } from './encoded-runs.ts'
import type { GivenBatch } from './given-batch.ts'
import {
  BATCH_COVERED_BY_RUN,
  DirectoryEntry,
  ENTRY_BYTES,
  GROUP_HEADER_BYTES,
  PRODUCER_RUN_BYTES,
  RUN_HAS_GIVEN_TIMES,
  RUN_ROLLS,
  groupBytes,
  sealGroup,
  writeEntry,
  type GroupPlace
} from './group-format.ts'
import { BATCH_IS_GIVEN, BATCH_ROLLS, BATCH_TAKES_APPEND_TIME, FIRST_BATCHES, GroupBatches } from './group-batches.ts'
import { GroupBodies } from './group-bodies.ts'
import { GroupProducers } from './group-producers.ts'
import { GroupRecords, HAS_HEADERS, IS_DUPLICATE, TAKES_APPEND_TIME } from './group-records.ts'
import { GroupSources } from './group-sources.ts'
import type { TopicLogs } from './log-table.ts'
import { STAGED_NUMBERS, type PartitionLog } from './partition-log.ts'
import { NEW_RECORD, type RequestSequences } from './request-sequences.ts'
import type { RingRecords } from './ring-records.ts'

const NONE = -1

export class GroupEncoder {
  readonly #sources = new GroupSources()
  readonly #logs: PartitionLog[] = []
  /** Those of the group; emptied by reset(). */
  readonly logs: readonly PartitionLog[] = this.#logs
  readonly #entry = new DirectoryEntry()

  readonly records = new GroupRecords()
  /** Offsets that its new records take. */
  newRecordCount = 0
  readonly #producers = new GroupProducers()
  readonly #batches = new GroupBatches()
  readonly #bodies = new GroupBodies(this.#sources, this.records, this.#batches)
  #firstBatch = new Int32Array(FIRST_BATCHES)
  #lastBatch = new Int32Array(FIRST_BATCHES)
  #runCount = 0
  #bodyBytes = 0
  /** key, value and header bytes gathered; of batches that clients encoded, what stands behind their headers. */
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

  get batchCount(): number {
    return this.#batches.count
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
    const { source, hasHeaders, takesAppendTime, count } = records
    const entries = this.records
    const first = entries.count
    entries.reserve(first + count)
    const sourceIndex = this.#sources.indexOf(source)
    const view = this.#sources.view(sourceIndex)
    const flags = (hasHeaders ? HAS_HEADERS : 0) | (takesAppendTime ? TAKES_APPEND_TIME : 0)
    let position = records.at
    for (let record = first; record < first + count; record++) {
      const keyLength = view.getInt32(position)
      const valueAt = position + 4 + (keyLength > 0 ? keyLength : 0)
      const valueLength = view.getUint32(valueAt)
      const tail = valueAt + 4 + valueLength
      const partition = view.getUint32(tail)
      assert(partition < topic.partitionCount, 'main checked the partition')
      entries.source[record] = sourceIndex
      entries.at[record] = position
      entries.next[record] = NONE
      entries.partition[record] = partition
      entries.flags[record] = flags
      position = tail + RECORD_TAIL_BYTES
      let headersLength = NO_HEADERS_BYTES
      if (hasHeaders) {
        headersLength = view.getUint32(position)
        position += 4 + headersLength
      }
      const original = sequences === undefined ? NEW_RECORD : (sequences.offsets[record - first] as number)
      if (original !== NEW_RECORD) {
        entries.flags[record] = flags | IS_DUPLICATE
        entries.offset[record] = original
        continue
      }
      const log = topic.logs[partition] ?? topic.log(partition)
      this.payloadBytes += valueLength + (keyLength > 0 ? keyLength : 0) + headerPayloadBytes(headersLength)
      this.#place(log, record, recordBodyBytes(keyLength, valueLength, headersLength))
      if (sequences === undefined) continue
      const batch = this.#lastBatch[log.groupPlace] as number
      const beginsEntry = this.#batches.rolls(batch) && this.#batches.records[batch] === 1
      this.#producers.accept(log, sequences.producer, view.getInt32(tail + 4), view.getUint32(tail + 8), beginsEntry)
    }
    assert(position === records.end, 'records end where their request says')
    entries.count = first + count
    return first
  }

  /**
   * Takes a batch that a client encoded: it is written as it is, but for its place in the log. Its bytes must stay where they
   * are until encode.
   * @param sequences judged to be next; null: it has none. @returns its index, as of a record.
   */
  gatherBatch(log: PartitionLog, given: GivenBatch, sequences: BatchSequences | null): number {
    const { partition, bytes, recordCount } = given
    const record = this.records.add(partition, given.takesAppendTime ? TAKES_APPEND_TIME : 0, log.nextOffset)
    this.records.source[record] = this.#sources.indexOf(given.source)
    this.records.at[record] = given.at
    if (log.groupPlace === NONE) this.#join(log)
    const flags = given.takesAppendTime ? BATCH_IS_GIVEN | BATCH_TAKES_APPEND_TIME : BATCH_IS_GIVEN
    const batch = this.#openBatch(log, flags, bytes, recordCount)
    const batches = this.#batches
    batches.head[batch] = record
    batches.tail[batch] = record
    batches.records[batch] = recordCount
    batches.bytes[batch] = bytes
    this.#bodyBytes += bytes
    this.payloadBytes += bytes - BATCH_HEADER_BYTES
    this.newRecordCount += recordCount
    log.nextOffset += recordCount
    log.stageBytes(bytes)
    if (!given.takesAppendTime) log.noteGivenTimes(log.nextOffset)
    if (sequences !== null) this.#producers.acceptBatch(log, sequences)
    return record
  }

  /** The same for one that was written before, with that base offset: nothing of it is written. @returns its index. */
  gatherDuplicateBatch(partition: number, baseOffset: number): number {
    return this.records.add(partition, IS_DUPLICATE, baseOffset)
  }

  /** Puts a record into the open batch of its log, or into a new one. */
  #place(log: PartitionLog, record: number, bodyBytes: number): void {
    if (log.groupPlace === NONE) this.#join(log)
    const batches = this.#batches
    const flag = this.records.takesAppendTime(record) ? BATCH_TAKES_APPEND_TIME : 0
    let batch = this.#lastBatch[log.groupPlace] as number
    let bytes = 0
    if (batch !== NONE) {
      bytes = recordBytes(batches.records[batch] as number, bodyBytes)
      const isFull = (batches.bytes[batch] as number) + bytes > limits.batchBytesTarget
      if (isFull || !batches.isOpenFor(batch, flag) || log.mustRoll(bytes)) batch = NONE
    }
    if (batch === NONE) {
      bytes = recordBytes(0, bodyBytes) + BATCH_HEADER_BYTES
      batch = this.#openBatch(log, flag, bytes, 1)
    }
    const tail = batches.tail[batch] as number
    if (tail === NONE) batches.head[batch] = record
    else this.records.next[tail] = record
    batches.tail[batch] = record
    batches.records[batch] = (batches.records[batch] as number) + 1
    batches.bytes[batch] = (batches.bytes[batch] as number) + bytes
    this.#bodyBytes += bytes
    this.newRecordCount++
    this.records.offset[record] = log.nextOffset
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

  /** A batch behind the last one of its log, which is in the group. @param bytes, @param recordCount that it begins with. */
  #openBatch(log: PartitionLog, flags: number, bytes: number, recordCount: number): number {
    const rolls = log.mustRoll(bytes, recordCount)
    const place = log.groupPlace
    const previous = this.#lastBatch[place] as number
    if (rolls) {
      log.stageRoll()
      if (previous !== NONE) this.#runCount++
    }
    const batch = this.#batches.add(log.nextOffset, rolls ? flags | BATCH_ROLLS : flags)
    if (previous === NONE) this.#firstBatch[place] = batch
    else this.#batches.next[previous] = batch
    this.#lastBatch[place] = batch
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
    const batches = this.#batches
    entry.flags = batches.rolls(firstBatch) ? RUN_ROLLS : 0
    entry.handle = log.handle
    entry.baseOffset = batches.base[firstBatch] as number
    entry.receiveMs = this.receiveMs
    entry.leaderEpoch = log.leaderEpoch
    entry.batchCount = 0
    entry.recordCount = 0
    let checksum = seed
    let position = at
    let batch = firstBatch
    do {
      const end = this.#bodies.write(batch, log.leaderEpoch, this.receiveMs, target, position)
      checksum = crc32c(target, position, position + BATCH_COVERED_BY_RUN, checksum)
      entry.batchCount++
      entry.recordCount += batches.records[batch] as number
      if (batches.hasGivenTimes(batch)) entry.flags |= RUN_HAS_GIVEN_TIMES
      position = end
      batch = batches.next[batch] as number
    } while (batch !== NONE && !batches.rolls(batch))
    entry.nextOffset = entry.baseOffset + entry.recordCount
    assert(entry.baseOffset === log.encodedEnd, 'a run begins where the one before it ends')
    log.encodedEnd = entry.nextOffset
    entry.bytes = position - at
    entry.checksum = checksum
    entry.producers = this.#producers.take(logIndex, entry.nextOffset)
    return batch
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

  /** Ready for the next group. Call after commit or rollback, and after the results were written. */
  reset(): void {
    // An encoded group has left its logs already: their marks may be another encoder's.
    if (this.receiveMs === NONE)
      for (let i = 0; i < this.#logs.length; i++) (this.#logs[i] as PartitionLog).groupPlace = NONE
    this.receiveMs = NONE
    this.#logs.length = 0
    this.#sources.clear()
    this.records.count = 0
    this.newRecordCount = 0
    this.#batches.count = 0
    this.#runCount = 0
    this.#bodyBytes = 0
    this.payloadBytes = 0
    this.#producers.reset()
  }
}
