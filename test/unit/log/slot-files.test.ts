/** Slot files that hold nothing any more. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { FaultPlan } from '../../../src/disk/fault-plan.ts'
import { SimulatedDisk } from '../../../src/disk/simulated-disk.ts'
import { SlotFiles, fillSlot } from '../../../src/log/slot-files.ts'

const MIB = 1024 * 1024

it('those of another size are removed, those that the disk keeps by a later call, the others are spares', () => {
  const faults = new FaultPlan([
    { point: 'slot.remove', firstCall: 2, lastCall: 3, fault: { kind: 'error', code: 'EACCES' } }
  ])
  const disk = new SimulatedDisk({ faults })
  const files = new SlotFiles(disk, '/data')
  const sizes = [MIB, MIB, 2 * MIB]
  const ordinals = sizes.map(bytes => {
    const name = files.drawName()
    fillSlot(disk, '/data', name, bytes)
    return files.register(name)
  })
  ordinals.forEach((ordinal, i) => files.free(ordinal, sizes[i] ?? 0, 2 * MIB))
  assert.equal(files.removeUnused()?.code, 'EACCES')
  assert.deepEqual(disk.list('/data'), ['0002.slot', '0003.slot'])
  assert.equal(files.removeUnused()?.code, 'EACCES')
  assert.equal(files.removeUnused(), null)
  assert.deepEqual(disk.list('/data'), ['0003.slot'])
  assert.deepEqual(files.takeSpare(MIB)?.name, '0003.slot')
  assert.equal(files.takeSpare(MIB), null)
})
