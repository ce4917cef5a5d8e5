/**
 * Reading: memory and disk say the same at every offset, in any turn, over gaps, and after the file was closed.
 */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { SimulatedDisk } from '../../../src/disk/simulated-disk.ts'
import { readOutcomes } from '../../../src/log/log-reader.ts'
import type { ShardLog, ShardLogOptions } from '../../../src/log/shard-log.ts'
import { append, openLog, partitionOf, readBack, recordsOfBatch, textRecord } from '../../support/log-harness.ts'
import { diskOf, takeImage, withFlip } from '../../support/log-image.ts'
import { chosenSeed, diceOf, replayLine } from '../../support/log-random.ts'

const topic = { firstHandle: 1, partitionCount: 6, segmentBytes: 2 ** 31 - 1 }
const KIB = 1024

function start(disk: SimulatedDisk, options: Partial<ShardLogOptions> = {}): ShardLog {
  const log = openLog(disk, options)
  log.table.open(topic)
  return log
}

const read = (log: ShardLog, partition: number, offset = 0): ReturnType<typeof readBack> =>
  readBack(log, partitionOf(log, 1, partition), offset)

describe('a partition', () => {
  it('reads the same from memory and from disk, from every offset', () => {
    const seed = chosenSeed()
    const dice = diceOf(seed)
    const disk = new SimulatedDisk()
    const log = start(disk, { encodeBufferBytes: 32 * 1024 * KIB })
    for (let i = 0; i < 60; i++) {
      const records = Array.from({ length: 1 + dice.below(30) }, (_, n) => ({
        partition: dice.below(6),
        key: Buffer.from(`${i}/${n}`),
        value: dice.bytes(dice.below(dice.pick([10, 1000, 10_000])))
      }))
      append(log, { firstHandle: 1, records })
    }
    assert.equal(log.window.probe.diskBytes, 0)
    for (let partition = 0; partition < 6; partition++) {
      const whole = read(log, partition).records
      assert.equal(whole.length, partitionOf(log, 1, partition).highWatermark)
      for (let offset = 0; offset <= whole.length + 1; offset++) {
        assert.deepEqual(
          read(log, partition, offset).records,
          whole.slice(offset),
          replayLine(seed, 'test/unit/log/log-reader.test.ts')
        )
      }
    }
    assert.equal(log.window.probe.diskBytes, 0, 'all of it stood in memory')
    const again = start(disk.killProcess())
    for (let partition = 0; partition < 6; partition++) {
      const whole = read(log, partition).records
      for (let offset = 0; offset <= whole.length + 1; offset += 1 + dice.below(3)) {
        assert.deepEqual(
          read(again, partition, offset).records,
          whole.slice(offset),
          replayLine(seed, 'test/unit/log/log-reader.test.ts')
        )
      }
    }
    assert.equal(again.window.probe.memoryBytes, 0, 'nothing of it stood in memory')
  })

  it('reads on while the encode buffer goes round under the reader', () => {
    const log = start(new SimulatedDisk(), { encodeBufferBytes: 32 * KIB })
    const values: string[] = []
    const reader = log.read(partitionOf(log, 1, 0), 0)
    const seen: string[] = []
    let wanted = 0
    for (let i = 0; i < 100; i++) {
      values.push(`${i} ${'v'.repeat((i * 137) % 5000)}`)
      append(log, {
        firstHandle: 1,
        records: [textRecord(0, null, values[i] ?? ''), textRecord(1, null, 'x'.repeat(3000))]
      })
      if (i % 9 !== 0) continue
      while (reader.next(wanted) === readOutcomes.batch) {
        seen.push(...recordsOfBatch(reader, wanted).map(record => record.value.toString()))
        wanted = reader.lastOffset + 1
      }
    }
    assert.deepEqual(seen, values)
    assert.ok(log.window.probe.memoryBytes > 0 && log.window.probe.diskBytes > 0, 'both ways were used')
  })

  it('keeps a group larger than the encode buffer, and what comes after it', () => {
    const log = start(new SimulatedDisk(), { encodeBufferBytes: 16 * KIB })
    const large = 'v'.repeat(50_000)
    append(log, { firstHandle: 1, records: [textRecord(0, null, 'before')] })
    append(log, { firstHandle: 1, records: [textRecord(0, null, large)] })
    append(log, { firstHandle: 1, records: [textRecord(0, null, 'after')] })
    assert.deepEqual(
      read(log, 0).records.map(record => record.value.toString()),
      ['before', large, 'after']
    )
  })

  it('of many small runs close together is read in pieces, not run by run', () => {
    const disk = new SimulatedDisk()
    const log = start(disk, { firstSlotBytes: 8192 * KIB })
    for (let i = 0; i < 200; i++)
      append(log, { firstHandle: 1, records: [textRecord(0, null, `${i}`), textRecord(1, null, 'x'.repeat(300))] })
    for (let i = 0; i < 4; i++)
      append(log, { firstHandle: 1, records: [textRecord(2, null, `${i}`), textRecord(3, null, 'x'.repeat(40_000))] })
    const again = start(disk.killProcess(), {})
    const file = again.files.file(0)
    let reads = 0
    const readBytes = file.read.bind(file)
    file.read = (...parameters) => {
      reads++
      return readBytes(...parameters)
    }
    assert.equal(read(again, 0).records.length, 200)
    assert.ok(reads <= 5, `gaps of a block are read over: ${reads} reads for 200 runs`)
    reads = 0
    const before = again.window.probe.diskBytes
    assert.equal(read(again, 2).records.length, 4)
    assert.ok(reads >= 3 && again.window.probe.diskBytes - before < 4096, 'gaps of 40 KB are not')
  })

  it('is read from more slots than are kept open', () => {
    const disk = new SimulatedDisk()
    const log = start(disk, { slotBytes: 64 * KIB, firstSlotBytes: 64 * KIB, encodeBufferBytes: 16 * KIB })
    const values = Array.from({ length: 80 }, (_, i) => `${i} ${'v'.repeat(40_000)}`)
    for (const value of values) append(log, { firstHandle: 1, records: [textRecord(0, null, value)] })
    assert.ok(log.rolledSlots > 70)
    const check = (from: ShardLog): void => {
      assert.deepEqual(
        read(from, 0).records.map(record => record.value.toString()),
        values
      )
      assert.equal(read(from, 0, 79).records.length, 1)
    }
    check(log)
    check(start(disk.killProcess(), { slotBytes: 64 * KIB }))
  })

  it('that is empty, or read from beyond its end, has nothing; a reader that waits there sees what comes', () => {
    const log = start(new SimulatedDisk())
    const reader = log.read(partitionOf(log, 1, 5), 0)
    assert.equal(reader.next(0), readOutcomes.end)
    append(log, { firstHandle: 1, records: [textRecord(5, null, 'first')] })
    assert.equal(reader.next(0), readOutcomes.batch)
    assert.deepEqual([reader.firstOffset, reader.lastOffset], [0, 0])
    assert.equal(reader.next(1), readOutcomes.end)
    append(log, { firstHandle: 1, records: [textRecord(5, null, 'second')] })
    assert.equal(reader.next(1), readOutcomes.batch)
    assert.equal(reader.firstOffset, 1)
  })
})

