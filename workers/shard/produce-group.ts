/**
 * Group commit: takes produce frames from the ring, makes one group of them, writes and syncs it, and only then
 * acknowledges (W3). Shard thread only.
 *
 *   ring ── gather ──▶ encode ──▶ ring freed ──▶ write ──▶ fdatasync ──▶ readable ──▶ acks
 *
 * The ring is freed before the write: a frame still in the ring was surely not written, which is what main concludes
 * when a shard dies.
 */
import { receiveMessageOnPort, type MessagePort } from 'node:worker_threads'
import { assert } from '../../src/base/assert.ts'
import { copied } from '../../src/base/copy.ts'
import { freeMemory } from '../../src/base/free-memory.ts'
import { DiskError } from '../../src/disk/disk.ts'
import { poisons } from '../../src/log/journal.ts'
import type { ShardLog } from '../../src/log/shard-log.ts'
import type { ErrorCode, ErrorDetails, Written } from '../../src/model/errors.ts'
import { limits } from '../../src/model/limits.ts'
import { RESULT_BYTES } from '../../src/model/requests.ts'
import type { RingConsumer } from '../../src/ring/spsc-ring.ts'
import { counterIndex } from '../../src/wire/shard/counters.ts'
import {
  PRODUCE_HEADER_BYTES,
  REPLY_BODY_AT,
  REPLY_LAST,
  replyTypes,
  requestTypes
} from '../../src/wire/shard/messages.ts'
import type { ReplyWriter } from './reply-writer.ts'

/** Records of one group beside those of its last frame: what the encoder's tables are sized for. */
const GROUP_RECORDS_TARGET = 65_536

/** The disk can no longer be trusted: the thread ends and comes back through recovery (W6). */
export class ShardPoisoned extends Error {
  override readonly name = 'ShardPoisoned'
}

export interface GroupOptions {
  readonly shard: number
  readonly log: ShardLog
  readonly requests: RingConsumer
  readonly oversized: MessagePort
  readonly replies: ReplyWriter
  readonly counters: Float64Array
  /** Called when frames were freed and main had asked for room. */
  readonly onRoom: () => void
  readonly flushEveryRecords: number
  readonly flushIntervalMs: number
  readonly monotonicMs: () => number
}

export class ProduceGroup {
  readonly #options: GroupOptions
  /** Requests of the group: id, index of its first record, count of records. */
  readonly #ids: number[] = []
  readonly #firsts: number[] = []
  readonly #counts: number[] = []
  /** Memory of the large frames of the group: given back as soon as it is encoded. */
  readonly #oversized: ArrayBuffer[] = []
  #unsyncedRecords = 0
  /** When deferred syncs are due; Infinity: nothing waits. */
  syncDueMs = Number.POSITIVE_INFINITY

  constructor(options: GroupOptions) {
    this.#options = options
  }

  /** Takes what the ring holds, up to the target, and commits it. @returns whether there was anything. */
  run(): boolean {
    const taken = this.#gather()
    if (this.#ids.length > 0) this.#commit()
    else if (taken) this.#freeRing()
    return taken
  }

  /** With deferred syncs: syncs what waits. @throws ShardPoisoned */
  syncNow(): void {
    const { log } = this.#options
    if (!log.hasUnsynced) return
    this.#timedSync()
    this.#unsyncedRecords = 0
    this.syncDueMs = Number.POSITIVE_INFINITY
  }

  #gather(): boolean {
    const { requests, log } = this.#options
    let taken = false
    while (log.encoder.bodyBytes < limits.groupBytesTarget && log.encoder.recordCount < GROUP_RECORDS_TARGET) {
      const at = requests.next()
      if (at < 0) break
      taken = true
      const type = requests.buffer[at]
      if (type === requestTypes.produce) this.#take(requests.buffer, at)
      else if (type === requestTypes.oversized)
        this.#take(this.#receiveOversized(requests.buffer.readUInt32BE(at + 8)), 0)
      else assert(false, 'a request ring carries produce frames only')
    }
    return taken
  }

  #receiveOversized(bytes: number): Buffer {
    const received = receiveMessageOnPort(this.#options.oversized) as { message: ArrayBuffer } | undefined
    assert(
      received !== undefined && received.message.byteLength === bytes,
      'an oversized frame was posted before its entry'
    )
    this.#oversized.push(received.message)
    return Buffer.from(received.message)
  }

