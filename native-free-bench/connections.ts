/**
 * What a thousand idle ES01 connections cost, and what they do to a load together with a hundred stuck ones: the memory of the
 * broker before and with the idle ones, and the latency of an open loop in windows with and without all of them, which
 * take turns. Main thread; the broker is another process.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { BrokerProcess } from './broker-process.ts'
import { Crowd } from './crowd.ts'
import type { Address } from './drivers/driver.ts'
import { HttpJson } from './http-json.ts'
import type { LatencySummary } from './latency.ts'
import { openProduceLoad } from './load/produce-load.ts'
import type { ProduceLoad } from './load/produce-load.ts'
import { drain, measureWhile, until } from './load/window.ts'
import { residentBytes } from './machine.ts'
import type { BenchOptions } from './options.ts'
import type { Cell, StudyTable } from './results.ts'
import { withBroker } from './run-case.ts'
import type { RunContext } from './run-case.ts'
import { median, pairedRatio } from './statistics.ts'

const IDLE = 1_000
/** Half of them in the middle of a frame, half not reading their answers. */
const STUCK = 100
/** A steady load that leaves the machine room, so that a p99 is not one of queues. */
const RATE = 500
const RECORDS = 10
/** Before memory is looked at: what was garbage of the work before is given back after some quiet seconds. */
const REST_MS = 8_000
const READINGS = 5
const READING_EVERY_MS = 1_000
/**
 * After connections were opened or closed. What is measured is that they are there: as they become stuck, those that read
 * nothing are given answers until the memory for these is used up, which is work like any other reading.
 */
const SETTLE_MS = 3_000
/** A stuck connection is closed after 30 s: a window must end before. */
const WINDOW_MS_MAX = 20_000
/** More is not to be borne. */
const RATIO_MAX = 2
const topic = 'bench'
const bulkTopic = 'bench-bulk'
/** Records for those that read nothing of what they ask for. */
const BULK_RECORDS = 64
const BULK_VALUE_BYTES = 64 * 1024

const columns = ['round', 'alone p50 ms', 'p99 ms', 'max ms', 'with all p50 ms', 'p99 ms', 'max ms', 'p99 ratio']

/** @throws Error when a connection is refused or closed, or when a window has no answers. */
export async function runConnections(context: RunContext, progress: (line: string) => void): Promise<StudyTable> {
  const { options } = context
  if (options.windowMs > WINDOW_MS_MAX) throw new Error(`--seconds: ${WINDOW_MS_MAX / 1000} at most for connections`)
  const { fillAheadBytes } = options
  return withBroker(context, 'data', { fillAheadBytes, flags: [] }, broker => measure(options, broker, progress))
}

async function measure(
  options: BenchOptions,
  broker: BrokerProcess,
  progress: (line: string) => void
): Promise<StudyTable> {
  const { http: httpAddress, es01 } = broker.addresses
  if (es01 === null) throw new Error('the broker has no ES01 listener')
  const http = new HttpJson(httpAddress, 1)
  try {
    // First, on a broker that has done nothing: memory that other work gave back would be taken again unseen.
    const kib = await measureMemory(broker, es01)
    await makeTopics(http, options)
    progress(`  KiB a connection: ${kib.join(', ')}`)
    const { rows, alone, beside } = await measureLoad(options, broker, es01, progress)
    return { columns, rows, notes: notesOf(options, kib, pairedRatio(beside, alone).median) }
  } finally {
    http.close()
  }
}

async function makeTopics(http: HttpJson, { partitions }: BenchOptions): Promise<void> {
  await http.ask('POST', '/topics', { name: topic, partitions })
  await http.ask('POST', '/topics', { name: bulkTopic, partitions: 1 })
  const records = Array.from({ length: BULK_RECORDS }, () => ({ value: 'v'.repeat(BULK_VALUE_BYTES), partition: 0 }))
  await http.ask('POST', `/topics/${bulkTopic}/produce`, { records })
}

/** @returns KiB of each reading, for one connection. */
async function measureMemory({ pid }: BrokerProcess, address: Address): Promise<number[]> {
  const crowd = new Crowd(address, bulkTopic)
  try {
    await sleep(REST_MS)
    const before = residentBytes(pid)
    await crowd.open('idle', IDLE)
    await sleep(REST_MS)
    const readings: number[] = []
    for (let i = 0; i < READINGS; i++) {
      const now = residentBytes(pid)
      if (before !== null && now !== null) readings.push(Math.round((now - before) / IDLE / 102.4) / 10)
      await sleep(READING_EVERY_MS)
    }
    crowd.check()
    return readings
  } finally {
    crowd.close()
  }
}

