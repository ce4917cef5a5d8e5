/** The first bytes of a settled batch are outside of its own CRC: a wrong one there must never be served as an offset (R2). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SimulatedDisk } from '../../../src/disk/simulated-disk.ts'
import { append, partitionOf, readBack, textRecord } from '../../support/log-harness.ts'
import { settleAll } from '../../support/log-settle.ts'
import {
  diskOfTree,
  makeSettled,
  openSettled,
  servedOf,
  settledPartition,
  takeTree,
  withBit
} from '../../support/settled-sample.ts'

const disk = makeSettled()
const tree = takeTree(disk)

test('a settled batch whose base offset or epoch changed on disk is refused, not served under another offset', () => {
  const partition = settledPartition(disk, 1)
  const extent = partition.segments[0]?.extents[0] ?? assert.fail('no extent')
  const pack = `packs/000/${String(extent.pack).padStart(8, '0')}.pack`
  const right = servedOf(tree, 1).records
  for (const at of [4, 6, 7, 12, 15]) {
    const served = servedOf(withBit(tree, pack, extent.position + at), 1)
    const [range] = served.damaged
    assert.ok(range !== undefined && range.firstOffset === 0, `byte ${at}: ${JSON.stringify(served.damaged)}`)
    assert.deepEqual(served.records, right.slice(range.lastOffset + 1), `byte ${at}`)
  }
})

test('a block entry that changed on disk costs nothing while its batches prove themselves', () => {
  const partition = settledPartition(disk, 1)
  const extent = partition.segments[0]?.extents[0] ?? assert.fail('no extent')
  const pack = `packs/000/${String(extent.blocksPack).padStart(8, '0')}.pack`
  for (const at of [3, 7, 11, 15, 22, 27, 28, 31]) {
    assert.deepEqual(servedOf(withBit(tree, pack, extent.blocksPosition + at), 1), servedOf(tree, 1), `byte ${at}`)
  }
})

test('a small run that was damaged before it was settled is reported when its offsets are read, not passed over', () => {
  let disk = new SimulatedDisk()
  let log = openSettled(disk)
  for (let i = 0; i < 20; i++) append(log, { firstHandle: 1, records: [textRecord(1, null, `value ${i}.`)] })
  log.close()
  disk = disk.killProcess()
  const files = takeTree(disk)
  const slot = 'journal/000/0001.slot'
  const at = files.get(slot)?.indexOf('value 7.') ?? -1
  assert.ok(at > 0)
  disk = diskOfTree(withBit(files, slot, at))
  log = openSettled(disk)
  settleAll(disk, log)
  const { records, damaged } = readBack(log, partitionOf(log, 1, 1))
  assert.deepEqual(damaged, [{ firstOffset: 7, lastOffset: 7 }])
  assert.deepEqual(
    records.map(({ offset }) => offset),
    Array.from({ length: 20 }, (_, i) => i).filter(i => i !== 7)
  )
})
