/** Filling slots ahead: what is there after it, and after it failed. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { DiskError } from '../../../src/disk/disk.ts'
import { FaultPlan } from '../../../src/disk/fault-plan.ts'
import { SimulatedDisk } from '../../../src/disk/simulated-disk.ts'
import { fillSlot } from '../../../src/log/slot-files.ts'

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
