/** The claims that every object store must keep, run against the directory store and against servers that speak S3. */
import assert from 'node:assert/strict'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { test, type TestContext } from 'node:test'
import { crc32c } from '../../../src/base/crc32c.ts'
import { ColdError, type ColdErrorCode, type ObjectStore } from '../../../src/cold/object-store.ts'
import { FILE_PIECE_BYTES, PIECE_BYTES_MAX } from '../../../src/cold/pieces.ts'
import { DiskError } from '../../../src/disk/disk.ts'
import { diceOf } from '../../support/log-random.ts'
import { temporaryDirectory } from '../../support/temporary-directory.ts'

export interface StoreUnderTest {
  readonly store: ObjectStore
  /** Gives an object other bytes behind the store's back; what else it bears stays. */
  tamper(key: string, bytes: Buffer): Promise<void>
}

export const key = 'orders~17/3/00000000000000000042.log'
/** Two parts of an upload, the last one short and not a whole block of a disk. */
export const largeBytes = PIECE_BYTES_MAX + FILE_PIECE_BYTES + 12_345

/** For assert.rejects: a ColdError of that code. */
export function isCold(code: ColdErrorCode): (error: unknown) => boolean {
  return error => {
    assert.ok(error instanceof ColdError, String(error))
    assert.equal(error.code, code, error.message)
    return true
  }
}

/** Bytes that differ in every piece of an object. */
export function contentOf(bytes: number): Buffer {
  return diceOf(bytes + 1).bytes(bytes)
}

export function checksumOf(content: Buffer): number {
  return crc32c(content, 0, content.length)
}

/** Stores `content` by way of a local file. */
export async function putContent(t: TestContext, store: ObjectStore, at: string, content: Buffer): Promise<void> {
  const path = `${temporaryDirectory(t)}/local`
  writeFileSync(path, content)
  await store.put(at, path, content.length, checksumOf(content))
}

/** Claims the object is exactly that, by every way there is to read it. */
export async function assertStored(t: TestContext, store: ObjectStore, at: string, content: Buffer): Promise<void> {
  await store.verify(at, content.length, checksumOf(content))
  const target = `${temporaryDirectory(t)}/fetched`
  const found = await store.fetch(at, target, content.length)
  assert.deepEqual(found, { bytes: content.length, crc32c: checksumOf(content) })
  assert.ok(readFileSync(target).equals(content))
  if (content.length > 0) assert.ok((await store.read(at, 0, content.length)).equals(content))
}

export function testStoreContract(make: (t: TestContext) => Promise<StoreUnderTest>): void {
  testContents(make)
  testNames(make)
  testRefusals(make)
  testDamage(make)
}

function testContents(make: (t: TestContext) => Promise<StoreUnderTest>): void {
  for (const bytes of [0, 1, 4096, largeBytes]) {
    test(`an object of ${bytes} bytes is read back as it was put`, async t => {
      const { store } = await make(t)
      await putContent(t, store, key, contentOf(bytes))
      await assertStored(t, store, key, contentOf(bytes))
    })
  }

  test('any range of an object can be read', async t => {
    const { store } = await make(t)
    const content = contentOf(largeBytes)
    await putContent(t, store, key, content)
    // Not the very first byte alone: s3rver answers `bytes=0-0` with the whole object.
    for (const [position, bytes] of [
      [0, 2],
      [1, 1],
      [PIECE_BYTES_MAX - 3, 7],
      [5, FILE_PIECE_BYTES + 1],
      [largeBytes - 1, 1]
    ] as const) {
      assert.ok((await store.read(key, position, bytes)).equals(content.subarray(position, position + bytes)))
    }
  })

  test('of a local file that is longer, only its true length is stored', async t => {
    const { store } = await make(t)
    const path = `${temporaryDirectory(t)}/local`
    writeFileSync(path, Buffer.concat([contentOf(5000), Buffer.alloc(3000)]))
    await store.put(key, path, 5000, checksumOf(contentOf(5000)))
    await assertStored(t, store, key, contentOf(5000))
  })

  test('a second put of a key replaces the object', async t => {
    const { store } = await make(t)
    await putContent(t, store, key, contentOf(5000))
    await putContent(t, store, key, contentOf(4000))
    await assertStored(t, store, key, contentOf(4000))
  })

  test('puts and reads may run side by side', async t => {
    const { store } = await make(t)
    const keys = Array.from({ length: 8 }, (_, index) => `orders~17/${index}/00000000000000000000.log`)
    await Promise.all(keys.map((at, index) => putContent(t, store, at, contentOf(index * 300_000))))
    await Promise.all(keys.map((at, index) => assertStored(t, store, at, contentOf(index * 300_000))))
  })
}

