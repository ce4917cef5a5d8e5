/**
 * A broker as a child process: started on free ports with a data directory of its own, watched through its log on
 * stderr, and ended by its process id only. Main thread.
 * Must never: signal a process it did not start, or leave one behind.
 */
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { siblingModule } from '../src/base/module-url.ts'
import { parseAddress } from './drivers/driver.ts'
import type { Address } from './drivers/driver.ts'
import type { BrokerAddresses } from './load/connections.ts'
import type { SyncMode } from './minimal-log.ts'

export interface BrokerOptions {
  readonly dataDir: string
  /** null: the broker's default. */
  readonly shards: number | null
  /** Bytes of filled slots wanted in all, over all shards; null: the broker's default. */
  readonly fillAheadBytes: number | null
  /** Further flags of `serve`. */
  readonly flags: readonly string[]
  /** Limit of open files and sockets of the process; absent: the one of this process. */
  readonly descriptorsMax?: number
}

/** What a broker says of its journal when it stops: its log line `stopped` carries these fields. */
export interface JournalTotals {
  readonly syncs: number
  readonly journalBytes: number
  /** Slots that were written before they had been filled. */
  readonly slotsUnfilled: number
  /** Every number of that line by its name, sums over all shards: settling, retention and what else is counted. */
  readonly figures: Readonly<Record<string, number>>
}

/** Any server that was started here. */
export interface ServerProcess {
  readonly pid: number
  /** SIGTERM and the end of the process; SIGKILL after a while. */
  stop(): Promise<unknown>
  /** SIGKILL at once; resolves when the process is gone. */
  kill(): Promise<void>
}

export interface BrokerProcess extends ServerProcess {
  readonly addresses: BrokerAddresses
  /** Of the first listener of Kafka's protocol; null: it has none. */
  readonly kafkaAddress: Address | null
  /** From the start of the process to its ready line. */
  readonly readyMs: number
  /** Bytes of filled slots that the broker spoke of in its log so far, over all shards; 0 if it does not speak of them. */
  filledBytes(): number
  /** SIGTERM and the end of the process; SIGKILL after a while. @returns what it said of its journal, or null. */
  stop(): Promise<JournalTotals | null>
}

/** A broker that is not ready by then never will be. */
const READY_TIMEOUT_MS = 60_000
/** After SIGTERM; the broker's own limit is 30 s. */
const STOP_TIMEOUT_MS = 35_000
/** Last lines of the log that an error shows. */
const LOG_LINES_MAX = 20

/** The root of this package: the first folder above this file that has a package.json. */
export function packageRoot(): string {
  let folder = dirname(fileURLToPath(import.meta.url))
  while (!existsSync(join(folder, 'package.json'))) {
    const parent = dirname(folder)
    if (parent === folder) throw new Error('no package.json above the load generator')
    folder = parent
  }
  return folder
}

/** The flags that a broker of ours is started with. */
export function brokerFlags(options: BrokerOptions): string[] {
  const flags = ['--data-dir', options.dataDir, '--bind', '127.0.0.1:0', '--bind-binary', '127.0.0.1:0']
  if (options.shards !== null) flags.push('--shards', String(options.shards))
  if (options.fillAheadBytes !== null) {
    // The broker's setting is per shard. Without a count its default is used, which is 1 on two cores; asking each
    // shard for the whole is safe then, only slower to fill.
    flags.push('--journal-fill-ahead-bytes', String(Math.ceil(options.fillAheadBytes / (options.shards ?? 1))))
  }
  return [...flags, ...options.flags]
}

/** A command under a limit of descriptors: a shell takes the limit, then becomes the command, so that its id stays. */
export function withDescriptors(
  descriptorsMax: number,
  command: string,
  args: readonly string[]
): readonly [string, readonly string[]] {
  return ['sh', ['-c', 'ulimit -n "$0" && exec "$@"', String(descriptorsMax), command, ...args]]
}

