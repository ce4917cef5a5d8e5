/** The claims that every Disk must keep, run against the real and the simulated one. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DiskError } from '../../../src/disk/disk.ts'
import type { Disk } from '../../../src/disk/disk.ts'
import { parseFaultPlan } from '../../../src/disk/fault-plan.ts'
import type { FaultPlan } from '../../../src/disk/fault-plan.ts'

export interface DiskUnderTest {
  readonly disk: Disk
  /** An existing, empty directory. */
  readonly root: string
}
export type MakeDisk = (faults?: FaultPlan) => DiskUnderTest

export const refusedWith = (code: string) => (error: unknown) => error instanceof DiskError && error.code === code

/** All bytes of a file. */
export function contentOf(disk: Disk, path: string): Buffer {
  const file = disk.open('slot.open', path)
  const bytes = Buffer.alloc(file.sizeBytes())
  assert.equal(file.read('slot.read', bytes, 0, bytes.length, 0), bytes.length)
  file.close()
  return bytes
}

/** Writes a whole new file. */
export function writeFile(disk: Disk, path: string, text: string): void {
  const file = disk.create('slot.create', path)
  file.write('slot.fill', Buffer.from(text), 0, Buffer.byteLength(text), 0)
  file.close()
}

export function testDiskContract(makeDisk: MakeDisk): void {
  testFiles(makeDisk)
  testNames(makeDisk)
  testFaults(makeDisk)
  testSpace(makeDisk)
}

function testFiles(makeDisk: MakeDisk): void {
  test('what was written at a position is read back from there', () => {
    const { disk, root } = makeDisk()
    const file = disk.create('slot.create', `${root}/a`)
    file.write('group.write', Buffer.from('..hello.'), 2, 7, 5000)
    file.sync('group.sync')
    const target = Buffer.alloc(9, 'x')
    assert.equal(file.read('slot.read', target, 2, 5, 5000), 5)
    assert.equal(target.toString(), 'xxhelloxx')
    assert.equal(file.sizeBytes(), 5005)
    file.close()
  })

  test('a read is short only at the end of the file, and empty behind it', () => {
    const { disk, root } = makeDisk()
    writeFile(disk, `${root}/a`, 'abcdef')
    const file = disk.open('slot.open', `${root}/a`)
    const target = Buffer.alloc(10)
    assert.equal(file.read('slot.read', target, 0, 10, 4), 2)
    assert.equal(file.read('slot.read', target, 0, 10, 6), 0)
    assert.equal(file.read('slot.read', target, 0, 10, 9000), 0)
    file.close()
  })

  test('a gap that was never written reads as zeros', () => {
    const { disk, root } = makeDisk()
    const file = disk.create('slot.create', `${root}/a`)
    file.write('slot.fill', Buffer.from('z'), 0, 1, 10_000)
    file.close()
    const bytes = contentOf(disk, `${root}/a`)
    assert.equal(bytes.length, 10_001)
    assert.ok(bytes.subarray(0, 10_000).every(byte => byte === 0))
  })

  test('a truncated file ends there, and reads as zeros when it is made longer again', () => {
    const { disk, root } = makeDisk()
    writeFile(disk, `${root}/a`, 'abcdef')
    const file = disk.open('slot.open', `${root}/a`)
    file.truncate('slot.truncate', 2)
    assert.equal(file.sizeBytes(), 2)
    file.truncate('slot.truncate', 5000)
    file.close()
    assert.deepEqual(contentOf(disk, `${root}/a`), Buffer.concat([Buffer.from('ab'), Buffer.alloc(4998)]))
  })

  test('zeros written over bytes read as zeros', () => {
    const { disk, root } = makeDisk()
    const file = disk.create('slot.create', `${root}/a`)
    const filled = Buffer.alloc(20_000, 7)
    file.write('slot.fill', filled, 0, filled.length, 0)
    file.write('slot.fill', Buffer.alloc(9000), 0, 9000, 3000)
    file.close()
    const expected = Buffer.from(filled)
    expected.fill(0, 3000, 12_000)
    assert.ok(contentOf(disk, `${root}/a`).equals(expected))
  })

  test('an open file stays readable after its name is taken away', () => {
    const { disk, root } = makeDisk()
    writeFile(disk, `${root}/a`, 'kept')
    const file = disk.open('slot.open', `${root}/a`)
    disk.remove('slot.remove', `${root}/a`)
    const target = Buffer.alloc(4)
    assert.equal(file.read('slot.read', target, 0, 4, 0), 4)
    assert.equal(target.toString(), 'kept')
    file.close()
  })

  test('a file used after its close is a bug, not a disk error', () => {
    const { disk, root } = makeDisk()
    const file = disk.create('slot.create', `${root}/a`)
    file.close()
    assert.throws(() => file.sync('group.sync'), { name: 'BugError' })
    assert.throws(() => file.close(), { name: 'BugError' })
  })
}

