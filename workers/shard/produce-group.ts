/**
 * Group commit: takes produce frames from the ring, makes one group of them, writes and syncs it, and only then
 * acknowledges (W3). Shard thread only.
 *
 *   small groups:  gather ─▶ encode ─▶ ring freed ─▶ write ─▶ fdatasync ─▶ readable ─▶ acks
 *
 *   large groups:  gather n+1 ─▶ encode n+1 ─▶ ring freed ─▶ wait for n ─▶ n readable, acks ─▶ hand over n+1 ─▶ gather n+2
 *   writer thread:    write and fdatasync of n ────────────────▶│              write and fdatasync of n+1 …
 *
 * The ring is freed before the write: a frame still in the ring was surely not written, which is what main concludes
 * when a shard dies. Handing over a small group would cost more in wake-ups than it saves (measured).
 */
import { receiveMessageOnPort, type MessagePort } from 'node:worker_threads'
import { assert } from '../../src/base/assert.ts'
import { freeMemory } from '../../src/base/free-memory.ts'
import { DiskError } from '../../src/disk/disk.ts'
import { poisons } from '../../src/log/journal.ts'
import type { GroupEncoder } from '../../src/log/group-encoder.ts'
import type { ShardLog } from '../../src/log/shard-log.ts'
import type { ErrorCode, ErrorDetails, Written } from '../../src/model/errors.ts'
import { limits } from '../../src/model/limits.ts'
import { slotFileNumber } from '../../src/log/slot-files.ts'
import type { CommitCell } from '../../src/ring/commit-cell.ts'
import type { RingConsumer } from '../../src/ring/spsc-ring.ts'
import { counterIndex } from '../../src/wire/shard/counters.ts'
import { requestTypes } from '../../src/wire/shard/messages.ts'
import { WRITER_BUG, WRITER_DONE, writerFailure } from '../../src/wire/shard/writer.ts'
import { GroupCounts } from './group-counts.ts'
import { GroupRequests } from './group-requests.ts'
import type { ReplyWriter } from './reply-writer.ts'
import { RequestIntake } from './request-intake.ts'
import type { Settling } from './settling.ts'
import type { WatchTable } from './watch-table.ts'

/** Records of one group beside those of its last frame: what the encoder's tables are sized for. */
const GROUP_RECORDS_TARGET = 65_536
/** The same of its producer runs: a directory entry can name 65,535, and one frame adds one at most to each. */
const GROUP_PRODUCER_RUNS_TARGET = 16_384

/** The disk can no longer be trusted: the thread ends and comes back through recovery (W6). */
export class ShardPoisoned extends Error {
  override readonly name = 'ShardPoisoned'
}

/** From this size on the writer thread writes a group, if there is one. */
const HAND_OVER_BYTES_MIN = 256 * 1024
/** So many large groups make a shard ask for a writer thread. */
const LARGE_GROUPS_MIN = 16

export interface GroupOptions {
  readonly shard: number
  readonly log: ShardLog
  readonly settling: Settling
  readonly requests: RingConsumer
  readonly oversized: MessagePort
  readonly replies: ReplyWriter
  readonly cell: CommitCell
  readonly counters: Float64Array
  /** Is told what may be read from now on. */
  readonly watches: Pick<WatchTable, 'noteReadable'>
  /** Called when frames were freed and main had asked for room. */
  readonly onRoom: () => void
  readonly flushEveryRecords: number
  readonly flushIntervalMs: number
  readonly monotonicMs: () => number
}

export class ProduceGroup {
  readonly #options: GroupOptions
  /** Requests of the group being gathered. */
  #requests = new GroupRequests()
  /** Requests of the group that the writer thread has. */
  #handedOver = new GroupRequests()
  /** Memory of the large frames of the group: given back as soon as it is encoded. */
  readonly #oversized: ArrayBuffer[] = []
  readonly #intake: RequestIntake
  readonly #counts: GroupCounts
  #largeGroups = 0
  /** The last group was refused by the disk: said once in the log. */
  #isRefusing = false
  #unsyncedRecords = 0
  /** When deferred syncs are due; Infinity: nothing waits. */
  syncDueMs = Number.POSITIVE_INFINITY

  constructor(options: GroupOptions) {
    this.#options = options
    this.#counts = new GroupCounts(options.counters)
    this.#intake = new RequestIntake(options.log, options.replies)
  }

