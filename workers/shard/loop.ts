/**
 * The turn of a shard. Blocks in the bell or in the disk and nowhere else; it is deaf to events, timers and promises.
 *
 *   read the bell → control lane → one group (gather, write, sync, acks) → reads within a budget → publish replies
 *   → nothing left? wait on the bell value read first, until the nearest deadline
 */
import { rangesOf, type PartitionHandles } from '../../src/model/handles.ts'
import { assert } from '../../src/base/assert.ts'
import type { IdleMemory } from '../../src/base/idle-memory.ts'
import { DiskError } from '../../src/disk/disk.ts'
import type { ShardLog } from '../../src/log/shard-log.ts'
import type { Bell, Doorbell } from '../../src/ring/bell.ts'
import type { RingConsumer } from '../../src/ring/spsc-ring.ts'
import { unpackMessage } from '../../src/wire/msgpack.ts'
import { counterIndex } from '../../src/wire/shard/counters.ts'
import { shardHistogram } from '../../src/wire/shard/histograms.ts'
import type { ControlMessage } from '../../src/wire/shard/messages.ts'
import type { ProduceGroup } from './produce-group.ts'
import type { ReadQueue } from './read-queue.ts'
import type { Cleaning } from './cleaning.ts'
import type { ColdWaits } from './cold-waits.ts'
import type { RecordDeletion } from './record-deletion.ts'
import type { ReplyWriter } from './reply-writer.ts'
import type { Settling } from './settling.ts'
import type { WatchTable } from './watch-table.ts'

/** Longest sleep: nothing depends on it, but no wait is without an end. */
const SLEEP_MS_MAX = 10_000

/** Spare slots are asked for when less than this share of them is left. */
const REFILL_SHARE = 8
/** Longest that a shard told to stop waits for room for its last answers. */
const LAST_REPLIES_MS = 5000
/** Handles named in one report: it must fit a reply frame. */
const UNCLAIMED_MAX = 1000

export interface LoopParts {
  readonly log: ShardLog
  readonly bell: Bell
  readonly doorbell: Doorbell
  readonly control: RingConsumer
  readonly group: ProduceGroup
  readonly settling: Settling
  readonly cleaning: Cleaning
  readonly deletion: RecordDeletion
  readonly reads: ReadQueue
  readonly coldWaits: ColdWaits
  readonly watches: WatchTable
  readonly replies: ReplyWriter
  readonly counters: Float64Array
  readonly idleMemory: IdleMemory
  /** Slots of this size are kept filled ahead, up to fillAheadBytes. */
  readonly slotBytes: number
  readonly fillAheadBytes: number
  /** Of slots in use and spare together. */
  readonly budgetBytes: number
  readonly monotonicMs: () => number
}

export class ShardLoop {
  readonly #parts: LoopParts
  /** Bytes of spare slots asked for and not yet there. */
  #askedBytes = 0
  /** The spare for the next start is asked for and not yet there. */
  #isReserveAsked = false
  #slotsSeen = -1
  /** Told at the start, until all topics are opened. */
  readonly #knownProducers = new Set<number>()
  /** Sequence reported last. */
  #newestSlot = 0

  constructor(parts: LoopParts) {
    this.#parts = parts
  }

