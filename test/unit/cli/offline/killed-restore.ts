/** Child of restore.test.ts: a restore in the middle of which it is killed. */
import { parseFaultPlan } from '../../../../src/disk/fault-plan.ts'
import { createRealDisk } from '../../../../src/disk/real-disk.ts'
import { restoreDirectory } from '../../../../src/cli/offline/restore-run.ts'

const [input = '', dataDir = '', plan = ''] = process.argv.slice(2)
const request = { input, dataDir, topics: null, force: true, acceptsDamage: true }
const { stdin, stdout, stderr, env } = process
await restoreDirectory(createRealDisk(parseFaultPlan(plan)), request, { stdin, stdout, stderr, env })