  /** Takes what the ring holds, up to the target, and commits it; acknowledges what the writer is done with. @returns whether there was anything. */
  run(): boolean {
    const wasFinished = this.#finishIfDone()
    const taken = this.#gather()
    if (this.#requests.count > 0) this.#commit()
    else if (taken) this.#freeRing()
    return taken || wasFinished
  }

  /** Waits for the group that the writer has, if any, and syncs what is written. @throws ShardPoisoned */
  finish(): void {
    this.#finishHandedOver()
    this.syncNow()
  }

  /** With deferred syncs: syncs what waits. @throws ShardPoisoned */
  syncNow(): void {
    // Also when the log has synced by itself, to open or end a slot.
    if (this.#options.log.hasUnsynced) this.#timedSync()
    this.#unsyncedRecords = 0
    this.syncDueMs = Number.POSITIVE_INFINITY
  }

  #gather(): boolean {
    const { requests, log, settling } = this.#options
    let taken = false
    if (settling.holdMs > 0) return false
    while (
      log.encoder.bodyBytes < limits.groupBytesTarget &&
      log.encoder.records.count < GROUP_RECORDS_TARGET &&
      log.encoder.producerRunCount < GROUP_PRODUCER_RUNS_TARGET
    ) {
      const at = requests.next()
      if (at < 0) break
      taken = true
      const type = requests.buffer[at]
      if (type === requestTypes.oversized) this.#take(this.#receiveOversized(requests.buffer.readUInt32BE(at + 8)), 0)
      else this.#take(requests.buffer, at)
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
    this.#intake.take(source, at, this.#requests)
    // The writer may be done meanwhile: what it wrote need not wait for the rest of this group.
    this.#finishIfDone()
  }

  #commit(): void {
    const { log, counters, monotonicMs } = this.#options
    if (log.encoder.batchCount === 0) return this.#answerDuplicates()
    // A new slot is opened only when all of the last one is synced, and no group is encoded over one being written.
    if (!log.fits || !log.fitsBeside) this.#finishHandedOver()
    // A group that fails takes the one gathered since with it: here, and once more below.
    if (this.#requests.count === 0 || !this.#prepare()) return
    const startMs = monotonicMs()
    const index = log.encode()
    this.#freeRing()
    counters[counterIndex.encodeNs]! += (monotonicMs() - startMs) * 1e6
    this.#finishHandedOver()
    if (this.#requests.count === 0) return
    if (this.#handsOver()) this.#handOver(index)
    else this.#writeHere(index)
  }

  /** Nothing is to be written. What the originals may lie in is settled first: they share its fate (W3). */
  #answerDuplicates(): void {
    this.#freeRing()
    this.#finishHandedOver()
    if (this.#requests.count === 0) return
    this.#requests.acknowledge(this.#options.log.encoder, this.#options.replies)
    this.#reset()
  }

  #handsOver(): boolean {
    const { log, cell, replies, flushEveryRecords } = this.#options
    if (log.encoder.totalBytes < HAND_OVER_BYTES_MIN || flushEveryRecords > 1) return false
    if (++this.#largeGroups === LARGE_GROUPS_MIN) replies.event({ kind: 'writer-wanted' })
    return cell.isReady && log.canHandOver
  }

  #handOver(index: number): void {
    const { log, cell } = this.#options
    const { slotName, start, end, position } = log.handOver(index)
    cell.ask(slotFileNumber(slotName), start, end, position)
    const gathered = this.#requests
    this.#requests = this.#handedOver
    this.#handedOver = gathered
  }

  /** @returns whether a group was finished. */
  #finishIfDone(): boolean {
    if (this.#handedOver.count === 0 || !this.#options.cell.isDone) return false
    this.#finishHandedOver()
    return true
  }

  /** Waits for the group that the writer has, and acknowledges it. @throws ShardPoisoned */
  #finishHandedOver(): void {
    const { log, cell, counters, replies, watches } = this.#options
    const encoder = log.handedOver
    if (encoder === null) return
    cell.wait()
    if (cell.outcome !== WRITER_DONE) {
      this.#handedOverFailed(cell.outcome)
      return
    }
    counters[counterIndex.writeNs]! += cell.writeNs
    this.#counts.sync(cell.syncNs)
    this.#countGroup(encoder)
    log.confirm()
    this.#handedOver.acknowledge(encoder, replies)
    watches.noteReadable(encoder.logs)
    log.release()
    this.#handedOver.clear()
    replies.flush()
  }

  /** The group that the writer had goes back, and the one gathered since with it. @throws unless the disk is only full */
  #handedOverFailed(outcome: number): void {
    const { log } = this.#options
    assert(outcome !== WRITER_BUG, 'the writer thread met a bug')
    const { code, isSync } = writerFailure(outcome)
    const error = new DiskError(
      code,
      isSync ? 'group.sync' : 'group.write',
      `${code} in the writer thread of the journal`
    )
    log.abandonHandedOver(error)
    if (!isPassing(error)) throw this.poison(error)
    log.release()
    this.#refuse(error)
    this.#freeRing()
  }

  #writeHere(index: number): void {
    const { log, counters, monotonicMs, replies, watches } = this.#options
    const startMs = monotonicMs()
    const position = this.#write(index)
    if (position < 0) return
    counters[counterIndex.writeNs]! += (monotonicMs() - startMs) * 1e6
    this.#countGroup(log.encoder)
    this.#unsyncedRecords += log.encoder.newRecordCount
    if (this.#unsyncedRecords >= this.#options.flushEveryRecords) this.syncNow()
    else if (this.syncDueMs === Number.POSITIVE_INFINITY) this.syncDueMs = monotonicMs() + this.#options.flushIntervalMs
    log.publish(index, position)
    this.#requests.acknowledge(log.encoder, replies)
    watches.noteReadable(log.encoder.logs)
    this.#reset()
  }

  /** Opens the next slot if the group needs one. @returns false if there is no room on the disk; the group is refused. */
  #prepare(): boolean {
    try {
      this.#options.log.prepare()
      return true
    } catch (error) {
      if (!isPassing(error)) throw this.poison(error)
      this.#options.log.encoder.rollback()
      this.#refuse(error)
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
      if (!isPassing(error)) throw this.poison(error)
      this.#abandonGroup()
      this.#refuse(error)
      return -1
    }
  }

