/** Slot files that hold nothing any more. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { FaultPlan } from '../../../src/disk/fault-plan.ts'
import { SimulatedDisk } from '../../../src/disk/simulated-disk.ts'
import { SlotFiles, fillSlot } from '../../../src/log/slot-files.ts'

const MIB = 1024 * 1024

it('one spare of the size that the next start may need is not taken while the shard runs', () => {
  const files = new SlotFiles(new SimulatedDisk(), '/data')
  const spare = (name: string, capacityBytes: number): void =>
    files.addSpare({ name, capacityBytes, isFilled: true, isBlank: true })
  const taken = (): (string | undefined)[] => Array.from({ length: 3 }, () => files.takeSpare(1)?.name)
  spare('0001.slot', MIB)
  spare('0002.slot', 2 * MIB)
  files.keepReserve(2 * MIB)
  assert.equal(files.lacksReserve, false)
  assert.deepEqual([taken(), files.spareBytes], [['0001.slot', undefined, undefined], 0])
  spare('0003.slot', 2 * MIB)
  assert.deepEqual(taken(), ['0003.slot', undefined, undefined], 'one is enough')
})

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

it('a slot that is free again is forgotten: whoever still reads it is refused, and not served what stands there later', () => {
  const disk = new SimulatedDisk()
  const files = new SlotFiles(disk, '/data')
  const name = files.drawName()
  fillSlot(disk, '/data', name, MIB)
  const first = files.register(name)
  files.file(first)
  files.free(first, MIB, MIB)
  const refused = { name: 'DiskError', code: 'ENOENT' }
  assert.throws(() => files.file(first), refused)
  assert.throws(() => files.nameOf(first), /a slot that exists/)
  const { ordinal } = files.openForWriting(files.takeSpare(MIB) ?? assert.fail('it is a spare'))
  assert.notEqual(ordinal, first, 'the same file by another ordinal')
  assert.throws(() => files.file(first), refused)
})
