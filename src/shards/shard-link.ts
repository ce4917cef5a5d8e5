/**
 * The main thread's end of one incarnation of a shard: its rings, its worker, its requests in progress.
 * Main thread only. A link is used once: after a death a new one with new rings takes its place.
 */
import { MessageChannel, Worker, type MessagePort } from 'node:worker_threads'
import { workerMemory } from '../base/worker-memory.ts'
import { siblingModule } from '../base/module-url.ts'
import { BrokerError } from '../model/errors.ts'
import type { LentPart, ReadRequest } from '../model/requests.ts'
import { Bell, createBell } from '../ring/bell.ts'
import { createCommitCell } from '../ring/commit-cell.ts'
import { ChunkKeeper, createLentChunks } from '../ring/lent-chunks.ts'
import { RingConsumer, RingProducer, createRing } from '../ring/spsc-ring.ts'
import { packMessage, unpackMessage } from '../wire/msgpack.ts'
import { write64 } from '../wire/primitives/u64.ts'
import { createCounters, readCounters, type ShardCounters } from '../wire/shard/counters.ts'
import { readHistograms, type ShardHistograms } from '../wire/shard/histograms.ts'
import {
  OFFSETS_BYTES,
  OVERSIZED_BYTES,
  PRODUCE_HEADER_BYTES,
  READ_BYTES,
  READ_FROM_START,
  REPLY_HEADER_BYTES,
  REPLY_LAST,
  UNWATCH_BYTES,
  replyTypes,
  requestTypes,
  type ControlMessage,
  type ShardEvent
} from '../wire/shard/messages.ts'
import type { ShardRings, ShardStart } from '../wire/shard/start.ts'
import type { WriterStart } from '../wire/shard/writer.ts'
import { ControlLane } from './control-lane.ts'
import { PendingTable, type PendingRequest, type Question } from './pending.ts'
import type { ProduceFrame, ProduceHead } from './produce-frame.ts'
import { failureOf, lentPartsIn, payloadOf } from './reply-payload.ts'

/** Room for topics at start, jobs, cancels; its frames are a quarter at most: a topic that has a range for each partition fits. */
export const CONTROL_RING_BYTES = 4 * 1024 * 1024

/** What of a shard's start is not the link's own. */
export type LinkStart = Omit<ShardStart, 'rings' | 'doorbell' | 'oversized' | 'changes' | 'shard'>

/** Of the memory that a shard and main share. */
export interface SharedSizes {
  readonly requestRingBytes: number
  readonly readRingBytes: number
  readonly replyRingBytes: number
  readonly lentChunkCount: number
  readonly encodeBufferBytes: number
}

export interface LinkOptions extends SharedSizes {
  readonly shard: number
  readonly start: LinkStart
  readonly asleep: SharedArrayBuffer
  readonly onDoorbell: () => void
  readonly onEvent: (event: ShardEvent) => void
  readonly onExit: (cause: Error | null) => void
}

export class ShardLink {
  readonly shard: number
  readonly requests: RingProducer
  readonly reads: RingProducer
  readonly replies: RingConsumer
  /** What large answers of this shard lie in. */
  readonly lent: ChunkKeeper
  readonly pending = new PendingTable()
  readonly #control: ControlLane
  readonly #bell: Bell
  readonly #rings: ShardRings
  readonly #worker: Worker
  readonly #doorbell: MessagePort
  readonly #oversized: MessagePort
  readonly #changes: MessagePort
  #writer: Worker | null = null
  readonly #options: LinkOptions
  #isDirty = false

