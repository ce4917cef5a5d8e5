/**
 * Drives a ShardLog the way a shard worker does, for tests: opens it, appends groups, reads partitions back.
 * Records are made and read here with plain code, so that what the log stores can be compared with what was meant.
 */
import { BrokerError } from '../../src/model/errors.ts'
import type { Clock } from '../../src/base/clock.ts'
import type { Disk } from '../../src/disk/disk.ts'
import { judgeBatch } from '../../src/log/batch-sequences.ts'
import { readOutcomes, type LogReader } from '../../src/log/log-reader.ts'
import type { PartitionLog } from '../../src/log/partition-log.ts'
import { RequestSequences } from '../../src/log/request-sequences.ts'
import { ShardLog, type ShardLogOptions } from '../../src/log/shard-log.ts'
import type { RingRecords } from '../../src/log/ring-records.ts'
import { RESULT_BYTES } from '../../src/model/requests.ts'
import { BatchRecords } from '../../src/wire/batch/records.ts'
import { batchStatus, type RecordCursor } from '../../src/wire/batch/view.ts'
import { clientBatch, type ClientBatch } from './client-batches.ts'
import { diceOf } from './log-random.ts'

/** Names and values, in order. */
export type TestHeaders = readonly (readonly [string, Buffer | null])[]

export interface TestRecord {
  readonly partition: number
  readonly key: Buffer | null
  /** Empty is stored as null and reads as empty. */
  readonly value: Buffer
  /** Absent: none. */
  readonly sequence?: bigint
  /** Absent: none. */
  readonly headers?: TestHeaders
  /** Of a batch: ms after its base timestamp. */
  readonly timestampDelta?: number
}

/** One produce request: all records go to partitions of one topic. */
export interface TestRequest {
  readonly firstHandle: number
  readonly records: readonly TestRecord[]
  /** Number of the producer whose sequences they have; absent: none. */
  readonly producer?: number
  /** They come as one batch that a client encoded, all for one partition: what its header says beside them. */
  readonly batch?: Omit<ClientBatch, 'records'>
  /** Their topic has LogAppendTime. */
  readonly takesAppendTime?: boolean
}

/** A clock that stands until it is moved; may be moved back. */
export class ManualClock implements Clock {
  wallMs: number
  constructor(wallMs = 1_700_000_000_000) {
    this.wallMs = wallMs
  }
  nowMs(): number {
    return this.wallMs
  }
  monotonicMs(): number {
    return this.wallMs
  }
}

export const testDirectory = '/data/journal/000'

/** Opens the log of shard 0 with small slots. The salt of each slot comes from a seed, so runs repeat. */
export function openLog(disk: Disk, options: Partial<ShardLogOptions> = {}): ShardLog {
  const dice = diceOf(4711)
  return new ShardLog({
    disk,
    directory: testDirectory,
    dataDirectory: '/data',
    openFilesMax: 16,
    shard: 0,
    placementEpoch: 1,
    newestSlot: 0,
    slotBytes: 256 * 1024,
    firstSlotBytes: 128 * 1024,
    encodeBufferBytes: 1024 * 1024,
    clock: new ManualClock(),
    drawSalt: () => dice.bytes(8),
    ...options
  })
}

/** A record with text for key (null: none) and value. */
export function textRecord(partition: number, key: string | null, value: string): TestRecord {
  return { partition, key: key === null ? null : Buffer.from(key), value: Buffer.from(value) }
}

/** Whether the ring layout of these records has headers. */
export function haveHeaders(records: readonly TestRecord[]): boolean {
  return records.some(({ headers }) => headers !== undefined)
}

/** Records in the ring layout of model/requests.ts: with headers, if any of them has some. */
export function ringLayout(records: readonly TestRecord[]): Buffer {
  const hasHeaders = haveHeaders(records)
  return Buffer.concat(
    records.flatMap(({ partition, key, value, sequence, headers = [] }) => {
      const keyBytes = key?.length ?? 0
      const bytes = Buffer.alloc(20 + keyBytes + value.length)
      bytes.writeInt32BE(key === null ? -1 : keyBytes, 0)
      key?.copy(bytes, 4)
      bytes.writeUInt32BE(value.length, 4 + keyBytes)
      value.copy(bytes, 8 + keyBytes)
      bytes.writeUInt32BE(partition, 8 + keyBytes + value.length)
      bytes.writeBigInt64BE(sequence ?? -(2n ** 63n), 12 + keyBytes + value.length)
      return hasHeaders ? [bytes, headersLayout(headers)] : [bytes]
    })
  )
}