  #take(source: Buffer, at: number): void {
    const { log, replies } = this.#options
    const requestId = source.readUInt32BE(at + 4)
    const topic = log.table.topic(source.readUInt32BE(at + 8))
    if (topic === undefined) {
      // Deleted while the request was on its way: main knows the name.
      replies.fail(requestId, 'TOPIC_NOT_FOUND', {}, 'no')
      return
    }
    const count = source.readUInt32BE(at + 12)
    this.#ids.push(requestId)
    this.#firsts.push(log.encoder.gather(topic, source, at + PRODUCE_HEADER_BYTES, count))
    this.#counts.push(count)
  }

  #commit(): void {
    const { log, counters, monotonicMs } = this.#options
    if (!this.#prepare()) return
    const encodeStartMs = monotonicMs()
    const index = log.encode()
    this.#freeRing()
    const writeStartMs = monotonicMs()
    counters[counterIndex.encodeNs]! += (writeStartMs - encodeStartMs) * 1e6
    const position = this.#write(index)
    if (position < 0) return
    counters[counterIndex.writeNs]! += (monotonicMs() - writeStartMs) * 1e6
    this.#count()
    this.#unsyncedRecords += log.encoder.recordCount
    if (this.#unsyncedRecords >= this.#options.flushEveryRecords) this.syncNow()
    else if (this.syncDueMs === Number.POSITIVE_INFINITY) this.syncDueMs = monotonicMs() + this.#options.flushIntervalMs
    log.publish(index, position)
    this.#acknowledge()
    this.#reset()
  }

  /** Opens the next slot if the group needs one. @returns false if there is no room on the disk; the group is refused. */
  #prepare(): boolean {
    try {
      this.#options.log.prepare()
      return true
    } catch (error) {
      if (!isDiskFull(error)) throw this.#poison(error)
      this.#options.log.encoder.rollback()
      this.#refuseDiskFull()
      this.#freeRing()
      return false
    }
  }

  /** @returns the group's position in the slot, or −1: refused, the disk is full. */
  #write(index: number): number {
    const { log } = this.#options
    try {
      return log.write(index)
    } catch (error) {
      // A short write leaves no trailer, so the group can never be taken for a whole one: nothing was written.
      if (!isDiskFull(error)) throw this.#poison(error)
      this.#abandonGroup()
      this.#refuseDiskFull()
      return -1
    }
  }

  /** With deferred syncs it syncs what was acknowledged before the group, which may fail in its turn. */
  #abandonGroup(): void {
    try {
      this.#options.log.abandonGroup()
    } catch (error) {
      throw this.#poison(error)
    }
  }

  #refuseDiskFull(): void {
    this.#options.counters[counterIndex.diskFull]! += this.#ids.length
    this.#failAll('DISK_FULL', {}, 'no')
    this.#reset()
  }

  #timedSync(): void {
    const { log, counters, monotonicMs } = this.#options
    const startMs = monotonicMs()
    try {
      log.sync()
    } catch (error) {
      throw this.#poison(error)
    }
    counters[counterIndex.syncNs]! += (monotonicMs() - startMs) * 1e6
    counters[counterIndex.syncs]! += 1
  }

  #poison(error: unknown): ShardPoisoned | Error {
    if (!(error instanceof DiskError)) return error instanceof Error ? error : new Error(String(error))
    const { replies, shard } = this.#options
    this.#failAll('WRITE_FAILED', { shard }, 'unknown')
    replies.event({ kind: 'poisoned', cause: error.message })
    replies.flush()
    return new ShardPoisoned(error.message, { cause: error })
  }

  #failAll(code: ErrorCode, details: ErrorDetails, written: Written): void {
    for (const id of this.#ids) this.#options.replies.fail(id, code, details, written)
  }

  #acknowledge(): void {
    const { log, replies } = this.#options
    for (let i = 0; i < this.#ids.length; i++) {
      const count = this.#counts[i] ?? 0
      replies.begin(replyTypes.produced, REPLY_LAST, this.#ids[i] ?? 0, REPLY_BODY_AT + count * RESULT_BYTES)
      replies.target.writeUInt32BE(count, replies.at + 8)
      log.encoder.writeResults(this.#firsts[i] ?? 0, count, replies.target, replies.at + REPLY_BODY_AT)
    }
  }

  #count(): void {
    const { log, counters } = this.#options
    counters[counterIndex.groups]! += 1
    counters[counterIndex.journalBytes]! += log.encoder.totalBytes
    counters[counterIndex.records]! += log.encoder.recordCount
    counters[counterIndex.recordBytes]! += log.encoder.payloadBytes
    counters[counterIndex.batches]! += log.encoder.batchCount
    counters[counterIndex.copiedBytes] = copied.bytes
    counters[counterIndex.slotsRolled] = log.rolledSlots
    counters[counterIndex.slotsUnfilled] = log.unfilledSlots
  }

  #reset(): void {
    this.#options.log.encoder.reset()
    this.#ids.length = 0
    this.#firsts.length = 0
    this.#counts.length = 0
  }

  /** The requests of the group are encoded or refused: their bytes are needed no more. */
  #freeRing(): void {
    for (const memory of this.#oversized.splice(0)) freeMemory(memory)
    if (this.#options.requests.release()) this.#options.onRoom()
  }
}

function isDiskFull(error: unknown): boolean {
  return error instanceof DiskError && !poisons(error) && (error.code === 'ENOSPC' || error.code === 'EDQUOT')
}
