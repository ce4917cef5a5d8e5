/** The launcher, copied beside a stand-in for the Node it should find. Only its own decisions are under test. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'

const launcher = fileURLToPath(new URL('../../../src/bin.js', import.meta.url))

/** A folder that looks like an installation. `oldNode`: every Node counts as too old. `node`: a script in place of the bundled one. */
function install(t: TestContext, options: { oldNode: boolean; node?: string; main?: string }): string {
  const root = mkdtempSync(join(tmpdir(), 'millrace-bin-'))
  t.after(() => rmSync(root, { recursive: true }))
  mkdirSync(join(root, 'src'))
  writeFileSync(join(root, 'package.json'), '{"type":"module"}')
  const bin = join(root, 'src', 'bin.js')
  copyFileSync(launcher, bin)
  if (options.oldNode) {
    const source = readFileSync(launcher, 'utf8')
    const changed = source.replace('NODE_MAJOR_MIN = 24', 'NODE_MAJOR_MIN = 999')
    assert.notEqual(changed, source)
    writeFileSync(bin, changed)
  }
  if (options.node !== undefined) {
    const folder = join(root, 'node_modules', `node-${process.platform}-${process.arch}`)
    mkdirSync(join(folder, 'bin'), { recursive: true })
    writeFileSync(join(folder, 'package.json'), '{}')
    writeFileSync(join(folder, 'bin', 'node'), options.node)
    chmodSync(join(folder, 'bin', 'node'), 0o755)
  }
  if (options.main !== undefined) {
    mkdirSync(join(root, 'dist', 'src'), { recursive: true })
    writeFileSync(join(root, 'dist', 'src', 'main.js'), options.main)
  }
  return bin
}

interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

function launch(bin: string, words: readonly string[]) {
  const child = spawn(process.execPath, [bin, ...words], { stdio: ['ignore', 'pipe', 'pipe'] })
  const output = { stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output.stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output.stderr += text))
  const ended = new Promise<Ended>(resolve => child.on('close', (code, signal) => resolve({ code, signal, ...output })))
  return { child, ended }
}

test('a checkout that was not built says so in one line', async t => {
  const { code, stderr } = await launch(install(t, { oldNode: false }), ['serve']).ended
  assert.deepEqual([code, stderr], [1, 'millrace: this checkout is not built yet: run `npm run build` first\n'])
})

test('a Node that is new enough runs the program itself', async t => {
  const main = 'process.stdout.write(process.argv.slice(2).join("|")); process.exitCode = 5'
  const { code, stdout } = await launch(install(t, { oldNode: false, main }), ['topic', 'list']).ended
  assert.deepEqual([code, stdout], [5, 'topic|list'])
})

test('an old Node without a bundled one says which is needed, in one line', async t => {
  const { code, stderr } = await launch(install(t, { oldNode: true }), []).ended
  assert.equal(code, 1)
  assert.match(stderr, /^millrace: needs Node 999 or newer, this is \d+\.\d+\.\d+: [^\n]*\n$/)
})

test('an old Node runs the bundled one with the same arguments and gives its exit code', async t => {
  const node = '#!/bin/sh\necho "$#"; shift; for word in "$@"; do echo "[$word]"; done; exit 7\n'
  const { code, stdout } = await launch(install(t, { oldNode: true, node }), ['produce', '--value', 'a b', '']).ended
  assert.deepEqual([code, stdout], [7, '5\n[produce]\n[--value]\n[a b]\n[]\n'])
})

test('a signal reaches the bundled Node, and its own end is the end of the launcher', async t => {
  const node = '#!/bin/sh\ntrap "echo told; exit 3" TERM\necho up\nwhile true; do read line || sleep 0.05; done\n'
  const { child, ended } = launch(install(t, { oldNode: true, node }), ['serve'])
  await once(child.stdout, 'data')
  child.kill('SIGTERM')
  const { code, stdout } = await ended
  assert.deepEqual([code, stdout], [3, 'up\ntold\n'])
})

test('a bundled Node that a signal ended ends the launcher by the same signal', async t => {
  const { code, signal } = await launch(install(t, { oldNode: true, node: '#!/bin/sh\nkill -KILL $$\n' }), []).ended
  assert.deepEqual([code, signal], [null, 'SIGKILL'])
})