  /** Runs until it is told to stop. @throws ShardPoisoned, BugError: the thread ends and is started again. */
  run(): void {
    const { bell, control, group, settling, reads, replies, counters, doorbell, idleMemory, monotonicMs } = this.#parts
    const onRoom = (): void => void doorbell.ring()
    const turnSeconds = shardHistogram(counters, 'turnSeconds')
    for (;;) {
      const rung = bell.read()
      const startMs = monotonicMs()
      counters[counterIndex.loopTurns]! += 1
      if (!this.#drainControl(control)) return
      this.#deleteRecords()
      const hadGroup = group.run()
      replies.flush()
      this.#parts.coldWaits.turn()
      const hasReads = reads.run(onRoom)
      if (group.syncDueMs <= monotonicMs()) group.syncNow()
      this.#clean()
      settling.turn(hadGroup)
      this.#reportSlots()
      this.#askForSlots()
      replies.flush()
      turnSeconds.observe((monotonicMs() - startMs) / 1000)
      // Reads do not go on while answers wait: main rings when there is room, which was asked for by now.
      if (hadGroup || (hasReads && !replies.isWaiting)) {
        idleMemory.noteWork(monotonicMs())
        continue
      }
      idleMemory.turn(monotonicMs())
      counters[counterIndex.waits]! += 1
      bell.wait(rung, this.#sleepMs())
    }
  }

  /** Until the nearest deadline. */
  #sleepMs(): number {
    const { group, settling, cleaning, coldWaits, idleMemory, monotonicMs } = this.#parts
    const settleMs = Math.min(group.syncDueMs, settling.dueMs)
    const dueMs = Math.min(settleMs, cleaning.dueMs, coldWaits.dueMs, idleMemory.dueMs) - monotonicMs()
    const { holdMs } = settling
    return Math.max(0, Math.min(SLEEP_MS_MAX, dueMs, holdMs > 0 ? holdMs : SLEEP_MS_MAX))
  }

  /** A failed sync in retention ends the shard as any other does. */
  #clean(): void {
    const { cleaning, group } = this.#parts
    try {
      cleaning.turn()
    } catch (error) {
      throw group.poison(error)
    }
  }

