/**
 * What a scrape of `/metrics` costs when there are very many partitions: how long it takes, and what it does to everything
 * else. Beside the scrapes another connection asks for `/healthz` all the time; the same without scrapes is the control.
 * The broker's own monitor of its event loop is read from the page, after a quiet minute and after the scrapes. Main thread.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { siblingModule } from '../src/base/module-url.ts'
import type { BrokerProcess } from './broker-process.ts'
import { HttpJson } from './http-json.ts'
import { LatencyRecorder } from './latency.ts'
import type { LatencySummary } from './latency.ts'
import { sweep } from './load/sweep.ts'
import { processCpuSeconds } from './machine.ts'
import type { Cell, StudyTable } from './results.ts'
import { withBroker } from './run-case.ts'
import type { RunContext } from './run-case.ts'
import type { ScrapeTask, ScrapeTimes } from './scrape-worker.ts'
import { median } from './statistics.ts'

const SCRAPES = 20
/** Numbers serve for a second: each scrape gathers anew. */
const PAUSE_MS = 1100
/** The broker's monitor forgets what was before this. */
const QUIET_MS = 61_000
const topic = 'bench'

/** @throws Error when the page does not tell of every partition. */
export async function runScrape(
  context: RunContext,
  partitions: number,
  progress: (line: string) => void
): Promise<StudyTable> {
  const rows = await withBroker(context, 'data', { fillAheadBytes: null, flags: [] }, broker =>
    measureScrapes(context, broker, partitions, progress)
  )
  const notes = [`${SCRAPES} scrapes, ${PAUSE_MS} ms apart; every partition has one record`]
  return { columns: ['figure', 'value'], rows, notes }
}

async function measureScrapes(
  context: RunContext,
  broker: BrokerProcess,
  partitions: number,
  progress: (line: string) => void
): Promise<Cell[][]> {
  const rows: Cell[][] = []
  const add = (name: string, value: Cell): void => {
    rows.push([name, value])
    progress(`  ${name}: ${value ?? 'unknown'}`)
  }
  const { connections, inFlight, valueBytes } = context.options
  const http = new HttpJson(broker.addresses.http, 2)
  try {
    await http.ask('POST', '/topics', { name: topic, partitions })
    const load = { addresses: broker.addresses, topic, partitions, connections, inFlight, valueBytes }
    await sweep({ ...load, kind: 'produce', protocol: 'es01', recordsPerPartition: 1 })
    await sleep(QUIET_MS)
    const quiet = await loopDelays(http, partitions)
    const task = { address: broker.addresses.http, path: '/metrics', count: SCRAPES, pauseMs: PAUSE_MS }
    const alone = await pingDuring(http, sleep(SCRAPES * PAUSE_MS))
    const cpuBefore = processCpuSeconds(broker.pid)
    const scraping = scrapes(task)
    const beside = await pingDuring(http, scraping)
    const cpuAfter = processCpuSeconds(broker.pid)
    const { milliseconds, bytes } = await scraping
    const busy = await loopDelays(http, partitions)
    add('bytes of a page', bytes)
    add('scrape, p50 ms', median(milliseconds))
    add('scrape, most ms', Math.max(...milliseconds))
    add('healthz without scrapes, p99 ms', alone.p99Ms)
    add('healthz without scrapes, most ms', alone.maxMs)
    add('healthz beside scrapes, p99 ms', beside.p99Ms)
    add('healthz beside scrapes, most ms', beside.maxMs)
    for (const [name, delays] of [
      ['a quiet minute', quiet],
      ['the minute of the scrapes', busy]
    ] as const) {
      add(`event loop late in ${name}, p99 ms`, delays.p99Ms)
      add(`event loop late in ${name}, most ms`, delays.mostMs)
    }
    if (cpuBefore !== null && cpuAfter !== null)
      add('processor time with the pings, share of a core', (cpuAfter - cpuBefore) / ((SCRAPES * PAUSE_MS) / 1000))
  } finally {
    http.close()
  }
  return rows
}

/** Asks for /healthz again and again until the other is done. */
async function pingDuring(http: HttpJson, other: Promise<unknown>): Promise<LatencySummary> {
  const latency = new LatencyRecorder()
  let isOver = false
  const end = (): void => void (isOver = true)
  other.then(end, end)
  while (!isOver) {
    const startedMs = performance.now()
    await http.ask('GET', '/healthz', null)
    latency.record(performance.now() - startedMs)
    await sleep(1)
  }
  return latency.summarise()
}

function scrapes(task: ScrapeTask): Promise<ScrapeTimes> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(siblingModule(import.meta.url, './scrape-worker'), { workerData: task })
    worker.once('message', (times: ScrapeTimes) => resolve(times))
    worker.once('error', reject)
  })
}

/** What the broker measured of its own event loop in the last minute. @throws Error if partitions are missing on the page. */
async function loopDelays(http: HttpJson, partitions: number): Promise<{ p99Ms: number; mostMs: number }> {
  const { status, body } = await http.send('GET', '/metrics', null)
  const told = body.match(/^es_partition_end_offset\{.*\} 1$/gm)?.length ?? 0
  if (status !== 200 || told !== partitions)
    throw new Error(`/metrics was answered ${status} and tells of ${told} of ${partitions} records`)
  const late = (quantile: string): number => {
    const line = new RegExp(`^millrace_event_loop_delay_seconds\\{thread="main",quantile="${quantile}"\\} (.*)$`, 'm')
    return Number(line.exec(body)?.[1]) * 1000
  }
  return { p99Ms: late('0.99'), mostMs: late('1') }
}
