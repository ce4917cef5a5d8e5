/** Finding records by time: against an oracle that looks at every record, over both layers, step by step. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { SimulatedDisk } from '../../../src/disk/simulated-disk.ts'
import type { PartitionLog } from '../../../src/log/partition-log.ts'
import type { ShardLog } from '../../../src/log/shard-log.ts'
import { TimeLookup, type TimedOffset } from '../../../src/log/time-lookup.ts'
import { ManualClock, append, openLog, partitionOf, readBack, textRecord } from '../../support/log-harness.ts'
import { diskOf, takeImage, withFlip } from '../../support/log-image.ts'
import { chosenSeed, diceOf, replayLine, type Dice } from '../../support/log-random.ts'
import { sampleKinds, sampleSegment, segmentOf, type SampleSegment } from '../../support/log-segments.ts'
import { settleAll } from '../../support/log-settle.ts'
import { putSettled } from '../../support/log-settled.ts'

const topic = { firstHandle: 1, partitionCount: 3, segmentBytes: 2 ** 31 - 1 }
const file = 'test/unit/log/time-lookup.test.ts'

function find(log: ShardLog, partition: PartitionLog, timestampMs: number, between?: () => void): TimedOffset | null {
  const lookup = new TimeLookup(log.window, partition, timestampMs)
  while (!lookup.step()) between?.()
  return lookup.found
}

/** The answer by looking at every record that can be read. */
function oracle(log: ShardLog, partition: PartitionLog, timestampMs: number): TimedOffset | null {
  const { records } = readBack(log, partition, partition.startOffset)
  const record = records.find(candidate => candidate.timestampMs >= timestampMs)
  return record === undefined ? null : { offset: record.offset, timestampMs: record.timestampMs }
}

/** Times worth asking for: those that records have, their neighbours, and some far away. */
function timesOf(dice: Dice, times: readonly number[], count: number): number[] {
  const some = Array.from({ length: count }, () => dice.pick(times) + dice.below(3) - 1)
  return [...some, Number.MIN_SAFE_INTEGER, -1, 0, Number.MAX_SAFE_INTEGER]
}

function check(log: ShardLog, dice: Dice): void {
  for (let number = 0; number < topic.partitionCount; number++) {
    const partition = partitionOf(log, 1, number)
    const times = readBack(log, partition, partition.startOffset).records.map(record => record.timestampMs)
    for (const timestampMs of timesOf(dice, times.length === 0 ? [5] : times, 8)) {
      const message = `partition ${number} at ${timestampMs}; ${replayLine(dice.seed, file)}`
      const expected = oracle(log, partition, timestampMs)
      assert.deepEqual(find(log, partition, timestampMs), expected, message)
      partition.noteGivenTimes(Infinity)
      assert.deepEqual(find(log, partition, timestampMs), expected, `batch by batch: ${message}`)
      partition.noteGivenTimes(0)
    }
  }
}

