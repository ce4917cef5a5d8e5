/** `millrace verify` as a user sees it: what it prints, how it exits, and that it changes nothing. */
import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { takeLock } from '../../../../src/store/directory-lock.ts'
import { temporaryDirectory } from '../../../support/temporary-directory.ts'
import { withFlip } from '../../../support/log-image.ts'
import { makeSample } from '../../../support/log-sample.ts'
import { run } from '../terminal.ts'
import { snapshot, topicOf, writeDirectory } from './offline-directories.ts'

const golden = fileURLToPath(new URL('../../../fixtures/journal-v1/', import.meta.url))
const goldenTopics = [topicOf(1, 'orders', 1, 2), topicOf(2, 'notes', 3, 1)]
const sample = makeSample()
const sampleTopics = [topicOf(1, 'orders', 1, 3), topicOf(2, 'gap', 4, 6), topicOf(3, 'notes', 10, 1)]

test('the golden journal is sound, and verify leaves every file as it was', async t => {
  const dataDir = await writeDirectory(t, golden, goldenTopics)
  const before = snapshot(dataDir)
  const { code, stdout, stderr } = await run(['verify', '--data-dir', dataDir])
  assert.deepEqual([code, stderr], [0, ''], stdout)
  assert.match(stdout, new RegExp(`^data directory ${dataDir}: 2 topic\\(s\\)\\n`))
  assert.match(stdout, /\n {4}0 {6}3 {7}0 {7}8 {9}0 {7}23 {7}35 {2}57344\n/)
  assert.match(stdout, /\nno damage found; \d+ bytes checked in [\d.]+ s\n$/)
  assert.deepEqual(snapshot(dataDir), before)
})

test('damage is printed with file, bytes, topic, offsets and meaning, as text and as JSON', async t => {
  const group = sample.groups[1] ?? assert.fail('groups')
  const at = group.position + 1500
  const dataDir = await writeDirectory(t, withFlip(sample.image, group.file, at), sampleTopics)
  const before = snapshot(dataDir)
  const { code, stdout } = await run(['verify', '--data-dir', dataDir])
  assert.equal(code, 1)
  assert.match(
    stdout,
    /\ndamage: journal\/000\/0001\.slot, bytes \d+ to \d+ \(\d+\)\n {2}(orders|notes)\/\d, offsets \d+ to \d+\n {2}a batch fails its CRC\n {2}reads of these offsets are refused.*\n\n1 damaged range\(s\) found;/
  )
  const json = await run(['verify', '--json', '--data-dir', dataDir])
  assert.equal(json.code, 1)
  const answer = JSON.parse(json.stdout) as { ok: boolean; damage: { start_byte: number; end_byte: number }[] }
  assert.equal(answer.ok, false)
  const [damage] = answer.damage
  assert.ok(damage !== undefined && damage.start_byte <= at && at < damage.end_byte, json.stdout)
  assert.deepEqual(snapshot(dataDir), before)
})

test('a directory that cannot be opened is refused in one line with exit code 3, and stays as it is', async t => {
  const empty = temporaryDirectory(t)
  const file = join(empty, 'file')
  writeFileSync(file, '')
  for (const [path, pattern] of [
    [join(empty, 'none'), /it does not exist/],
    [file, /it is not a directory/],
    [empty, /no broker has used it/]
  ] as const) {
    for (const words of [['verify'], ['inspect', 'topics']]) {
      const { code, stdout, stderr } = await run([...words, '--data-dir', path])
      assert.deepEqual([code, stdout], [3, ''])
      assert.match(stderr, /^millrace: data directory [^\n]+\n$/)
      assert.match(stderr, pattern)
    }
  }
  assert.deepEqual(snapshot(empty).length, 1)
})

test('a directory in use is refused, and the lock is given back after every run', async t => {
  const dataDir = await writeDirectory(t, golden, goldenTopics)
  const lock = takeLock(dataDir)
  for (const words of [['verify'], ['inspect', 'groups']]) {
    const { code, stderr } = await run([...words, '--data-dir', dataDir])
    assert.equal(code, 3)
    assert.match(stderr, /^millrace: data directory \S+ is in use by another millrace process \(pid \d+\)\n$/)
  }
  lock.release()
  assert.equal((await run(['verify', '--data-dir', dataDir])).code, 0)
  assert.equal((await run(['verify', '--limit', '3', '--data-dir', dataDir])).code, 2)
  assert.equal(
    (await run(['inspect', 'records', '--topic', 'none', '--partition', '0', '--data-dir', dataDir])).code,
    2
  )
  takeLock(dataDir).release()
})

