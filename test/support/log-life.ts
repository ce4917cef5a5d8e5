/**
 * One life of a shard's log on a disk that loses power: random appends, rolls, fills, full disks, failed syncs, clean
 * ends, kills and power cuts, each of them also in the middle of any disk call, in recovery too. The same seed lives
 * the same life. Every restart is judged by LogHistory; a life that ends without an error proved the promises.
 */
import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { DiskError } from '../../src/disk/disk.ts'
import { FaultPlan } from '../../src/disk/fault-plan.ts'
import type { FaultPoint } from '../../src/disk/faults.ts'
import { SimulatedDisk } from '../../src/disk/simulated-disk.ts'
import { fillSlot } from '../../src/log/slot-files.ts'
import type { PartitionLog } from '../../src/log/partition-log.ts'
import type { ShardLog } from '../../src/log/shard-log.ts'
import {
  ManualClock,
  gather,
  gatheredResults,
  openLog,
  partitionOf,
  readBack,
  testDirectory,
  type TestRecord,
  type TestRequest
} from './log-harness.ts'
import { LogHistory, type LogContents, type ToldRecord } from './log-history.ts'
import { Interruption, InterruptibleDisk } from './log-interruptible-disk.ts'
import { LifeProducers } from './log-producers.ts'
import { diceOf, type Dice } from './log-random.ts'

/** Lies that the disk tells in a negative control. */
export interface LifeControls {
  readonly ignoreSync?: boolean
  readonly ignoreDirectorySync?: boolean
}

/** What happened, so that a test can see that its lives were eventful. */
export interface LifeCounts {
  ackedRecords: number
  powerCuts: number
  kills: number
  cutsInRecovery: number
  refusedGroups: number
  failedSyncs: number
  cutGroups: number
  copiedGroups: number
  duplicates: number
}

type Ending = 'kill' | 'power'

interface LifeTopic {
  readonly firstHandle: number
  readonly partitionCount: number
  readonly segmentBytes: number
}

const KIB = 1024
const fullDiskPoints: readonly FaultPoint[] = ['group.write', 'slot.create', 'slot.header-write', 'slot.footer-write']
const syncPoints: readonly FaultPoint[] = [
  'group.sync',
  'slot.header-sync',
  'slot.footer-sync',
  'journal.directory-sync'
]

class Life {
  readonly counts: LifeCounts = {
    ackedRecords: 0,
    powerCuts: 0,
    kills: 0,
    cutsInRecovery: 0,
    refusedGroups: 0,
    failedSyncs: 0,
    cutGroups: 0,
    copiedGroups: 0,
    duplicates: 0
  }
  readonly #dice: Dice
  readonly #history = new LogHistory()
  readonly #clock = new ManualClock()
  readonly #topics: LifeTopic[]
  readonly #producers: LifeProducers
  readonly #isDeferred: boolean
  readonly #encodeBufferBytes: number
  #inner: SimulatedDisk
  #disk: InterruptibleDisk
  #log: ShardLog
  #nextId = 1