  constructor(options: LinkOptions) {
    this.#options = options
    this.shard = options.shard
    this.#rings = {
      requests: createRing(options.requestRingBytes),
      reads: createRing(options.readRingBytes),
      control: createRing(CONTROL_RING_BYTES),
      replies: createRing(options.replyRingBytes),
      lent: createLentChunks(options.lentChunkCount),
      bell: createBell(),
      cell: createCommitCell(),
      encoded: new SharedArrayBuffer(options.encodeBufferBytes),
      asleep: options.asleep,
      counters: createCounters()
    }
    this.requests = new RingProducer(this.#rings.requests)
    this.reads = new RingProducer(this.#rings.reads)
    this.replies = new RingConsumer(this.#rings.replies)
    this.lent = new ChunkKeeper(this.#rings.lent)
    this.#control = new ControlLane(this.#rings.control)
    this.#bell = new Bell(this.#rings.bell)
    const doorbell = new MessageChannel()
    const oversized = new MessageChannel()
    const changes = new MessageChannel()
    this.#doorbell = doorbell.port1
    this.#oversized = oversized.port1
    this.#changes = changes.port1
    this.#doorbell.on('message', options.onDoorbell)
    const workerData: ShardStart = {
      ...options.start,
      shard: options.shard,
      rings: this.#rings,
      doorbell: doorbell.port2,
      oversized: oversized.port2,
      changes: changes.port2
    }
    this.#worker = new Worker(siblingModule(import.meta.url, '../../workers/shard/entry'), {
      workerData,
      transferList: [doorbell.port2, oversized.port2, changes.port2],
      resourceLimits: workerMemory,
      name: `shard ${options.shard}`
    })
    let cause: Error | null = null
    this.#worker.on('error', error => {
      cause = error instanceof Error ? error : new Error(String(error))
    })
    this.#worker.on('exit', () => {
      this.#doorbell.close()
      this.#oversized.close()
      this.#changes.close()
      // Its writer ends before anyone else opens the journal: two must never write one file.
      void (this.#writer?.terminate() ?? Promise.resolve()).then(() => options.onExit(cause))
    })
  }

  /** What V8 says of the thread's heap, as soon as that thread runs a line of code. */
  readonly heap = () => this.#worker.getHeapStatistics()

  /** The memory of the shard's counters, which that thread alone writes. */
  get sharedCounters(): SharedArrayBuffer {
    return this.#rings.counters
  }

  get counters(): ShardCounters {
    return readCounters(this.#rings.counters)
  }

  get histograms(): ShardHistograms {
    return readHistograms(this.#rings.counters)
  }

  /** Largest produce message that enters the ring as it is. */
  get frameBytesMax(): number {
    return this.requests.frameBytesMax
  }

  /**
   * Sets room aside for a produce of `recordsBytes`; several links may be asked before any is filled.
   * @returns false: no room. Nothing is visible before publish(); undoProduce takes the last one back.
   */
  reserveProduce(recordsBytes: number): boolean {
    const bytes = PRODUCE_HEADER_BYTES + recordsBytes
    const wanted = bytes > this.frameBytesMax ? OVERSIZED_BYTES : bytes
    this.#reservedAt = this.requests.reserve(wanted)
    if (this.#reservedAt >= 0) return true
    this.requests.askForRoom()
    this.#reservedAt = this.requests.reserve(wanted)
    return this.#reservedAt >= 0
  }
  #reservedAt = -1

  /** Takes back a reservation. @param position requests.position() before it. */
  undoProduce(position: number): void {
    this.requests.abandonTo(position)
  }

  /** Where the records of the reserved produce go: the ring, or memory of its own for a large one (decision 5). */
  beginProduce(recordsBytes: number): ProduceFrame {
    const bytes = PRODUCE_HEADER_BYTES + recordsBytes
    if (bytes <= this.frameBytesMax) {
      return { buffer: this.requests.buffer, recordsAt: this.#reservedAt + PRODUCE_HEADER_BYTES, memory: null }
    }
    const memory = new ArrayBuffer(bytes)
    return { buffer: Buffer.from(memory), recordsAt: PRODUCE_HEADER_BYTES, memory }
  }

  /** Completes a frame whose body is in place. The shard sees it after publish(). */
  endProduce(frame: ProduceFrame, head: ProduceHead, request: PendingRequest): void {
    const { buffer } = frame
    const at = frame.recordsAt - PRODUCE_HEADER_BYTES
    const id = this.pending.add(request)
    // A check writes nothing: after a death it is known that nothing was written.
    request.endPosition = head.type === 'check' ? -1 : this.requests.position()
    buffer.writeUInt32BE((requestTypes[head.type] << 24) | (head.flags << 16), at)
    buffer.writeUInt32BE(id, at + 4)
    buffer.writeUInt32BE(head.firstHandle, at + 8)
    buffer.writeUInt32BE(head.count, at + 12)
    buffer.writeUInt32BE(head.bytes, at + 16)
    write64(buffer, at + 20, head.producer)
    if (frame.memory !== null) {
      // The memory is posted before its ring entry is published: the shard finds it there (architecture, Rings).
      this.#oversized.postMessage(frame.memory, [frame.memory])
      const entry = this.requests.buffer
      entry.writeUInt32BE(requestTypes.oversized << 24, this.#reservedAt)
      entry.writeUInt32BE(id, this.#reservedAt + 4)
      entry.writeUInt32BE(PRODUCE_HEADER_BYTES + head.bytes, this.#reservedAt + 8)
    }
    this.#isDirty = true
  }

  /** @returns false: no room in the reads ring; nothing was asked. */
  sendRead(
    read: Omit<ReadRequest, 'topic' | 'format'> & { readonly handle: number; readonly format: number },
    request: PendingRequest
  ): boolean {
    const at = this.#reserveRead(READ_BYTES)
    if (at < 0) return false
    const buffer = this.reads.buffer
    const flags = read.isFromStart === true ? READ_FROM_START : 0
    buffer.writeUInt32BE((requestTypes.read << 24) | (read.format << 16) | (flags << 8), at)
    buffer.writeUInt32BE(this.pending.add(request), at + 4)
    buffer.writeUInt32BE(read.handle, at + 8)
    buffer.writeUInt32BE(read.partition, at + 12)
    buffer.writeUInt32BE(read.offsetHigh, at + 16)
    buffer.writeUInt32BE(read.offsetLow, at + 20)
    buffer.writeUInt32BE(read.maxRecords, at + 24)
    buffer.writeUInt32BE(read.maxBytes, at + 28)
    return true
  }

  /** Asks what numbers alone ask for. @returns false: no room in the reads ring; nothing was asked. */
  ask(question: Question, request: PendingRequest): boolean {
    return this.#ask(requestTypes[question.type], question.numbers, request) >= 0
  }

  /** Sends a WATCH. @returns its id; −1: no room in the reads ring, and nothing was asked. */
  watch(numbers: readonly number[], request: PendingRequest): number {
    return this.#ask(requestTypes.watch, numbers, request)
  }

  /** Has a WATCH that was not answered yet answered now. @returns false: no room in the reads ring. */
  unwatch(id: number): boolean {
    const at = this.#reserveRead(UNWATCH_BYTES)
    if (at < 0) return false
    this.reads.buffer.writeUInt32BE(requestTypes.unwatch << 24, at)
    this.reads.buffer.writeUInt32BE(id, at + 4)
    return true
  }

  #ask(type: number, numbers: readonly number[], request: PendingRequest): number {
    const at = this.#reserveRead(8 + 4 * numbers.length)
    if (at < 0) return -1
    const id = this.pending.add(request)
    this.reads.buffer.writeUInt32BE(type << 24, at)
    this.reads.buffer.writeUInt32BE(id, at + 4)
    numbers.forEach((number, i) => this.reads.buffer.writeUInt32BE(number, at + 8 + 4 * i))
    return id
  }

  /** Asks for the offsets of a partition or of all. @returns false: no room in the reads ring; nothing was asked. */
  sendOffsets(
    question: { firstHandle: number; partition: number; timestampMs: number | null },
    request: PendingRequest
  ): boolean {
    const at = this.#reserveRead(OFFSETS_BYTES)
    if (at < 0) return false
    const buffer = this.reads.buffer
    buffer.writeUInt32BE((requestTypes.offsets << 24) | ((question.timestampMs === null ? 0 : 1) << 16), at)
    buffer.writeUInt32BE(this.pending.add(request), at + 4)
    buffer.writeUInt32BE(question.firstHandle, at + 8)
    buffer.writeUInt32BE(question.partition, at + 12)
    write64(buffer, at + 16, question.timestampMs ?? 0)
    return true
  }

  #reserveRead(bytes: number): number {
    let at = this.reads.reserve(bytes)
    if (at < 0) {
      this.reads.askForRoom()
      at = this.reads.reserve(bytes)
    }
    if (at >= 0) this.#isDirty = true
    return at
  }

  /**
   * Sends a control message and rings at once.
   * @returns resolves when it is acknowledged, to what that carries if anything; rejects with a BugError, and nothing is
   * sent, if it is larger than the ring can take.
   */
  control(make: (id: number) => ControlMessage): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const onReply: PendingRequest['onReply'] = (_, bytes, start, end) => resolve(payloadOf(bytes, start, end))
      const id = this.pending.add({ endPosition: -1, onReply, onFailure: reject })
      try {
        this.#control.add(packMessage(make(id)))
      } catch (error) {
        // Nothing will answer it.
        this.pending.remove(id)
        throw error
      }
      this.#isDirty = true
      this.publish()
    })
  }

  /** Passes on what a settle job changed: posted first, then named by a control message. */
  sendChanges(changes: Uint8Array): Promise<unknown> {
    this.#changes.postMessage(changes)
    return this.control(id => ({ kind: 'settled-part', id }))
  }

  /** Makes everything sent so far visible and rings the bell, once. */
  publish(): void {
    if (!this.#isDirty) return
    this.#isDirty = false
    if (!this.#control.move()) this.#isDirty = true
    this.requests.publish()
    this.reads.publish()
    this.#bell.ring()
  }

  /** Delivers replies up to about `budgetBytes`. @returns whether the ring was emptied. */
  drain(budgetBytes: number): boolean {
    const { replies } = this
    let left = budgetBytes
    let isEmpty = false
    while (left > 0) {
      const at = replies.next()
      if (at < 0) {
        isEmpty = true
        break
      }
      left -= replies.length
      this.#deliver(replies.buffer, at, at + replies.length)
    }
    // A shard that had no room for a reply is told that there is some.
    if (replies.release()) this.#bell.ring()
    return isEmpty
  }

  #deliver(bytes: Buffer, start: number, end: number): void {
    const type = bytes[start] as number
    if (type === replyTypes.event) {
      this.#options.onEvent(unpackMessage(bytes, start + REPLY_HEADER_BYTES, end) as ShardEvent)
      return
    }
    const id = bytes.readUInt32BE(start + 4)
    const isLast = ((bytes[start + 1] as number) & REPLY_LAST) !== 0
    const request = this.pending.get(id)
    if (isLast) this.pending.remove(id)
    if (type === replyTypes.failed) request.onFailure(failureOf(bytes, start, end))
    else request.onReply(type, bytes, start, end, isLast)
  }

  /** What a READ_LENT names in bytes[start, end). Usable after the shard's end too. */
  lentParts(bytes: Buffer, start: number, end: number): LentPart[] {
    return lentPartsIn(this.lent, bytes, start, end)
  }

  /** Fails everything in progress after the thread ended (architecture, A shard dies). Replies already sent come first. */
  failAll(): void {
    while (!this.drain(Number.MAX_SAFE_INTEGER));
    const bugs: unknown[] = []
    for (const request of this.pending.takeAll()) {
      const wasTaken = request.endPosition >= 0 && this.requests.hasConsumed(request.endPosition)
      const code = wasTaken ? 'SHARD_DIED' : 'SHARD_DOWN'
      try {
        request.onFailure(new BrokerError(code, { shard: this.shard }))
      } catch (error) {
        // A bug in one caller must not leave the others without an answer; it is thrown when all have theirs.
        bugs.push(error)
      }
    }
    if (bugs.length > 0) throw bugs[0]
  }

  /** Starts the thread that writes and syncs large groups for this shard. */
  startWriter(): void {
    const { encoded: memory, cell, bell } = this.#rings
    const { directory, faults } = this.#options.start
    const workerData: WriterStart = { directory, memory, cell, bell, faults }
    const url = siblingModule(import.meta.url, '../../workers/shard/writer-entry')
    this.#writer = new Worker(url, { workerData, resourceLimits: workerMemory, name: `writer ${this.shard}` })
    // It reports every failure through its cell. If it ends all the same, its shard may wait for it in vain.
    this.#writer.on('error', () => void this.#worker.terminate())
  }

  /** Ends the thread without asking it. */
  async terminate(): Promise<void> {
    await this.#worker.terminate()
  }
}