/** Starts the built broker of this package and waits until it is ready. @throws Error with its last log lines. */
export async function startBroker(options: BrokerOptions): Promise<BrokerProcess> {
  const args = [join(packageRoot(), 'src', 'bin.js'), 'serve', ...brokerFlags(options)]
  if (options.descriptorsMax === undefined) return watchBroker(process.execPath, args)
  return watchBroker(...withDescriptors(options.descriptorsMax, process.execPath, args))
}

export interface MinimalOptions {
  /** Where its file is made. */
  readonly dataDir: string
  readonly mode: SyncMode
  /** Size of the file, all of it written before the server is ready. */
  readonly fileBytes: number
}

/** Starts the minimal server that the broker is held against; it logs as the broker does. @throws Error with its last log lines. */
export function startMinimalServer(options: MinimalOptions): Promise<BrokerProcess> {
  const entry = fileURLToPath(siblingModule(import.meta.url, './minimal-process'))
  const file = join(options.dataDir, 'log.bin')
  return watchBroker(process.execPath, [entry, file, String(options.fileBytes), options.mode])
}

/** Starts any command that logs as the broker does, and waits for its ready line. */
export async function watchBroker(command: string, args: readonly string[]): Promise<BrokerProcess> {
  const startedMs = performance.now()
  const { child, watch, ready } = await startWatched(command, args, readyFields)
  const readyMs = performance.now() - startedMs
  try {
    return {
      pid: child.pid ?? -1,
      ...addressesOf(ready),
      readyMs,
      filledBytes: () => watch.filledBytes,
      stop: async () => {
        await endChild(child, watch, 'SIGTERM')
        return watch.totals
      },
      kill: () => endChild(child, watch, 'SIGKILL')
    }
  } catch (error) {
    await endChild(child, watch, 'SIGKILL')
    throw error
  }
}

/** Starts a server of another kind. @param readyWords a line of its stderr has them once it is ready. */
export async function startServer(
  command: string,
  args: readonly string[],
  readyWords: string
): Promise<ServerProcess> {
  const { child, watch } = await startWatched(command, args, line => (line.includes(readyWords) ? {} : null))
  return {
    pid: child.pid ?? -1,
    stop: () => endChild(child, watch, 'SIGTERM'),
    kill: () => endChild(child, watch, 'SIGKILL')
  }
}

type Fields = Readonly<Record<string, unknown>>
/** What a line of a log says if it says that the server is ready. */
type ReadyOf = (line: string) => Fields | null

interface Watched {
  readonly child: ChildProcess
  readonly watch: LogWatch
  readonly ready: Fields
}

async function startWatched(command: string, args: readonly string[], readyOf: ReadyOf): Promise<Watched> {
  const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'] })
  const watch = new LogWatch(child, readyOf)
  try {
    const ready = await watch.waitFor(() => watch.ready, READY_TIMEOUT_MS)
    if (ready === null)
      throw new Error(`the broker was not ready in ${READY_TIMEOUT_MS / 1000} s\n${watch.lastLines()}`)
    return { child, watch, ready }
  } catch (error) {
    await endChild(child, watch, 'SIGKILL')
    throw error
  }
}

async function endChild(child: ChildProcess, watch: LogWatch, signal: NodeJS.Signals): Promise<void> {
  if (!watch.isGone) child.kill(signal)
  const gone = await watch.waitForExit(STOP_TIMEOUT_MS)
  if (gone) return
  child.kill('SIGKILL')
  await watch.waitForExit(STOP_TIMEOUT_MS)
}

function addressesOf(ready: Fields): Pick<BrokerProcess, 'addresses' | 'kafkaAddress'> {
  const { httpAddress, binaryAddress, kafkaAddresses } = ready
  if (typeof httpAddress !== 'string') throw new Error('the ready line of the broker names no httpAddress')
  const addressOf = (value: unknown): Address | null => (typeof value === 'string' ? parseAddress(value) : null)
  return {
    addresses: { http: parseAddress(httpAddress), es01: addressOf(binaryAddress) },
    kafkaAddress: Array.isArray(kafkaAddresses) ? addressOf(kafkaAddresses[0]) : null
  }
}