/** Length, and headers as a record of a batch has them. */
function headersLayout(headers: TestHeaders): Buffer {
  const parts = headers.flatMap(([name, value]) => {
    const text = Buffer.from(name)
    return [zigzag(text.length), text, zigzag(value?.length ?? -1), value ?? Buffer.alloc(0)]
  })
  const block = Buffer.concat([zigzag(headers.length), ...parts])
  const length = Buffer.alloc(4)
  length.writeUInt32BE(block.length)
  return Buffer.concat([length, block])
}

function zigzag(value: number): Buffer {
  const bytes: number[] = []
  let rest = value < 0 ? -2 * value - 1 : 2 * value
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) + 0x80)
  return Buffer.from([...bytes, rest])
}

/** Records where a shard finds them. */
export function ringRecords(records: readonly TestRecord[], takesAppendTime = false): RingRecords {
  const source = ringLayout(records)
  return { source, at: 0, end: source.length, count: records.length, hasHeaders: haveHeaders(records), takesAppendTime }
}

/** Gathers requests as one group; those of a producer are checked first, as a shard does. @throws BrokerError SEQUENCE_GAP, SEQUENCE_TOO_LOW @returns for each request the index of its first record. */
export function gather(log: ShardLog, requests: readonly TestRequest[]): number[] {
  return requests.map(request => {
    const { firstHandle, records, producer } = request
    const topic = log.table.topic(firstHandle)
    if (topic === undefined) throw new RangeError(`no topic with first handle ${firstHandle} is open`)
    if (request.batch !== undefined) return gatherBatch(log, request)
    const ring = ringRecords(records, request.takesAppendTime)
    if (producer === undefined) return log.encoder.gather(topic, ring)
    const sequences = new RequestSequences()
    const fault = sequences.check(topic, producer, ring)
    if (fault !== null) throw new BrokerError(fault.code, fault.details)
    return log.encoder.gather(topic, ring, sequences)
  })
}

/** Gathers a batch, judged first as a shard does it. @throws BrokerError BATCH_OUT_OF_ORDER @returns its index. */
function gatherBatch(log: ShardLog, request: TestRequest): number {
  const { firstHandle, records, batch = {}, producer, takesAppendTime = false } = request
  const partition = records[0]?.partition ?? 0
  const bytes = clientBatch({ ...batch, records, ...(producer !== undefined && { producerId: producer }) })
  const partitionLog = partitionOf(log, firstHandle, partition)
  const count = records.length
  const given = { source: bytes, at: 0, bytes: bytes.length, partition, recordCount: count, takesAppendTime }
  if (producer === undefined) return log.encoder.gatherBatch(partitionLog, given, null)
  const { epoch = 0, sequence = 0 } = batch
  const verdict = judgeBatch(partitionLog.producers.of(producer), { producer, epoch, sequence, count })
  if (verdict.kind === 'duplicate') return log.encoder.gatherDuplicateBatch(partition, verdict.baseOffset)
  if (verdict.kind !== 'next') throw new BrokerError('BATCH_OUT_OF_ORDER', { got: verdict.kind })
  return log.encoder.gatherBatch(partitionLog, given, verdict.sequences)
}

/** The results of all gathered records, in order of arrival; of a batch, one. */
export function gatheredResults(log: ShardLog): { offset: number; isDuplicate: boolean }[] {
  const count = log.encoder.records.count
  const results = Buffer.alloc(count * RESULT_BYTES)
  log.encoder.records.writeResults(0, count, results, 0)
  return Array.from({ length: count }, (_, i) => {
    const offset = Number(results.readBigUInt64BE(i * RESULT_BYTES + 4))
    return { offset, isDuplicate: results[i * RESULT_BYTES + 12] === 1 }
  })
}

/** Their offsets. */
export function gatheredOffsets(log: ShardLog): number[] {
  return gatheredResults(log).map(result => result.offset)
}

