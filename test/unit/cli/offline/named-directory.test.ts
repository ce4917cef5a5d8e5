/** Which directory the offline commands work on: with the words of the broker, that of the broker. */
import assert from 'node:assert/strict'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { temporaryDirectory } from '../../../support/temporary-directory.ts'
import { run } from '../terminal.ts'
import { topicOf, writeDirectory } from './offline-directories.ts'

const golden = fileURLToPath(new URL('../../../fixtures/journal-v1/', import.meta.url))
const writeSample = (t: TestContext) =>
  writeDirectory(t, golden, [topicOf(1, 'orders', 1, 2), topicOf(2, 'notes', 3, 1)])

/** A file of a broker. */
function configOf(t: TestContext, text: string): string {
  const path = join(temporaryDirectory(t), 'millrace.toml')
  writeFileSync(path, text)
  return path
}

test('every offline command takes the directory of the file that --config names, and judges nothing else of it', async t => {
  const dataDir = await writeSample(t)
  const folder = temporaryDirectory(t)
  const config = configOf(t, `shards = "many"\nno_such_key = 1\ndata_dir = ${JSON.stringify(dataDir)}\n`)
  const other = configOf(t, `data_dir = ${JSON.stringify(join(folder, 'new'))}\n`)
  const dump = ['dump', '--output', join(folder, 'all.tar')]
  const inspections = ['groups', 'segments', 'manifest', 'topics'].map(what => ['inspect', what])
  const records = ['inspect', 'records', '--topic', 'orders', '--partition', '0']
  const batches = ['inspect', 'batches', '--topic', 'orders', '--partition', '0']
  for (const words of [['verify'], ...inspections, records, batches, ['quarantine', 'list'], dump]) {
    const { code, stderr } = await run([...words, '--config', config])
    assert.equal(code, 0, `${words.join(' ')}: ${stderr}`)
  }
  const skipped = await run(['quarantine', 'skip', '0/0001.slot/8192', '--config', config])
  assert.match(skipped.stderr + skipped.stdout, /0\/0001\.slot\/8192/)
  const restored = await run(['restore', '--input', join(folder, 'all.tar'), '--config', other])
  assert.equal(restored.code, 0, restored.stderr)
  assert.ok(existsSync(join(folder, 'new', 'store.db')))
})

test('a flag wins over the environment, that over the file, and the file of the environment counts too', async t => {
  const [dataDir, missing] = [await writeSample(t), join(temporaryDirectory(t), 'missing')]
  const [right, wrong] = [dataDir, missing].map(path => configOf(t, `data_dir = ${JSON.stringify(path)}\n`))
  const verify = async (words: string[], env: Record<string, string> = {}): Promise<number> =>
    (await run(['verify', ...words], { env })).code
  assert.equal(await verify([], { MILLRACE_CONFIG: right ?? '' }), 0)
  assert.equal(await verify(['--config', right ?? ''], { MILLRACE_CONFIG: wrong ?? '' }), 0)
  assert.equal(await verify(['--config', wrong ?? ''], { MILLRACE_DATA_DIR: dataDir }), 0)
  assert.equal(await verify(['--config', wrong ?? '', '--data-dir', dataDir], { MILLRACE_DATA_DIR: missing }), 0)
  assert.equal(await verify(['--config', wrong ?? '']), 3)
})

test('a file that cannot be read, or whose directory is none, is a fault of the command line', async t => {
  const path = join(temporaryDirectory(t), 'missing.toml')
  for (const [config, problem] of [
    [path, 'no such file'],
    [configOf(t, 'data_dir = 3\n'), 'data_dir = 3'],
    [configOf(t, 'data_dir\n'), 'line 1']
  ] as const) {
    const { code, stderr } = await run(['verify', '--config', config])
    assert.equal(code, 2)
    assert.ok(stderr.includes(config) && stderr.includes(problem), stderr)
  }
})
