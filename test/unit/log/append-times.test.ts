/** Batches that say whose times their records have: of topics with LogAppendTime and of others, in one group and wherever they lie. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { SimulatedDisk } from '../../../src/disk/simulated-disk.ts'
import { readOutcomes } from '../../../src/log/log-reader.ts'
import type { ShardLog } from '../../../src/log/shard-log.ts'
import { append, openLog, partitionOf, textRecord, type TestRequest } from '../../support/log-harness.ts'
import { settleAll } from '../../support/log-settle.ts'

const BROKER_MS = 1_700_000_000_000
const topic = { firstHandle: 1, partitionCount: 1, segmentBytes: 3000 }

/** Of each batch its first offset, its records, whether the time of append counts, and its greatest time. */
function batchesOf(log: ShardLog): (readonly [number, number, boolean, number])[] {
  const reader = log.read(partitionOf(log, 1, 0), 0)
  const batches: (readonly [number, number, boolean, number])[] = []
  for (let wanted = 0; reader.next(wanted) !== readOutcomes.end; wanted = reader.lastOffset + 1) {
    const { baseOffset, recordCount, attributes, maxTimestampMs } = reader.view
    batches.push([baseOffset, recordCount, (attributes & 8) !== 0, maxTimestampMs])
  }
  return batches
}

it('records whose topic has LogAppendTime are in batches that say so, and share none with others', () => {
  let disk = new SimulatedDisk()
  let log = openLog(disk)
  log.table.open(topic)
  const records = [textRecord(0, 'a', '1'), textRecord(0, 'b', '2')]
  const own: TestRequest = { firstHandle: 1, records, takesAppendTime: true }
  const plain: TestRequest = { firstHandle: 1, records }
  const given = { batch: { baseTimestamp: 5 } }
  append(log, own, own, plain, plain, own, { ...own, ...given }, own, { ...plain, ...given }, plain)
  append(log, { ...own, records: [textRecord(0, 'big', 'x'.repeat(2500)), textRecord(0, 'next', 'x'.repeat(2500))] })
  const expected = [
    [0, 4, true, BROKER_MS],
    [4, 4, false, BROKER_MS],
    [8, 2, true, BROKER_MS],
    [10, 2, true, BROKER_MS],
    [12, 2, true, BROKER_MS],
    [14, 2, false, 5],
    [16, 2, false, BROKER_MS],
    [18, 1, true, BROKER_MS],
    [19, 1, true, BROKER_MS]
  ]
  assert.deepEqual(batchesOf(log), expected)
  disk = disk.killProcess()
  log = openLog(disk)
  log.table.open(topic)
  assert.deepEqual(batchesOf(log), expected, 'after a kill')
  log.sealOpenSlot()
  settleAll(disk, log)
  assert.deepEqual(batchesOf(log), expected, 'settled')
})