/** One durable group: gather, write, sync, publish. @returns the offsets in order of arrival. */
export function append(log: ShardLog, ...requests: readonly TestRequest[]): number[] {
  gather(log, requests)
  log.prepare()
  const index = log.encode()
  const position = log.write(index)
  log.sync()
  log.publish(index, position)
  const offsets = gatheredOffsets(log)
  log.encoder.reset()
  return offsets
}

export interface ReadRecord {
  readonly offset: number
  readonly key: Buffer | null
  readonly value: Buffer
  readonly timestampMs: number
  readonly leaderEpoch: number
  /** Absent: none. */
  readonly headers?: TestHeaders
}

export interface DamagedRange {
  readonly firstOffset: number
  readonly lastOffset: number
}

export interface ReadBack {
  readonly records: ReadRecord[]
  readonly damaged: DamagedRange[]
}

/** Everything that can be read of a partition from `offset` on. */
export function readBack(log: ShardLog, partitionLog: PartitionLog, offset = 0): ReadBack {
  const records: ReadRecord[] = []
  const damaged: DamagedRange[] = []
  const reader = log.read(partitionLog, offset)
  let wanted = offset
  for (;;) {
    const outcome = reader.next(wanted)
    if (outcome === readOutcomes.end) return { records, damaged }
    if (outcome === readOutcomes.damaged)
      damaged.push({ firstOffset: reader.firstOffset, lastOffset: reader.lastOffset })
    else records.push(...recordsOfBatch(reader, wanted))
    wanted = reader.lastOffset + 1
  }
}

/** The records of the batch that the reader stands on, from `offset` on. */
export function recordsOfBatch(reader: LogReader, offset: number): ReadRecord[] {
  const { view } = reader
  const opened = new BatchRecords()
  const records: ReadRecord[] = []
  opened.open(reader.bytes, view)
  const { cursor, bytes } = opened
  while (cursor.next()) {
    const recordOffset = view.baseOffset + cursor.offsetDelta
    if (recordOffset < offset) continue
    records.push({
      offset: recordOffset,
      key:
        cursor.keyLength < 0 ? null : Buffer.from(bytes.subarray(cursor.keyStart, cursor.keyStart + cursor.keyLength)),
      value: Buffer.from(bytes.subarray(cursor.valueStart, cursor.valueStart + Math.max(0, cursor.valueLength))),
      timestampMs: view.baseTimestampMs + cursor.timestampDeltaMs,
      leaderEpoch: view.leaderEpoch,
      ...(cursor.headerCount === 0 ? {} : { headers: headersOf(bytes, cursor) })
    })
  }
  if (cursor.status !== batchStatus.ok) throw new Error(`a served batch cannot be walked: status ${cursor.status}`)
  return records
}

/** The headers of the record that the cursor stands on, decoded plainly. */
function headersOf(bytes: Uint8Array, { headersStart, headersEnd, headerCount }: RecordCursor): TestHeaders {
  let at = headersStart
  const length = (): number => {
    let zigzag = 0
    for (let unit = 1; ; unit *= 0x80) {
      const byte = bytes[at++] ?? 0
      zigzag += (byte & 0x7f) * unit
      if (byte < 0x80) return zigzag % 2 === 0 ? zigzag / 2 : -(zigzag + 1) / 2
    }
  }
  const part = (): Buffer | null => {
    const size = length()
    if (size < 0) return null
    at += size
    return Buffer.from(bytes.subarray(at - size, at))
  }
  const headers = Array.from({ length: headerCount }, () => [String(part()), part()] as const)
  if (at !== headersEnd) throw new Error('headers do not end where their record ends')
  return headers
}

/** The log of a partition of an open topic. */
export function partitionOf(log: ShardLog, firstHandle: number, partition: number): PartitionLog {
  const topic = log.table.topic(firstHandle)
  if (topic === undefined) throw new RangeError(`no topic with first handle ${firstHandle} is open`)
  return topic.log(partition)
}

/** For assert.throws: a NOT_READY whose text matches. */
export function notReady(pattern: RegExp): (error: unknown) => boolean {
  return error => error instanceof BrokerError && error.code === 'NOT_READY' && pattern.test(error.message)
}