interface LoadRows {
  readonly rows: Cell[][]
  /** p99 of each round, ms. */
  readonly alone: number[]
  readonly beside: number[]
}

/** Rounds of two windows, every other one backwards. */
async function measureLoad(
  options: BenchOptions,
  broker: BrokerProcess,
  address: Address,
  progress: (line: string) => void
): Promise<LoadRows> {
  const load = await openLoad(options, broker)
  const result: LoadRows = { rows: [], alone: [], beside: [] }
  const windowAlone = (): Promise<LatencySummary> => measureWindow(options, broker, load)
  const windowBeside = (): Promise<LatencySummary> =>
    besideCrowd(address, load, () => measureWindow(options, broker, load))
  try {
    load.start()
    await until(load, Math.max(options.warmUpMs, SETTLE_MS), () => false)
    for (let round = 0; round < options.rounds; round++) {
      const first = round % 2 === 0 ? await windowAlone() : await windowBeside()
      const second = round % 2 === 0 ? await windowBeside() : await windowAlone()
      const [alone, beside] = round % 2 === 0 ? [first, second] : [second, first]
      result.alone.push(alone.p99Ms)
      result.beside.push(beside.p99Ms)
      const ratio = Math.round((beside.p99Ms / alone.p99Ms) * 100) / 100
      result.rows.push([round + 1, ...cellsOf(alone), ...cellsOf(beside), ratio])
      progress(`  round ${round + 1}: p99 ${alone.p99Ms.toFixed(2)} alone, ${beside.p99Ms.toFixed(2)} ms with all`)
    }
    await drain(load)
    return result
  } finally {
    load.close()
  }
}

function openLoad(options: BenchOptions, { addresses }: BrokerProcess): Promise<ProduceLoad> {
  const { partitions, connections, inFlight, valueBytes, keyed } = options
  const shape = { topic, records: RECORDS, valueBytes, keyed }
  const rate = options.rate ?? RATE
  return openProduceLoad({ protocol: 'es01', addresses, shape, partitions, connections, inFlight, rate })
}

async function measureWindow(options: BenchOptions, broker: BrokerProcess, load: ProduceLoad): Promise<LatencySummary> {
  const window = await measureWhile(load, broker.pid, () => until(load, options.windowMs, () => false))
  return window.sums.latency
}

/** All connections are there, and still are, when `action` ends. */
async function besideCrowd<Result>(
  address: Address,
  load: ProduceLoad,
  action: () => Promise<Result>
): Promise<Result> {
  const crowd = new Crowd(address, bulkTopic)
  try {
    await crowd.open('idle', IDLE)
    await crowd.open('half', STUCK / 2)
    await crowd.open('unread', STUCK / 2)
    await until(load, SETTLE_MS, () => false)
    const result = await action()
    crowd.check()
    return result
  } finally {
    crowd.close()
    await until(load, SETTLE_MS, () => false)
  }
}

function cellsOf({ p50Ms, p99Ms, maxMs }: LatencySummary): Cell[] {
  return [p50Ms, p99Ms, maxMs]
}

function notesOf({ rate, valueBytes, connections }: BenchOptions, kib: readonly number[], ratio: number): string[] {
  const memory =
    kib.length === 0
      ? 'memory a connection: this system does not tell'
      : `memory a connection: ${median(kib)} KiB, median of ${kib.join(', ')}: growth of the resident memory of the broker over ${IDLE} idle ones`
  return [
    memory,
    `${rate ?? RATE} requests/s of ${RECORDS} × ${valueBytes} B over ${connections} connections, latency from the intended send time`,
    `with all: ${IDLE} idle connections from eight addresses, ${STUCK / 2} that sent half a frame, ${STUCK / 2} that read no answer`,
    `p99 with all over p99 alone, median of rounds: ${ratio.toFixed(2)}; at most ${RATIO_MAX} is wanted: ${ratio <= RATIO_MAX ? 'met' : 'missed'}`
  ]
}