describe('the first bytes of a batch, which its CRC does not cover', () => {
  it('are never served wrong: offset, length, epoch, magic and CRC itself', () => {
    const disk = new SimulatedDisk()
    const log = start(disk)
    for (const value of ['a', 'b', 'c']) append(log, { firstHandle: 1, records: [textRecord(0, null, value)] })
    const run = partitionOf(log, 1, 0).runs
    const at = run.position(1)
    log.close()
    const image = takeImage(disk.killProcess())
    const whole = read(start(diskOf(image)), 0).records
    for (let byte = 0; byte < 21; byte++) {
      const { records, damaged } = read(start(diskOf(withFlip(image, '0001.slot', at + byte, byte % 8))), 0)
      assert.deepEqual([records, damaged], [[whole[0], whole[2]], [{ firstOffset: 1, lastOffset: 1 }]], `byte ${byte}`)
    }
  })

  it('are known to be damaged from then on: the run is not read again', () => {
    const disk = new SimulatedDisk()
    const log = start(disk)
    for (const value of ['a', 'b']) append(log, { firstHandle: 1, records: [textRecord(0, null, value)] })
    const at = partitionOf(log, 1, 0).runs.position(1)
    log.close()
    const again = start(diskOf(withFlip(takeImage(disk.killProcess()), '0001.slot', at + 64)))
    for (let i = 0; i < 2; i++) {
      const { records, damaged } = read(again, 0)
      assert.deepEqual([records.length, damaged], [1, [{ firstOffset: 1, lastOffset: 1 }]])
    }
    assert.deepEqual(read(again, 0, 2), { records: [], damaged: [] })
  })
})
