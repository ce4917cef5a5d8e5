/**
 * Reads of a shard, questions for offsets, and watches: takes them from their ring, works on the oldest within a budget each turn,
 * sends its answer, or lends it. Shard thread only. Reads are bounded, because main reserves room for every answer before it
 * asks; questions are small, and no more than the requests that main has in progress.
 */
import { assert } from '../../src/base/assert.ts'
import { DiskError } from '../../src/disk/disk.ts'
import { ColdSegmentAbsent } from '../../src/log/cold-segment.ts'
import type { ShardLog } from '../../src/log/shard-log.ts'
import { endOf, type HandleRange } from '../../src/model/handles.ts'
import { limits } from '../../src/model/limits.ts'
import { readFormats, type ReadFormat } from '../../src/model/requests.ts'
import type { ChunkTaker } from '../../src/ring/lent-chunks.ts'
import type { RingConsumer } from '../../src/ring/spsc-ring.ts'
import { write64 } from '../../src/wire/primitives/u64.ts'
import { counterIndex } from '../../src/wire/shard/counters.ts'
import {
  ANSWER_BODY_AT,
  DESCRIBED_ENTRY_BYTES,
  READ_FROM_START,
  REPLY_HEADER_BYTES,
  REPLY_LAST,
  replyTypes,
  requestTypes
} from '../../src/wire/shard/messages.ts'
import { AnswerWriter } from './answers.ts'
import { BatchAnswer } from './batch-answer.ts'
import type { ColdWaits } from './cold-waits.ts'
import { OffsetQueue } from './offset-queue.ts'
import { sendPartitions } from './partition-list.ts'
import { ReadTask, stepOutcomes, type ReadWanted, type StepOutcome } from './read-task.ts'
import { sendProducers } from './producer-list.ts'
import type { ReplyWriter } from './reply-writer.ts'
import type { WatchTable } from './watch-table.ts'

/** Bytes of batches and time that reads get between two groups. */
const TURN_BYTES = 1024 * 1024
const TURN_MS = 1

interface Waiting {
  readonly handle: number
  readonly wanted: ReadWanted
  /** When its time to wait for cold storage is over, monotonic ms; null: it has not waited. */
  readonly coldEndMs: number | null
}

export interface ReadParts {
  readonly chunks: ChunkTaker
  readonly counters: Float64Array
  readonly monotonicMs: () => number
  readonly coldWaits: ColdWaits
  readonly watches: WatchTable
  /** Of key, value and headers of a record out of a compressed batch: a larger one is passed over. */
  readonly recordBytesMax: number
}

export class ReadQueue {
  readonly #log: ShardLog
  readonly #ring: RingConsumer
  readonly #replies: ReplyWriter
  readonly #counters: Float64Array
  readonly #monotonicMs: () => number
  readonly #waiting: Waiting[] = []
  readonly #answer = new AnswerWriter()
  readonly #batches: BatchAnswer
  readonly #offsets: OffsetQueue
  readonly #coldWaits: ColdWaits
  readonly #watches: WatchTable
  /** Partitions of which it was told once that they have batches that nobody can decode. */
  readonly #toldUndecodable = new Set<number>()
  /** The same of records that are too large to be answered. */
  readonly #toldTooLarge = new Set<number>()
  readonly #recordBytesMax: number
  #task: ReadTask | null = null
  #inflatedBytes = 0

  constructor(log: ShardLog, ring: RingConsumer, replies: ReplyWriter, shared: ReadParts) {
    this.#log = log
    this.#ring = ring
    this.#replies = replies
    this.#counters = shared.counters
    this.#monotonicMs = shared.monotonicMs
    this.#coldWaits = shared.coldWaits
    this.#watches = shared.watches
    this.#recordBytesMax = shared.recordBytesMax
    this.#batches = new BatchAnswer(shared.chunks)
    this.#offsets = new OffsetQueue(log, replies, shared)
  }

  /** Partitions of a topic that is gone: what was told of them is of no use. */
  drop(range: HandleRange): void {
    for (let handle = range.firstHandle; handle < endOf(range); handle++) {
      this.#toldUndecodable.delete(handle)
      this.#toldTooLarge.delete(handle)
    }
  }

