/**
 * Real brokers for tests: in this process (startBroker) or as a child that can be killed (spawnBroker). Ports are 0,
 * folders temporary, cleanup registered. spawnBroker runs the built daemon: `npm test` builds first.
 */
import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { TestContext } from 'node:test'
import { silentLogger, type Logger } from '../../src/base/logger.ts'
import { resolveSettings, type ConfigInput } from '../../src/config/resolve.ts'
import { startServer, type RunningServer } from '../../src/server.ts'
import { temporaryDirectory } from './temporary-directory.ts'
import { atEnd } from './clean-up.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

export interface Es01Address {
  readonly host: string
  readonly port: number
}

/** Combinations that the whole product must pass (issue: both engines, 1 and 3 shards). */
export const variants = [
  { engine: 'uws', shards: 1 },
  { engine: 'uws', shards: 3 },
  { engine: 'node', shards: 1 },
  { engine: 'node', shards: 3 }
] as const
export type Variant = (typeof variants)[number]

/** Flags that keep a test small: little is filled ahead, small memory. */
const testFlags: ConfigInput['flags'] = {
  '--bind': '127.0.0.1:0',
  '--bind-binary': '127.0.0.1:0',
  '--bind-kafka': '127.0.0.1:0',
  '--journal-slot-bytes': '64MiB',
  '--journal-first-slot-bytes': '1MiB',
  '--journal-fill-ahead-bytes': '0'
}

export interface BrokerOptions {
  readonly dataDir?: string
  readonly variant?: Variant
  /** Further flags, with their dashes. */
  readonly flags?: ConfigInput['flags']
  readonly logger?: Logger
}

export interface TestBroker {
  readonly url: string
  readonly es01: Es01Address
  /** host:port, as Kafka clients take it. */
  readonly kafka: string
  readonly dataDir: string
  readonly server: RunningServer
  /** Clean stop; doing it again does nothing. */
  stop(): Promise<void>
}

/** A broker in this process, ready. */
export async function startBroker(t: TestContext, options: BrokerOptions = {}): Promise<TestBroker> {
  const dataDir = options.dataDir ?? temporaryDirectory(t)
  const resolution = resolveSettings({
    flags: { ...testFlags, '--data-dir': dataDir, ...variantFlags(options.variant), ...options.flags },
    unknownFlags: [],
    env: {},
    file: null
  })
  assert.ok(resolution.ok, resolution.ok ? '' : resolution.faults.join('\n'))
  const server = await startServer(resolution.settings, options.logger ?? silentLogger)
  let stopping: Promise<void> | null = null
  const stop = (): Promise<void> => (stopping ??= server.stop().then(() => undefined))
  atEnd(t, stop)
  return {
    url: `http://${server.httpAddress}`,
    es01: parseAddress(server.binaryAddress ?? ''),
    kafka: server.kafkaAddresses[0] ?? '',
    dataDir,
    server,
    stop
  }
}

export interface SpawnOptions extends BrokerOptions {
  readonly env?: Readonly<Record<string, string>>
  /** Resolve when it listens, while its shards start. */
  readonly untilListening?: boolean
}

export interface SpawnedBroker {
  readonly url: string
  readonly es01: Es01Address
  /** host:port, as Kafka clients take it. */
  readonly kafka: string
  readonly dataDir: string
  readonly child: ChildProcess
  /** Log lines so far, parsed; text that is not JSON is under `text`. */
  readonly logs: readonly Readonly<Record<string, unknown>>[]
  /** Resolves with the first log line, also a past one, for which `isWanted` holds. */
  waitForLog(
    isWanted: (line: Readonly<Record<string, unknown>>) => boolean,
    timeoutMs?: number
  ): Promise<Readonly<Record<string, unknown>>>
  /** Sends the signal and waits for the end. */
  kill(signal: NodeJS.Signals): Promise<{ code: number | null; signal: NodeJS.Signals | null }>
}

