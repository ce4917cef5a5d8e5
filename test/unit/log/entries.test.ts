/**
 * Directory entries beside those of records: moves of a start offset, and producer runs. They are read, kept through
 * copies and footers, and never lost (W5, W7).
 */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { SimulatedDisk } from '../../../src/disk/simulated-disk.ts'
import {
  DirectoryEntry,
  ENTRY_BYTES,
  GROUP_HEADER_BYTES,
  entryBytes,
  entryKinds,
  groupBytes,
  readEntries,
  sealGroup,
  writeEntry,
  type ProducerRun
} from '../../../src/log/group-format.ts'
import type { ShardLog } from '../../../src/log/shard-log.ts'
import { saltSeed } from '../../../src/log/slot-format.ts'
import { append, openLog, partitionOf, readBack, textRecord } from '../../support/log-harness.ts'
import { diskOf, takeImage, withChange, type JournalImage } from '../../support/log-image.ts'

const salt = Buffer.from('the salt')
const seed = saltSeed(salt)
const topic = { firstHandle: 1, partitionCount: 1, segmentBytes: 2 ** 31 - 1 }
const GROUPS_AT = 8192

function start(disk: SimulatedDisk): ShardLog {
  const log = openLog(disk, { drawSalt: () => salt })
  log.table.open(topic)
  return log
}

/** A journal with one group of three records. */
function threeRecords(): JournalImage {
  const disk = new SimulatedDisk()
  append(start(disk), { firstHandle: 1, records: ['a', 'b', 'c'].map(value => textRecord(0, null, value)) })
  return takeImage(disk)
}

/** A group with those entries and those bodies, as the slot of threeRecords would hold it. */
function groupOf(number: number, entries: readonly DirectoryEntry[], bodies: Buffer): Buffer {
  const directoryBytes = entries.reduce((sum, entry) => sum + entryBytes(entry), 0)
  const bytes = Buffer.alloc(groupBytes(directoryBytes, bodies.length))
  let at = GROUP_HEADER_BYTES
  for (const entry of entries) at = writeEntry(bytes, at, entry)
  bodies.copy(bytes, at)
  const header = {
    number,
    lastSynced: number - 1,
    totalBytes: bytes.length,
    directoryBytes,
    bodyBytes: bodies.length,
    entryCount: entries.length,
    receiveMs: 1_700_000_000_000,
    slotSequence: 1
  }
  sealGroup(bytes, 0, header, seed)
  return bytes
}

function startMove(offset: number): DirectoryEntry {
  const entry = new DirectoryEntry()
  entry.kind = entryKinds.startOffset
  entry.handle = 1
  entry.baseOffset = offset
  return entry
}

describe('a start offset that was moved', () => {
  it('is kept over restarts of every kind, and never goes back', () => {
    const moves = [2, 1].map((offset, i) => groupOf(2 + i, [startMove(offset)], Buffer.alloc(0)))
    const image = withChange(threeRecords(), '0001.slot', bytes => {
      Buffer.concat(moves).copy(bytes, GROUPS_AT + 4096)
      return bytes
    })
    let disk = diskOf(image)
    for (const ending of ['kill', 'close', 'kill'] as const) {
      const log = start(disk)
      const partition = partitionOf(log, 1, 0)
      assert.deepEqual([partition.startOffset, partition.highWatermark], [2, 3])
      if (ending === 'close') log.close()
      disk = disk.killProcess()
    }
  })
})

describe('the producer runs of a group', () => {
  const producers: readonly ProducerRun[] = [
    { producerId: 77, sequenceHigh: 1, sequenceLow: 2, count: 2, baseOffset: 0 },
    { producerId: 78, sequenceHigh: 0, sequenceLow: 9, count: 1, baseOffset: 2 }
  ]

  /** The group of threeRecords with producer runs behind its entry. */
  function withProducers(): JournalImage {
    return withChange(threeRecords(), '0001.slot', bytes => {
      const [entry] =
        readEntries(bytes, GROUPS_AT + GROUP_HEADER_BYTES, GROUPS_AT + GROUP_HEADER_BYTES + ENTRY_BYTES) ?? []
      assert.ok(entry !== undefined)
      const run = Buffer.from(bytes.subarray(GROUPS_AT + entry.position, GROUPS_AT + entry.position + entry.bytes))
      entry.producers = producers
      entry.position = GROUP_HEADER_BYTES + entryBytes(entry)
      groupOf(1, [entry], run).copy(bytes, GROUPS_AT)
      return bytes
    })
  }

  it('go with it into the slot it is copied to, and into the footer', () => {
    const disk = diskOf(withProducers())
    const log = start(disk)
    assert.equal(log.report.copiedGroups, 1)
    const values = readBack(log, partitionOf(log, 1, 0)).records.map(record => record.value.toString())
    assert.deepEqual(values, ['a', 'b', 'c'])
    log.close()
    const copy = takeImage(disk.killProcess()).get('0002.slot') ?? Buffer.alloc(0)
    const directoryEnd = GROUPS_AT + GROUP_HEADER_BYTES + copy.readUInt32BE(GROUPS_AT + 28)
    const footerAt = Number(copy.readBigUInt64BE(copy.length - 4096 + 16))
    const footerEnd = footerAt + copy.readUInt32BE(copy.length - 4096 + 24)
    for (const entries of [
      readEntries(copy, GROUPS_AT + GROUP_HEADER_BYTES, directoryEnd),
      readEntries(copy, footerAt, footerEnd)
    ]) {
      assert.deepEqual(
        entries?.map(entry => entry.producers),
        [producers]
      )
    }
  })
})