  constructor(seed: number, controls: LifeControls) {
    const dice = diceOf(seed)
    this.#dice = dice
    this.#producers = new LifeProducers(dice)
    this.#isDeferred = dice.chance(0.2)
    this.#encodeBufferBytes = dice.pick([16 * KIB, 256 * KIB, 1024 * KIB])
    this.#topics = [1, 10, 20].map((firstHandle, index) => ({
      firstHandle,
      partitionCount: [3, 1, 40][index] ?? 1,
      segmentBytes: dice.pick([128, 2000, 20_000, 2 ** 31 - 1])
    }))
    // A sync that fails on the disk itself loses what it should have synced, as Linux does.
    const faults = new FaultPlan()
    if (dice.chance(0.2)) {
      const call = 1 + dice.below(25)
      faults.arm({
        point: dice.pick(syncPoints),
        firstCall: call,
        lastCall: call,
        fault: { kind: 'error', code: 'EIO' }
      })
    }
    this.#inner = new SimulatedDisk({ ...controls, faults })
    this.#disk = new InterruptibleDisk(this.#inner)
    this.#log = this.#openUntilUp(false)
  }

  run(steps: number): void {
    for (let step = 0; step < steps; step++) {
      if (this.#dice.chance(0.15)) this.#disk.stopAt(1 + this.#dice.below(12), this.#dice.chance(0.5))
      if (this.#dice.chance(0.06)) this.#fillDisk()
      this.#clock.wallMs += this.#dice.below(2000) - 500
      this.#outlive(() => this.#act())
    }
    this.#disk.goOn()
    this.#disk.faults.disarm()
    this.#outlive(() => this.#log.close())
    this.#restart('power')
    this.counts.ackedRecords = this.#history.ackedRecords
    this.counts.duplicates = this.#producers.duplicates
  }

  /** What ends a process ends this one: then the next one starts. */
  #outlive(action: () => void): void {
    try {
      action()
    } catch (error) {
      if (error instanceof DiskError) this.counts.failedSyncs++
      else if (!(error instanceof Interruption)) throw error
      this.#restart(this.#pickEnding())
    }
  }

  #act(): void {
    const dice = this.#dice.unit()
    if (dice < 0.76) this.#append()
    else if (dice < 0.82) this.#fillSpare()
    else if (dice < 0.88) this.#checkOnePartition()
    else if (dice < 0.92 && this.#isDeferred) this.#syncNow()
    else if (dice < 0.95) this.#endClean()
    else if (dice < 0.98) this.#restart('kill')
    else this.#restart('power')
  }

  #append(): void {
    const requests = this.#drawRequests()
    gather(this.#log, requests)
    if (this.#log.encoder.batchCount === 0) {
      // Duplicates alone: nothing is written.
      this.#log.encoder.reset()
      return
    }
    const group = this.#history.begin(this.#toldRecords(requests))
    let isPrepared = false
    try {
      this.#log.prepare()
      isPrepared = true
      // A roll syncs what came before: with deferred syncs those callers may be told now.
      if (!this.#log.hasUnsynced) this.#history.ack(group)
      const index = this.#log.encode()
      const position = this.#log.write(index)
      group.isWritten = true
      if (!this.#isDeferred) this.#log.sync()
      this.#log.publish(index, position)
      if (!this.#isDeferred) this.#history.ack()
      this.#log.encoder.reset()
    } catch (error) {
      // A full disk is the caller's bad luck; a failed sync is the end of the process.
      if (!(error instanceof DiskError) || error.code !== 'ENOSPC' || group.isWritten) throw error
      if (isPrepared) this.#log.abandonGroup()
      else this.#log.encoder.rollback()
      this.#log.encoder.reset()
      this.#history.refuse(group)
      if (!this.#log.hasUnsynced) this.#history.ack()
      this.counts.refusedGroups++
    }
  }

  #syncNow(): void {
    if (this.#log.hasUnsynced) this.#log.sync()
    this.#history.ack()
  }

  #endClean(): void {
    this.#log.close()
    this.#history.ack()
    this.#restart(this.#pickEnding())
  }

  #fillSpare(): void {
    const name = this.#log.files.drawName()
    const capacityBytes = 128 * KIB
    fillSlot(this.#disk, testDirectory, name, capacityBytes)
    this.#log.files.addSpare({ name, capacityBytes, isFilled: true, isBlank: true })
  }

  #fillDisk(): void {
    const point = this.#dice.pick(fullDiskPoints)
    const firstCall = this.#disk.faults.callCount(point) + 1
    const lastCall = firstCall + this.#dice.below(2)
    const kind = this.#dice.pick(['error', 'short'] as const)
    this.#disk.faults.arm({ point, firstCall, lastCall, fault: { kind, code: 'ENOSPC' } })
  }

  #checkOnePartition(): void {
    const topic = this.#dice.pick(this.#topics)
    const partition = this.#dice.below(topic.partitionCount)
    const readable = this.#history.readable(topic.firstHandle + partition)
    const from = this.#dice.below(readable.length + 1)
    assert.deepEqual(this.#contentsOf(topic, partition, from), readable.slice(from))
    this.#producers.check(partitionOf(this.#log, topic.firstHandle, partition), readable)
  }

  #pickEnding(): Ending {
    return this.#dice.chance(0.5) ? 'kill' : 'power'
  }

  #end(ending: Ending): boolean {
    if (ending === 'kill') this.counts.kills++
    else this.counts.powerCuts++
    this.#inner = ending === 'kill' ? this.#inner.killProcess() : this.#inner.crash(this.#dice.unit)
    this.#disk = new InterruptibleDisk(this.#inner)
    return ending === 'power'
  }

  #restart(ending: Ending): void {
    const hadPowerCut = this.#end(ending)
    this.#log = this.#openUntilUp(hadPowerCut)
    if (!this.#dice.chance(0.5)) return
    // Nothing was written since: the next start must find the same.
    const before = this.#snapshot()
    this.#end('kill')
    this.#log = this.#openUntilUp(false, false)
    assert.deepEqual(this.#snapshot(), before, 'a start without writes in between finds the same')
  }

  /** Starts until one start is not cut short, then judges what it found. */
  #openUntilUp(hadPowerCut: boolean, mayBeCut = true): ShardLog {
    let isPowerCut = hadPowerCut
    for (let attempt = 0; ; attempt++) {
      try {
        if (mayBeCut && attempt < 6 && this.#dice.chance(0.4)) {
          this.#disk.stopAt(1 + this.#dice.below(20), this.#dice.chance(0.5))
        }
        const log = this.#open()
        this.#disk.goOn()
        this.#history.settle(this.#allContents(log), !isPowerCut)
        return log
      } catch (error) {
        if (!(error instanceof Interruption) && !(error instanceof DiskError)) throw error
        this.counts.cutsInRecovery++
        if (this.#end(this.#pickEnding())) isPowerCut = true
      }
    }
  }

  #open(): ShardLog {
    const dice = this.#dice
    const log = openLog(this.#disk, {
      slotBytes: 128 * KIB,
      firstSlotBytes: 64 * KIB,
      encodeBufferBytes: this.#encodeBufferBytes,
      clock: this.#clock,
      drawSalt: () => dice.bytes(8)
    })
    for (const topic of this.#topics) log.table.open(topic)
    this.counts.cutGroups += log.report.cutGroups
    this.counts.copiedGroups += log.report.copiedGroups
    return log
  }

  #allContents(log: ShardLog): LogContents {
    const found = new Map<number, string[]>()
    for (const topic of this.#topics) {
      for (let partition = 0; partition < topic.partitionCount; partition++) {
        if (log.table.topic(topic.firstHandle)?.logs[partition] === undefined) continue
        const contents = this.#contentsOf(topic, partition, 0, log)
        this.#producers.check(partitionOf(log, topic.firstHandle, partition), contents)
        found.set(topic.firstHandle + partition, contents)
      }
    }
    return found
  }

  #contentsOf(topic: LifeTopic, partition: number, from: number, log: ShardLog = this.#log): string[] {
    const partitionLog = partitionOf(log, topic.firstHandle, partition)
    const { records, damaged } = readBack(log, partitionLog, from)
    assert.deepEqual(damaged, [], 'losing power damages nothing')
    assert.deepEqual(
      records.map(record => record.offset),
      Array.from({ length: partitionLog.highWatermark - from }, (_, i) => from + i),
      `handle ${partitionLog.handle}: every offset is served once and in order`
    )
    return records.map(record => contentOf(record.key, record.value))
  }

  #snapshot(): unknown {
    return this.#topics.map(({ firstHandle, partitionCount }) =>
      Array.from({ length: partitionCount }, (_, partition) => {
        const log = partitionOf(this.#log, firstHandle, partition)
        return [log.startOffset, log.highWatermark, log.nextOffset, log.sizeBytes, log.segmentCount, log.leaderEpoch]
      })
    )
  }

  #drawRequests(): TestRequest[] {
    return Array.from({ length: 1 + this.#dice.below(3) }, (_, request) => {
      const topic = this.#dice.pick(this.#topics)
      const count = 1 + this.#dice.below(this.#dice.pick([1, 8, 40]))
      const largest = this.#dice.chance(0.05) ? 150 * KIB : this.#dice.pick([0, 40, 300, 5000])
      const records = Array.from({ length: count }, (_, i) =>
        this.#drawRecord(this.#dice.below(topic.partitionCount), i === 0 ? largest : Math.min(largest, 300))
      )
      const { firstHandle } = topic
      // One request of a producer in a group: what the next is to send follows from what is staged.
      if (request > 0 || this.#dice.chance(0.5)) return { firstHandle, records }
      const producer = this.#producers.draw()
      const logOf = (partition: number): PartitionLog => partitionOf(this.#log, firstHandle, partition)
      const numbered = this.#producers.number(producer, records, logOf, ({ key, value }) => contentOf(key, value))
      return { firstHandle, producer, records: numbered }
    })
  }

  /** Key or value begins with a number that no other record has. */
  #drawRecord(partition: number, largestValue: number): TestRecord {
    const id = Buffer.from(`${this.#nextId++};`)
    const filling = this.#dice.bytes(this.#dice.below(largestValue + 1))
    return this.#dice.chance(0.7)
      ? { partition, key: id, value: filling }
      : { partition, key: null, value: Buffer.concat([id, filling]) }
  }

  /** Duplicates are told nothing new. */
  #toldRecords(requests: readonly TestRequest[]): ToldRecord[] {
    const results = gatheredResults(this.#log)
    return requests
      .flatMap(({ firstHandle, records }) =>
        records.map(record => ({ handle: firstHandle + record.partition, record }))
      )
      .map(({ handle, record }, i) => ({
        handle,
        offset: results[i]?.offset ?? -1,
        content: contentOf(record.key, record.value)
      }))
      .filter((_, i) => results[i]?.isDuplicate === false)
  }
}

function contentOf(key: Buffer | null, value: Buffer): string {
  return hash('sha1', Buffer.concat([Buffer.from(`${key?.length ?? -1} `), key ?? Buffer.alloc(0), value]), 'base64')
}

/** Lives one life. @throws whatever broke. */
export function liveOnce(seed: number, steps: number, controls: LifeControls = {}): LifeCounts {
  const life = new Life(seed, controls)
  life.run(steps)
  return life.counts
}
