import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { describe, test } from 'node:test'
import { openColdStore, type ColdStorageSettings } from '../../../src/cold/open-store.ts'
import { SimulatedDisk } from '../../../src/disk/simulated-disk.ts'
import { isCold } from './store-contract.ts'

const none: ColdStorageSettings = {
  coldStorageDir: null,
  coldStorage: null,
  coldStorageEndpoint: null,
  coldStorageRegion: 'us-east-1',
  coldStoragePathStyle: false
}
const disk = new SimulatedDisk()

/** True once the AWS SDK (a CommonJS package) is in this process. */
function isSdkLoaded(): boolean {
  return Object.keys(createRequire(import.meta.url).cache).some(path => path.includes('@aws-sdk'))
}

describe('opening cold storage', () => {
  // Also the order of the tests: once loaded, the SDK stays.
  test('without a bucket the AWS SDK is not loaded', async () => {
    assert.equal(await openColdStore(none, disk), null)
    const store = await openColdStore({ ...none, coldStorageDir: '/mnt/cold/' }, disk)
    assert.equal(store?.describe(), 'directory /mnt/cold')
    await assert.rejects(openColdStore({ ...none, coldStorage: 'cold' }, disk), isCold('refused'))
    assert.equal(isSdkLoaded(), false)
  })

  test('a bucket is opened as its settings say, without a request', async () => {
    const store = await openColdStore(
      { ...none, coldStorage: 's3://cold/broker-1', coldStorageEndpoint: 'http://127.0.0.1:1' },
      disk
    )
    assert.equal(store?.describe(), 's3://cold/broker-1/ (bucket cold at http://127.0.0.1:1)')
    assert.equal(isSdkLoaded(), true)
    store?.close()
  })

  test('a relative directory is one of the working directory', async () => {
    const store = await openColdStore({ ...none, coldStorageDir: 'cold' }, disk)
    assert.equal(store?.describe(), `directory ${process.cwd()}/cold`)
  })

  test('an endpoint that is no address is refused', async () => {
    const settings = { ...none, coldStorage: 's3://cold', coldStorageEndpoint: 'localhost:9000' }
    await assert.rejects(openColdStore(settings, disk), isCold('refused'))
  })
})
