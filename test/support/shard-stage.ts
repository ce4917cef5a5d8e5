/**
 * The parts of a shard worker on the thread of a test: the real ones, as workers/shard/entry.ts puts them together, over a
 * disk and a clock of the test. The test plays the main thread: it fills the rings, and reads what is answered.
 */
import { MessageChannel } from 'node:worker_threads'
import type { TestContext } from 'node:test'
import { IdleMemory } from '../../src/base/idle-memory.ts'
import type { Disk } from '../../src/disk/disk.ts'
import type { ShardLog, ShardLogOptions } from '../../src/log/shard-log.ts'
import { errorCodeOf, type ErrorCode, type Written } from '../../src/model/errors.ts'
import { RESULT_BYTES, readFormats, type ReadFormat } from '../../src/model/requests.ts'
import { Bell, Doorbell, createAsleepFlag, createBell } from '../../src/ring/bell.ts'
import { CommitCell, createCommitCell } from '../../src/ring/commit-cell.ts'
import { ChunkTaker, createLentChunks } from '../../src/ring/lent-chunks.ts'
import { RingConsumer, RingProducer, createRing } from '../../src/ring/spsc-ring.ts'
import { packMessage } from '../../src/wire/msgpack.ts'
import { write64 } from '../../src/wire/primitives/u64.ts'
import { createCounters } from '../../src/wire/shard/counters.ts'
import {
  ANSWER_BODY_AT,
  BATCH_TAKES_APPEND_TIME,
  PRODUCE_HAS_HEADERS,
  PRODUCE_HEADER_BYTES,
  READ_BYTES,
  UNWATCH_BYTES,
  replyTypes,
  requestTypes,
  writtenOf,
  type ControlMessage
} from '../../src/wire/shard/messages.ts'
import { Cleaning } from '../../workers/shard/cleaning.ts'
import { ColdWaits } from '../../workers/shard/cold-waits.ts'
import { ShardLoop } from '../../workers/shard/loop.ts'
import { ProduceGroup } from '../../workers/shard/produce-group.ts'
import { ReadQueue } from '../../workers/shard/read-queue.ts'
import { RecordDeletion } from '../../workers/shard/record-deletion.ts'
import { ReplyWriter } from '../../workers/shard/reply-writer.ts'
import { Settling } from '../../workers/shard/settling.ts'
import { WatchTable } from '../../workers/shard/watch-table.ts'
import { atEnd } from './clean-up.ts'
import { haveHeaders, openLog, ringLayout, type TestRecord } from './log-harness.ts'

const RING_BYTES = 16 * 1024 * 1024
/** Of a record out of a compressed batch. */
export const RECORD_BYTES_MAX = 3 * 1024 * 1024
/** Nothing is due by itself. */
const NEVER_MS = 2 ** 40

/** One answer: `bytes` of a read are those of this chunk, `offsets` those of a produce. */
export type StageAnswer =
  | { readonly kind: 'produced'; readonly id: number; readonly offsets: number[]; readonly duplicates: boolean[] }
  | { readonly kind: 'failed'; readonly id: number; readonly code: ErrorCode; readonly written: Written }
  | { readonly kind: 'read'; readonly id: number; readonly bytes: number; readonly totalBytes: number }
  | {
      readonly kind: 'batched'
      readonly id: number
      readonly baseOffset: number
      readonly startOffset: number
      readonly appendTimeMs: number
      readonly isDuplicate: boolean
    }
  | { readonly kind: 'acknowledged' | 'available'; readonly id: number }

export class ShardStage {
  readonly log: ShardLog
  readonly group: ProduceGroup
  readonly reads: ReadQueue
  readonly watches: WatchTable
  readonly loop: ShardLoop
  readonly counters = new Float64Array(createCounters())
  /** What reads were answered, by id. */
  readonly contents = new Map<number, Buffer>()
  readonly #bell: Bell
  readonly #requests: RingProducer
  readonly #reads: RingProducer
  readonly #control: RingProducer
  readonly #answers: RingConsumer
  readonly #replies: ReplyWriter

