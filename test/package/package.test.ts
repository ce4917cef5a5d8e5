/**
 * What `npm pack` gives: only what is needed, and all of it. Installed in an empty folder, the README's sessions are run as
 * they are printed; only ports and the address of the broker are the test's own.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { copyFileSync, existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { basename, dirname, join, normalize } from 'node:path'
import { test, type TestContext } from 'node:test'
import { commandsOf, inlineCommands, section } from '../support/document-commands.ts'
import {
  endGroup,
  pack,
  runLine,
  serveLine,
  startLine,
  succeed,
  userEnvironment,
  type Packed
} from '../support/installed-package.ts'
import { listFiles, readText, repository } from '../support/repository.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

/** A package that grows beyond this has something in it that nobody needs. */
const PACKED_BYTES_MAX = 1_200_000
/** Packing and installing take most of a minute on a busy machine. */
const TIMEOUT_MS = 600_000
const STALE = 'dist/src/stale.js'

const allowed = [
  /^(README\.md|LICENSE|package\.json|src\/bin\.js|config\/millrace\.toml)$/,
  /^dist\/(src|workers)\/.+\.js$/,
  /^dist\/src\/(base|client|model|wire)\/.+\.d\.ts$/,
  /^config\/deploy\/[\w.-]+$/,
  /^docs\/.+\.md$/
]

/** Small, on free ports: 128 MiB filled ahead for a record or two would be the longest part of the test. */
const smallBroker = {
  MILLRACE_BIND: '127.0.0.1:0',
  MILLRACE_JOURNAL_SLOT_BYTES: '64MiB',
  MILLRACE_JOURNAL_FIRST_SLOT_BYTES: '1MiB',
  MILLRACE_JOURNAL_FILL_AHEAD_BYTES: '0'
}

/** A program beside the installed package: its arguments are host and port of ES01. */
const clientProgram = `
import { BinaryClient, PipelinedClient } from 'millrace/client'
const options = { host: process.argv[2], port: Number(process.argv[3]) }
const producer = new PipelinedClient(options)
const { partition, offset } = await producer.send('orders', { key: 'user-1', value: 'by the library' })
await producer.close()
const client = new BinaryClient(options)
const { records } = await client.consume({ topic: 'orders', partition, offset })
console.log(String(records[0].key), String(records[0].value))
await client.close()
`

const readme = readText('README.md')
const ephemeral = (line: string): string => line.replaceAll('127.0.0.1:9001', '127.0.0.1:0')

