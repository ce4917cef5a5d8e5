import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, test } from 'node:test'
import { makeDataDirectory, takeLock } from '../../../src/store/directory-lock.ts'
import { StoreOpenError } from '../../../src/store/store-open-error.ts'
import type { StoreOpenCode } from '../../../src/store/store-open-error.ts'
import { FORMAT_VERSION } from '../../../workers/store/schema.ts'
import { freshDataDir, openForTest, StoreChild } from './store-tools.ts'

const refusal = (code: StoreOpenCode, mention: string) => (error: unknown) =>
  error instanceof StoreOpenError &&
  error.code === code &&
  error.message.includes(mention) &&
  !error.message.includes('\n')

describe('the lock of a data directory', () => {
  test('a second broker in the same process is refused, and leaves the lock of the first whole', async t => {
    const dataDir = freshDataDir(t)
    await openForTest(t, dataDir)
    await assert.rejects(openForTest(t, dataDir), refusal('in-use', `${dataDir} is in use by another millrace process`))
    assert.throws(() => takeLock(dataDir), refusal('in-use', `pid ${process.pid}`))
    const other = new StoreChild(t, 'open', dataDir)
    await other.waitFor(lines => lines.length > 0)
    assert.match(other.lines[0] ?? '', /^refused in-use /)
  })

  test('another process is refused with the pid of the owner, and gets in once the owner is closed', async t => {
    const dataDir = freshDataDir(t)
    const owner = new StoreChild(t, 'open', dataDir)
    await owner.waitFor(lines => lines.includes('opened'))
    await assert.rejects(openForTest(t, dataDir), refusal('in-use', `(pid ${owner.process.pid})`))
    await owner.finish()
    await openForTest(t, dataDir)
  })

  test('is gone with its owner after a kill -9', async t => {
    const dataDir = freshDataDir(t)
    const owner = new StoreChild(t, 'open', dataDir)
    await owner.waitFor(lines => lines.includes('opened'))
    await owner.kill()
    await openForTest(t, dataDir)
  })

  test('an offline tool and a broker keep each other out', async t => {
    const dataDir = freshDataDir(t)
    makeDataDirectory(dataDir)
    const tool = takeLock(dataDir)
    await assert.rejects(openForTest(t, dataDir), refusal('in-use', dataDir))
    tool.release()
    await openForTest(t, dataDir)
    assert.throws(() => takeLock(dataDir), refusal('in-use', dataDir))
  })

  test('is taken before any other file is made', async t => {
    const dataDir = freshDataDir(t)
    makeDataDirectory(dataDir)
    const tool = takeLock(dataDir)
    await assert.rejects(openForTest(t, dataDir), refusal('in-use', dataDir))
    assert.deepEqual(readdirSync(dataDir).sort(), ['lock.db', 'lock.pid'])
    tool.release()
  })

  test('of a directory that does not exist cannot be taken by a tool', t => {
    assert.throws(() => takeLock(freshDataDir(t)), refusal('unusable', 'it does not exist'))
  })
})

describe('a directory that cannot be used', () => {
  test('one that may not be written is refused in one clear line', async t => {
    const dataDir = freshDataDir(t)
    mkdirSync(dataDir)
    chmodSync(dirname(dataDir), 0o755)
    chmodSync(dataDir, 0o555)
    const child = new StoreChild(t, 'nobody', dataDir)
    await child.waitFor(lines => lines.length > 0)
    assert.equal(
      child.lines[0],
      `refused unusable data directory ${dataDir} cannot be used: permission denied (the broker must be able to make and write files there)`
    )
  })

  test('a file in its place, or on the way to it, is named as the reason', async t => {
    const dataDir = freshDataDir(t)
    writeFileSync(dataDir, '')
    await assert.rejects(openForTest(t, dataDir), refusal('unusable', 'it is not a directory'))
    await assert.rejects(openForTest(t, join(dataDir, 'below')), refusal('unusable', 'is not a directory'))
  })

  test('a store of a newer version is refused and left as it is', async t => {
    const dataDir = freshDataDir(t)
    await (await openForTest(t, dataDir)).close()
    const path = join(dataDir, 'store.db')
    const database = new DatabaseSync(path)
    database.exec(`PRAGMA user_version = ${FORMAT_VERSION + 1}`)
    database.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    database.close()
    const before = readFileSync(path)
    await assert.rejects(
      openForTest(t, dataDir),
      refusal('newer-format', `store format ${FORMAT_VERSION + 1}; this one reads up to ${FORMAT_VERSION}`)
    )
    assert.ok(readFileSync(path).equals(before))
    takeLock(dataDir).release()
  })

  test('a database that is not ours is refused and left as it is', async t => {
    const dataDir = freshDataDir(t)
    makeDataDirectory(dataDir)
    const path = join(dataDir, 'store.db')
    const database = new DatabaseSync(path)
    database.exec('CREATE TABLE theirs (a)')
    database.close()
    const before = readFileSync(path)
    await assert.rejects(openForTest(t, dataDir), refusal('damaged', 'not a store of this broker'))
    assert.ok(readFileSync(path).equals(before))
  })

  test('a damaged store is refused, never replaced by an empty one', async t => {
    const dataDir = freshDataDir(t)
    await (await openForTest(t, dataDir)).close()
    const path = join(dataDir, 'store.db')
    writeFileSync(path, Buffer.alloc(8192, 'x'))
    await assert.rejects(openForTest(t, dataDir), refusal('damaged', 'store.db is damaged'))
    assert.ok(readFileSync(path).equals(Buffer.alloc(8192, 'x')))
  })
})