/** A broker as a child process of its own, ready unless asked otherwise. */
export async function spawnBroker(t: TestContext, options: SpawnOptions = {}): Promise<SpawnedBroker> {
  const dataDir = options.dataDir ?? temporaryDirectory(t)
  const flags = { ...testFlags, '--data-dir': dataDir, ...variantFlags(options.variant), ...options.flags }
  const args = Object.entries(flags).flatMap(([flag, value]) => [flag, String(value)])
  const child = spawn(process.execPath, [`${root}dist/src/main.js`, 'serve', ...args], {
    cwd: root,
    stdio: ['ignore', 'ignore', 'pipe'],
    env: childEnvironment(options.env)
  })
  atEnd(t, () => end(child))
  const log = new LogLines(child)
  const message = options.untilListening === true ? 'listening; shards are starting' : 'ready'
  const ready = await log.waitFor(line => line['msg'] === message, 20_000)
  return {
    url: `http://${String(ready['httpAddress'])}`,
    es01: parseAddress(String(ready['binaryAddress'])),
    kafka: String(ready['kafkaAddresses']),
    dataDir,
    child,
    logs: log.lines,
    waitForLog: (isWanted, timeoutMs = 10_000) => log.waitFor(isWanted, timeoutMs),
    async kill(signal) {
      if (child.exitCode !== null || child.signalCode !== null)
        return { code: child.exitCode, signal: child.signalCode }
      const exited = once(child, 'exit')
      child.kill(signal)
      await exited
      return { code: child.exitCode, signal: child.signalCode }
    }
  }
}

/** Runs `millrace …` to its end. */
export async function runMillrace(
  args: readonly string[],
  options: { env?: Readonly<Record<string, string>>; cwd?: string } = {}
): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const child = spawn(process.execPath, [`${root}dist/src/main.js`, ...args], {
    cwd: options.cwd ?? root,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: childEnvironment(options.env)
  })
  const stdout: Buffer[] = []
  const stderr: Buffer[] = []
  child.stdout.on('data', (chunk: Buffer) => stdout.push(chunk))
  child.stderr.on('data', (chunk: Buffer) => stderr.push(chunk))
  await once(child, 'close')
  return { code: child.exitCode, stdout: Buffer.concat(stdout).toString(), stderr: Buffer.concat(stderr).toString() }
}

/** Polls until the condition holds. @throws what it last failed with, after the time. */
export async function waitFor<T>(
  what: string,
  condition: () => T | undefined | false | Promise<T | undefined | false>,
  timeoutMs = 10_000
): Promise<T> {
  const endMs = performance.now() + timeoutMs
  for (;;) {
    const value = await condition()
    if (value !== undefined && value !== false) return value
    if (performance.now() > endMs) throw new Error(`waited ${timeoutMs} ms in vain for: ${what}`)
    await new Promise(resolve => setImmediate(resolve))
  }
}

class LogLines {
  readonly lines: Readonly<Record<string, unknown>>[] = []
  readonly #waiters = new Set<() => void>()
  #ended = false

  constructor(child: ChildProcess) {
    const { stderr } = child
    assert.ok(stderr !== null)
    const reader = createInterface({ input: stderr })
    reader.on('line', line => {
      this.lines.push(line.startsWith('{') ? (JSON.parse(line) as Record<string, unknown>) : { text: line })
      for (const waiter of [...this.#waiters]) waiter()
    })
    child.on('close', () => {
      this.#ended = true
      for (const waiter of [...this.#waiters]) waiter()
    })
  }

  waitFor(
    isWanted: (line: Readonly<Record<string, unknown>>) => boolean,
    timeoutMs: number
  ): Promise<Readonly<Record<string, unknown>>> {
    return new Promise((resolve, reject) => {
      const finish = (act: () => void): void => {
        clearTimeout(timer)
        this.#waiters.delete(look)
        act()
      }
      const tail = (): string =>
        this.lines
          .slice(-20)
          .map(line => JSON.stringify(line))
          .join('\n')
      const look = (): void => {
        const line = this.lines.find(isWanted)
        if (line !== undefined) finish(() => resolve(line))
        else if (this.#ended)
          finish(() => reject(new Error(`the broker ended before the awaited log line:\n${tail()}`)))
      }
      const timer = setTimeout(() => finish(() => reject(new Error(`no such log line in time:\n${tail()}`))), timeoutMs)
      this.#waiters.add(look)
      look()
    })
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill('SIGKILL')
  await exited
}

/** What a child gets: this process's environment without the test variables, which a broker would refuse as unknown. */
function childEnvironment(further: Readonly<Record<string, string>> | undefined): NodeJS.ProcessEnv {
  const { MILLRACE_SEED: _s, MILLRACE_LONG: _l, MILLRACE_KAFKA_TOOLS: _k, MILLRACE_MOTO: _m, ...rest } = process.env
  return { ...rest, ...further }
}

function variantFlags(variant: Variant | undefined): ConfigInput['flags'] {
  return variant === undefined ? {} : { '--http-engine': variant.engine, '--shards': String(variant.shards) }
}

function parseAddress(text: string): Es01Address {
  const colon = text.lastIndexOf(':')
  return { host: text.slice(0, colon), port: Number(text.slice(colon + 1)) }
}
