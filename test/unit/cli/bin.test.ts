/** The launcher, copied beside a stand-in for the Node it should find. Only its own decisions are under test. */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
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

/** Whoever does not read its input may have ended before all of it was written. */
function ignoreBrokenPipe(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') throw error
}

function endGroup(leader: number): void {
  assert.ok(leader > 1)
  try {
    process.kill(-leader, 'SIGKILL')
  } catch (error) {
    // All of it has ended, as it should.
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error
  }
}

interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

/** Stands in for the bundled Node: this one, with a launcher that takes it for new enough and runs `main`. */
function realNode(t: TestContext, main: string): string {
  return `#!/bin/sh\nshift\nexec '${process.execPath}' '${install(t, { oldNode: false, main })}' "$@"\n`
}

/** Runs it as a group of its own, so that a test that fails leaves nothing behind. */
function launch(t: TestContext, bin: string, words: readonly string[], input = '') {
  const child = spawn(process.execPath, [bin, ...words], { stdio: ['pipe', 'pipe', 'pipe'], detached: true })
  t.after(() => endGroup(child.pid ?? 0))
  child.stdin.on('error', ignoreBrokenPipe).end(input)
  const output = { stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output.stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output.stderr += text))
  const ended = new Promise<Ended>(resolve => child.on('close', (code, signal) => resolve({ code, signal, ...output })))
  return { child, ended }
}

test('a checkout that was not built says so in one line', async t => {
  const { code, stderr } = await launch(t, install(t, { oldNode: false }), ['serve']).ended
  assert.deepEqual([code, stderr], [1, 'millrace: this checkout is not built yet: run `npm run build` first\n'])
})

test('a Node that is new enough runs the program itself', async t => {
  const main = 'process.stdout.write(process.argv.slice(2).join("|")); process.exitCode = 5'
  const { code, stdout } = await launch(t, install(t, { oldNode: false, main }), ['topic', 'list']).ended
  assert.deepEqual([code, stdout], [5, 'topic|list'])
})

test('an old Node without a bundled one says which is needed, in one line', async t => {
  const { code, stderr } = await launch(t, install(t, { oldNode: true }), []).ended
  assert.equal(code, 1)
  assert.match(stderr, /^millrace: needs Node 999 or newer, this is \d+\.\d+\.\d+: [^\n]*\n$/)
})

test('an old Node runs the bundled one with the same arguments and gives its exit code', async t => {
  const node = '#!/bin/sh\necho "$#"; shift; for word in "$@"; do echo "[$word]"; done; exit 7\n'
  const { code, stdout } = await launch(t, install(t, { oldNode: true, node }), ['produce', '--value', 'a b', '']).ended
  assert.deepEqual([code, stdout], [7, '5\n[produce]\n[--value]\n[a b]\n[]\n'])
})

test('a signal reaches the bundled Node, and its own end is the end of the launcher', async t => {
  const node = '#!/bin/sh\ntrap "echo told; exit 3" TERM\necho up\nwhile true; do read line || sleep 0.05; done\n'
  const { child, ended } = launch(t, install(t, { oldNode: true, node }), ['serve'])
  await once(child.stdout, 'data')
  child.kill('SIGTERM')
  const { code, stdout } = await ended
  assert.deepEqual([code, stdout], [3, 'up\ntold\n'])
})

test('a bundled Node that a signal ended ends the launcher by the same signal', async t => {
  const { code, signal } = await launch(t, install(t, { oldNode: true, node: '#!/bin/sh\nkill -KILL $$\n' }), []).ended
  assert.deepEqual([code, signal], [null, 'SIGKILL'])
})

test('what is piped in reaches the bundled Node', async t => {
  const node = '#!/bin/sh\necho "read $(cat)"\n'
  const { code, stdout } = await launch(t, install(t, { oldNode: true, node }), ['produce'], 'one\ntwo').ended
  assert.deepEqual([code, stdout], [0, 'read one\ntwo\n'])
})

test('the bundled Node ends by itself, and neither it nor what it starts sees anything of the launcher', async t => {
  const main = `
    import { execFileSync } from 'node:child_process'
    process.stdout.write(execFileSync('env', { encoding: 'utf8' }))
    process.exitCode = 4`
  const { code, stdout } = await launch(t, install(t, { oldNode: true, node: realNode(t, main) }), []).ended
  assert.equal(code, 4)
  assert.match(stdout, /^PATH=/m)
  assert.doesNotMatch(stdout, /MILLRACE_LAUNCHED|NODE_CHANNEL/)
})

test('a launcher that is killed leaves nothing behind: the bundled Node is asked to stop', async t => {
  const main = `
    process.on('SIGTERM', () => process.stdout.write('asked to stop', () => process.exit(0)))
    setInterval(() => undefined, 1000)
    process.stdout.write('up|')`
  const { child, ended } = launch(t, install(t, { oldNode: true, node: realNode(t, main) }), ['serve'])
  await once(child.stdout, 'data')
  child.kill('SIGKILL')
  // Ends when the last process that holds its output has ended.
  const { signal, stdout } = await ended
  assert.deepEqual([signal, stdout], ['SIGKILL', 'up|asked to stop'])
})

test("the launcher's variable without a launcher changes nothing, and is not passed on", t => {
  const main = 'process.stdout.write(String(process.env.MILLRACE_LAUNCHED)); process.exitCode = 4'
  const { status, stdout } = spawnSync(process.execPath, [install(t, { oldNode: false, main })], {
    env: { ...process.env, MILLRACE_LAUNCHED: '1' },
    encoding: 'utf8'
  })
  assert.deepEqual([status, stdout], [4, 'undefined'])
})
