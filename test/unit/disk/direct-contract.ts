/** What every Disk must keep of its direct files, run against the real and the simulated one. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { DIRECT_BLOCK_BYTES, alignedBuffer } from '../../../src/disk/aligned-memory.ts'
import type { Disk, DiskFile } from '../../../src/disk/disk.ts'
import { parseFaultPlan } from '../../../src/disk/fault-plan.ts'
import { contentOf, refusedWith, writeFile, type MakeDisk } from './disk-contract.ts'

const BLOCK = DIRECT_BLOCK_BYTES

/** Aligned blocks, each filled with one letter of the text. */
export function blocks(text: string): Buffer {
  const result = alignedBuffer(text.length * BLOCK)
  for (const [i, letter] of [...text].entries()) result.fill(letter, i * BLOCK, (i + 1) * BLOCK)
  return result
}

/** The first letter of each block of a file: the text that `blocks` was made of. */
export function lettersOf(disk: Disk, path: string): string {
  const bytes = contentOf(disk, path)
  const letters = Array.from({ length: bytes.length / BLOCK }, (_, i) => String.fromCharCode(bytes[i * BLOCK] ?? 0))
  assert.ok(bytes.equals(blocks(letters.join(''))), 'whole blocks of one letter')
  return letters.join('')
}

export function testDirectContract(makeDisk: MakeDisk): void {
  testDirectFiles(makeDisk)
  testRefusals(makeDisk)
  testDirectFaults(makeDisk)
}

function testDirectFiles(makeDisk: MakeDisk): void {
  test('what was written to a direct file is read back, through it and through an ordinary one', () => {
    const { disk, root } = makeDisk()
    const file = disk.createDirect('segment.create', `${root}/a`)
    file.write('segment.write', blocks('xabcx'), BLOCK, 4 * BLOCK, BLOCK)
    file.write('segment.write', blocks('0'), 0, BLOCK, 0)
    file.sync('segment.sync')
    const target = blocks('....')
    assert.equal(file.read('segment.read', target, BLOCK, 2 * BLOCK, 2 * BLOCK), 2 * BLOCK)
    assert.ok(target.equals(blocks('.bc.')))
    assert.equal(file.sizeBytes(), 4 * BLOCK)
    file.close()
    assert.equal(lettersOf(disk, `${root}/a`), '0abc')
  })

  test('an existing file can be opened directly and written over', () => {
    const { disk, root } = makeDisk()
    const made = disk.create('segment.create', `${root}/a`)
    made.write('segment.write', blocks('abc'), 0, 3 * BLOCK, 0)
    made.close()
    const file = disk.openDirect('segment.open', `${root}/a`)
    file.write('segment.write', blocks('B'), 0, BLOCK, BLOCK)
    file.close()
    assert.equal(lettersOf(disk, `${root}/a`), 'aBc')
  })

  test('a direct file may be cut anywhere; a read is short only at its end, and empty behind it', () => {
    const { disk, root } = makeDisk()
    const file = disk.createDirect('segment.create', `${root}/a`)
    file.write('segment.write', blocks('abc'), 0, 3 * BLOCK, 0)
    file.truncate('segment.truncate', BLOCK + 700)
    const target = blocks('....')
    const counts = [0, BLOCK, 2 * BLOCK].map(position => file.read('segment.read', target, 0, 4 * BLOCK, position))
    assert.deepEqual(counts, [BLOCK + 700, 700, 0])
    file.close()
    assert.ok(contentOf(disk, `${root}/a`).equals(blocks('ab').subarray(0, BLOCK + 700)))
  })

  test('names are checked as for ordinary files', () => {
    const { disk, root } = makeDisk()
    writeFile(disk, `${root}/a`, 'first')
    assert.throws(() => disk.createDirect('segment.create', `${root}/a`), refusedWith('EEXIST'))
    assert.throws(() => disk.openDirect('segment.open', `${root}/no`), refusedWith('ENOENT'))
    assert.equal(contentOf(disk, `${root}/a`).toString(), 'first')
  })

  test('a direct file asked for less than whole blocks, or for memory that is not aligned, is a bug', t => {
    const { disk, root } = makeDisk()
    const file = disk.createDirect('segment.create', `${root}/a`)
    if (isBuffered(file, t)) return
    const memory = blocks('abc')
    const odd = [
      () => file.write('segment.write', memory, 0, BLOCK, 512),
      () => file.write('segment.write', memory, 0, BLOCK + 512, 0),
      () => file.write('segment.write', memory, 512, 512 + BLOCK, 0),
      () => file.write('segment.write', memory.subarray(512), 0, BLOCK, 0),
      () => file.write('segment.write', Buffer.alloc(BLOCK), 0, BLOCK, 0),
      () => file.read('segment.read', memory, 0, BLOCK, 1),
      () => file.read('segment.read', memory, 0, 1, 0),
      () => file.read('segment.read', Buffer.alloc(BLOCK), 0, BLOCK, 0)
    ]
    for (const call of odd) assert.throws(call, { name: 'BugError' })
    assert.equal(file.sizeBytes(), 0)
    file.close()
  })
}

