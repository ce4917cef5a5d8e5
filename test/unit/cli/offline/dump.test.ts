/** `millrace dump` as a user sees it: what is in the archive, what is refused, and what a failure leaves. */
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { openDataDirectory } from '../../../../src/cli/offline/data-directory.ts'
import { dumpDirectory } from '../../../../src/cli/offline/dump-run.ts'
import { DiskError } from '../../../../src/disk/disk.ts'
import { parseFaultPlan } from '../../../../src/disk/fault-plan.ts'
import { createRealDisk } from '../../../../src/disk/real-disk.ts'
import { temporaryDirectory } from '../../../support/temporary-directory.ts'
import { run } from '../terminal.ts'
import { entriesOf, goldenArchive, goldenDirectory } from './archives.ts'

describe('an archive', () => {
  test('begins with the list of all that follows, to the byte, and is for its owner alone', async t => {
    const path = await goldenArchive(t)
    const [list, ...files] = await entriesOf(path)
    assert.equal(list?.header.name, 'dump.json')
    const { topics, files: listed } = JSON.parse(list.bytes.toString()) as {
      topics: { name: string }[]
      files: { path: string; bytes: number }[]
    }
    assert.deepEqual(
      topics.map(({ name }) => name),
      ['orders', 'notes']
    )
    assert.deepEqual(
      files.map(({ header, bytes }) => ({ path: header.name, bytes: bytes.length })),
      listed.map(({ path, bytes }) => ({ path, bytes }))
    )
    assert.deepEqual([...new Set(files.map(({ header }) => header.mode))], [0o600])
    assert.equal(statSync(path).mode & 0o777, 0o600)
  })

  test('is the same compressed', async t => {
    const plain = await entriesOf(await goldenArchive(t))
    const squeezed = await entriesOf(await goldenArchive(t, 'golden.tar.gz'))
    const contents = (entries: typeof plain): unknown[] =>
      entries.filter(({ header }) => header.name.endsWith('.pack')).map(({ bytes }) => bytes.toString('hex'))
    assert.deepEqual(contents(squeezed), contents(plain))
  })

  test('of some topics has no byte of another, be it a name', async t => {
    const bytes = readFileSync(await goldenArchive(t, 'orders.tar', '--topics', 'orders'))
    assert.ok(bytes.includes('order-1-0'), 'the wanted records are there, as they are')
    assert.ok(!bytes.includes('note'), 'the others are not')
    // The control: with both topics it would be seen.
    assert.ok(readFileSync(await goldenArchive(t)).includes('note'))
  })

  test('leaves the directory able to start, with nothing in its journal, and may be made again', async t => {
    const dataDir = await goldenDirectory(t)
    for (const name of ['one.tar', 'two.tar']) {
      const output = join(temporaryDirectory(t), name)
      const { code, stdout, stderr } = await run(['dump', '--data-dir', dataDir, '--output', output, '--json'])
      assert.deepEqual([code, stderr], [0, ''])
      const answer = JSON.parse(stdout) as { topics: string[]; archive_bytes: number }
      assert.deepEqual(answer.topics, ['orders', 'notes'])
      assert.equal(answer.archive_bytes, statSync(output).size)
    }
  })
})

