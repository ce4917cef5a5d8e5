/**
 * The package as a user gets it: packed from a copy of the sources, installed by npm into a folder of its own, and run by
 * the Node that the machine has, whatever its version; not by the one of this checkout.
 */
import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { createInterface } from 'node:readline'
import type { TestContext } from 'node:test'
import { atEnd } from './clean-up.ts'
import { repository } from './repository.ts'

/** What `npm pack` needs to see of a checkout. */
const packedFrom = ['config', 'docs', 'native-free-bench', 'src', 'workers']
const packedFromFiles = ['LICENSE', 'README.md', 'package.json', 'tsconfig.json']

/** Settings of npm that say where things are; all others that a surrounding npm hands down are about this checkout. */
const keptNpmVariables = ['registry', 'cache', 'userconfig', 'globalconfig', 'cafile'].map(name => `npm_config_${name}`)

/** A command that hangs fails by name. */
const COMMAND_TIMEOUT_MS = 240_000

export interface Packed {
  /** Path of the tarball. */
  readonly file: string
  readonly bytes: number
  /** Paths within the package, sorted. */
  readonly paths: readonly string[]
  /** The copy it was packed from. */
  readonly source: string
}

export interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** The environment of a user's shell: no Node of this checkout on PATH, nothing of npm's scripts, of the test runner or of Millrace. */
export function userEnvironment(further: Readonly<Record<string, string>> = {}): Record<string, string> {
  const kept = Object.entries(process.env).filter(
    ([name]) =>
      keptNpmVariables.includes(name) || !/^(npm_|NODE_|INIT_CWD$|MILLRACE_|ES_|NOTIFY_SOCKET$|NO_COLOR$)/.test(name)
  )
  const path = (process.env['PATH'] ?? '').split(delimiter).filter(folder => !/node_modules[/\\]\.bin$/.test(folder))
  const variables = Object.fromEntries(kept.map(([name, value]) => [name, value ?? '']))
  const certificates = process.env['NODE_EXTRA_CA_CERTS']
  return {
    ...variables,
    ...(certificates === undefined ? {} : { NODE_EXTRA_CA_CERTS: certificates }),
    PATH: path.join(delimiter),
    npm_config_audit: 'false',
    npm_config_fund: 'false',
    npm_config_omit: 'dev',
    npm_config_prefer_offline: 'true',
    npm_config_update_notifier: 'false',
    ...further
  }
}

/** Starts a line of a shell in a group of its own, which is ended with the test. */
export function startLine(
  t: TestContext,
  line: string,
  cwd: string,
  env: Readonly<Record<string, string>>
): ChildProcess {
  const child = spawn('bash', ['-c', line], { cwd, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true })
  atEnd(t, () => endGroup(child, 'SIGKILL'))
  return child
}

/** Sends a signal to all that a line started, as a terminal does; nothing if all of it has ended. */
export function endGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  assert.ok(child.pid !== undefined)
  try {
    process.kill(-child.pid, signal)
  } catch (error) {
    // All of it has ended.
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error
  }
}

/** Runs a line of a shell to its end. */
export async function runLine(
  t: TestContext,
  line: string,
  cwd: string,
  env: Readonly<Record<string, string>> = userEnvironment()
): Promise<Ended> {
  const child = startLine(t, line, cwd, env)
  const timer = setTimeout(() => endGroup(child, 'SIGKILL'), COMMAND_TIMEOUT_MS)
  const chunks: { stdout: string; stderr: string } = { stdout: '', stderr: '' }
  child.stdout?.setEncoding('utf8').on('data', (text: string) => (chunks.stdout += text))
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (chunks.stderr += text))
  await once(child, 'close')
  clearTimeout(timer)
  return { code: child.exitCode, ...chunks }
}

/** As runLine, of a line that must succeed. @returns what it wrote to stdout. */
export async function succeed(
  t: TestContext,
  line: string,
  cwd: string,
  env?: Readonly<Record<string, string>>
): Promise<string> {
  const { code, stdout, stderr } = await runLine(t, line, cwd, env)
  assert.equal(code, 0, `${line}\n${stdout}${stderr}`)
  return stdout
}

/**
 * `npm pack` in a copy of the sources, so that other tests keep the dist that they run.
 * @param stale path of a file in the copy's dist that no source has any more.
 */
export async function pack(t: TestContext, folder: string, stale: string): Promise<Packed> {
  const source = join(folder, 'checkout')
  mkdirSync(join(source, stale, '..'), { recursive: true })
  for (const path of packedFrom) cpSync(join(repository, path), join(source, path), { recursive: true })
  for (const path of packedFromFiles) cpSync(join(repository, path), join(source, path))
  symlinkSync(join(repository, 'node_modules'), join(source, 'node_modules'))
  writeFileSync(join(source, stale), '')
  const output = await succeed(t, `npm pack --json --pack-destination '${folder}'`, source)
  const parsed: unknown = JSON.parse(output)
  const [report] = parsed as [{ filename: string; size: number; files: { path: string }[] }]
  const paths = report.files.map(({ path }) => path).sort()
  return { file: join(folder, report.filename), bytes: report.size, paths, source }
}

export interface ServedFrom {
  readonly child: ChildProcess
  /** host:port of both listeners. */
  readonly http: string
  readonly es01: string
  /** Of the process that has the data directory. */
  readonly pid: number
  /** Messages of the log so far. */
  readonly messages: readonly string[]
  /** Resolves when every process that writes to its log has ended. */
  readonly closed: Promise<unknown>
}

/** Starts a line that serves, and waits until it is ready. */
export async function serveLine(
  t: TestContext,
  line: string,
  cwd: string,
  env: Readonly<Record<string, string>>
): Promise<ServedFrom> {
  const child = startLine(t, line, cwd, env)
  assert.ok(child.stderr !== null)
  const text: string[] = []
  const messages: string[] = []
  const { promise, resolve, reject } = Promise.withResolvers<Record<string, unknown>>()
  createInterface({ input: child.stderr }).on('line', entry => {
    text.push(entry)
    if (!entry.startsWith('{')) return
    const fields = JSON.parse(entry) as Record<string, unknown>
    messages.push(String(fields['msg']))
    if (fields['msg'] === 'ready') resolve(fields)
  })
  const closed = once(child, 'close')
  void closed.then(() => reject(new Error(`${line} ended:\n${text.join('\n')}`)))
  const ready = await promise
  return {
    child,
    http: String(ready['httpAddress']),
    es01: String(ready['binaryAddress']),
    pid: Number(ready['pid']),
    messages,
    closed
  }
}
