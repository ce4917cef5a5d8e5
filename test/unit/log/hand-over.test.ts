/**
 * A group that another thread writes while the next one is gathered and encoded: what is seen when, and what a failure
 * takes with it. The other thread is played by the test, from the same memory.
 */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { BugError } from '../../../src/base/assert.ts'
import { DiskError } from '../../../src/disk/disk.ts'
import { SimulatedDisk } from '../../../src/disk/simulated-disk.ts'
import type { GroupToWrite, ShardLog } from '../../../src/log/shard-log.ts'
import {
  append,
  gather,
  gatheredOffsets,
  openLog,
  partitionOf,
  readBack,
  testDirectory,
  textRecord,
  type TestRequest
} from '../../support/log-harness.ts'

const topic = { firstHandle: 1, partitionCount: 3, segmentBytes: 2 ** 31 - 1 }
const MEMORY_BYTES = 64 * 1024

const request = (...values: string[]): TestRequest => ({
  firstHandle: 1,
  records: values.map(value => textRecord(0, null, value))
})

interface Stage {
  readonly disk: SimulatedDisk
  readonly log: ShardLog
  /** What the writer thread does with a job. */
  write(job: GroupToWrite): void
}

function stage(disk = new SimulatedDisk()): Stage {
  const memory = new SharedArrayBuffer(MEMORY_BYTES)
  const log = openLog(disk, { encodeBufferBytes: MEMORY_BYTES, encodeMemory: memory })
  log.table.open(topic)
  return {
    disk,
    log,
    write({ slotName, start, end, position }) {
      const file = disk.open('slot.open', `${testDirectory}/${slotName}`)
      file.write('group.write', Buffer.from(memory), start, end, position)
      file.sync('group.sync')
      file.close()
    }
  }
}

/** Gathers, encodes and hands over one group. */
function handOver(log: ShardLog, ...values: string[]): GroupToWrite {
  gather(log, [request(...values)])
  log.prepare()
  return log.handOver(log.encode())
}

const valuesOf = (log: ShardLog): string[] =>
  readBack(log, partitionOf(log, 1, 0)).records.map(record => record.value.toString())

describe('a group handed over', () => {
  it('is not seen before it is confirmed, while the next one already has its offsets', () => {
    const { log, write } = stage()
    append(log, request('a'))
    const job = handOver(log, 'b', 'c')
    gather(log, [request('d')])
    assert.deepEqual(gatheredOffsets(log), [3])
    assert.deepEqual(valuesOf(log), ['a'])
    write(job)
    assert.deepEqual(valuesOf(log), ['a'])
    log.confirm()
    assert.deepEqual(valuesOf(log), ['a', 'b', 'c'])
    log.release()
    log.prepare()
    const next = log.handOver(log.encode())
    write(next)
    log.confirm()
    log.release()
    assert.deepEqual(valuesOf(log), ['a', 'b', 'c', 'd'])
  })

  it('is there after a power cut once confirmed, with the groups written by the shard itself around it', () => {
    const { disk, log, write } = stage()
    append(log, request('a'))
    write(handOver(log, 'b'))
    log.confirm()
    log.release()
    append(log, request('c'))
    const again = stage(disk.crash(() => 0))
    assert.deepEqual(valuesOf(again.log), ['a', 'b', 'c'])
  })

  it('that the full disk refuses goes back with the one encoded since; their offsets are given anew', () => {
    const { disk, log } = stage()
    append(log, request('a'))
    handOver(log, 'b')
    gather(log, [request('c')])
    log.prepare()
    log.encode()
    log.abandonHandedOver(new DiskError('ENOSPC', 'group.write', 'no room'))
    log.release()
    log.encoder.reset()
    assert.equal(log.isPoisoned, false)
    assert.deepEqual(append(log, request('d')), [1])
    assert.deepEqual(valuesOf(log), ['a', 'd'])
    assert.deepEqual(valuesOf(stage(disk.killProcess()).log), ['a', 'd'])
  })

  it('takes the sequences of both groups with it when it goes back, and nothing older', () => {
    const { log } = stage()
    const numbered = (...sequences: number[]): TestRequest => ({
      firstHandle: 1,
      producer: 7,
      records: sequences.map(sequence => ({ ...textRecord(0, null, `v${sequence}`), sequence: BigInt(sequence) }))
    })
    append(log, numbered(0, 1))
    gather(log, [numbered(2, 3)])
    log.prepare()
    log.handOver(log.encode())
    // A retry of what is under way, then more: it stands on the group handed over.
    gather(log, [numbered(1, 2, 3), numbered(4)])
    assert.deepEqual(gatheredOffsets(log), [1, 2, 3, 4])
    log.prepare()
    log.encode()
    log.abandonHandedOver(new DiskError('ENOSPC', 'group.write', 'no room'))
    log.release()
    log.encoder.reset()
    assert.throws(() => gather(log, [numbered(3)]), /expected 2, got 3/)
    assert.deepEqual(append(log, numbered(0, 1, 2, 3, 4)), [0, 1, 2, 3, 4])
    assert.deepEqual(valuesOf(log), ['v0', 'v1', 'v2', 'v3', 'v4'])
  })

  it('whose sync failed poisons the log', () => {
    const { log } = stage()
    handOver(log, 'a')
    log.abandonHandedOver(new DiskError('EIO', 'group.sync', 'device'))
    assert.equal(log.isPoisoned, true)
    gather(log, [request('b')])
    assert.throws(() => log.encode(), BugError)
  })
})

describe('the encode buffer while a group is being written from it', () => {
  it('takes a next group only where the two cannot meet, and refuses to encode over it', () => {
    const { log } = stage()
    append(log, request('x'.repeat(20_000)))
    handOver(log, 'y'.repeat(20_000))
    gather(log, [request('z'.repeat(1000))])
    assert.equal(log.fitsBeside, true)
    gather(log, [request('z'.repeat(30_000))])
    assert.equal(log.fitsBeside, false)
    log.prepare()
    assert.throws(() => log.encode(), BugError)
  })

  it('keeps the bytes handed over as they were, whatever is encoded beside them', () => {
    const { log, write } = stage()
    const written: string[] = []
    for (let round = 0; round < 40; round++) {
      const values = [`${round}-`.padEnd(4000 + 137 * round, 'v'), String(round)]
      const job = handOver(log, ...values)
      gather(log, [request('beside'.repeat(900))])
      if (log.fitsBeside && log.fits) {
        const index = log.encode()
        write(job)
        log.confirm()
        log.release()
        log.publish(index, log.write(index))
        log.sync()
        written.push(...values, 'beside'.repeat(900))
      } else {
        write(job)
        log.confirm()
        log.release()
        log.encoder.rollback()
        written.push(...values)
      }
      log.encoder.reset()
    }
    assert.deepEqual(valuesOf(log), written)
    assert.ok(written.includes('beside'.repeat(900)))
  })
})
