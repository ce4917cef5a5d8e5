/**
 * One life of a shard's log on a disk that loses power: random appends, rolls, fills, settle jobs under way meanwhile,
 * moves of start offsets, deleted topics, full disks, failed syncs, clean ends, kills and power cuts, each of them also
 * in the middle of any disk call, in recovery too. The same seed lives the same life. Every restart is judged by LogHistory; a life that ends without an error proved the promises.
 */
import assert from 'node:assert/strict'
import { DiskError } from '../../src/disk/disk.ts'
import { FaultPlan } from '../../src/disk/fault-plan.ts'
import type { FaultPoint } from '../../src/disk/faults.ts'
import { SimulatedDisk } from '../../src/disk/simulated-disk.ts'
import { fillSlot } from '../../src/log/slot-files.ts'
import type { PartitionLog } from '../../src/log/partition-log.ts'
import type { HandlePlace } from '../../src/log/settle/settle.ts'
import type { ShardLog } from '../../src/log/shard-log.ts'
import { ManualClock, gather, openLog, partitionOf, readBack, testDirectory } from './log-harness.ts'
import { LogHistory, type FoundPartition, type LogContents } from './log-history.ts'
import { Interruption, InterruptibleDisk } from './log-interruptible-disk.ts'
import { noCounts, type LifeControls, type LifeCounts } from './log-life-counts.ts'
import { LifeRequests, contentOf, toldRecords, type LifeTopic } from './log-life-requests.ts'
import { LifeSettler } from './log-life-settler.ts'
import { diceOf, type Dice } from './log-random.ts'

type Ending = 'kill' | 'power'

const KIB = 1024
const fullDiskPoints: readonly FaultPoint[] = ['group.write', 'slot.create', 'slot.header-write', 'slot.footer-write']
const syncPoints: readonly FaultPoint[] = [
  'group.sync',
  'slot.header-sync',
  'slot.footer-sync',
  'journal.directory-sync'
]

class Life {
  readonly counts: LifeCounts = noCounts()
  readonly #dice: Dice
  readonly #controls: LifeControls
  readonly #history = new LogHistory()
  readonly #clock = new ManualClock()
  #topics: LifeTopic[]
  #nextHandle = 100
  readonly #requests: LifeRequests
  readonly #isDeferred: boolean
  /** How often a process is stopped in the middle of a call. */
  readonly #stopChance: number
  readonly #encodeBufferBytes: number
  readonly #slotBytes: number
  readonly #settler: LifeSettler
  #inner: SimulatedDisk
  #disk: InterruptibleDisk
  #log: ShardLog