function testNames(makeDisk: MakeDisk): void {
  test('names are listed sorted by code unit', () => {
    const { disk, root } = makeDisk()
    for (const name of ['b', 'a~', 'B', '10', '9']) writeFile(disk, `${root}/${name}`, '')
    assert.deepEqual(disk.list(root), ['10', '9', 'B', 'a~', 'b'])
  })

  test('making a name that is there is refused with EEXIST', () => {
    const { disk, root } = makeDisk()
    writeFile(disk, `${root}/a`, 'first')
    disk.makeDirectory('journal.directory', `${root}/d`)
    assert.throws(() => disk.create('slot.create', `${root}/a`), refusedWith('EEXIST'))
    assert.throws(() => disk.makeDirectory('journal.directory', `${root}/d`), refusedWith('EEXIST'))
    assert.equal(contentOf(disk, `${root}/a`).toString(), 'first')
  })

  test('using a name that is not there is refused with ENOENT', () => {
    const { disk, root } = makeDisk()
    const calls = [
      () => disk.open('slot.open', `${root}/no`),
      () => disk.create('slot.create', `${root}/no/a`),
      () => disk.list(`${root}/no`),
      () => disk.rename('slot.rename', `${root}/no`, `${root}/a`),
      () => disk.remove('slot.remove', `${root}/no`),
      () => disk.syncDirectory('journal.directory-sync', `${root}/no`)
    ]
    for (const call of calls) assert.throws(call, refusedWith('ENOENT'))
    assert.equal(disk.exists(`${root}/no`), false)
  })

  test('a rename moves a file and takes the place of the one that was there', () => {
    const { disk, root } = makeDisk()
    writeFile(disk, `${root}/new`, 'new')
    writeFile(disk, `${root}/old`, 'old')
    disk.rename('slot.rename', `${root}/new`, `${root}/old`)
    disk.syncDirectory('journal.directory-sync', root)
    assert.deepEqual(disk.list(root), ['old'])
    assert.equal(contentOf(disk, `${root}/old`).toString(), 'new')
  })

  test('files live in directories and may move between them', () => {
    const { disk, root } = makeDisk()
    disk.makeDirectory('journal.directory', `${root}/x`)
    disk.makeDirectory('journal.directory', `${root}/y`)
    writeFile(disk, `${root}/x/a`, 'a')
    disk.rename('slot.rename', `${root}/x/a`, `${root}/y/b`)
    assert.deepEqual([disk.list(`${root}/x`), disk.list(`${root}/y`)], [[], ['b']])
    assert.equal(contentOf(disk, `${root}/y/b`).toString(), 'a')
  })
}