test('the package', { timeout: TIMEOUT_MS }, async t => {
  const folder = temporaryDirectory(t)
  const packed = await pack(t, folder, STALE)
  t.diagnostic(`${basename(packed.file)}: ${packed.bytes} bytes, ${packed.paths.length} files`)
  const app = join(folder, 'app')
  mkdirSync(app)
  writeFileSync(join(app, 'package.json'), '{"private":true}')
  copyFileSync(packed.file, join(app, basename(packed.file)))
  const [install = '', serve = ''] = commandsOf(section(readme, 'Install')).map(({ line }) => line)

  await t.test('has what runs, the types of the client, settings and documents, and is small', () => {
    const strange = packed.paths.filter(path => !allowed.some(pattern => pattern.test(path)))
    assert.deepEqual(strange, [])
    const { exports } = JSON.parse(readText('package.json')) as {
      exports: Record<string, string | Record<string, string>>
    }
    const entries = Object.values(exports).flatMap(entry =>
      typeof entry === 'string' ? [entry] : Object.values(entry)
    )
    assert.deepEqual(
      entries.filter(path => !packed.paths.includes(normalize(path))),
      []
    )
    assert.ok(packed.bytes < PACKED_BYTES_MAX, `${packed.bytes} bytes`)
  })
  await t.test('has every source compiled, and nothing of sources that are gone', () => {
    assert.ok(!packed.paths.includes(STALE))
    const sources = listFiles('{src,workers}/**/*.ts').map(path => `dist/${path.replace(/\.ts$/, '.js')}`)
    assert.deepEqual(
      packed.paths.filter(path => path.startsWith('dist/') && path.endsWith('.js')).sort(),
      sources.sort()
    )
  })
  await t.test('installs with one command', async t => {
    assert.match(install, /^npm install \.\/millrace-[\d.]+\.tgz$/)
    await succeed(t, install, app)
    assert.equal((await succeed(t, 'npx millrace --version', app)).trim(), JSON.parse(readText('package.json')).version)
  })
  const installed = join(app, 'node_modules', 'millrace')
  await t.test('imports the packages that it names, and no others', () =>
    assert.deepEqual(importProblems(packed, installed), [])
  )
  await t.test('has types that lead to types, and documents that lead to documents', () => {
    assert.deepEqual([...typeProblems(packed, installed), ...linkProblems(packed, installed)], [])
  })
  await t.test('has no path of the machine that it was packed on', () => {
    const machine = [packed.source, repository, homedir() === '/' ? packed.source : homedir()]
    const found = packed.paths.filter(path => {
      const text = readFileSync(join(installed, path), 'utf8')
      return machine.some(place => text.includes(place))
    })
    assert.deepEqual(found, [])
  })
  await t.test('serves the first session of the README as printed, and a program with the client library', t =>
    runFirstSession(t, app, serve)
  )
  await t.test('runs the offline commands of the README as printed', async t => {
    const commands = inlineCommands(readme, /^(--help|config|verify|inspect|quarantine|dump|restore)\b/)
    assert.ok(commands.length >= 6, commands.join('\n'))
    for (const command of commands) {
      const line = command.replace('config/millrace.toml', 'node_modules/millrace/config/millrace.toml')
      await succeed(t, line, app)
    }
  })
  await t.test('ends with the process that was started, however that is ended', t => runToTheEnd(t, app))
  await t.test('takes nothing away that a broker of the same checkout runs on, also if it cannot be made', async t => {
    const built = (): string[] => readdirSync(join(packed.source, 'dist'), { recursive: true }).map(String).sort()
    const before = built()
    writeFileSync(join(packed.source, 'src', 'fault.ts'), 'export const fault: number = "none"\n')
    const { code, stdout, stderr } = await runLine(t, `npm pack --pack-destination '${folder}'`, packed.source)
    assert.notEqual(code, 0)
    assert.match(stdout + stderr, /src\/fault\.ts/)
    assert.deepEqual(built(), before)
  })
})

async function runFirstSession(t: TestContext, app: string, serve: string): Promise<void> {
  assert.match(serve, /^npx millrace serve --bind-binary 127\.0\.0\.1:9001$/)
  const broker = await serveLine(t, ephemeral(serve), app, userEnvironment(smallBroker))
  const env = userEnvironment({ MILLRACE_BROKER: `http://${broker.http}` })
  // Those of kcat, which a machine may lack, have a test of their own (kafka-clients.test.ts).
  const commands = commandsOf(section(readme, 'First session')).filter(({ line }) => !line.includes('kcat'))
  const streams = commands.filter(({ line }) => line.startsWith('curl -sN'))
  assert.ok(commands.length >= 12 && streams.length === 2, commands.map(({ line }) => line).join('\n'))
  let output = ''
  for (const { line, answer } of commands) {
    const here = line.replaceAll('localhost:9000', broker.http)
    if (line.startsWith('curl -sN')) {
      const seen = await readStream(t, here, app, env)
      assert.equal(seen.includes('"shipped"'), line === streams[1]?.line, seen)
      continue
    }
    const text = await succeed(t, here, app, env)
    assert.doesNotMatch(text, /^\{"error"/, line)
    if (answer !== null) assert.match(text.trim(), answer, line)
    output += text
  }
  assert.match(output, /key=user-1 value=refund/)
  assert.equal(
    await succeed(t, 'npx millrace consume --topic nothing --partition 0 --offset 0; echo $?', app, env),
    '1\n'
  )
  writeFileSync(join(app, 'client.mjs'), clientProgram)
  // npx has the Node that was installed with it on its PATH, whatever the machine has.
  assert.equal(await succeed(t, `npx node client.mjs ${broker.es01.replace(':', ' ')}`, app), 'user-1 by the library\n')
  process.kill(broker.pid, 'SIGTERM')
  await broker.closed
  assert.deepEqual([broker.child.exitCode, broker.messages.at(-1)], [0, 'stopped'])
}

/** Runs a stream until what was new has come, and ends it as Ctrl-C does. @returns what it wrote. */
async function readStream(t: TestContext, line: string, cwd: string, env: Record<string, string>): Promise<string> {
  const child = startLine(t, line.replace(/ *#.*$/, ''), cwd, env)
  assert.ok(child.stdout !== null)
  const ended = once(child, 'close')
  let seen = ''
  for await (const text of child.stdout.setEncoding('utf8')) {
    seen += String(text)
    if (/"shipped"\}\n\n/.test(seen) || (/"checkout"\}\n\n/.test(seen) && /"signup"\}\n\n/.test(seen))) break
  }
  endGroup(child, 'SIGINT')
  await ended
  return seen
}

