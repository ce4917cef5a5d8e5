/**
 * Who waits until a partition has something to read: a watch stands until the partition has as many stored bytes at or
 * above its offset. Shard thread only; owned by the shard, asked by its reads, told by its groups.
 *
 *   WATCH ─▶ enough? ─▶ AVAILABLE          a group is durable ─▶ the watches of its partitions ─▶ enough? ─▶ AVAILABLE
 *               └─ no ─▶ stands            its topic is dropped ─▶ TOPIC_NOT_FOUND          UNWATCH ─▶ AVAILABLE
 *
 * Nothing wakes it by itself: what is readable changes on this thread alone, and every such change tells it. Main bounds
 * their number (limits.watchesMax). A watch that stands has one request of main in progress.
 */
import { endOf, type HandleRange } from '../../src/model/handles.ts'
import type { LogTable } from '../../src/log/log-table.ts'
import type { PartitionLog } from '../../src/log/partition-log.ts'
import { storedBytesFrom } from '../../src/log/stored-bytes.ts'
import { REPLY_HEADER_BYTES, REPLY_LAST, replyTypes } from '../../src/wire/shard/messages.ts'
import type { ReplyWriter } from './reply-writer.ts'
import { TWO_32 } from '../../src/wire/primitives/u64.ts'

class StandingWatch {
  readonly requestId: number
  readonly handle: number
  readonly partition: number
  /** u64; beyond 2^53 it is not exact, and behind every end. */
  readonly offset: number
  readonly minBytes: number
  /** What was counted when it was looked at last: so many bytes, up to that offset. */
  bytes = 0
  countedEnd = 0
  /** Of the log at that time. */
  layout = 0

  /** Of a WATCH at buffer[at…], which is borrowed until return. */
  constructor(buffer: Buffer, at: number) {
    this.requestId = buffer.readUInt32BE(at + 4)
    this.handle = buffer.readUInt32BE(at + 8)
    this.partition = buffer.readUInt32BE(at + 12)
    this.offset = buffer.readUInt32BE(at + 16) * TWO_32 + buffer.readUInt32BE(at + 20)
    this.minBytes = buffer.readUInt32BE(at + 24)
  }

  /** Counts what came since it was looked at last. What was there before may be gone meanwhile: then it is counted anew. */
  isEnough(log: PartitionLog): boolean {
    const { offset, minBytes } = this
    this.bytes += storedBytesFrom(log, Math.max(offset, this.countedEnd), minBytes - this.bytes)
    this.countedEnd = log.highWatermark
    if (this.bytes < minBytes) return false
    if (this.layout === log.layout && log.startOffset <= offset) return true
    this.layout = log.layout
    this.bytes = storedBytesFrom(log, offset, minBytes)
    return this.bytes >= minBytes
  }
}

export class WatchTable {
  readonly #logs: LogTable
  readonly #replies: Pick<ReplyWriter, 'begin' | 'fail'>
  readonly #byRequest = new Map<number, StandingWatch>()
  readonly #byHandle = new Map<number, Set<StandingWatch>>()

  constructor(logs: LogTable, replies: Pick<ReplyWriter, 'begin' | 'fail'>) {
    this.#logs = logs
    this.#replies = replies
  }

  /** Watches that stand. */
  get count(): number {
    return this.#byRequest.size
  }

  /** Takes a WATCH; its bytes are borrowed until return. */
  take(buffer: Buffer, at: number): void {
    const watch = new StandingWatch(buffer, at)
    const topic = this.#logs.topicOf(watch.handle)
    if (topic === undefined) {
      this.#replies.fail(watch.requestId, 'TOPIC_NOT_FOUND', {}, 'no')
      return
    }
    // A partition that never had a record has no log, and gets none for being watched.
    const log = topic.logs[watch.partition]
    if (log !== undefined && watch.isEnough(log)) this.#answer(watch)
    else this.#add(watch)
  }

  /** Takes an UNWATCH: a watch that was answered meanwhile is left alone. */
  end(requestId: number): void {
    const watch = this.#byRequest.get(requestId)
    if (watch === undefined) return
    this.#remove(watch)
    this.#answer(watch)
  }

  /** More of these logs may be read: a group is durable. @cost one look-up a log, if anybody waits for any, and one look a watch of it. */
  noteReadable(logs: readonly PartitionLog[]): void {
    if (this.#byRequest.size === 0) return
    for (const log of logs) {
      const watches = this.#byHandle.get(log.handle)
      if (watches === undefined) continue
      for (const watch of watches) {
        if (!watch.isEnough(log)) continue
        this.#remove(watch)
        this.#answer(watch)
      }
    }
  }

  /** Partitions of a topic that is gone: nothing will come. */
  drop(range: HandleRange): void {
    if (this.#byRequest.size === 0) return
    for (let handle = range.firstHandle; handle < endOf(range); handle++) {
      for (const watch of this.#byHandle.get(handle) ?? []) {
        this.#remove(watch)
        this.#replies.fail(watch.requestId, 'TOPIC_NOT_FOUND', {}, 'no')
      }
    }
  }

  #add(watch: StandingWatch): void {
    this.#byRequest.set(watch.requestId, watch)
    const others = this.#byHandle.get(watch.handle)
    if (others === undefined) this.#byHandle.set(watch.handle, new Set([watch]))
    else others.add(watch)
  }

  #remove(watch: StandingWatch): void {
    this.#byRequest.delete(watch.requestId)
    const others = this.#byHandle.get(watch.handle)
    others?.delete(watch)
    if (others?.size === 0) this.#byHandle.delete(watch.handle)
  }

  #answer(watch: StandingWatch): void {
    this.#replies.begin(replyTypes.available, REPLY_LAST, watch.requestId, REPLY_HEADER_BYTES)
  }
}