function readyFields(line: string): Fields | null {
  const fields = parseLogLine(line)
  return fields?.['msg'] === 'ready' ? fields : null
}

/** Reads the child's log line by line and remembers what others wait for. */
class LogWatch {
  ready: Fields | null = null
  totals: JournalTotals | null = null
  isGone = false
  readonly #filledByShard = new Map<unknown, number>()
  readonly #readyOf: ReadyOf
  readonly #lines: string[] = []
  readonly #waiters = new Set<() => void>()
  #exitText = ''

  constructor(child: ChildProcess, readyOf: ReadyOf) {
    this.#readyOf = readyOf
    child.once('error', error => this.#end(`could not be started: ${error.message}`))
    // `close` comes after `exit`, once the last line of the log has been read.
    child.once('close', (code, signal) => this.#end(`ended with ${signal ?? `code ${code}`}`))
    if (child.stderr !== null) createInterface({ input: child.stderr }).on('line', line => this.#take(line))
  }

  /** Filled slot bytes the broker spoke of, over all shards. */
  get filledBytes(): number {
    return [...this.#filledByShard.values()].reduce((sum, bytes) => sum + bytes, 0)
  }

  lastLines(): string {
    return this.#lines.join('\n')
  }

  /** @returns what `find` found, or null after the time. @throws Error if the child ends first. */
  async waitFor<T>(find: () => T | null, timeoutMs: number): Promise<T | null> {
    const end = performance.now() + timeoutMs
    for (;;) {
      const found = find()
      if (found !== null) return found
      if (this.isGone) throw new Error(`the broker ${this.#exitText}\n${this.lastLines()}`)
      if (!(await this.#change(end - performance.now()))) return null
    }
  }

  async waitForExit(timeoutMs: number): Promise<boolean> {
    const end = performance.now() + timeoutMs
    while (!this.isGone) if (!(await this.#change(end - performance.now()))) return false
    return true
  }

  /** Resolves true at the next log line or at the end of the child, false after the time. */
  #change(timeoutMs: number): Promise<boolean> {
    return new Promise(resolve => {
      const finish = (changed: boolean): void => {
        this.#waiters.delete(wake)
        clearTimeout(timer)
        resolve(changed)
      }
      const wake = (): void => finish(true)
      const timer = setTimeout(() => finish(false), Math.max(0, timeoutMs))
      this.#waiters.add(wake)
    })
  }

  #take(line: string): void {
    this.#lines.push(line)
    if (this.#lines.length > LOG_LINES_MAX) this.#lines.shift()
    const fields = parseLogLine(line)
    this.ready ??= this.#readyOf(line)
    if (fields?.['msg'] === 'slots filled' && typeof fields['bytes'] === 'number') {
      this.#filledByShard.set(fields['shard'], fields['bytes'])
    }
    if (fields?.['msg'] === 'stopped') this.totals = totalsOf(fields)
    this.#wakeAll()
  }

  #end(text: string): void {
    if (this.isGone) return
    this.isGone = true
    this.#exitText = text
    this.#wakeAll()
  }

  #wakeAll(): void {
    for (const wake of [...this.#waiters]) wake()
  }
}

function totalsOf(fields: Fields): JournalTotals | null {
  const { syncs, journalBytes, slotsUnfilled } = fields
  if (typeof syncs !== 'number' || typeof journalBytes !== 'number') return null
  const numbers = Object.entries(fields).filter((entry): entry is [string, number] => typeof entry[1] === 'number')
  return {
    syncs,
    journalBytes,
    slotsUnfilled: typeof slotsUnfilled === 'number' ? slotsUnfilled : 0,
    figures: Object.fromEntries(numbers)
  }
}

/** The fields of a JSON log line; null for any other text (a banner, a warning of Node). */
function parseLogLine(line: string): Fields | null {
  if (!line.startsWith('{')) return null
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null ? Object.fromEntries(Object.entries(value)) : null
  } catch (error) {
    // A line that only looks like JSON is text for people: it is kept for error messages and means nothing here.
    if (error instanceof SyntaxError) return null
    throw error
  }
}