  /** @param monotonicMs the clock of the shard; may do what the main thread does meanwhile. */
  constructor(t: TestContext, disk: Disk, monotonicMs: () => number, options: Partial<ShardLogOptions> = {}) {
    const rings = [0, 1, 2, 3].map(() => createRing(RING_BYTES))
    const [requests, reads, control, replies] = rings
    if (requests === undefined || reads === undefined || control === undefined || replies === undefined)
      throw new RangeError('four rings')
    const { port1, port2 } = new MessageChannel()
    atEnd(t, () => port1.close())
    this.#bell = new Bell(createBell())
    this.#requests = new RingProducer(requests)
    this.#reads = new RingProducer(reads)
    this.#control = new RingProducer(control)
    this.#answers = new RingConsumer(replies)
    const doorbell = new Doorbell(createAsleepFlag(), { postMessage: () => undefined })
    this.#replies = new ReplyWriter(new RingProducer(replies), doorbell)
    const { counters } = this
    const log = openLog(disk, options)
    const parts = { log, replies: this.#replies, counters, monotonicMs }
    const budgetBytes = 2 ** 40
    const settling = new Settling({
      ...parts,
      changes: port2,
      settings: { budgetBytes, idleMs: NEVER_MS, ageMs: NEVER_MS }
    })
    this.log = log
    const watches = new WatchTable(log.table, this.#replies)
    this.watches = watches
    this.group = new ProduceGroup({
      ...parts,
      watches,
      shard: 0,
      settling,
      requests: new RingConsumer(requests),
      oversized: port2,
      cell: new CommitCell(createCommitCell()),
      onRoom: () => undefined,
      flushEveryRecords: 1,
      flushIntervalMs: 0
    })
    const coldWaits = new ColdWaits(this.#replies, { counters, monotonicMs })
    this.reads = new ReadQueue(log, new RingConsumer(reads), this.#replies, {
      chunks: new ChunkTaker(createLentChunks(0)),
      counters,
      monotonicMs,
      coldWaits,
      watches,
      recordBytesMax: RECORD_BYTES_MAX
    })
    this.loop = new ShardLoop({
      ...parts,
      bell: this.#bell,
      doorbell,
      control: new RingConsumer(control),
      group: this.group,
      settling,
      cleaning: new Cleaning({
        ...parts,
        settling,
        settings: { intervalMs: NEVER_MS, segmentMs: NEVER_MS, isTiered: false },
        nowMs: monotonicMs,
        finishGroup: () => this.group.finish()
      }),
      deletion: new RecordDeletion({ ...parts, settling, finishGroup: () => this.group.finish() }),
      reads: this.reads,
      coldWaits,
      watches,
      idleMemory: new IdleMemory({ totalBytes: () => 0, collect: () => undefined }, 0),
      slotBytes: 256 * 1024,
      fillAheadBytes: 0,
      budgetBytes
    })
  }

  /** @param producer 0: none. */
  produce(id: number, firstHandle: number, records: readonly TestRecord[], producer = 0): void {
    const body = ringLayout(records)
    const message = Buffer.alloc(PRODUCE_HEADER_BYTES + body.length)
    message[0] = requestTypes.produce
    message[1] = haveHeaders(records) ? PRODUCE_HAS_HEADERS : 0
    message.writeUInt32BE(id, 4)
    message.writeUInt32BE(firstHandle, 8)
    message.writeUInt32BE(records.length, 12)
    message.writeUInt32BE(body.length, 16)
    write64(message, 20, producer)
    body.copy(message, PRODUCE_HEADER_BYTES)
    this.#send(this.#requests, message)
  }

  /** Sends a batch that a client encoded for a partition of the topic with that first handle. */
  batch(
    id: number,
    firstHandle: number,
    bytes: Buffer,
    { partition = 0, producer = 0, takesAppendTime = false } = {}
  ): void {
    const message = Buffer.alloc(PRODUCE_HEADER_BYTES + bytes.length)
    message[0] = requestTypes.batch
    message[1] = takesAppendTime ? BATCH_TAKES_APPEND_TIME : 0
    message.writeUInt32BE(id, 4)
    message.writeUInt32BE(firstHandle, 8)
    message.writeUInt32BE(partition, 12)
    message.writeUInt32BE(bytes.length, 16)
    write64(message, 20, producer)
    bytes.copy(message, PRODUCE_HEADER_BYTES)
    this.#send(this.#requests, message)
  }

  /** Asks for all of partition 0 of the topic with that handle that fits into `maxBytes`. */
  read(id: number, handle: number, maxBytes: number, offset = 0, format: ReadFormat = readFormats.es01): void {
    const message = Buffer.alloc(READ_BYTES)
    message[0] = requestTypes.read
    message[1] = format
    message.writeUInt32BE(id, 4)
    message.writeUInt32BE(handle, 8)
    write64(message, 16, offset)
    message.writeUInt32BE(1_000_000, 24)
    message.writeUInt32BE(maxBytes, 28)
    this.#send(this.#reads, message)
  }

  /** Waits for so many stored bytes at or above an offset of a partition of the topic with that first handle. */
  watch(
    id: number,
    firstHandle: number,
    wanted: { partition?: number; offset?: number; minBytes?: number } = {}
  ): void {
    const { partition = 0, offset = 0, minBytes = 1 } = wanted
    const message = Buffer.alloc(28)
    message[0] = requestTypes.watch
    message.writeUInt32BE(id, 4)
    message.writeUInt32BE(firstHandle + partition, 8)
    message.writeUInt32BE(partition, 12)
    message.writeBigUInt64BE(BigInt(offset), 16)
    message.writeUInt32BE(minBytes, 24)
    this.#send(this.#reads, message)
  }

  /** Ends a watch. */
  unwatch(id: number): void {
    const message = Buffer.alloc(UNWATCH_BYTES)
    message[0] = requestTypes.unwatch
    message.writeUInt32BE(id, 4)
    this.#send(this.#reads, message)
  }

  control(message: ControlMessage): void {
    this.#send(this.#control, packMessage(message))
  }

  #send(ring: RingProducer, message: Buffer): void {
    const at = ring.reserve(message.length)
    if (at < 0) throw new RangeError('the ring of the test is full')
    message.copy(ring.buffer, at)
    ring.publish()
    this.#bell.ring()
  }

  /** What was answered since the last call, in order; what the shard says unasked is left out. */
  answers(): StageAnswer[] {
    this.#replies.flush()
    const all: StageAnswer[] = []
    for (let at = this.#answers.next(); at >= 0; at = this.#answers.next()) {
      const bytes = this.#answers.buffer.subarray(at, at + this.#answers.length)
      const answer = answerOf(bytes)
      if (answer?.kind === 'read') {
        const before = this.contents.get(answer.id) ?? Buffer.alloc(0)
        this.contents.set(answer.id, Buffer.concat([before, bytes.subarray(ANSWER_BODY_AT)]))
      }
      if (answer !== null) all.push(answer)
    }
    this.#answers.release()
    return all
  }
}

function answerOf(bytes: Buffer): StageAnswer | null {
  const id = bytes.readUInt32BE(4)
  const type = bytes[0]
  if (type === replyTypes.produced) {
    const results = Array.from({ length: bytes.readUInt32BE(16) }, (_, i) => ANSWER_BODY_AT + RESULT_BYTES * i)
    const offsets = results.map(at => Number(bytes.readBigUInt64BE(at + 4)))
    return { kind: 'produced', id, offsets, duplicates: results.map(at => bytes[at + 12] === 1) }
  }
  if (type === replyTypes.batched) {
    const [baseOffset = 0, startOffset = 0, appendTimeMs = 0] = [8, 16, 24].map(at => Number(bytes.readBigInt64BE(at)))
    return { kind: 'batched', id, baseOffset, startOffset, appendTimeMs, isDuplicate: bytes[32] === 1 }
  }
  if (type === replyTypes.failed)
    return { kind: 'failed', id, code: errorCodeOf(bytes.readUInt16BE(8)), written: writtenOf(bytes[10] ?? 0) }
  if (type === replyTypes.readChunk)
    return { kind: 'read', id, bytes: bytes.length - ANSWER_BODY_AT, totalBytes: bytes.readUInt32BE(8) }
  if (type === replyTypes.available) return { kind: 'available', id }
  return type === replyTypes.ack ? { kind: 'acknowledged', id } : null
}