/** True, and said so, where the file system of the test has no direct files. */
function isBuffered(file: DiskFile, t: TestContext): boolean {
  if (file.isDirect) return false
  t.skip('the file system of this test refuses direct files')
  file.close()
  return true
}

function testRefusals(makeDisk: MakeDisk): void {
  const refusals = [
    { when: 'when it is made', plan: 'segment.create:1=EINVAL' },
    { when: 'at its first write', plan: 'segment.write:1=EINVAL' },
    { when: 'at a later write', plan: 'segment.write:2=EINVAL' },
    { when: 'at a read', plan: 'segment.read:1=EINVAL' }
  ]
  for (const { when, plan } of refusals) {
    test(`a direct file refused ${when} is an ordinary one from then on, and holds the same bytes`, () => {
      const { disk, root } = makeDisk(parseFaultPlan(plan))
      const file = disk.createDirect('segment.create', `${root}/a`)
      file.write('segment.write', blocks('ab'), 0, 2 * BLOCK, 0)
      file.write('segment.write', blocks('c'), 0, BLOCK, 2 * BLOCK)
      const target = blocks('..')
      assert.equal(file.read('segment.read', target, 0, 2 * BLOCK, BLOCK), 2 * BLOCK)
      assert.ok(target.equals(blocks('bc')))
      assert.equal(file.isDirect, false)
      file.write('segment.write', Buffer.from('tail'), 0, 4, 3 * BLOCK)
      file.sync('segment.sync')
      file.close()
      const expected = Buffer.concat([blocks('abc'), Buffer.from('tail')])
      assert.ok(contentOf(disk, `${root}/a`).equals(expected))
    })
  }

  test('a direct file refused when it is opened is an ordinary one', () => {
    const { disk, root } = makeDisk(parseFaultPlan('segment.open:1=EINVAL'))
    writeFile(disk, `${root}/a`, 'abcdef')
    const file = disk.openDirect('segment.open', `${root}/a`)
    assert.equal(file.isDirect, false)
    file.write('segment.write', Buffer.from('X'), 0, 1, 2)
    file.close()
    assert.equal(contentOf(disk, `${root}/a`).toString(), 'abXdef')
  })

  test('EINVAL from a file that was never direct is an error like others', () => {
    const { disk, root } = makeDisk(parseFaultPlan('segment.write:1=EINVAL'))
    const file = disk.create('segment.create', `${root}/a`)
    assert.throws(() => file.write('segment.write', Buffer.from('a'), 0, 1, 0), refusedWith('EINVAL'))
    assert.equal(file.isDirect, false)
    file.close()
  })
}

function testDirectFaults(makeDisk: MakeDisk): void {
  test('errors strike direct files too, and one that could not be made is not there', () => {
    const plan = 'segment.create:1=EMFILE,segment.write:1=ENOSPC,segment.read:1=EIO,segment.open:1=EMFILE'
    const { disk, root } = makeDisk(parseFaultPlan(plan))
    assert.throws(() => disk.createDirect('segment.create', `${root}/a`), refusedWith('EMFILE'))
    assert.deepEqual(disk.list(root), [])
    const file = disk.createDirect('segment.create', `${root}/a`)
    assert.throws(() => file.write('segment.write', blocks('a'), 0, BLOCK, 0), refusedWith('ENOSPC'))
    assert.throws(() => file.read('segment.read', blocks('a'), 0, BLOCK, 0), refusedWith('EIO'))
    assert.throws(() => disk.openDirect('segment.open', `${root}/a`), refusedWith('EMFILE'))
    assert.equal(file.sizeBytes(), 0)
    file.close()
  })

  test('a short write to a direct file leaves whole blocks', t => {
    const { disk, root } = makeDisk(parseFaultPlan('segment.write:1=short-ENOSPC'))
    const file = disk.createDirect('segment.create', `${root}/a`)
    if (isBuffered(file, t)) return
    assert.throws(() => file.write('segment.write', blocks('abc'), 0, 3 * BLOCK, 0), refusedWith('ENOSPC'))
    file.close()
    assert.equal(lettersOf(disk, `${root}/a`), 'a')
  })
}