function testNames(make: (t: TestContext) => Promise<StoreUnderTest>): void {
  test('a folder lists the objects below it, and not those of a folder whose name begins alike', async t => {
    const { store } = await make(t)
    const keys = [
      'b~1/0/1.log',
      'b~1/0/1.index',
      'b~1/10/1.blocks',
      'b~1/1/c5/1.timeindex',
      'b~10/0/1.log',
      'a~2/0/1.log'
    ]
    assert.deepEqual(await store.list(''), [])
    for (const at of keys) await putContent(t, store, at, contentOf(10))
    assert.deepEqual(await store.list(''), [...keys].sort())
    assert.deepEqual(await store.list('b~1/'), keys.slice(0, 4).sort())
    assert.deepEqual(await store.list('b~1/1/'), ['b~1/1/c5/1.timeindex'])
    assert.deepEqual(await store.list('c~1/'), [])
  })

  test('a removed object is gone, the others stay, and removing it again is no error', async t => {
    const { store } = await make(t)
    const other = key.replace('.log', '.index')
    for (const at of [key, other]) await putContent(t, store, at, contentOf(100))
    await store.remove(key)
    await assert.rejects(store.read(key, 0, 1), isCold('missing'))
    assert.deepEqual(await store.list(''), [other])
    await store.remove(key)
    await store.remove(other)
    assert.deepEqual(await store.list(''), [])
    await putContent(t, store, key, contentOf(200))
    await assertStored(t, store, key, contentOf(200))
  })

  test('an object that was never put is missing, and a fetch of it leaves no local file', async t => {
    const { store } = await make(t)
    await putContent(t, store, key, contentOf(10))
    const target = `${temporaryDirectory(t)}/fetched`
    for (const at of ['orders~17/3/00000000000000000043.log', 'orders~18/0/0.log', `${key.slice(0, -4)}.index`]) {
      await assert.rejects(store.read(at, 0, 1), isCold('missing'))
      await assert.rejects(store.verify(at, 10, 0), isCold('missing'))
      await assert.rejects(store.fetch(at, target, 10), isCold('missing'))
      assert.equal(existsSync(target), false)
    }
  })
}

function testRefusals(make: (t: TestContext) => Promise<StoreUnderTest>): void {
  test('what is not a key is refused by every call', async t => {
    const { store } = await make(t)
    const path = `${temporaryDirectory(t)}/local`
    writeFileSync(path, 'x')
    for (const bad of ['../../etc/a.log', 'a~1/../b.log', '/a~1/0/1.log', 'a~1//1.log', 'a~1/0/1.txt', '1.log', '']) {
      await assert.rejects(store.put(bad, path, 1, 0), isCold('refused'))
      await assert.rejects(store.read(bad, 0, 1), isCold('refused'))
      await assert.rejects(store.fetch(bad, `${path}2`, 1), isCold('refused'))
      await assert.rejects(store.verify(bad, 1, 0), isCold('refused'))
      await assert.rejects(store.remove(bad), isCold('refused'))
    }
    await assert.rejects(store.list('../'), isCold('refused'))
    await assert.rejects(store.list('a~1'), isCold('refused'))
  })

  for (const bytes of [5000, largeBytes]) {
    test(`a local file of ${bytes} bytes that is not what it should be is refused, and nothing is stored`, async t => {
      const { store } = await make(t)
      const path = `${temporaryDirectory(t)}/local`
      const content = contentOf(bytes)
      writeFileSync(path, content)
      await assert.rejects(store.put(key, path, bytes, checksumOf(content) ^ 1), isCold('refused'))
      await assert.rejects(store.put(key, path, bytes + 1, checksumOf(content)), isCold('refused'))
      assert.deepEqual(await store.list(''), [])
      assert.equal(await store.sweep(), 0)
    })
  }

  test('a local file that is not there, or already there, is an error of the local disk', async t => {
    const { store } = await make(t)
    const path = `${temporaryDirectory(t)}/local`
    const isDisk = (code: string) => (error: unknown) => error instanceof DiskError && error.code === code
    await assert.rejects(store.put(key, path, 1, 0), isDisk('ENOENT'))
    await putContent(t, store, key, contentOf(10))
    writeFileSync(path, 'mine')
    await assert.rejects(store.fetch(key, path, 10), isDisk('EEXIST'))
    assert.equal(readFileSync(path, 'utf8'), 'mine')
  })

  test('a closed store does nothing more', async t => {
    const { store } = await make(t)
    await putContent(t, store, key, contentOf(10))
    store.close()
    await assert.rejects(store.read(key, 0, 1), isCold('unavailable'))
    await assert.rejects(putContent(t, store, key, contentOf(10)), isCold('unavailable'))
    await assert.rejects(store.verify(key, 10, 0), isCold('unavailable'))
    await assert.rejects(store.list(''), isCold('unavailable'))
    await assert.rejects(store.remove(key), isCold('unavailable'))
  })

  test('closing a store ends a put in progress, which leaves no object', async t => {
    const { store } = await make(t)
    const put = putContent(t, store, key, contentOf(largeBytes))
    setImmediate(() => store.close())
    await assert.rejects(put, isCold('unavailable'))
  })
}

function testDamage(make: (t: TestContext) => Promise<StoreUnderTest>): void {
  test('one changed bit behind our back is noticed', async t => {
    const { store, tamper } = await make(t)
    const content = contentOf(largeBytes)
    await putContent(t, store, key, content)
    const changed = Buffer.from(content)
    changed.writeUInt8(changed.readUInt8(largeBytes - 7) ^ 4, largeBytes - 7)
    await tamper(key, changed)
    await assert.rejects(store.verify(key, largeBytes, checksumOf(content)), isCold('damaged'))
    const found = await store.fetch(key, `${temporaryDirectory(t)}/fetched`, largeBytes)
    assert.notEqual(found.crc32c, checksumOf(content))
  })

  test('an object that became shorter or longer is noticed', async t => {
    const { store, tamper } = await make(t)
    const content = contentOf(5000)
    await putContent(t, store, key, content)
    await tamper(key, content.subarray(0, 4000))
    await assert.rejects(store.verify(key, 5000, checksumOf(content)), isCold('damaged'))
    await assert.rejects(store.read(key, 3999, 2), isCold('damaged'))
    await assert.rejects(store.read(key, 4000, 1), isCold('damaged'))
    await tamper(key, Buffer.concat([content, content]))
    await assert.rejects(store.verify(key, 5000, checksumOf(content)), isCold('damaged'))
    const target = `${temporaryDirectory(t)}/fetched`
    await assert.rejects(store.fetch(key, target, 5000), isCold('damaged'))
    assert.equal(existsSync(target), false)
  })
}