describe('a dump is refused', () => {
  test('over a file that is there, which stays as it is, unless --force says otherwise', async t => {
    const dataDir = await goldenDirectory(t)
    const output = join(temporaryDirectory(t), 'x.tar')
    writeFileSync(output, 'precious')
    const refused = await run(['dump', '--data-dir', dataDir, '--output', output])
    assert.equal(refused.code, 1)
    assert.match(refused.stderr, /^millrace: --output \S+ is there already: [^\n]*--force[^\n]*\n$/)
    assert.equal(readFileSync(output, 'utf8'), 'precious')
    assert.equal((await run(['dump', '--data-dir', dataDir, '--output', output, '--force'])).code, 0)
    assert.ok(statSync(output).size > 10_000)
  })

  test('for wrong options, naming each', async t => {
    const dataDir = await goldenDirectory(t)
    const output = join(temporaryDirectory(t), 'x.tar')
    for (const [words, pattern] of [
      [[], /--output is missing/],
      [['--output', 'x.zip'], /--output 'x\.zip' must end in \.tar/],
      [['--output', output, '--topics', 'orders,,'], /--topics 'orders,,' has an empty name/],
      [['--output', output, '--topics', 'nobody'], /there is no topic 'nobody'/]
    ] as const) {
      const { code, stderr } = await run(['dump', '--data-dir', dataDir, ...words])
      assert.equal(code, 2)
      assert.match(stderr, pattern)
    }
    assert.ok(!existsSync(output))
  })

  test('where a journal is missing or a directory is not there, and nothing is written', async t => {
    const dataDir = await goldenDirectory(t)
    const folder = temporaryDirectory(t)
    const output = join(folder, 'x.tar')
    mkdirSync(join(folder, 'empty'))
    assert.equal((await run(['dump', '--data-dir', join(folder, 'empty'), '--output', output])).code, 3)
    rmSync(join(dataDir, 'journal/000/0002.slot'))
    const { code, stderr } = await run(['dump', '--data-dir', dataDir, '--output', output])
    assert.equal(code, 1)
    assert.match(stderr, /^millrace: shard 0 cannot be read: the journal \S+ has slot 3 [^\n]+\n$/)
    assert.deepEqual(readdirSync(folder), ['empty'])
  })
})

test('with --verify a directory with damage is refused; without it, damage is dumped, and restored only on request', async t => {
  const dataDir = await goldenDirectory(t)
  const folder = temporaryDirectory(t)
  const output = join(folder, 'x.tar')
  const words = ['dump', '--data-dir', dataDir, '--output', output]
  assert.equal((await run([...words, '--verify'])).code, 0)
  const pack = join(dataDir, 'packs/000/00000001.pack')
  const bytes = readFileSync(pack)
  bytes[100] = (bytes[100] ?? 0) ^ 1
  writeFileSync(pack, bytes)
  const refused = await run([...words, '--force', '--verify'])
  assert.equal(refused.code, 1)
  assert.match(refused.stderr, /^millrace: 1 damaged range\(s\) were found, so nothing was dumped: [^\n]+\n$/)
  assert.equal((await run([...words, '--force'])).code, 0)
  const back = ['restore', '--input', output, '--data-dir', join(folder, 'back')]
  const hesitant = await run(back)
  assert.equal(hesitant.code, 1)
  assert.match(
    hesitant.stderr,
    /1 damaged range\(s\) were dumped with it, so nothing was restored: [^\n]*--accept-damage/
  )
  const accepted = await run([...back, '--accept-damage'])
  assert.equal(accepted.code, 0)
  assert.match(accepted.stdout, /holds 1 damaged range/)
})

test('a disk that fails or is full while an archive is written leaves the old archive, and nothing of the new', async t => {
  const { stdin, stdout, stderr, env } = process
  for (const plan of [
    'archive.create:1=ENOSPC',
    'archive.write:1=short-ENOSPC',
    'archive.sync:1=EIO',
    'archive.rename:1=EIO'
  ]) {
    const directory = openDataDirectory(await goldenDirectory(t))
    const folder = temporaryDirectory(t)
    const output = join(folder, 'x.tar.gz')
    writeFileSync(output, 'the old one')
    const request = { output, isGzip: true, force: true, topics: null, includesKeys: false, verifies: false }
    const disk = createRealDisk(parseFaultPlan(plan))
    try {
      await assert.rejects(
        dumpDirectory(disk, directory, request, { stdin, stdout, stderr, env }),
        error => error instanceof DiskError && error.point === plan.split(':')[0]
      )
    } finally {
      directory.close()
    }
    assert.deepEqual(readdirSync(folder), ['x.tar.gz'], plan)
    assert.equal(readFileSync(output, 'utf8'), 'the old one')
  }
})
