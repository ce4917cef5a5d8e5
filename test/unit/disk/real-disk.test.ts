import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { chmodSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { createRealDisk } from '../../../src/disk/real-disk.ts'
import { parseFaultPlan } from '../../../src/disk/fault-plan.ts'
import { blocks, lettersOf, testDirectContract } from './direct-contract.ts'
import { refusedWith, testDiskContract, writeFile } from './disk-contract.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-disk-'))
after(() => rmSync(folder, { recursive: true, force: true }))

const freshRoot = () => mkdtempSync(join(folder, 'root-'))

describe('the real disk', () => {
  testDiskContract(faults => ({ disk: createRealDisk(faults), root: freshRoot() }))

  test('files are readable by their owner alone, and so are directories', () => {
    const root = freshRoot()
    const disk = createRealDisk()
    writeFile(disk, `${root}/a`, 'secret')
    disk.makeDirectory('journal.directory', `${root}/d`)
    assert.equal(statSync(`${root}/a`).mode & 0o777, 0o600)
    assert.equal(statSync(`${root}/d`).mode & 0o777, 0o700)
  })

  test('what the operating system refuses comes as a disk error with its cause', () => {
    const root = freshRoot()
    writeFile(createRealDisk(), `${root}/a`, 'a')
    chmodSync(root, 0o700)
    assert.throws(
      () => createRealDisk().create('slot.create', `${root}/a/b`),
      (error: unknown) =>
        error instanceof Error && 'code' in error && error.code === 'ENOTDIR' && error.cause instanceof Error
    )
  })
})

describe('direct files of the real disk', () => {
  testDirectContract(faults => ({ disk: createRealDisk(faults), root: freshRoot() }))

  test('the temporary folder says whether it has them', t => {
    const disk = createRealDisk()
    const file = disk.createDirect('segment.create', `${freshRoot()}/a`)
    t.diagnostic(`direct files in ${tmpdir()}: ${file.isDirect ? 'yes' : 'refused, buffered instead'}`)
    assert.equal(statSync(file.path).mode & 0o777, 0o600)
    file.close()
  })

  test('a direct file that is refused once its name leads elsewhere fails, and the other file is left alone', t => {
    const root = freshRoot()
    const disk = createRealDisk(parseFaultPlan('segment.write:1-2=EINVAL'))
    const file = disk.createDirect('segment.create', `${root}/a`)
    if (!file.isDirect) return t.skip('the file system of this test refuses direct files')
    disk.rename('segment.rename', `${root}/a`, `${root}/b`)
    writeFile(disk, `${root}/a`, 'other')
    const memory = blocks('a')
    assert.throws(() => file.write('segment.write', memory, 0, memory.length, 0), refusedWith('EINVAL'))
    assert.equal(readFileSync(`${root}/a`, 'utf8'), 'other')
    disk.remove('segment.remove', `${root}/a`)
    disk.rename('segment.rename', `${root}/b`, `${root}/a`)
    file.write('segment.write', memory, 0, memory.length, 0)
    file.close()
    assert.equal(lettersOf(disk, `${root}/a`), 'a')
  })
})

const child = fileURLToPath(new URL('killed-writer.ts', import.meta.url))

/** Runs the writer under a fault plan. @returns the signal that ended it, or null. */
function runKilled(root: string, plan: string): Promise<NodeJS.Signals | null> {
  return new Promise(resolve => {
    execFile(process.execPath, [child, root, plan], error => resolve(error?.signal ?? null))
  })
}

describe('a kill armed in a child process', () => {
  const cases = [
    { plan: 'group.write:2=kill', content: 'aaaa' },
    { plan: 'group.write:2=short-kill', content: 'aaaabb' },
    { plan: 'group.write:2=kill-after', content: 'aaaabbbb' }
  ]
  for (const { plan, content } of cases) {
    test(`${plan} leaves '${content}' in the file`, async () => {
      const root = freshRoot()
      assert.equal(await runKilled(root, plan), 'SIGKILL')
      assert.equal(readFileSync(`${root}/a`, 'utf8'), content)
    })
  }

  test('a rename can be cut off before and after it happened', async () => {
    const before = freshRoot()
    assert.equal(await runKilled(before, 'slot.rename:1=kill'), 'SIGKILL')
    assert.deepEqual(readdirSync(before), ['a'])
    const behind = freshRoot()
    assert.equal(await runKilled(behind, 'slot.rename:1=kill-after'), 'SIGKILL')
    assert.deepEqual(readdirSync(behind), ['b'])
  })

  test('a plan that strikes nothing lets the writer finish', async () => {
    const root = freshRoot()
    assert.equal(await runKilled(root, 'group.write:99=kill'), null)
    assert.deepEqual(readdirSync(root), ['b'])
  })
})