  /** One turn. @returns whether reads are still waiting. @param onRoom main had asked for room in the ring. */
  run(onRoom: () => void): boolean {
    let at = this.#ring.next()
    if (at >= 0) {
      for (; at >= 0; at = this.#ring.next()) this.#take(this.#ring.buffer, at)
      if (this.#ring.release()) onRoom()
    }
    // A search by time and a long read do not wait for each other.
    const hasOffsets = this.#offsets.run()
    const hasReads = this.#runReads()
    this.#coldWaits.reportUsed(this.#log.window.settled.usedCopies)
    this.#counters[counterIndex.readBytesMemory] = this.#log.window.probe.memoryBytes
    this.#counters[counterIndex.readBytesDisk] = this.#log.window.probe.diskBytes
    return hasReads || hasOffsets
  }

  /**
   * While answers wait for room in the ring no read goes on: else all answers that are asked for would stand here at once,
   * and each may have one record more than main has reserved for it. @returns whether reads are still waiting.
   */
  #runReads(): boolean {
    if (this.#task === null && this.#waiting.length === 0) return false
    const startMs = this.#monotonicMs()
    let left = TURN_BYTES
    while (left > 0 && !this.#replies.isWaiting && this.#monotonicMs() - startMs < TURN_MS) {
      const before = this.#workBytes
      if (!this.#stepOldest(left)) break
      left -= Math.max(1, this.#workBytes - before)
    }
    return this.#task !== null || this.#waiting.length > 0
  }

  /** All that reads have taken from memory and disk, and inflated. */
  get #workBytes(): number {
    const { memoryBytes, diskBytes } = this.#log.window.probe
    return memoryBytes + diskBytes + this.#inflatedBytes
  }

  #take(buffer: Buffer, at: number): void {
    const requestId = buffer.readUInt32BE(at + 4)
    if (buffer[at] === requestTypes.describe) {
      this.#describe(requestId, buffer.readUInt32BE(at + 8))
      return
    }
    if (buffer[at] === requestTypes.producers) {
      sendProducers(this.#log.table, this.#replies, requestId)
      return
    }
    if (buffer[at] === requestTypes.partitions) {
      sendPartitions(this.#log.table, this.#replies, requestId, buffer.readUInt32BE(at + 8))
      return
    }
    if (buffer[at] === requestTypes.offsets) {
      this.#offsets.take(buffer, at)
      return
    }
    if (buffer[at] === requestTypes.watch) {
      this.#watches.take(buffer, at)
      return
    }
    if (buffer[at] === requestTypes.unwatch) {
      this.#watches.end(requestId)
      return
    }
    const handle = buffer.readUInt32BE(at + 8)
    const partition = buffer.readUInt32BE(at + 12)
    this.#waiting.push({
      handle,
      wanted: {
        requestId,
        format: formatOf(buffer[at + 1]),
        partition,
        offset: buffer.readBigUInt64BE(at + 16),
        isFromStart: (Number(buffer[at + 2]) & READ_FROM_START) !== 0,
        maxRecords: buffer.readUInt32BE(at + 24),
        maxBytes: buffer.readUInt32BE(at + 28)
      },
      coldEndMs: null
    })
  }

  /** Works on the oldest read. @returns false when there is none. */
  #stepOldest(budgetBytes: number): boolean {
    this.#task ??= this.#begin()
    if (this.#task === null) return false
    const task = this.#task
    let outcome: StepOutcome
    try {
      outcome = task.step(budgetBytes)
      this.#inflatedBytes += task.inflatedBytes
    } catch (error) {
      if (error instanceof ColdSegmentAbsent) {
        this.#task = null
        this.#park(task, error)
        return true
      }
      // A disk that refuses a read says nothing about what was written: this request fails, the shard goes on.
      if (!(error instanceof DiskError)) throw error
      this.#task = null
      this.#refuse(task, error)
      return true
    }
    if (outcome === stepOutcomes.more) return true
    this.#task = null
    if (outcome === stepOutcomes.done) this.#send(task)
    else this.#fail(task)
    return true
  }

  /** What it needs next is in cold storage: what it has is an answer; without any it waits, and begins anew. */
  #park(task: ReadTask, absent: ColdSegmentAbsent): void {
    if (task.endEarly()) {
      this.#send(task)
      this.#coldWaits.fetchAhead(absent)
      return
    }
    const { wanted, handle, coldEndMs } = task
    const { requestId, partition } = wanted
    this.#coldWaits.park(absent, {
      endMs: coldEndMs,
      resume: endMs => void this.#waiting.unshift({ handle, wanted, coldEndMs: endMs }),
      refuse: problem => this.#replies.fail(requestId, 'COLD_UNAVAILABLE', { partition, problem }, 'no')
    })
  }

  /** The next read whose topic is still there. */
  #begin(): ReadTask | null {
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      const topic = this.#log.table.topicOf(next.handle)
      if (topic === undefined) {
        this.#replies.fail(next.wanted.requestId, 'TOPIC_NOT_FOUND', {}, 'no')
        continue
      }
      const log = topic.log(next.wanted.partition)
      const offset = Math.max(Number(next.wanted.offset), log.startOffset)
      const answers = { records: this.#answer, batches: this.#batches }
      const task = new ReadTask(next.wanted, log, this.#log.read(log, offset), answers, this.#recordBytesMax)
      task.coldEndMs = next.coldEndMs
      return task
    }
    return null
  }

  #send(task: ReadTask): void {
    if (task.wanted.format !== readFormats.batches) this.#sendChunks(task, this.#answer.buffer, this.#answer.length)
    else if (this.#batches.isLent) this.#lend(task)
    else this.#sendChunks(task, this.#batches.whole(), this.#batches.length)
    this.#counters[counterIndex.reads]! += 1
    this.#counters[counterIndex.readRecords]! += task.recordCount
    if (task.damagedFirst >= 0) this.#logDamage(task)
    this.#answer.clear()
    this.#batches.begin()
  }

  #sendChunks(task: ReadTask, buffer: Buffer, length: number): void {
    for (let start = 0; start < length; start += limits.replyChunkBytes) {
      const end = Math.min(length, start + limits.replyChunkBytes)
      const flags = end === length ? REPLY_LAST : 0
      this.#beginAnswer(replyTypes.readChunk, flags, task, length, end - start)
      buffer.copy(this.#replies.target, this.#replies.at + ANSWER_BODY_AT, start, end)
    }
  }

  #lend(task: ReadTask): void {
    this.#beginAnswer(replyTypes.readLent, REPLY_LAST, task, this.#batches.length, this.#batches.lentBytes)
    this.#batches.lend(this.#replies.target, this.#replies.at + ANSWER_BODY_AT)
  }

  /** @param length of the whole answer. @param bytes of what follows. */
  #beginAnswer(type: number, flags: number, task: ReadTask, length: number, bytes: number): void {
    this.#replies.begin(type, flags, task.wanted.requestId, ANSWER_BODY_AT + bytes)
    const { target, at } = this.#replies
    target.writeUInt32BE(length, at + 8)
    target.writeUInt32BE(task.recordCount, at + 12)
    target.writeUInt32BE(task.payloadBytes, at + 16)
  }

  #refuse(task: ReadTask, error: DiskError): void {
    this.#batches.begin()
    const { requestId, partition } = task.wanted
    this.#replies.fail(requestId, 'READ_FAILED', { partition, errno: error.code }, 'no')
    this.#replies.log('error', 'the disk refused a read', { handle: task.handle, cause: error.message })
  }

  #fail(task: ReadTask): void {
    this.#batches.begin()
    const { damagedFirst: first, damagedLast: last } = task
    const details = { first, last, partition: task.wanted.partition, next: last + 1 }
    this.#replies.fail(task.wanted.requestId, 'DATA_DAMAGED', details, 'no')
    this.#logDamage(task)
  }

  /** Once a read, however many ranges it met. What any client can write is told once: it is no damage, and must not fill the log. */
  #logDamage(task: ReadTask): void {
    const { handle, damagedFirst: first, damagedLast: last } = task
    if (task.metDamagedBytes) return this.#replies.log('error', 'a damaged range was read', { handle, first, last })
    const warnOnce = (told: Set<number>, message: string): void => {
      if (told.has(handle)) return
      told.add(handle)
      this.#replies.log('warn', message, { handle, first, last })
    }
    if (task.metUndecodable)
      warnOnce(this.#toldUndecodable, 'records that cannot be decoded are passed over: a client sent them so')
    if (task.metTooLarge)
      warnOnce(this.#toldTooLarge, 'records larger than a record may be are passed over: a client sent them compressed')
  }

  /** Answers for the partitions of a topic that have a log here; the others are empty or another shard's. */
  #describe(requestId: number, firstHandle: number): void {
    const logs = this.#log.table.topic(firstHandle)?.logs ?? []
    const perFrame = Math.floor(limits.replyChunkBytes / DESCRIBED_ENTRY_BYTES)
    const present: number[] = []
    logs.forEach((_, partition) => present.push(partition))
    for (let from = 0; from === 0 || from < present.length; from += perFrame) {
      const part = present.slice(from, from + perFrame)
      const flags = from + perFrame >= present.length ? REPLY_LAST : 0
      this.#replies.begin(
        replyTypes.described,
        flags,
        requestId,
        REPLY_HEADER_BYTES + part.length * DESCRIBED_ENTRY_BYTES
      )
      let at = this.#replies.at + REPLY_HEADER_BYTES
      for (const partition of part) {
        const log = logs[partition]
        if (log === undefined) continue
        this.#replies.target.writeUInt32BE(partition, at)
        this.#replies.target.writeUInt32BE(log.segmentCount, at + 4)
        write64(this.#replies.target, at + 8, log.startOffset)
        write64(this.#replies.target, at + 16, log.highWatermark)
        write64(this.#replies.target, at + 24, log.sizeBytes)
        at += DESCRIBED_ENTRY_BYTES
      }
    }
  }
}

/** By its number. */
const formats = new Map<number, ReadFormat>(Object.values(readFormats).map(format => [format, format]))

function formatOf(byte: number | undefined): ReadFormat {
  const format = formats.get(byte ?? -1)
  assert(format !== undefined, 'a read names a format that there is')
  return format
}