  constructor(seed: number, controls: LifeControls) {
    const dice = diceOf(seed)
    this.#dice = dice
    this.#controls = controls
    this.#requests = new LifeRequests(dice)
    this.#isDeferred = dice.chance(0.2)
    this.#stopChance = dice.pick([0.03, 0.15])
    this.#encodeBufferBytes = dice.pick([16 * KIB, 256 * KIB, 1024 * KIB])
    this.#slotBytes = dice.pick([48 * KIB, 128 * KIB])
    this.#topics = [1, 10, 20].map((firstHandle, index) => ({
      firstHandle,
      partitionCount: [3, 1, 40][index] ?? 1,
      segmentBytes: dice.pick([128, 2000, 20_000, 2 ** 31 - 1])
    }))
    // A sync that fails on the disk itself loses what it should have synced, as Linux does.
    const faults = new FaultPlan()
    if (dice.chance(0.2)) {
      const call = 1 + dice.below(25)
      const point = dice.pick(syncPoints)
      faults.arm({ point, firstCall: call, lastCall: call, fault: { kind: 'error', code: 'EIO' } })
    }
    this.#inner = new SimulatedDisk({ ...controls, faults })
    this.#disk = new InterruptibleDisk(this.#inner, this.#controls.ignoredSyncs)
    this.#settler = new LifeSettler(dice, this.#clock, handle => this.#placeOf(handle))
    this.#log = this.#openUntilUp(false)
    this.#settler.restart(this.#disk)
  }

  #placeOf(handle: number): HandlePlace {
    const topic = this.#topics.find(
      ({ firstHandle, partitionCount }) => handle >= firstHandle && handle < firstHandle + partitionCount
    )
    if (topic === undefined) return { kind: 'dropped' }
    return { kind: 'kept', directory: `topics/t~${topic.firstHandle}/${handle - topic.firstHandle}` }
  }

  run(steps: number): void {
    for (let step = 0; step < steps; step++) {
      if (this.#dice.chance(this.#stopChance)) {
        this.#disk.stopAt(1 + this.#dice.below(this.#dice.pick([12, 60])), this.#dice.chance(0.5))
      }
      if (this.#dice.chance(0.06)) this.#fillDisk()
      this.#clock.wallMs += this.#dice.below(2000) - (this.#dice.chance(0.9) ? 500 : -5000)
      this.#outlive(() => this.#act())
    }
    this.#disk.goOn()
    this.#disk.faults.disarm()
    this.#outlive(() => this.#log.close())
    this.#restart('power')
    Object.assign(this.counts, this.#settler.counts)
    this.counts.ackedRecords = this.#history.ackedRecords
    this.counts.ackedMoves = this.#history.ackedMoves
    this.counts.duplicates = this.#requests.producers.duplicates
    this.counts.batches = this.#requests.batches
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
    if (this.#settler.isBusy && this.#dice.chance(0.4)) this.#advance(1 + this.#dice.below(4))
    const dice = this.#dice.unit()
    if (dice < 0.58) this.#append()
    else if (dice < 0.61) this.#fillSpare()
    else if (dice < 0.67) this.#checkOnePartition()
    else if (dice < 0.71 && this.#isDeferred) this.#syncNow()
    else if (dice < 0.75) this.#sealOpenSlot()
    else if (dice < 0.84) this.#settle()
    else if (dice < 0.88) this.#moveStarts()
    else if (dice < 0.895) this.#dropTopic()
    else if (dice < 0.93) this.#settler.removeDue()
    else if (dice < 0.95) this.#endClean()
    else if (dice < 0.98) this.#killBetween()
    else this.#restart('power')
  }

  #append(): void {
    const requests = this.#requests.draw(this.#log, this.#topics)
    gather(this.#log, requests)
    if (this.#log.encoder.batchCount === 0) {
      // Duplicates alone: nothing is written.
      this.#log.encoder.reset()
      return
    }
    const group = this.#history.begin(toldRecords(this.#log, requests))
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

  #sealOpenSlot(): void {
    try {
      this.#log.sealOpenSlot()
    } catch (error) {
      // Sealed later, when there is room.
      if (!(error instanceof DiskError) || error.code !== 'ENOSPC') throw error
    }
    if (!this.#log.hasUnsynced) this.#history.ack()
  }

  /** Begins a job; often over all that was written. One that is under way is finished. */
  #settle(): void {
    if (this.#settler.isBusy) return this.#advance(Infinity)
    if (this.#dice.chance(0.7)) this.#sealOpenSlot()
    const starts = new Map<number, number>()
    for (const log of this.#log.table.openLogs()) if (log.startOffset > 0) starts.set(log.handle, log.startOffset)
    this.#settler.begin(this.#log, starts)
    if (this.#dice.chance(0.4)) this.#advance(Infinity)
  }

  /** What is counted of a partition is the same before and after its data moves. */
  #advance(steps: number): void {
    const before = this.#snapshot()
    if (!this.#settler.advance(this.#log, steps)) return
    assert.deepEqual(this.#snapshot(), before, 'settling changes no number of a partition')
    this.#checkOnePartition()
  }

  #moveStarts(): void {
    const logs = this.#log.table.openLogs().filter(log => log.startOffset < log.highWatermark)
    if (logs.length === 0) return
    const chosen = new Set(Array.from({ length: 1 + this.#dice.below(3) }, () => this.#dice.pick(logs)))
    const moves = [...chosen].map(log => ({ log, offset: this.#drawStart(log) }))
    const told = moves.map(({ log: { handle }, offset }) => ({ handle, offset }))
    const group = this.#history.begin([], told)
    try {
      this.#log.moveStarts(moves)
      this.#history.ack()
    } catch (error) {
      if (!(error instanceof DiskError) || error.code !== 'ENOSPC') throw error
      this.#history.refuse(group)
      if (!this.#log.hasUnsynced) this.#history.ack()
      this.counts.refusedGroups++
    }
  }

  /** A later start: where a segment begins, anywhere, or behind everything. */
  #drawStart(log: PartitionLog): number {
    const bases = [...log.sealedSegments(), log.activeSegment()].map(({ baseOffset }) => baseOffset)
    const later = bases.filter(base => base > log.startOffset && base <= log.highWatermark)
    if (later.length > 0 && this.#dice.chance(0.5)) return this.#dice.pick(later)
    if (this.#dice.chance(0.2)) return log.highWatermark
    return log.startOffset + 1 + this.#dice.below(log.highWatermark - log.startOffset)
  }

  /** Deletes a topic and makes another: the handles of the first are never used again. */
  #dropTopic(): void {
    const dropped = this.#dice.pick(this.#topics)
    const { partitionCount, segmentBytes } = dropped
    const made = { firstHandle: this.#nextHandle, partitionCount, segmentBytes }
    this.#nextHandle += partitionCount
    this.#topics = this.#topics.map(topic => (topic === dropped ? made : topic))
    this.#log.table.drop(dropped.firstHandle)
    this.#log.table.open(made)
    for (let partition = 0; partition < partitionCount; partition++) {
      this.#history.drop(dropped.firstHandle + partition)
    }
    this.counts.droppedTopics++
  }

  /** A kill between two groups loses nothing, so the numbers stay too. */
  #killBetween(): void {
    const before = this.#snapshot(false)
    const cuts = this.counts.powerCuts
    this.#restart('kill')
    if (this.counts.powerCuts === cuts) assert.deepEqual(this.#snapshot(false), before, 'a kill changes no number')
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
    const capacityBytes = this.#slotBytes
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
    const handle = topic.firstHandle + partition
    const published = this.#history.published(handle)
    const start = this.#history.startOf(handle)
    const from = start + this.#dice.below(published.length - start + 1)
    assert.deepEqual(this.#contentsOf(topic, partition, from), published.slice(from))
    const log = partitionOf(this.#log, topic.firstHandle, partition)
    assert.equal(log.startOffset, start)
    this.#requests.producers.check(log, published)
  }

  #pickEnding(): Ending {
    return this.#dice.chance(0.5) ? 'kill' : 'power'
  }

  #end(ending: Ending): boolean {
    if (this.#settler.isBusy) this.counts.endsInSettle++
    if (ending === 'kill') this.counts.kills++
    else this.counts.powerCuts++
    this.#inner = ending === 'kill' ? this.#inner.killProcess() : this.#inner.crash(this.#dice.unit)
    this.#disk = new InterruptibleDisk(this.#inner, this.#controls.ignoredSyncs)
    return ending === 'power'
  }

  #restart(ending: Ending): void {
    const hadPowerCut = this.#end(ending)
    this.#log = this.#openUntilUp(hadPowerCut)
    this.#settler.restart(this.#disk)
    if (!this.#dice.chance(0.5)) return
    // Nothing was written since: the next start must find the same.
    const before = this.#snapshot()
    this.#end('kill')
    this.#log = this.#openUntilUp(false, false)
    this.#settler.restart(this.#disk)
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
        this.#checkProducers(log)
        return log
      } catch (error) {
        if (!(error instanceof Interruption) && !(error instanceof DiskError)) throw error
        this.counts.cutsInRecovery++
        if (attempt > 50) throw new Error('no start comes up', { cause: error })
        if (this.#end(this.#pickEnding())) isPowerCut = true
      }
    }
  }

  #open(): ShardLog {
    const dice = this.#dice
    const log = openLog(this.#disk, {
      slotBytes: this.#slotBytes,
      firstSlotBytes: 48 * KIB,
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
    const found = new Map<number, FoundPartition>()
    for (const topic of this.#topics) {
      for (let partition = 0; partition < topic.partitionCount; partition++) {
        const partitionLog = log.table.topic(topic.firstHandle)?.logs[partition]
        if (partitionLog === undefined) continue
        const start = partitionLog.startOffset
        const contents = this.#contentsOf(topic, partition, start, log)
        found.set(topic.firstHandle + partition, { start, contents })
      }
    }
    return found
  }

  /** Records below the start are gone; what the log knows of their producers is not. */
  #checkProducers(log: ShardLog): void {
    for (const partition of log.table.openLogs()) {
      this.#requests.producers.check(partition, this.#history.published(partition.handle))
    }
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

  #snapshot(hasEpochs = true): unknown {
    return this.#topics.map(({ firstHandle, partitionCount }) =>
      Array.from({ length: partitionCount }, (_, partition) => {
        const log = partitionOf(this.#log, firstHandle, partition)
        const epoch = hasEpochs ? log.leaderEpoch : 0
        return [log.startOffset, log.highWatermark, log.nextOffset, log.sizeBytes, log.segmentCount, epoch]
      })
    )
  }
}

/** Lives one life. @throws whatever broke. */
export function liveOnce(seed: number, steps: number, controls: LifeControls = {}): LifeCounts {
  const life = new Life(seed, controls)
  life.run(steps)
  return life.counts
}
