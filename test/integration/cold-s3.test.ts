/**
 * Tiered storage in a bucket, against s3rver in every run and against moto's server with MILLRACE_MOTO=1 or in the
 * long run; and with a proxy in between that fails.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, writeFileSync } from 'node:fs'
import { describe, test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { inspect } from 'node:util'
import {
  CreateMultipartUploadCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  PutObjectCommand,
  S3Client
} from '@aws-sdk/client-s3'
import type { ObjectStore } from '../../src/cold/object-store.ts'
import type { S3Times } from '../../src/cold/s3-bucket.ts'
import { createS3Store } from '../../src/cold/s3-store.ts'
import { createRealDisk } from '../../src/disk/real-disk.ts'
import { waitFor } from '../support/broker.ts'
import {
  bucketName,
  isMotoWanted,
  startMoto,
  startProxy,
  startS3rver,
  type Fate,
  type Proxy,
  type S3Server
} from '../support/s3-servers.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import {
  assertStored,
  checksumOf,
  contentOf,
  isCold,
  key,
  largeBytes,
  putContent,
  testStoreContract,
  type StoreUnderTest
} from '../unit/cold/store-contract.ts'

const prefix = 'broker-1/'

interface Changes {
  readonly endpoint?: string
  readonly accessKeyId?: string
  readonly bucket?: string
  readonly prefix?: string
  readonly times?: Partial<S3Times>
}

function openStore(t: TestContext, server: S3Server, changes: Changes = {}): ObjectStore {
  const { accessKeyId, secretAccessKey } = server
  const store = createS3Store({
    disk: createRealDisk(),
    bucket: changes.bucket ?? bucketName,
    prefix: changes.prefix ?? prefix,
    region: 'us-east-1',
    pathStyle: true,
    endpoint: changes.endpoint ?? server.endpoint,
    credentials: { accessKeyId: changes.accessKeyId ?? accessKeyId, secretAccessKey },
    ...(changes.times !== undefined && { times: changes.times })
  })
  t.after(() => store.close())
  return store
}

/** The SDK without our store: another program that has the bucket too. */
function openClient(t: TestContext, server: S3Server): S3Client {
  const { endpoint, accessKeyId, secretAccessKey } = server
  const client = new S3Client({
    endpoint,
    region: 'us-east-1',
    forcePathStyle: true,
    credentials: { accessKeyId, secretAccessKey }
  })
  t.after(() => client.destroy())
  return client
}

/** Replaces the bytes and keeps what the object says of itself. */
async function tamper(client: S3Client, at: string, bytes: Buffer): Promise<void> {
  const where = { Bucket: bucketName, Key: prefix + at }
  const { Metadata } = await client.send(new HeadObjectCommand(where))
  await client.send(new PutObjectCommand({ ...where, Body: bytes, Metadata }))
}

type StartServer = (t: TestContext) => Promise<S3Server>

async function underTest(t: TestContext, start: StartServer): Promise<StoreUnderTest> {
  const server = await start(t)
  const client = openClient(t, server)
  return { store: openStore(t, server), tamper: (at, bytes) => tamper(client, at, bytes) }
}

async function withProxy(t: TestContext, times: Partial<S3Times> = {}): Promise<{ store: ObjectStore; proxy: Proxy }> {
  const server = await startS3rver(t)
  const proxy = await startProxy(t, server)
  return { store: openStore(t, server, { endpoint: proxy.endpoint, times }), proxy }
}

/** The first `count` requests that match meet their fate, all others pass. */
function fateOfFirst(count: number, fate: Fate, isMeant: (request: string) => boolean = () => true): Proxy['fate'] {
  let left = count
  return request => (isMeant(request) && left-- > 0 ? fate : 'pass')
}

