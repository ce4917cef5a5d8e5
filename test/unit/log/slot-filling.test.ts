/** Filling slots ahead: what is there after it, and after it failed. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { DiskError } from '../../../src/disk/disk.ts'
import { FaultPlan } from '../../../src/disk/fault-plan.ts'
import { SimulatedDisk } from '../../../src/disk/simulated-disk.ts'
import { SlotFiles, fillSlot } from '../../../src/log/slot-files.ts'

const MIB = 1024 * 1024

it('a slot has its name only when it is full, and then durably', () => {
  const disk = new SimulatedDisk()
  fillSlot(disk, '/data', '0001.slot', 3 * MIB)
  const after = disk.crash(() => 0)
  assert.deepEqual(after.list('/data'), ['0001.slot'])
  assert.equal(after.open('slot.open', '/data/0001.slot').sizeBytes(), 3 * MIB)
})

for (const point of ['slot.fill', 'slot.fill-sync'] as const) {
  it(`a fill that fails at ${point} leaves nothing on the disk`, () => {
    const faults = new FaultPlan([{ point, firstCall: 2, lastCall: 2, fault: { kind: 'error', code: 'ENOSPC' } }])
    const disk = new SimulatedDisk({ faults })
    assert.throws(() => fillSlot(disk, '/data', '0001.slot', 3 * MIB), DiskError)
    assert.deepEqual(disk.list('/data'), [])
    fillSlot(disk, '/data', '0001.slot', 3 * MIB)
    assert.deepEqual(disk.list('/data'), ['0001.slot'])
  })
}

it('of slots that are free the one freed last is used first, if it is large enough', () => {
  const files = new SlotFiles(new SimulatedDisk(), '/data')
  for (const [name, capacityBytes] of [
    ['0001.slot', MIB],
    ['0002.slot', 4 * MIB],
    ['0003.slot', MIB]
  ] as const)
    files.addSpare({ name, capacityBytes, isFilled: true, isBlank: false })
  assert.equal(files.takeSpare(2 * MIB)?.name, '0002.slot')
  assert.equal(files.takeSpare(MIB)?.name, '0003.slot')
  assert.equal(files.takeSpare(MIB)?.name, '0001.slot')
  assert.equal(files.takeSpare(MIB), null)
})