  /** With deferred syncs it syncs what was acknowledged before the group, which may fail in its turn. */
  #abandonGroup(): void {
    try {
      this.#options.log.abandonGroup()
    } catch (error) {
      throw this.poison(error)
    }
  }

  /** The disk has no room, or the process no file handle: nothing was written, and a later group may be. */
  #refuse(error: DiskError): void {
    const { counters, replies } = this.#options
    counters[counterIndex.diskFull]! += this.#requests.count + this.#handedOver.count
    if (!this.#isRefusing)
      replies.log('error', 'produce is refused until the disk takes it again', { cause: error.message })
    this.#isRefusing = true
    if (isHandleLack(error))
      this.#failAll('OVERLOADED', { what: 'the number of open files', limit: 'the process' }, 'no')
    else this.#failAll('DISK_FULL', {}, 'no')
    this.#handedOver.clear()
    this.#reset()
  }

  #timedSync(): void {
    const { log, monotonicMs } = this.#options
    const startMs = monotonicMs()
    try {
      log.sync()
    } catch (error) {
      throw this.poison(error)
    }
    this.#counts.sync((monotonicMs() - startMs) * 1e6)
  }

  /** Fails what is under way. @returns what to throw: the thread ends. */
  poison(error: unknown): ShardPoisoned | Error {
    if (!(error instanceof DiskError)) return error instanceof Error ? error : new Error(String(error))
    const { replies, shard } = this.#options
    this.#failAll('WRITE_FAILED', { shard }, 'unknown')
    replies.event({ kind: 'poisoned', cause: error.message })
    replies.flush()
    return new ShardPoisoned(error.message, { cause: error })
  }

  #failAll(code: ErrorCode, details: ErrorDetails, written: Written): void {
    this.#handedOver.failAll(this.#options.replies, { code, details, written })
    this.#requests.failAll(this.#options.replies, { code, details, written })
  }

  #countGroup(encoder: GroupEncoder): void {
    const { log, replies, settling } = this.#options
    settling.noteGroup(encoder.totalBytes)
    if (this.#isRefusing) replies.log('info', 'produce is taken again')
    this.#isRefusing = false
    this.#counts.group(encoder, log)
  }

  #reset(): void {
    this.#options.log.encoder.reset()
    this.#requests.clear()
  }

  /** The requests of the group are encoded or refused: their bytes are needed no more. */
  #freeRing(): void {
    for (const memory of this.#oversized.splice(0)) freeMemory(memory)
    if (this.#options.requests.release()) this.#options.onRoom()
  }
}

/** What may pass by itself while nothing was written: no room, no file handle. */
function isPassing(error: unknown): error is DiskError {
  if (!(error instanceof DiskError) || poisons(error)) return false
  return error.isFull || isHandleLack(error)
}

function isHandleLack(error: DiskError): boolean {
  return error.code === 'EMFILE' || error.code === 'ENFILE'
}