describe('a bucket (s3rver)', () => {
  testStoreContract(t => underTest(t, startS3rver))
  testSharing(startS3rver)

  test('an access key that the service does not know is refused by every call', async t => {
    const store = openStore(t, await startS3rver(t), { accessKeyId: 'NOBODY' })
    await assert.rejects(putContent(t, store, key, contentOf(10)), isCold('refused'))
    await assert.rejects(store.read(key, 0, 1), isCold('refused'))
    await assert.rejects(store.verify(key, 10, 0), isCold('refused'))
    await assert.rejects(store.list(''), isCold('refused'))
    await assert.rejects(store.remove(key), isCold('refused'))
  })

  test('a service that cannot list unfinished uploads has nothing to sweep', async t => {
    assert.equal(await openStore(t, await startS3rver(t)).sweep(), 0)
  })
})

describe('a bucket (moto)', { skip: !isMotoWanted && 'set MILLRACE_MOTO=1' }, () => {
  testStoreContract(t => underTest(t, startMoto))
  testSharing(startMoto)

  test('an upload cut off by kill −9 leaves no object, and is aborted by the next start', async t => {
    const server = await startMoto(t)
    const client = openClient(t, server)
    const unfinished = async (): Promise<number> =>
      (await client.send(new ListMultipartUploadsCommand({ Bucket: bucketName }))).Uploads?.length ?? 0
    const store = await killInUpload(t, server)
    assert.equal(await unfinished(), 1)
    assert.equal(await store.sweep(), 1)
    assert.equal(await unfinished(), 0)
    assert.equal(await store.sweep(), 0)
  })

  test('a sweep leaves uploads of others alone', async t => {
    const server = await startMoto(t)
    const client = openClient(t, server)
    for (const Key of [key, `broker-2/${key}`, `${prefix}notes.txt`]) {
      await client.send(new CreateMultipartUploadCommand({ Bucket: bucketName, Key }))
    }
    assert.equal(await openStore(t, server).sweep(), 0)
  })

  test('a failed upload is aborted', async t => {
    const server = await startMoto(t)
    const proxy = await startProxy(t, server)
    const store = openStore(t, server, { endpoint: proxy.endpoint, times: { tries: 2 } })
    proxy.fate = request => (request.includes('partNumber=2') ? 500 : 'pass')
    await assert.rejects(putContent(t, store, key, contentOf(largeBytes)), isCold('unavailable'))
    const listed = await openClient(t, server).send(new ListMultipartUploadsCommand({ Bucket: bucketName }))
    assert.deepEqual(listed.Uploads ?? [], [])
  })
})

/** What a bucket has besides our objects. */
function testSharing(start: StartServer): void {
  test('stores with different prefixes do not see each other', async t => {
    const server = await start(t)
    const [first, second] = [openStore(t, server), openStore(t, server, { prefix: 'broker-2/' })]
    await putContent(t, first, key, contentOf(10))
    await assert.rejects(second.read(key, 0, 1), isCold('missing'))
    await putContent(t, second, key, contentOf(20))
    await assertStored(t, first, key, contentOf(10))
    await second.remove(key)
    assert.deepEqual([await first.list(''), await second.list('')], [[key], []])
  })

  test('foreign objects in the bucket are not listed', async t => {
    const server = await start(t)
    const store = openStore(t, server)
    await putContent(t, store, key, contentOf(10))
    const client = openClient(t, server)
    for (const Key of ['README', `${prefix}README`, `${prefix}orders~17/3/x.log.tmp`]) {
      await client.send(new PutObjectCommand({ Bucket: bucketName, Key, Body: 'x' }))
    }
    assert.deepEqual(await store.list(''), [key])
  })

  test('more objects than fit in one page are all listed', { skip: start === startS3rver && 'no pages' }, async t => {
    const server = await start(t)
    const store = openStore(t, server)
    const client = openClient(t, server)
    const keys = Array.from({ length: 1005 }, (_, index) => `a~1/${index}/0.log`).sort()
    for (let from = 0; from < keys.length; from += 50) {
      const puts = keys.slice(from, from + 50).map(at => ({ Bucket: bucketName, Key: prefix + at, Body: 'x' }))
      await Promise.all(puts.map(put => client.send(new PutObjectCommand(put))))
    }
    assert.deepEqual(await store.list(''), keys)
  })

  test('a bucket that is not there is refused: its objects are not called missing', async t => {
    const store = openStore(t, await start(t), { bucket: 'elsewhere' })
    await assert.rejects(putContent(t, store, key, contentOf(10)), isCold('refused'))
    await assert.rejects(putContent(t, store, key, contentOf(largeBytes)), isCold('refused'))
    await assert.rejects(store.read(key, 0, 1), isCold('refused'))
    await assert.rejects(store.verify(key, 10, 0), isCold('refused'))
    await assert.rejects(store.list(''), isCold('refused'))
  })

  test('an upload cut off by kill −9 leaves no object, and the next put stores it', async t => {
    const store = await killInUpload(t, await start(t))
    await assert.rejects(store.read(key, 0, 1), isCold('missing'))
    assert.deepEqual(await store.list(''), [])
    await putContent(t, store, key, contentOf(largeBytes))
    await assertStored(t, store, key, contentOf(largeBytes))
  })
}

