/** Other systems than Linux: this one says that it is another, to the process as a whole. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { test, type TestContext } from 'node:test'
import { judgePlatform } from '../../../src/cli/platform.ts'
import { atEnd } from '../../support/clean-up.ts'
import { spawnBroker } from '../../support/broker.ts'
import { repository } from '../../support/repository.ts'
import { smallFlags } from '../../support/start-failure.ts'
import { temporaryDirectory } from '../../support/temporary-directory.ts'

/** For --import: what process.platform is before the program begins. */
function pretend(platform: NodeJS.Platform): string {
  return `data:text/javascript,Object.defineProperty(process,'platform',{value:'${platform}'})`
}

async function runOn(t: TestContext, platform: NodeJS.Platform, words: readonly string[]) {
  const child = spawn(process.execPath, ['--import', pretend(platform), `${repository}src/bin.js`, ...words], {
    stdio: ['ignore', 'pipe', 'pipe'],
    // Where Windows has its temporary files; without it they would be in a folder named `undefined`.
    env: { ...process.env, TEMP: temporaryDirectory(t) }
  })
  atEnd(t, () => child.kill('SIGKILL'))
  let output = ''
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()))
  await once(child, 'close')
  return { code: child.exitCode, output }
}

test('Windows: serve refuses in one line and makes nothing', async t => {
  const dataDir = temporaryDirectory(t)
  const { code, output } = await runOn(t, 'win32', ['serve', ...smallFlags(dataDir)])
  assert.equal(code, 1)
  assert.match(output, /^millrace: serve does not run on Windows, [^\n]*--broker\n$/)
  assert.deepEqual(readdirSync(dataDir), [])
})

test('Windows: commands that talk to a broker elsewhere work', async t => {
  const broker = await spawnBroker(t)
  const created = await runOn(t, 'win32', ['topic', 'create', '--name', 'orders', '--broker', broker.url])
  assert.deepEqual([created.code, created.output], [0, "created topic 'orders' with 1 partition(s)\n"])
})

test('macOS: serve runs, and warns of what a power cut may take', async t => {
  // On node:http: the binaries of uWebSockets.js for macOS do not load here.
  const variant = { engine: 'node', shards: 1 } as const
  const broker = await spawnBroker(t, { variant, env: { NODE_OPTIONS: `--import=${pretend('darwin')}` } })
  const [warning, ...others] = broker.logs.filter(line => line['level'] === 'warn')
  assert.deepEqual([warning?.['platform'], others], ['darwin', []])
  assert.match(String(warning?.['msg']), /macOS is for development.*a power cut may take/)
})

test('Linux is fit, and what nobody has thought of is told to be untried', () => {
  assert.deepEqual(judgePlatform('linux'), { kind: 'fit' })
  const verdict = judgePlatform('freebsd')
  assert.ok(verdict.kind === 'untried' && verdict.warning.includes('freebsd'))
})