  #deleteRecords(): void {
    const { deletion, group } = this.#parts
    try {
      deletion.turn()
    } catch (error) {
      throw group.poison(error)
    }
  }

  /** Sealing the open slot takes room: a disk that has none refuses the one who asked, and the shard goes on. */
  #settleAll(id: number): void {
    const { group, log, replies, settling } = this.#parts
    try {
      group.finish()
      settling.settleAll(id)
    } catch (error) {
      if (!(error instanceof DiskError) || log.isPoisoned) throw group.poison(error)
      replies.refuseByDisk(id, 'settling the journal', error.isFull)
      replies.log('warn', 'the open journal slot could not be sealed', { cause: error.message })
    }
  }

  /** @returns false when told to stop. */
  #drainControl(control: RingConsumer): boolean {
    let goesOn = true
    for (let at = control.next(); at >= 0; at = control.next()) {
      const message = unpackMessage(control.buffer, at, at + control.length) as ControlMessage
      if (!this.#handle(message)) goesOn = false
    }
    if (control.release()) this.#parts.doorbell.ring()
    return goesOn
  }

  #handle(message: ControlMessage): boolean {
    const { log, replies, settling } = this.#parts
    switch (message.kind) {
      case 'open':
        for (const topic of message.topics) log.table.open(topic)
        break
      case 'producers-known':
        for (const number of message.numbers) this.#knownProducers.add(number)
        break
      case 'producers-forgotten':
        log.table.forgetProducers(message.numbers)
        break
      case 'opened': {
        log.table.keepProducers(number => this.#knownProducers.has(number))
        this.#knownProducers.clear()
        const handles = log.table.unclaimedHandles()
        // Deleted topics may have left files: a job finds out.
        if (handles.length > 0) settling.noteDropped()
        if (handles.length > 0) replies.event({ kind: 'unclaimed', handles: handles.slice(0, UNCLAIMED_MAX) })
        break
      }
      case 'configure':
        log.table.configure(message.topic)
        break
      case 'drop':
        this.#drop(message.topic)
        break
      case 'slots-filled':
        for (const file of message.files) {
          log.files.addSpare({ name: file.name, capacityBytes: file.bytes, isFilled: true, isBlank: true })
          this.#noteAnswered(file.bytes)
        }
        break
      case 'slots-failed':
        this.#noteAnswered(message.bytes)
        break
      case 'run-retention':
        this.#parts.cleaning.ask(message.id)
        return true
      case 'delete-records':
        this.#parts.deletion.ask(message)
        return true
      case 'settle-all':
        this.#settleAll(message.id)
        return true
      case 'fetched':
        this.#parts.coldWaits.finish(message.name, message.problem)
        break
      case 'files-unused':
        settling.forgetFiles(message.paths)
        break
      case 'settled-part':
        settling.takePart()
        break
      case 'settled':
        settling.finish(message.report)
        break
      case 'settle-failed':
        settling.fail(message.failure)
        break
      case 'stop':
        this.#stop(message.id)
        return false
    }
    replies.acknowledge(message.id)
    return true
  }

  /** A topic is gone: nobody waits for anything of it, and its files go with the next job. */
  #drop(topic: PartitionHandles): void {
    const { log, watches, reads, settling } = this.#parts
    log.table.drop(topic.firstHandle)
    for (const range of rangesOf(topic)) {
      watches.drop(range)
      reads.drop(range)
    }
    settling.noteDropped()
  }

  /** What is still in the ring was accepted: it is written and answered first. */
  #stop(id: number): void {
    const { group, log, replies, settling, cleaning, bell, monotonicMs } = this.#parts
    settling.isOpen = true
    while (group.run()) replies.flush()
    while (cleaning.isAwaited) this.#clean()
    this.#deleteRecords()
    group.finish()
    log.close()
    replies.acknowledge(id)
    replies.flush()
    // Answers that found no room go out before the thread ends; main makes room unless it is stuck itself.
    const endMs = monotonicMs() + LAST_REPLIES_MS
    for (let rung = bell.read(); replies.isWaiting && monotonicMs() < endMs; rung = bell.read()) {
      replies.flush()
      if (replies.isWaiting) bell.wait(rung, 100)
    }
  }

  /** Main keeps the sequence of the newest slot elsewhere: a journal that lost its end would not know. */
  #reportSlots(): void {
    const { log, replies } = this.#parts
    if (log.newestSlot === this.#newestSlot) return
    this.#newestSlot = log.newestSlot
    replies.event({ kind: 'slot-opened', sequence: this.#newestSlot })
  }

  /** A file that was asked for is there, or will not come. The one for the next start has a size of its own. */
  #noteAnswered(bytes: number): void {
    if (bytes === this.#parts.log.files.reserveBytes) this.#isReserveAsked = false
    else this.#askedBytes -= bytes
    assert(this.#askedBytes >= 0, 'slots come, or fail, only when asked for')
  }

  #askForReserve(): void {
    const { log, replies } = this.#parts
    if (this.#isReserveAsked || !log.files.lacksReserve) return
    this.#isReserveAsked = true
    replies.event({ kind: 'slots-wanted', files: [{ name: log.files.drawName(), bytes: log.files.reserveBytes }] })
  }

  /**
   * Keeps spare slots coming; looked at when a slot was taken. Asks only when they are nearly used up: filling shares the
   * disk and the processor with the writer, and a burst that the spares can carry would lose a quarter of its speed to
   * their replacement (measured).
   */
  #askForSlots(): void {
    const { log, slotBytes, fillAheadBytes, budgetBytes, replies } = this.#parts
    if (this.#slotsSeen === log.files.slotCount) return
    this.#slotsSeen = log.files.slotCount
    this.#askForReserve()
    if (log.files.spareBytes + this.#askedBytes > Math.max(slotBytes, fillAheadBytes / REFILL_SHARE)) return
    const files: { name: string; bytes: number }[] = []
    // Within the budget of the journal: beyond it slots come back from settling.
    const allowedBytes = Math.min(fillAheadBytes, budgetBytes - log.unsettledBytes)
    while (log.files.spareBytes + this.#askedBytes + slotBytes <= allowedBytes) {
      files.push({ name: log.files.drawName(), bytes: slotBytes })
      this.#askedBytes += slotBytes
    }
    if (files.length > 0) replies.event({ kind: 'slots-wanted', files })
  }
}
