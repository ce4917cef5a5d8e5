/** Child of real-disk.test.ts: writes two pieces and renames the file, under the fault plan of its second argument. */
import { parseFaultPlan } from '../../../src/disk/fault-plan.ts'
import { createRealDisk } from '../../../src/disk/real-disk.ts'

const [root = '', plan = ''] = process.argv.slice(2)
const disk = createRealDisk(parseFaultPlan(plan))
const file = disk.create('slot.create', `${root}/a`)
file.write('group.write', Buffer.from('aaaa'), 0, 4, 0)
file.write('group.write', Buffer.from('bbbb'), 0, 4, 4)
file.close()
disk.rename('slot.rename', `${root}/a`, `${root}/b`)
