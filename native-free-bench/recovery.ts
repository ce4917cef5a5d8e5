/**
 * How long a start takes, by the size of the data: one directory is filled to each size in turn, and the broker is
 * ended and started again, by kill −9 in the middle of a load and by an orderly stop. Before every start the caches of
 * the machine are dropped where that is allowed, elsewhere those of the data. Main thread.
 */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { startBroker } from './broker-process.ts'
import type { BrokerProcess } from './broker-process.ts'
import { HttpJson } from './http-json.ts'
import { openProduceLoad } from './load/produce-load.ts'
import type { ProduceLoad } from './load/produce-load.ts'
import { drain, until } from './load/window.ts'
import { dropCaches, dropFileCaches, freeBytes } from './machine.ts'
import type { BenchOptions } from './options.ts'
import type { Cell, StudyTable } from './results.ts'
import { removeSettled } from './run-case.ts'
import type { RunContext } from './run-case.ts'
import { median } from './statistics.ts'
import { formatBytes } from '../src/base/amounts.ts'

const GIGABYTE = 1_000_000_000
/** Written before each kill: nearly a slot, since the slot that was being written is what a start has to read. */
const KILL_TAIL_BYTES = 100_000_000
/** Written before each orderly stop, so that there is something to stop. */
const STOP_TAIL_BYTES = 1_000_000
/** A request goes to one partition: every one is to get some, also at the smallest size. */
const REQUESTS_PER_PARTITION = 4
/** Journal, pre-filled slots and the broker's reserve. */
const SPARE_BYTES = 6 * GIGABYTE
/** A gigabyte at 10 MB/s. */
const FILL_TIMEOUT_MS_PER_GIGABYTE = 100_000
const topic = 'bench'

const columns = ['data', 'ended by', 'ready ms, median', 'least', 'most', 'starts', 'caches']

/** Fills, ends and starts. @throws Error when the disk is too small, or when a broker does not become ready. */
export async function runRecovery(
  context: RunContext,
  partitions: number,
  progress: (line: string) => void
): Promise<StudyTable> {
  const { options } = context
  const needed = (options.gigabytes.at(-1) ?? 0) * GIGABYTE * 1.1 + SPARE_BYTES
  const free = freeBytes(context.workDir)
  if (free < needed)
    throw new Error(`${formatBytes(needed)} of free disk are needed, ${formatBytes(free)} are there: see --gigabytes`)
  const dataDir = join(context.workDir, 'data')
  mkdirSync(dataDir)
  const run = new RecoveryRun(context, dataDir, partitions)
  try {
    await run.begin()
    const rows: Cell[][] = []
    for (const gigabytes of options.gigabytes) {
      for (const row of await run.measure(gigabytes)) {
        progress(`  ${row.join('  ')}`)
        rows.push(row)
      }
    }
    return { columns, rows, notes: run.notes }
  } finally {
    await run.end()
    removeSettled(context.workDir, dataDir)
  }
}

/**
 * Records per request: as many as the command line says, fewer where the smallest size would not reach every partition
 * several times.
 */
export function recordsPerRequest(
  options: Pick<BenchOptions, 'gigabytes' | 'records' | 'valueBytes'>,
  partitions: number
): number {
  const smallestBytes = (options.gigabytes[0] ?? 1) * GIGABYTE * 0.5
  const fitting = Math.floor(smallestBytes / (partitions * REQUESTS_PER_PARTITION * options.valueBytes))
  return Math.max(1, Math.min(options.records, fitting))
}

/** One directory and one broker at a time on it. */
class RecoveryRun {
  readonly notes: string[] = []
  readonly #context: RunContext
  readonly #dataDir: string
  readonly #partitions: number
  #writtenBytes = 0

  constructor(context: RunContext, dataDir: string, partitions: number) {
    this.#context = context
    this.#dataDir = dataDir
    this.#partitions = partitions
  }

  async begin(): Promise<void> {
    const broker = await this.#start()
    const http = new HttpJson(broker.addresses.http, 1)
    try {
      await http.ask('POST', '/topics', { name: topic, partitions: this.#partitions })
    } finally {
      http.close()
    }
  }

  async end(): Promise<void> {
    await this.#context.current?.stop()
    this.#context.current = null
  }

  /** Fills up to the size, the last bytes of it by the kills themselves. @returns the rows of both ways to end. */
  async measure(gigabytes: number): Promise<Cell[][]> {
    const { starts } = this.#context.options
    const tails = Math.min(starts * KILL_TAIL_BYTES, (gigabytes * GIGABYTE) / 2)
    const fillBytes = gigabytes * GIGABYTE - tails - this.#writtenBytes
    if (fillBytes > 0) {
      await this.#write(fillBytes, async load => {
        await drain(load)
      })
    }
    const kill = await this.#measureStarts('kill -9', tails / starts)
    const stop = await this.#measureStarts('stop', STOP_TAIL_BYTES)
    return [kill, stop].map(row => [`${gigabytes} GB`, ...row])
  }

  async #measureStarts(way: 'kill -9' | 'stop', tailBytes: number): Promise<Cell[]> {
    const { starts } = this.#context.options
    const readyMs: number[] = []
    let kept: string | null = null
    let dropped = 'dropped'
    for (let turn = 0; turn < starts; turn++) {
      const { current } = this.#context
      if (current === null) throw new Error('there is no broker to end')
      await this.#write(tailBytes, async load => {
        // A kill meets requests that are being written; an orderly stop has answered all.
        if (way === 'stop') await drain(load)
        else await current.kill()
      })
      if (way === 'stop' && (await current.stop()) === null) throw new Error('a broker was told to stop and did not')
      this.#context.current = null
      kept = dropCaches()
      if (kept !== null) {
        kept = dropFileCaches(this.#dataDir)
        dropped = 'of the data dropped'
      }
      const broker = await this.#start()
      readyMs.push(broker.readyMs)
    }
    if (kept !== null && !this.notes.includes(kept)) this.notes.push(kept)
    const figures = [median(readyMs), Math.min(...readyMs), Math.max(...readyMs)]
    return [way, ...figures.map(Math.round), starts, kept === null ? dropped : 'kept']
  }

  async #start(): Promise<BrokerProcess> {
    const shards = this.#context.options.shards[0] ?? null
    const broker = await startBroker({ dataDir: this.#dataDir, shards, fillAheadBytes: null, flags: [] })
    this.#context.current = broker
    return broker
  }

  /** @param end is called while the load still sends; the load is closed after it. */
  async #write(bytes: number, end: (load: ProduceLoad) => Promise<void>): Promise<void> {
    const { options, current } = this.#context
    if (current === null) throw new Error('there is no broker to write to')
    const { connections, inFlight, valueBytes } = options
    const records = recordsPerRequest(options, this.#partitions)
    const load = await openProduceLoad({
      protocol: 'es01',
      addresses: current.addresses,
      shape: { topic, records, valueBytes, keyed: false },
      ...{ partitions: this.#partitions, connections, inFlight, rate: null }
    })
    try {
      load.start()
      const timeoutMs = FILL_TIMEOUT_MS_PER_GIGABYTE * (1 + bytes / GIGABYTE)
      const isWritten = await until(load, timeoutMs, () => load.meter.totalBytes >= bytes)
      if (!isWritten)
        throw new Error(`only ${formatBytes(load.meter.totalBytes)} were written in ${timeoutMs / 1000} s`)
      await end(load)
      this.#writtenBytes += load.meter.totalBytes
    } finally {
      load.close()
    }
  }
}
