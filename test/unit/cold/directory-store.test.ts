import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { createDirectoryStore } from '../../../src/cold/directory-store.ts'
import type { ObjectStore } from '../../../src/cold/object-store.ts'
import { FILE_PIECE_BYTES } from '../../../src/cold/pieces.ts'
import { DiskError } from '../../../src/disk/disk.ts'
import { parseFaultPlan } from '../../../src/disk/fault-plan.ts'
import { createRealDisk } from '../../../src/disk/real-disk.ts'
import { temporaryDirectory } from '../../support/temporary-directory.ts'
import {
  assertStored,
  checksumOf,
  contentOf,
  isCold,
  key,
  putContent,
  testStoreContract,
  type StoreUnderTest
} from './store-contract.ts'

/** A store in a directory that is not there yet. */
function makeStore(t: TestContext, plan = ''): StoreUnderTest & { readonly directory: string } {
  const directory = `${temporaryDirectory(t)}/to/cold`
  const store = createDirectoryStore({ disk: createRealDisk(parseFaultPlan(plan)), directory })
  const tamper = async (at: string, bytes: Buffer): Promise<void> => writeFileSync(`${directory}/${at}`, bytes)
  return { store, tamper, directory }
}

const incomingOf = (directory: string): string[] => readdirSync(`${directory}/+incoming`)

describe('the directory store', () => {
  testStoreContract(async t => makeStore(t))

  test('objects are readable by their owner alone', async t => {
    const { store, directory } = makeStore(t)
    await putContent(t, store, key, contentOf(10))
    assert.equal(statSync(`${directory}/${key}`).mode & 0o777, 0o600)
    assert.equal(statSync(dirname(`${directory}/${key}`)).mode & 0o777, 0o700)
  })

  test('folders without objects go with their last object', async t => {
    const { store, directory } = makeStore(t)
    for (const at of ['a~1/0/1.log', 'a~1/1/1.log']) await putContent(t, store, at, contentOf(10))
    await store.remove('a~1/0/1.log')
    assert.deepEqual(readdirSync(`${directory}/a~1`), ['1'])
    await store.remove('a~1/1/1.log')
    assert.deepEqual(readdirSync(directory), ['+incoming'])
  })

  test('foreign files are no objects', async t => {
    const { store, directory } = makeStore(t)
    await putContent(t, store, key, contentOf(10))
    mkdirSync(`${directory}/lost+found`)
    writeFileSync(`${directory}/lost+found/1.log`, '')
    writeFileSync(`${directory}/orders~17/README`, '')
    assert.deepEqual(await store.list(''), [key])
  })

  test('a directory whose disk is not mounted is unavailable: nothing in it is called missing', async t => {
    const { store, directory } = makeStore(t)
    await putContent(t, store, key, contentOf(10))
    rmSync(directory, { recursive: true })
    for (const isThere of [false, true]) {
      if (isThere) mkdirSync(directory)
      await assert.rejects(store.read(key, 0, 1), isCold('unavailable'))
      await assert.rejects(store.verify(key, 10, 0), isCold('unavailable'))
      await assert.rejects(store.remove(key), isCold('unavailable'))
    }
  })

  test('a put in progress is not swept away', async t => {
    const { store } = makeStore(t)
    const put = putContent(t, store, key, contentOf(5 * FILE_PIECE_BYTES))
    assert.equal(await store.sweep(), 0)
    await put
    await assertStored(t, store, key, contentOf(5 * FILE_PIECE_BYTES))
  })

  test('its description says where it is', t => {
    const { store, directory } = makeStore(t)
    assert.equal(store.describe(), `directory ${directory}`)
  })
})