function testSpace(makeDisk: MakeDisk): void {
  test('an empty directory can be taken away, one that is not empty cannot', () => {
    const { disk, root } = makeDisk()
    disk.makeDirectory('segment.directory', `${root}/d`)
    writeFile(disk, `${root}/d/a`, 'a')
    assert.throws(() => disk.removeDirectory('segment.directory', `${root}/d`), refusedWith('ENOTEMPTY'))
    assert.throws(() => disk.removeDirectory('segment.directory', `${root}/d/a`), refusedWith('ENOTDIR'))
    assert.throws(() => disk.removeDirectory('segment.directory', `${root}/no`), refusedWith('ENOENT'))
    assert.deepEqual(disk.list(`${root}/d`), ['a'])
    disk.remove('segment.remove', `${root}/d/a`)
    disk.removeDirectory('segment.directory', `${root}/d`)
    assert.deepEqual(disk.list(root), [])
  })

  test('the size of a file is told without opening it', () => {
    const { disk, root } = makeDisk()
    writeFile(disk, `${root}/a`, 'abcdef')
    assert.equal(disk.sizeOf(`${root}/a`), 6)
    assert.throws(() => disk.sizeOf(`${root}/no`), refusedWith('ENOENT'))
  })

  test('the free room below a directory is told in bytes', () => {
    const { disk, root } = makeDisk(parseFaultPlan('disk.free:3=EIO'))
    const bytes = disk.freeBytes(root)
    assert.ok(Number.isInteger(bytes) && bytes > 0, String(bytes))
    assert.throws(() => disk.freeBytes(`${root}/no`), refusedWith('ENOENT'))
    assert.throws(() => disk.freeBytes(root), refusedWith('EIO'))
  })
}

function testFaults(makeDisk: MakeDisk): void {
  test('an armed error strikes the named call, names its point, and does nothing to the file', () => {
    const { disk, root } = makeDisk(parseFaultPlan('group.write:2=ENOSPC'))
    const file = disk.create('slot.create', `${root}/a`)
    file.write('group.write', Buffer.from('one'), 0, 3, 0)
    assert.throws(
      () => file.write('group.write', Buffer.from('two'), 0, 3, 0),
      (error: unknown) => error instanceof DiskError && error.code === 'ENOSPC' && error.point === 'group.write'
    )
    file.write('group.write', Buffer.from('!'), 0, 1, 3)
    file.close()
    assert.equal(contentOf(disk, `${root}/a`).toString(), 'one!')
  })

  test('a short write leaves the first half of its bytes', () => {
    const { disk, root } = makeDisk(parseFaultPlan('group.write:1=short-EIO'))
    const file = disk.create('slot.create', `${root}/a`)
    assert.throws(() => file.write('group.write', Buffer.from('abcdef'), 0, 6, 0), refusedWith('EIO'))
    file.close()
    assert.equal(contentOf(disk, `${root}/a`).toString(), 'abc')
  })

  test('every kind of call can be struck', () => {
    const plan = [
      'slot.open:1=EMFILE',
      'slot.create:2=EIO',
      'slot.read:1=EIO',
      'group.sync:1=EIO',
      'slot.truncate:1=EIO',
      'slot.rename:1=EIO',
      'slot.remove:1=EIO',
      'segment.directory:1=EIO',
      'journal.directory:1=ENOSPC',
      'journal.directory-sync:1=EIO'
    ]
    const { disk, root } = makeDisk(parseFaultPlan(plan.join(',')))
    const file = disk.create('slot.create', `${root}/a`)
    assert.throws(() => disk.open('slot.open', `${root}/a`), refusedWith('EMFILE'))
    assert.throws(() => disk.create('slot.create', `${root}/b`), refusedWith('EIO'))
    assert.throws(() => file.read('slot.read', Buffer.alloc(1), 0, 1, 0), refusedWith('EIO'))
    assert.throws(() => file.sync('group.sync'), refusedWith('EIO'))
    assert.throws(() => file.truncate('slot.truncate', 0), refusedWith('EIO'))
    assert.throws(() => disk.rename('slot.rename', `${root}/a`, `${root}/b`), refusedWith('EIO'))
    assert.throws(() => disk.remove('slot.remove', `${root}/a`), refusedWith('EIO'))
    assert.throws(() => disk.removeDirectory('segment.directory', root), refusedWith('EIO'))
    assert.throws(() => disk.makeDirectory('journal.directory', `${root}/d`), refusedWith('ENOSPC'))
    assert.throws(() => disk.syncDirectory('journal.directory-sync', root), refusedWith('EIO'))
    file.close()
    assert.deepEqual(disk.list(root), ['a'])
  })
}