test('what a newer version wrote is refused in one line', async t => {
  const dataDir = await writeDirectory(t, golden, goldenTopics)
  const database = new DatabaseSync(join(dataDir, 'store.db'))
  database.exec('PRAGMA user_version = 99')
  database.close()
  const { code, stderr } = await run(['verify', '--data-dir', dataDir])
  assert.equal(code, 3)
  assert.match(stderr, /^millrace: \S+store\.db was written by a newer version \(store format 99; [^\n]+\n$/)
})

test('a damaged or missing store is reported, and the journals are checked nevertheless', async t => {
  const dataDir = await writeDirectory(t, golden, goldenTopics)
  const path = join(dataDir, 'store.db')
  const sound = readFileSync(path)
  const spoilt = Buffer.from(sound)
  // Page 2 on: the tables. The header stays, so only the content is wrong.
  spoilt.fill(0xa5, 4096 + 8, 4096 + 300)
  for (const [what, change] of [
    ['content', () => writeFileSync(path, spoilt)],
    ['header', () => writeFileSync(path, Buffer.from('not a database at all, whatever it is called'.repeat(200)))],
    ['missing', () => rmSync(path)]
  ] as const) {
    change()
    const { code, stdout } = await run(['verify', '--json', '--data-dir', dataDir])
    assert.equal(code, 1, what)
    const answer = JSON.parse(stdout) as { total: { records: number }; damage: { file: string }[] }
    assert.equal(answer.total.records, 35, what)
    assert.equal(answer.damage[0]?.file, 'store.db', what)
  }
})

test('commits that are only in the write-ahead log of the store are seen, and the log is left alone', async t => {
  const dataDir = await writeDirectory(t, golden, [topicOf(1, 'orders', 1, 2)])
  const path = join(dataDir, 'store.db')
  assert.match((await run(['verify', '--data-dir', dataDir])).stdout, /no topic for partition handle 3/)
  // As a killed broker leaves them: the last commit was never moved into store.db.
  const database = new DatabaseSync(path)
  database.exec(`PRAGMA wal_autocheckpoint = 0; CREATE TEMP TABLE another AS SELECT * FROM topics;
    UPDATE another SET id = 2, name = 'notes', first_handle = 3, partition_count = 1; INSERT INTO topics SELECT * FROM another`)
  const killed = [readFileSync(path), readFileSync(`${path}-wal`)] as const
  database.close()
  writeFileSync(path, killed[0])
  writeFileSync(`${path}-wal`, killed[1])
  const before = snapshot(dataDir)
  const { code, stdout } = await run(['verify', '--data-dir', dataDir])
  assert.equal(code, 0, stdout)
  assert.deepEqual(snapshot(dataDir), before)
})

test('long work on a terminal shows a bar on stderr, and the report alone on stdout', async t => {
  const dataDir = await writeDirectory(t, golden, goldenTopics)
  // Its tail is no longer at its end: a slot with much room, that nobody sealed.
  truncateSync(join(dataDir, 'journal/000/0003.slot'), 64 * 1024 * 1024)
  const { code, stdout, stderr } = await run(['verify', '--data-dir', dataDir], { isTerminal: true })
  assert.match(stderr, /\d+% \| \d+ records/)
  assert.match(stdout, /^data directory/)
  assert.equal(code, 0)
})

test('--data-dir falls back to the environment, and to ./data', async t => {
  const dataDir = await writeDirectory(t, golden, goldenTopics)
  assert.equal((await run(['verify'], { env: { MILLRACE_DATA_DIR: dataDir } })).code, 0)
  assert.match((await run(['verify', '--data-dir', ''])).stderr, /--data-dir must not be empty/)
  assert.match((await run(['verify', '--help'])).stdout, /MILLRACE_DATA_DIR, data_dir of --config, or\s+\.\/data/)
})

test('a shard whose journal is gone is damage, one too many is a note', async t => {
  const dataDir = await writeDirectory(t, golden, goldenTopics)
  mkdirSync(join(dataDir, 'journal', '001'))
  const more = await run(['verify', '--data-dir', dataDir])
  assert.equal(more.code, 0)
  assert.match(more.stdout, /note: journal\/001\n/)
  rmSync(join(dataDir, 'journal', '000'), { recursive: true })
  const less = await run(['verify', '--data-dir', dataDir])
  assert.equal(less.code, 1)
  assert.match(less.stdout, /the journal of shard 0 is missing\n {2}its records are gone/)
})

test('every command has help with examples and the exit codes', async () => {
  for (const command of [
    'verify',
    'inspect groups',
    'inspect batches',
    'inspect records',
    'inspect segments',
    'inspect manifest',
    'inspect topics'
  ]) {
    const { code, stdout, stderr } = await run([...command.split(' '), '--help'])
    assert.deepEqual([code, stderr], [0, ''], command)
    assert.match(stdout, new RegExp(`Examples:\\n +\\$ millrace ${command}`), command)
    assert.match(stdout, /verify, inspect, quarantine: damage was found/)
  }
})