describe('the first record at or after a time', () => {
  it('is found exactly, whichever records are settled, in memory or only on disk, and after restarts', () => {
    const dice = diceOf(chosenSeed())
    const clock = new ManualClock()
    // Salts go on over restarts: slots are used again here, and what they held must not look like new groups.
    const drawSalt = (): Buffer => dice.bytes(8)
    const sizes = { firstSlotBytes: 512 * 1024, slotBytes: 512 * 1024, encodeBufferBytes: 64 * 1024 }
    const options = { clock, drawSalt, ...sizes }
    let disk = new SimulatedDisk()
    let log = openLog(disk, options)
    log.table.open({ ...topic, segmentBytes: 40_000 })
    for (let round = 0; round < 12; round++) {
      const groups = dice.below(30)
      for (let i = 0; i < groups; i++) {
        // A wall clock that is set back: what is stored does not fall (W8).
        clock.wallMs += dice.chance(0.1) ? -dice.below(500) : dice.below(20)
        const records = Array.from({ length: 1 + dice.below(10) }, () =>
          textRecord(dice.below(2), null, 'v'.repeat(dice.below(dice.pick([10, 3000]))))
        )
        append(log, { firstHandle: 1, records })
      }
      if (dice.chance(0.4)) {
        log.sealOpenSlot()
        settleAll(disk, log)
      }
      if (dice.chance(0.2)) {
        disk = disk.killProcess()
        log = openLog(disk, options)
        log.table.open({ ...topic, segmentBytes: 40_000 })
      }
      check(log, dice)
    }
  })

  it('is found in segments of any content: clocks that jump, compacted batches, append time, markers', () => {
    const dice = diceOf(chosenSeed())
    for (let round = 0; round < 15; round++) {
      const disk = new SimulatedDisk()
      const log = openLog(disk)
      const segments = consecutive(dice)
      const end = (segments.at(-1)?.nextOffset ?? 0) + dice.below(10)
      const base = segments[0]?.segmentBase ?? 0
      const startOffset = dice.chance(0.5) ? base : base + dice.below(end - base)
      putSettled(disk, log, { handle: 1, segments, nextOffset: end, startOffset })
      log.table.open(topic)
      append(log, { firstHandle: 1, records: [textRecord(0, null, 'tail')] })
      const partition = partitionOf(log, 1, 0)
      const tail = { offset: end, timestampMs: 1_700_000_000_000 }
      const times = segments.flatMap(({ batches }) => batches.flatMap(({ records }) => records.map(r => r.timestampMs)))
      for (const timestampMs of timesOf(dice, [...times, tail.timestampMs], 25)) {
        const inSlots = tail.timestampMs >= timestampMs ? tail : null
        const expected = inSegments(segments, startOffset, timestampMs) ?? inSlots
        const message = `round ${round} at ${timestampMs}; ${replayLine(dice.seed, file)}`
        assert.deepEqual(find(log, partition, timestampMs), expected, message)
      }
    }
  })

  it('stays right while records are appended, settled and deleted between its steps', () => {
    const dice = diceOf(chosenSeed())
    for (let round = 0; round < 15; round++) {
      const clock = new ManualClock(1000)
      const disk = new SimulatedDisk()
      const log = openLog(disk, { clock, firstSlotBytes: 1024 * 1024, slotBytes: 1024 * 1024 })
      log.table.open({ ...topic, segmentBytes: 20_000 })
      const partition = partitionOf(log, 1, 0)
      const put = (): void => {
        clock.wallMs += dice.below(10)
        append(log, { firstHandle: 1, records: [textRecord(0, null, 'v'.repeat(dice.below(3000)))] })
      }
      for (let i = 0; i < 60; i++) put()
      const wantedMs = 1000 + dice.below(clock.wallMs - 990)
      let changes = 0
      const found = find(log, partition, wantedMs, () => {
        if (changes++ > 40) return
        if (dice.chance(0.5)) put()
        if (dice.chance(0.2)) {
          log.sealOpenSlot()
          settleAll(disk, log)
        }
        const room = partition.highWatermark - partition.startOffset
        if (dice.chance(0.2)) partition.moveStart(partition.startOffset + dice.below(Math.min(10, room)))
      })
      assert.deepEqual(found, oracle(log, partition, wantedMs), replayLine(dice.seed, file))
    }
  })

  it('is the first that can be read: what is damaged is passed over', () => {
    const disk = new SimulatedDisk()
    const clock = new ManualClock(0)
    const log = openLog(disk, { clock })
    log.table.open(topic)
    for (let i = 0; i < 20; i++) {
      clock.wallMs = i * 10
      append(log, { firstHandle: 1, records: [textRecord(0, null, `v${i}`)] })
    }
    const { runs } = partitionOf(log, 1, 0)
    const places = Array.from({ length: 20 }, (_, i) => runs.position(i) + 64)
    log.close()
    const image = takeImage(disk.killProcess())
    for (let damaged = 0; damaged < 20; damaged++) {
      const again = openLog(diskOf(withFlip(image, '0001.slot', places[damaged] ?? 0)), { clock })
      again.table.open(topic)
      const partition = partitionOf(again, 1, 0)
      for (let i = 0; i < 20; i++) {
        const next = i === damaged ? i + 1 : i
        const expected = next === 20 ? null : { offset: next, timestampMs: next * 10 }
        assert.deepEqual(find(again, partition, i * 10 - 5), expected, `${i}, with ${damaged} damaged`)
      }
    }
  })

  it('is passed over with its block where segment bytes are damaged, and nothing wrong is answered', () => {
    const clock = new ManualClock(0)
    const disk = new SimulatedDisk()
    const log = openLog(disk, { clock })
    const batches = Array.from({ length: 12 }, (_, i) => ({
      baseOffset: i,
      baseTimestampMs: i * 10,
      records: [{ offsetDelta: 0, key: null, value: Buffer.alloc(5000, i) }]
    }))
    const sample = segmentOf(0, batches)
    putSettled(disk, log, { handle: 1, segments: [sample] })
    const path = `/data/topics/sample~1/0/${'0'.repeat(20)}.log`
    disk
      .open('segment.open', path)
      .write('segment.write', Buffer.from('X'), 0, 1, (sample.batches[7]?.position ?? 0) + 100)
    log.table.open(topic)
    const partition = partitionOf(log, 1, 0)
    for (let i = 0; i < 12; i++) {
      const next = i === 7 ? 8 : i
      assert.deepEqual(find(log, partition, i * 10), { offset: next, timestampMs: next * 10 })
    }
    assert.equal(find(log, partition, 111), null)
  })

  it('costs little to find: halving in the slots, block entries in segments', () => {
    const clock = new ManualClock(0)
    const disk = new SimulatedDisk()
    const options = { clock, firstSlotBytes: 32 * 1024 * 1024, encodeBufferBytes: 16 * 1024 }
    const log = openLog(disk, options)
    log.table.open(topic)
    for (let i = 0; i < 1000; i++) {
      clock.wallMs = i * 10
      append(log, { firstHandle: 1, records: [textRecord(0, null, 'v'.repeat(20_000))] })
    }
    const partition = partitionOf(log, 1, 0)
    const stepsTo = (timestampMs: number): number => {
      let steps = 1
      assert.deepEqual(
        find(log, partition, timestampMs, () => steps++),
        { offset: timestampMs / 10, timestampMs }
      )
      return steps
    }
    assert.ok(stepsTo(7770) < 16, `${stepsTo(7770)} steps over 1000 groups`)
    log.sealOpenSlot()
    settleAll(disk, log)
    assert.equal(partition.settledEnd, 1000)
    stepsTo(7770)
    const before = log.window.probe.diskBytes
    assert.ok(stepsTo(3330) <= 3)
    const read = log.window.probe.diskBytes - before
    assert.ok(read <= 256 * 1024, `${read} bytes were read for one record of 20 MB`)
  })
})

/** Some segments one after the other, of one kind each. */
function consecutive(dice: Dice): SampleSegment[] {
  const segments: SampleSegment[] = []
  for (let i = 1 + dice.below(4); i > 0; i--) {
    const sample = sampleSegment(dice, dice.pick(sampleKinds), dice.pick([500, 6000, 30_000]))
    const last = segments.at(-1)
    if (last === undefined) segments.push(sample)
    else if (sample.segmentBase >= last.nextOffset) segments.push(sample)
  }
  return segments
}

/** The oracle of settled samples. */
function inSegments(segments: readonly SampleSegment[], startOffset: number, timestampMs: number): TimedOffset | null {
  const records = segments.flatMap(({ batches }) => batches.flatMap(batch => batch.records))
  const record = records.find(({ offset, timestampMs: ms }) => offset >= startOffset && ms >= timestampMs)
  return record === undefined ? null : { offset: record.offset, timestampMs: record.timestampMs }
}
