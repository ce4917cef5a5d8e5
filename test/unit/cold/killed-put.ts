/** Child of directory-store.test.ts: one put under the fault plan of its arguments. */
import { statSync } from 'node:fs'
import { createDirectoryStore } from '../../../src/cold/directory-store.ts'
import { parseFaultPlan } from '../../../src/disk/fault-plan.ts'
import { createRealDisk } from '../../../src/disk/real-disk.ts'

const [directory = '', key = '', path = '', checksum = '', plan = ''] = process.argv.slice(2)
const store = createDirectoryStore({ disk: createRealDisk(parseFaultPlan(plan)), directory })
await store.put(key, path, statSync(path).size, Number(checksum))