/** The command as a link in node_modules/.bin, run by the Node of the machine: a supervisor starts it so. */
async function runToTheEnd(t: TestContext, app: string): Promise<void> {
  const env = userEnvironment(smallBroker)
  const isOld = Number.parseInt(await succeed(t, 'node --print process.versions.node', app, env)) < 24
  const line = 'exec node_modules/.bin/millrace serve --bind-binary 127.0.0.1:0'
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    const broker = await serveLine(t, line, app, env)
    assert.equal(broker.pid !== broker.child.pid, isOld, 'an old Node starts the one that was installed')
    broker.child.kill(signal)
    await broker.closed
    assert.equal(broker.child.exitCode ?? broker.child.signalCode, signal === 'SIGTERM' ? 0 : signal)
    if (signal === 'SIGTERM' || isOld) assert.equal(broker.messages.at(-1), 'stopped')
  }
  const verified = await runLine(t, 'npx millrace verify', app)
  assert.deepEqual([verified.code, verified.stderr], [0, ''], verified.stdout)
}

/** Packages that are imported and not named in package.json, or named and not imported. */
function importProblems(packed: Packed, installed: string): string[] {
  const { dependencies, optionalDependencies } = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>
    optionalDependencies: Record<string, string>
  }
  // Not imported: the Node that src/bin.js looks for.
  const named = Object.keys({ ...dependencies, ...optionalDependencies }).filter(name => !/^node-linux-/.test(name))
  const texts = packed.paths
    .filter(path => path.endsWith('.js'))
    .map(path => readFileSync(join(installed, path), 'utf8'))
  const specifiers = texts.flatMap(text =>
    [...text.matchAll(/\b(?:from |import\(|require\()'([^'./][^']*)'/g)].map(([, name = '']) => name)
  )
  const imported = new Set(
    specifiers
      .filter(name => !name.startsWith('node:'))
      .map(name =>
        name
          .split('/')
          .slice(0, name.startsWith('@') ? 2 : 1)
          .join('/')
      )
  )
  return [
    ...named.filter(name => !imported.has(name)).map(name => `${name} is named and not imported`),
    ...[...imported].filter(name => !named.includes(name)).map(name => `${name} is imported and not named`)
  ]
}

function typeProblems(packed: Packed, installed: string): string[] {
  return packed.paths
    .filter(path => path.endsWith('.d.ts'))
    .flatMap(path =>
      [...readFileSync(join(installed, path), 'utf8').matchAll(/\bfrom '(\.[^']+)'/g)]
        .map(([, target = '']) => normalize(join(dirname(path), target.replace(/\.(ts|js)$/, '.d.ts'))))
        .filter(target => !packed.paths.includes(target))
        .map(target => `${path} imports ${target}`)
    )
}

function linkProblems(packed: Packed, installed: string): string[] {
  return packed.paths
    .filter(path => path.endsWith('.md'))
    .flatMap(path =>
      [...readFileSync(join(installed, path), 'utf8').matchAll(/\]\((?!https?:|#)([^)#]+)[^)]*\)/g)]
        .map(([, target = '']) => target)
        .filter(target => !existsSync(join(installed, dirname(path), target)))
        .map(target => `${path} links to ${target}`)
    )
}
