/** The files of config/deploy that start a broker: what they name is there, and their command lines work as written. */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, globSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { spawnBroker } from '../support/broker.ts'
import { readText, repository } from '../support/repository.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

const unit = readText('config/deploy/millrace.service')
const dockerfile = readText('config/deploy/Dockerfile')
const { version, bin, engines } = JSON.parse(readText('package.json')) as {
  version: string
  bin: Record<string, string>
  engines: { node: string }
}

/** Where both put what npm installs. */
const INSTALLED = '/opt/millrace/lib/node_modules/millrace/'

/** `--flag value` pairs of a command line. */
function flagsOf(words: readonly string[]): Record<string, string> {
  assert.ok(words.length % 2 === 0, words.join(' '))
  return Object.fromEntries(words.flatMap((word, i) => (i % 2 === 0 ? [[word, words[i + 1] ?? '']] : [])))
}

test('the files of the package that the unit and the image name are in it', () => {
  const named = [...`${unit}\n${dockerfile}`.matchAll(new RegExp(`${INSTALLED}([\\w./-]*\\w)`, 'g'))]
  const paths = named.map(([, path = '']) => path).filter(path => !path.startsWith('node_modules'))
  assert.ok(paths.length >= 3)
  for (const path of paths) assert.ok(existsSync(join(repository, path)), path)
})

test('the command of the unit serves, with the settings of the package', async t => {
  const [program, command, ...words] = (/^ExecStart=(.+)$/m.exec(unit)?.[1] ?? '').split(' ')
  assert.deepEqual([program, command], [`/opt/millrace/bin/${Object.keys(bin).join()}`, 'serve'])
  const { '--data-dir': directory, '--config': config, ...others } = flagsOf(words)
  assert.deepEqual([directory, config, others], ['${STATE_DIRECTORY}', '/etc/millrace/millrace.toml', {}])
  assert.match(unit, /install .*config\/millrace\.toml \/etc\/millrace\/millrace\.toml$/m)
  const broker = await spawnBroker(t, { flags: { '--config': join(repository, 'config/millrace.toml') } })
  assert.deepEqual(await broker.kill('SIGTERM'), { code: 0, signal: null })
})

test('the unit gives a stop more time than the broker takes at most', () => {
  const seconds = Number(/^TimeoutStopSec=(\d+)s$/m.exec(unit)?.[1])
  const [, shutdown] = /^# shutdown_timeout = "(\d+)s"$/m.exec(readText('config/millrace.toml')) ?? []
  assert.ok(seconds > Number(shutdown), `${seconds} and ${shutdown}`)
})

const hasAnalyze = spawnSync('systemd-analyze', ['--version']).status === 0

test('systemd takes the unit, and would tell a fault in it', { skip: !hasAnalyze && 'no systemd-analyze' }, t => {
  const folder = temporaryDirectory(t)
  const verify = (name: string, text: string): string => {
    const here = text.replaceAll('/opt/millrace/bin/millrace', join(repository, bin['millrace'] ?? ''))
    writeFileSync(join(folder, name), here)
    const { stdout, stderr } = spawnSync('systemd-analyze', ['verify', join(folder, name)], { encoding: 'utf8' })
    return (stdout + stderr)
      .split('\n')
      .filter(line => line.includes(name))
      .join('\n')
  }
  assert.equal(verify('millrace.service', unit), '')
  assert.match(verify('planted.service', unit.replace('PrivateTmp=', 'PrivateTemp=')), /PrivateTemp/)
})

interface Instruction {
  readonly name: string
  readonly words: readonly string[]
  readonly text: string
}

/** Instructions in order; lines that go on are one. The words of a JSON form are its items. */
const instructions: readonly Instruction[] = dockerfile
  .replaceAll(/^#.*\n/gm, '')
  .replaceAll(/\\\n\s*/g, '')
  .split('\n')
  .filter(line => line !== '')
  .map(line => {
    const [, name = '', text = ''] = /^([A-Z]+) (.+)$/.exec(line) ?? []
    const json = /\[.*\]$/.exec(text)?.[0]
    const words = json === undefined ? text.split(' ') : (JSON.parse(json) as string[])
    return { name, text, words }
  })

function wordsOf(name: string): readonly string[] {
  const found = instructions.filter(instruction => instruction.name === name)
  return found.at(-1)?.words ?? []
}

test('the image is made of the tarball that npm pack writes, which its context has', () => {
  const copied = instructions.filter(({ name, text }) => name === 'COPY' && !text.startsWith('--from='))
  assert.deepEqual(
    copied.map(({ words }) => words),
    [['millrace-*.tgz', '/tmp/']]
  )
  const context = readText('config/deploy/Dockerfile.dockerignore').replaceAll(/^#.*\n/gm, '')
  assert.equal(context, '*\n!millrace-*.tgz\n')
  assert.ok(/^millrace-.*\.tgz$/.test(`millrace-${version}.tgz`))
  const stages = instructions.filter(({ name }) => name === 'FROM').map(({ words }) => words[0] ?? '')
  const [, wanted = ''] = /^>=(\d+)$/.exec(engines.node) ?? []
  assert.deepEqual(stages, [`node:${wanted}-slim`, `node:${wanted}-slim`])
  assert.ok(
    instructions.some(({ name, text }) => name === 'COPY' && text === '--from=install /opt/millrace /opt/millrace')
  )
  assert.ok(instructions.some(({ name, text }) => name === 'RUN' && text.includes(' --prefix /opt/millrace ')))
  assert.deepEqual(globSync(join(repository, 'config/deploy/Dockerfile*')).length, 2)
})

test('the image serves as another user than root, keeps its data in a volume, and is stopped by SIGTERM', () => {
  const flags = flagsOf(wordsOf('CMD').slice(1))
  assert.deepEqual(wordsOf('ENTRYPOINT'), [`/opt/millrace/bin/${Object.keys(bin).join()}`])
  assert.equal(wordsOf('CMD')[0], 'serve')
  assert.deepEqual(wordsOf('USER'), ['node'])
  assert.deepEqual(wordsOf('VOLUME'), [flags['--data-dir']])
  assert.deepEqual(wordsOf('STOPSIGNAL'), ['SIGTERM'])
  assert.deepEqual(
    [`0.0.0.0:${wordsOf('EXPOSE')[0]}`, `0.0.0.0:${wordsOf('EXPOSE')[1]}`],
    [flags['--bind'], flags['--bind-binary']]
  )
})

test('the command of the image serves to key holders alone, and its health check tells whether it does', async t => {
  const {
    '--bind': bind = '',
    '--bind-binary': _binary,
    '--data-dir': _directory,
    ...flags
  } = flagsOf(wordsOf('CMD').slice(1))
  const broker = await spawnBroker(t, { flags })
  assert.ok(existsSync(join(broker.dataDir, 'bootstrap.key')))
  assert.equal((await fetch(`${broker.url}/topics`)).status, 401)
  const [node, ...words] = wordsOf('HEALTHCHECK')
  assert.equal(node, 'node')
  const port = bind.split(':')[1] ?? ''
  const check = async (): Promise<number | null> => {
    const here = words.map(word => word.replace(`http://127.0.0.1:${port}`, broker.url))
    assert.notDeepEqual(here, words)
    const child = spawn(process.execPath, here, { stdio: 'ignore' })
    await once(child, 'close')
    return child.exitCode
  }
  assert.equal(await check(), 0)
  await broker.kill('SIGTERM')
  assert.equal(await check(), 1)
})