const child = fileURLToPath(new URL('../support/killed-upload.ts', import.meta.url))

/** Kills a process whose first part is stored and whose second is on its way. @returns a store for what it left. */
async function killInUpload(t: TestContext, server: S3Server): Promise<ObjectStore> {
  const proxy = await startProxy(t, server)
  proxy.fate = request => (request.includes('partNumber=2') ? 'stall' : 'pass')
  const path = `${temporaryDirectory(t)}/local`
  const content = contentOf(largeBytes)
  writeFileSync(path, content)
  const { accessKeyId: AWS_ACCESS_KEY_ID, secretAccessKey: AWS_SECRET_ACCESS_KEY } = server
  const uploading = spawn(
    process.execPath,
    [child, proxy.endpoint, bucketName, key, path, String(checksumOf(content))],
    {
      stdio: 'inherit',
      env: { ...process.env, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY }
    }
  )
  const closed = once(uploading, 'close')
  await waitFor('the second part', () => proxy.requests.some(request => request.includes('partNumber=2')))
  uploading.kill('SIGKILL')
  assert.deepEqual(await closed, [null, 'SIGKILL'])
  return openStore(t, server)
}

describe('a bucket that fails', () => {
  for (const fate of [500, 503, 'drop', 'lose'] as const) {
    test(`answers of kind ${fate} for a while are passed over`, async t => {
      const { store, proxy } = await withProxy(t)
      const content = contentOf(100_000)
      proxy.fate = fateOfFirst(2, fate)
      await putContent(t, store, key, content)
      proxy.fate = fateOfFirst(2, fate)
      assert.ok((await store.read(key, 7, 100)).equals(content.subarray(7, 107)))
      proxy.fate = fateOfFirst(2, fate)
      await store.verify(key, content.length, checksumOf(content))
      proxy.fate = fateOfFirst(2, fate)
      assert.deepEqual(await store.list(''), [key])
      proxy.fate = fateOfFirst(2, fate)
      await store.remove(key)
      assert.deepEqual(await store.list(''), [])
    })
  }

  for (const step of ['uploads', 'partNumber=1', 'partNumber=2', 'POST uploadId']) {
    test(`a large object is stored though its ${step} fails at first`, async t => {
      const { store, proxy } = await withProxy(t)
      proxy.fate = fateOfFirst(1, 503, request => step.split(' ').every(part => request.includes(part)))
      await putContent(t, store, key, contentOf(largeBytes))
      await assertStored(t, store, key, contentOf(largeBytes))
    })
  }

  test('an upload whose last answer was lost is stored', async t => {
    const { store, proxy } = await withProxy(t)
    // Tried again, the service no longer knows the upload.
    proxy.fate = fateOfFirst(1, 'lose', request => request.startsWith('POST') && request.includes('uploadId='))
    await putContent(t, store, key, contentOf(largeBytes))
    await assertStored(t, store, key, contentOf(largeBytes))
  })

  test('answers cut off in the middle are read again', async t => {
    const { store, proxy } = await withProxy(t)
    const content = contentOf(largeBytes)
    await putContent(t, store, key, content)
    proxy.fate = fateOfFirst(3, 'cut', request => request.startsWith('GET'))
    await assertStored(t, store, key, content)
    assert.ok(proxy.requests.filter(request => request.startsWith('GET')).length > 6)
  })

  test('answers that are always cut off make the bucket unavailable, and leave no local file', async t => {
    const { store, proxy } = await withProxy(t, { tries: 2 })
    await putContent(t, store, key, contentOf(100_000))
    proxy.fate = request => (request.startsWith('GET') ? 'cut' : 'pass')
    await assert.rejects(store.read(key, 0, 50_000), isCold('unavailable'))
    const target = `${temporaryDirectory(t)}/fetched`
    await assert.rejects(store.fetch(key, target, 100_000), isCold('unavailable'))
    assert.equal(existsSync(target), false)
  })

  for (const fate of [500, 503, 429, 'drop', 'stall'] as const) {
    test(`answers of kind ${fate} without end make it unavailable, within bounds`, async t => {
      const { store, proxy } = await withProxy(t, { tries: 2, requestMs: 100 })
      proxy.fate = () => fate
      await assert.rejects(putContent(t, store, key, contentOf(10)), isCold('unavailable'))
      await assert.rejects(store.read(key, 0, 1), isCold('unavailable'))
      await assert.rejects(store.verify(key, 10, 0), isCold('unavailable'))
      await assert.rejects(store.list(''), isCold('unavailable'))
      await assert.rejects(store.remove(key), isCold('unavailable'))
      await assert.rejects(store.sweep(), isCold('unavailable'))
      assert.equal(proxy.requests.length, 12)
    })
  }

  test('a call ends when its time is over, however many tries it has left', async t => {
    const { store, proxy } = await withProxy(t, { callMs: 300, tries: 1000 })
    proxy.fate = () => 'stall'
    await assert.rejects(
      store.read(key, 0, 1),
      (error: unknown) => isCold('unavailable')(error) && /300 ms/.test(String(error))
    )
  })

  test('a service that is not there is unavailable', async t => {
    const store = openStore(t, await startS3rver(t), { endpoint: 'http://127.0.0.1:1', times: { tries: 2 } })
    await assert.rejects(store.read(key, 0, 1), isCold('unavailable'))
    await assert.rejects(putContent(t, store, key, contentOf(10)), isCold('unavailable'))
  })

  test('an upload that cannot go on is given up, and leaves no object', async t => {
    const { store, proxy } = await withProxy(t, { tries: 2 })
    proxy.fate = request => (request.includes('partNumber=2') ? 500 : 'pass')
    await assert.rejects(putContent(t, store, key, contentOf(largeBytes)), isCold('unavailable'))
    assert.equal(proxy.requests.filter(request => /^DELETE .*uploadId=/.test(request)).length, 1)
    assert.deepEqual(await store.list(''), [])
  })

  test('closing the store ends a call that waits for an answer', async t => {
    const { store, proxy } = await withProxy(t)
    proxy.fate = request => (request.includes('partNumber=2') ? 'stall' : 'pass')
    const put = putContent(t, store, key, contentOf(largeBytes))
    await Promise.race([
      put,
      waitFor('the second part', () => proxy.requests.some(line => line.includes('partNumber=2')))
    ])
    store.close()
    await assert.rejects(put, isCold('unavailable'))
  })

  test('no error and no description tells a secret', async t => {
    const server = { ...(await startS3rver(t)), secretAccessKey: 'hush-hush' }
    const store = openStore(t, server, { bucket: 'elsewhere' })
    const error: unknown = await store.read(key, 0, 1).catch((caught: unknown) => caught)
    assert.ok(error instanceof Error)
    assert.equal(inspect(error, { depth: 20, showHidden: true }).includes('hush-hush'), false)
    assert.equal(store.describe(), `s3://elsewhere/broker-1/ (bucket elsewhere at ${server.endpoint})`)
  })
})