describe('a failing disk below the directory store', () => {
  const cases = [
    { plan: 'segment.create:1=EMFILE', code: 'unavailable' },
    { plan: 'segment.write:2=short-ENOSPC', code: 'unavailable' },
    { plan: 'segment.sync:1=EIO', code: 'unavailable' },
    // The first two reads are those of the local file.
    { plan: 'segment.read:3=EIO', code: 'unavailable' },
    { plan: 'segment.directory:1=EACCES', code: 'refused' },
    { plan: 'segment.rename:1=EIO', code: 'unavailable' }
  ] as const
  for (const { plan, code } of cases) {
    test(`${plan}: the put is ${code}, leaves nothing behind, and succeeds the next time`, async t => {
      const { store, directory } = makeStore(t, plan)
      const content = contentOf(FILE_PIECE_BYTES + 1000)
      await assert.rejects(putContent(t, store, key, content), isCold(code))
      assert.deepEqual(await store.list(''), [])
      if (existsSync(directory)) assert.deepEqual(incomingOf(directory), [])
      await putContent(t, store, key, content)
      await assertStored(t, store, key, content)
    })
  }

  test('a failed sync of a directory fails the put, and a put after it succeeds', async t => {
    const { store } = makeStore(t, 'segment.directory-sync:2=EIO')
    await assert.rejects(putContent(t, store, key, contentOf(10)), isCold('unavailable'))
    await putContent(t, store, key, contentOf(10))
    await assertStored(t, store, key, contentOf(10))
  })

  test('a local disk that fills up during a fetch says so, and is left without the file', async t => {
    // The first write is that of the put.
    const { store } = makeStore(t, 'segment.write:2=short-ENOSPC')
    await putContent(t, store, key, contentOf(5000))
    const target = `${temporaryDirectory(t)}/fetched`
    const isFull = (error: unknown): boolean => error instanceof DiskError && error.code === 'ENOSPC'
    await assert.rejects(store.fetch(key, target, 5000), isFull)
    assert.equal(existsSync(target), false)
  })

  test('a file system without direct access is read back all the same', async t => {
    const { store, tamper } = makeStore(t, 'segment.open:2+=EINVAL')
    await putContent(t, store, key, contentOf(5000))
    await tamper(key, contentOf(4999))
    await assert.rejects(store.verify(key, 5000, checksumOf(contentOf(5000))), isCold('damaged'))
  })
})

const child = fileURLToPath(new URL('killed-put.ts', import.meta.url))

/** @returns the signal that ended the put, or null. */
function runKilled(directory: string, path: string, content: Buffer, plan: string): Promise<NodeJS.Signals | null> {
  const args = [child, directory, key, path, String(checksumOf(content)), plan]
  return new Promise(resolve => {
    execFile(process.execPath, args, error => resolve(error?.signal ?? null))
  })
}

describe('a put that is killed', () => {
  const content = contentOf(2 * FILE_PIECE_BYTES + 1000)
  const cases: readonly { plan: string; leftovers: number; isStored: boolean }[] = [
    { plan: 'segment.create:1=kill-after', leftovers: 1, isStored: false },
    { plan: 'segment.write:1=kill', leftovers: 1, isStored: false },
    { plan: 'segment.write:3=short-kill', leftovers: 1, isStored: false },
    { plan: 'segment.sync:1=kill', leftovers: 1, isStored: false },
    { plan: 'segment.sync:1=kill-after', leftovers: 1, isStored: false },
    { plan: 'segment.read:5=kill', leftovers: 1, isStored: false },
    { plan: 'segment.rename:1=kill', leftovers: 1, isStored: false },
    { plan: 'segment.rename:1=kill-after', leftovers: 0, isStored: true },
    { plan: 'segment.directory-sync:3=kill', leftovers: 0, isStored: true }
  ]
  for (const { plan, leftovers, isStored } of cases) {
    const what = isStored ? 'a whole object' : 'no object, and one file that the next start sweeps'
    test(`${plan} leaves ${what}`, async t => {
      const { store, directory } = makeStore(t)
      const path = `${temporaryDirectory(t)}/local`
      writeFileSync(path, content)
      assert.equal(await runKilled(directory, path, content, plan), 'SIGKILL')
      await assertAfterKill(t, store, isStored)
      assert.equal(incomingOf(directory).length, leftovers)
      assert.equal(await store.sweep(), leftovers)
      assert.deepEqual(incomingOf(directory), [])
      await assertAfterKill(t, store, isStored)
      await putContent(t, store, key, content)
      await assertStored(t, store, key, content)
    })
  }

  async function assertAfterKill(t: TestContext, store: ObjectStore, isStored: boolean): Promise<void> {
    assert.deepEqual(await store.list(''), isStored ? [key] : [])
    if (isStored) await assertStored(t, store, key, content)
    else await assert.rejects(store.read(key, 0, 1), isCold('missing'))
  }
})
