/** `millrace restore`: what it refuses, whoever wrote the archive, and that what is in the way stays whole whatever happens. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { restoreDirectory } from '../../../../src/cli/offline/restore-run.ts'
import { DiskError } from '../../../../src/disk/disk.ts'
import { parseFaultPlan } from '../../../../src/disk/fault-plan.ts'
import { createRealDisk } from '../../../../src/disk/real-disk.ts'
import { takeLock } from '../../../../src/store/directory-lock.ts'
import { temporaryDirectory } from '../../../support/temporary-directory.ts'
import { run } from '../terminal.ts'
import {
  entriesOf,
  goldenArchive,
  goldenDirectory,
  tarOf,
  withList,
  withListedFile,
  writeEntries,
  type ArchivedFile
} from './archives.ts'
import { snapshot } from './offline-directories.ts'

const file = (name: string, bytes = Buffer.from('x')): ArchivedFile => ({ header: { name, type: 'file' }, bytes })

describe('a restored directory', () => {
  test('dumps to the same list again, and its files are for their owner alone', async t => {
    const archive = await goldenArchive(t, 'golden.tar.gz')
    const dataDir = join(temporaryDirectory(t), 'deep', 'back')
    const { code, stdout, stderr } = await run(['restore', '--input', archive, '--data-dir', dataDir])
    assert.deepEqual([code, stderr], [0, ''])
    assert.match(stdout, /^restored 2 topic\(s\), dumped \S+Z, to \S+back\n$/)
    for (const path of readdirSync(dataDir, { recursive: true }).map(String)) {
      const stat = statSync(join(dataDir, path))
      assert.equal(stat.mode & 0o777, stat.isDirectory() ? 0o700 : 0o600, path)
    }
    assert.equal((await run(['verify', '--data-dir', dataDir])).code, 0)
    const again = join(temporaryDirectory(t), 'again.tar')
    assert.equal((await run(['dump', '--data-dir', dataDir, '--output', again])).code, 0)
    const packsOf = async (path: string): Promise<string[]> =>
      (await entriesOf(path))
        .filter(({ header }) => header.name.endsWith('.pack'))
        .map(({ bytes }) => bytes.toString('hex'))
    assert.deepEqual(await packsOf(again), await packsOf(archive))
    assert.deepEqual(readdirSync(dirname(dataDir)), ['back'])
  })

  test('of some topics has no byte of another', async t => {
    const archive = await goldenArchive(t)
    const dataDir = join(temporaryDirectory(t), 'back')
    const words = ['restore', '--input', archive, '--data-dir', dataDir]
    const unknown = await run([...words, '--topics', 'orders,nobody'])
    assert.deepEqual([unknown.code, existsSync(dataDir)], [2, false])
    assert.match(unknown.stderr, /the archive has no topic 'nobody': it has orders, notes/)
    const { code, stderr } = await run([...words, '--topics', 'orders'])
    assert.deepEqual([code, stderr], [0, ''])
    const files = readdirSync(dataDir, { recursive: true }).map(path => join(dataDir, String(path)))
    const bytes = Buffer.concat(files.filter(path => statSync(path).isFile()).map(path => readFileSync(path)))
    assert.ok(bytes.includes('order-1-0'))
    assert.ok(!bytes.includes('note'))
    const topics = await run(['inspect', 'topics', '--data-dir', dataDir])
    assert.match(topics.stdout, /^orders id=1 [^\n]*\n$/)
  })
})

describe('a directory in the way', () => {
  test('is refused unless it is empty', async t => {
    const archive = await goldenArchive(t)
    const dataDir = temporaryDirectory(t)
    writeFileSync(join(dataDir, 'mine'), 'precious')
    const { code, stderr } = await run(['restore', '--input', archive, '--data-dir', dataDir])
    assert.equal(code, 1)
    assert.match(stderr, /^millrace: --data-dir \S+ is not empty: [^\n]+--force[^\n]+\n$/)
    assert.deepEqual(readdirSync(dataDir), ['mine'])
    const empty = temporaryDirectory(t)
    assert.equal((await run(['restore', '--input', archive, '--data-dir', empty])).code, 0)
  })

  test('is kept beside it with --force, as it was, every time', async t => {
    const archive = await goldenArchive(t)
    const parent = temporaryDirectory(t)
    const dataDir = join(parent, 'data')
    mkdirSync(dataDir)
    writeFileSync(join(dataDir, 'mine'), 'precious')
    for (const count of [1, 2, 3]) {
      const { code, stdout } = await run(['restore', '--input', archive, '--data-dir', dataDir, '--force', '--json'])
      assert.equal(code, 0)
      const { kept_as: kept } = JSON.parse(stdout) as { kept_as: string }
      assert.ok(basename(kept).startsWith('data.before-restore-'))
      assert.ok(existsSync(join(kept, count === 1 ? 'mine' : 'store.db')))
      assert.equal(readdirSync(parent).length, 1 + count)
    }
  })

  test('is refused with --force too while a broker uses it', async t => {
    const archive = await goldenArchive(t)
    const dataDir = await goldenDirectory(t)
    const lock = takeLock(dataDir)
    const before = snapshot(dataDir)
    const { code, stderr } = await run(['restore', '--input', archive, '--data-dir', dataDir, '--force'])
    lock.release()
    assert.equal(code, 3)
    assert.match(stderr, /is in use by another millrace process/)
    assert.deepEqual(snapshot(dataDir), before)
    assert.deepEqual(
      readdirSync(dirname(dataDir)).filter(name => name.startsWith(`${basename(dataDir)}.`)),
      []
    )
  })
})

type Change = (entries: ArchivedFile[]) => ArchivedFile[]

/** What may come from somebody who means harm, or from a bad disk; and what the one line must say. */
const hostile: readonly (readonly [what: string, change: Change, pattern: RegExp])[] = [
  ['no list', ([, ...rest]) => rest, /does not begin with dump\.json/],
  ['nothing at all', () => [], /does not begin with dump\.json/],
  ['a list that is no JSON', ([, ...rest]) => [file('dump.json', Buffer.from('{')), ...rest], /it is not JSON/],
  [
    'another kind of list',
    entries => withList(entries, list => void (list['format'] = 'x')),
    /format is not millrace-dump/
  ],
  [
    'a newer format',
    entries => withList(entries, list => void (list.version = 2)),
    /has dump format 2, of a newer version/
  ],
  [
    'a negative size',
    entries => withList(entries, list => void (list.files[0]!.bytes = -1)),
    /bytes is no whole number/
  ],
  ['a wrong sum', entries => withList(entries, list => void list.total_bytes++), /total_bytes is not the sum/],
  ['a wrong count', entries => withList(entries, list => void list.file_count++), /file_count is not the number/],
  ['a file listed twice', entries => withList(entries, list => void list.files.push(list.files[1]!)), /listed twice/],
  [
    'a topic with a name for terminals',
    entries =>
      withList(entries, list => void (list['topics'] = [{ id: 1, name: '\u001b[2J', partitions: 1, bytes: 0 }])),
    /a name that no topic can have/
  ],
  ...[
    '../evil',
    '/etc/evil',
    'topics/../../evil',
    'journal/000/../../evil',
    'store.db/x',
    'lock.db',
    'topics/a~1/0/x',
    'packs/000/00000001.pack\u0000.x'
  ].map(
    path =>
      [
        `a listed path ${JSON.stringify(path)}`,
        (entries: ArchivedFile[]) => withListedFile(entries, path, Buffer.from('x')),
        /is no path of a data directory/
      ] as const
  ),
  [
    'a file that is not listed',
    entries => [...entries, file('packs/000/00000009.pack')],
    /"packs\/000\/00000009\.pack" is not in its list/
  ],
  ['a path upwards that is not listed', entries => [...entries, file('../evil')], /"\.\.\/evil" is not in its list/],
  [
    'files in another order',
    ([list, first, second, ...rest]) => [list!, second!, first!, ...rest],
    /stands where store\.db is listed/
  ],
  ['a file missing', entries => entries.slice(0, -1), /it ends before packs\//],
  [
    'a symbolic link',
    ([list]) => [
      list!,
      { header: { name: 'store.db', type: 'symlink', linkname: '/etc/passwd' }, bytes: Buffer.alloc(0) }
    ],
    /"store\.db" is a symlink/
  ],
  [
    'a hard link',
    ([list]) => [
      list!,
      { header: { name: 'store.db', type: 'link', linkname: '/etc/passwd' }, bytes: Buffer.alloc(0) }
    ],
    /"store\.db" is a link/
  ],
  [
    'a device',
    ([list]) => [
      list!,
      { header: { name: 'store.db', type: 'character-device', devmajor: 1, devminor: 3 }, bytes: Buffer.alloc(0) }
    ],
    /"store\.db" is a character-device/
  ],
  [
    'a directory',
    entries => [
      ...entries.slice(0, 1),
      { header: { name: 'topics', type: 'directory' }, bytes: Buffer.alloc(0) },
      ...entries.slice(1)
    ],
    /is a directory, and a dump holds only files/
  ],
  [
    'a longer file',
    entries => changed(entries, bytes => Buffer.concat([bytes, Buffer.from('x')])),
    /has \d+ bytes, and is listed with/
  ],
  ['a shorter file', entries => changed(entries, bytes => bytes.subarray(1)), /has \d+ bytes, and is listed with/],
  ['a flipped bit', entries => changed(entries, flipped), /the checksum of packs\/\S+ is wrong/],
  ['a manifest that is none', entries => replaced(entries, /manifest$/, Buffer.from('MILLMANI')), /manifest/i],
  ['a store that is none', entries => replaced(entries, /^store\.db$/, Buffer.from('SQLite format 3 ')), /store/]
]

/** The last file, with other bytes than are listed. */
function changed(entries: ArchivedFile[], change: (bytes: Buffer) => Buffer): ArchivedFile[] {
  return entries.map((entry, i) => (i === entries.length - 1 ? { ...entry, bytes: change(entry.bytes) } : entry))
}

function flipped(bytes: Buffer): Buffer {
  const copy = Buffer.from(bytes)
  copy[100] = copy[100]! ^ 4
  return copy
}

/** Another content, rightly listed: only those who read it can tell. */
function replaced(entries: ArchivedFile[], name: RegExp, bytes: Buffer): ArchivedFile[] {
  const at = entries.findIndex(({ header }) => name.test(header.name))
  const path = entries[at]!.header.name
  const listed = withList(entries, list => {
    const fresh = withListedFile(entries, path, bytes)[0]!
    const { files } = JSON.parse(fresh.bytes.toString()) as typeof list
    list.files[at - 1] = files.at(-1)!
    list.total_bytes = list.files.reduce((sum, { bytes }) => sum + bytes, 0)
  })
  return listed.map((entry, i) => (i === at ? { ...entry, bytes } : entry))
}

async function assertRefused(t: TestContext, archive: string, pattern: RegExp): Promise<void> {
  const parent = temporaryDirectory(t)
  const dataDir = join(parent, 'data')
  mkdirSync(dataDir)
  writeFileSync(join(dataDir, 'mine'), 'precious')
  const { code, stdout, stderr } = await run(['restore', '--input', archive, '--data-dir', dataDir, '--force'])
  assert.deepEqual([code, stdout], [1, ''], stderr)
  assert.match(stderr, /^millrace: [^\n]+\n$/)
  assert.match(stderr, pattern)
  assert.deepEqual(readdirSync(parent, { recursive: true }), ['data', 'data/mine'])
}

describe('an archive is refused, and nothing is touched, if it has', () => {
  for (const [what, change, pattern] of hostile) {
    test(what, async t => {
      const archive = await goldenArchive(t)
      await writeEntries(archive, change(await entriesOf(archive)))
      await assertRefused(t, archive, pattern)
    })
  }

  test('an end in the middle, wherever it is', async t => {
    const archive = await goldenArchive(t, 'golden.tar.gz')
    const bytes = readFileSync(archive)
    for (const share of [0, 0.1, 0.5, 0.9, 0.999]) {
      writeFileSync(archive, bytes.subarray(0, Math.floor(bytes.length * share)))
      await assertRefused(t, archive, /the archive is refused/)
    }
  })

  test('bytes that are no archive', async t => {
    const archive = join(temporaryDirectory(t), 'x.tar.gz')
    for (const bytes of [
      Buffer.from('no archive'),
      Buffer.alloc(5000, 7),
      gzipSync(Buffer.alloc(5000, 7)),
      Buffer.from([0x1f, 0x8b, 9, 9, 9])
    ]) {
      writeFileSync(archive, bytes)
      await assertRefused(t, archive, /the archive is refused/)
    }
  })
})

describe('an archive that inflates to far more than it lists is refused early, in little memory,', () => {
  const bombBytes = 1024 * 1024 * 1024
  /** A tar entry header of that type and size, and zeros behind it, inflated a thousandfold. */
  const bombs: readonly (readonly [what: string, type: 'file' | 'pax-header' | 'gnu-long-path'])[] = [
    ['as a file', 'file'],
    ['as a long name', 'gnu-long-path'],
    ['as extended fields', 'pax-header']
  ]
  for (const [what, type] of bombs) {
    test(`${what}`, async t => {
      const archive = await goldenArchive(t, 'x.tar.gz')
      const entries = await entriesOf(archive)
      const head = (await tarOf(entries)).subarray(0, -1024)
      const header = bombHeader(type, bombBytes)
      const zeros = Buffer.alloc(64 * 1024 * 1024)
      const pieces = [Buffer.concat([head, header]), ...Array.from({ length: 16 }, () => zeros)]
      // Members of a gzip file follow each other.
      const squeezed = gzipSync(zeros)
      writeFileSync(archive, Buffer.concat([gzipSync(pieces[0]!), ...Array.from({ length: 16 }, () => squeezed)]))
      assert.ok(statSync(archive).size < 2 * 1024 * 1024)
      const before = process.memoryUsage().rss
      await assertRefused(t, archive, /not in its list|more than it lists/)
      assert.ok(process.memoryUsage().rss - before < 300 * 1024 * 1024)
    })
  }
})

/** 512 bytes of ustar. */
function bombHeader(type: 'file' | 'pax-header' | 'gnu-long-path', size: number): Buffer {
  const header = Buffer.alloc(512)
  header.write('packs/000/00000099.pack', 0)
  header.write('0000600\0', 100)
  header.write('0000000\0', 108)
  header.write('0000000\0', 116)
  header.write(`${size.toString(8).padStart(11, '0')}\0`, 124)
  header.write('00000000000\0', 136)
  header.write('        ', 148)
  header.write({ file: '0', 'pax-header': 'x', 'gnu-long-path': 'L' }[type], 156)
  header.write('ustar\x0000', 257)
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  return header
}

test('a disk that fails or is full while a directory is restored leaves what was there, and nothing else', async t => {
  const archive = await goldenArchive(t)
  const { stdin, stdout, stderr, env } = process
  for (const plan of [
    'restore.directory:1=ENOSPC',
    'restore.directory:3=ENOSPC',
    'restore.create:2=ENOSPC',
    'restore.write:2=short-ENOSPC',
    'restore.sync:1=EIO',
    'restore.directory-sync:1=EIO',
    'restore.rename:1=EIO',
    'restore.rename:2=EIO'
  ]) {
    const parent = temporaryDirectory(t)
    const dataDir = join(parent, 'data')
    mkdirSync(dataDir)
    writeFileSync(join(dataDir, 'mine'), 'precious')
    const request = { input: archive, dataDir, topics: null, force: true, acceptsDamage: false }
    await assert.rejects(
      restoreDirectory(createRealDisk(parseFaultPlan(plan)), request, { stdin, stdout, stderr, env }),
      error => error instanceof DiskError && error.point === plan.split(':')[0],
      plan
    )
    assert.deepEqual(readdirSync(parent, { recursive: true }), ['data', 'data/mine'], plan)
  }
})

const child = fileURLToPath(new URL('killed-restore.ts', import.meta.url))

function runKilled(archive: string, dataDir: string, plan: string): Promise<NodeJS.Signals | null> {
  return new Promise(resolve => {
    execFile(process.execPath, [child, archive, dataDir, plan], error => resolve(error?.signal ?? null))
  })
}

describe('a restore that is killed leaves the old directory whole', () => {
  const cases: readonly (readonly [plan: string, where: 'in its place' | 'beside it'])[] = [
    ['restore.directory:1=kill-after', 'in its place'],
    ['restore.write:1=short-kill', 'in its place'],
    ['restore.write:3=kill', 'in its place'],
    ['restore.sync:2=kill', 'in its place'],
    ['restore.directory-sync:1=kill', 'in its place'],
    ['restore.rename:1=kill', 'in its place'],
    ['restore.rename:1=kill-after', 'beside it'],
    ['restore.rename:2=kill', 'beside it'],
    ['restore.rename:2=kill-after', 'beside it']
  ]
  for (const [plan, where] of cases) {
    test(`${where}, killed at ${plan}, and can be run again`, async t => {
      const archive = await goldenArchive(t)
      const parent = temporaryDirectory(t)
      const dataDir = join(parent, 'data')
      mkdirSync(dataDir)
      writeFileSync(join(dataDir, 'mine'), 'precious')
      assert.equal(await runKilled(archive, dataDir, plan), 'SIGKILL')
      const kept = readdirSync(parent).find(name => name.startsWith('data.before-restore-'))
      const old = where === 'in its place' ? dataDir : join(parent, kept ?? assert.fail('it is kept'))
      assert.equal(readFileSync(join(old, 'mine'), 'utf8'), 'precious')
      assert.deepEqual(readdirSync(old), ['mine'])
      assert.equal((await run(['restore', '--input', archive, '--data-dir', dataDir, '--force'])).code, 0)
      assert.equal((await run(['verify', '--data-dir', dataDir])).code, 0)
    })
  }
})
