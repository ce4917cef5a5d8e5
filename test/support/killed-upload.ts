/** Child of cold-s3.test.ts: one put to a bucket, in the middle of which it is killed. */
import { statSync } from 'node:fs'
import { createS3Store } from '../../src/cold/s3-store.ts'
import { createRealDisk } from '../../src/disk/real-disk.ts'

const [endpoint = '', bucket = '', key = '', path = '', checksum = ''] = process.argv.slice(2)
const store = createS3Store({
  disk: createRealDisk(),
  bucket,
  prefix: 'broker-1/',
  region: 'us-east-1',
  pathStyle: true,
  endpoint,
  credentials: null
})
await store.put(key, path, statSync(path).size, Number(checksum))
