/**
 * What committed offsets cost those who produce: the latency of an open loop in windows in which nothing is committed, and
 * in windows in which 100,000 offsets of ten groups change at once every second, which the broker flushes to its store.
 * Windows take turns, so that slow drift falls on both alike. Main thread.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { BrokerProcess } from './broker-process.ts'
import { HttpJson } from './http-json.ts'
import type { LatencySummary } from './latency.ts'
import { openProduceLoad } from './load/produce-load.ts'
import type { ProduceLoad } from './load/produce-load.ts'
import { drain, measureWhile, until } from './load/window.ts'
import type { BenchOptions } from './options.ts'
import type { Cell, StudyTable } from './results.ts'
import { withBroker } from './run-case.ts'
import type { RunContext } from './run-case.ts'
import { median } from './statistics.ts'

const GROUPS = 10
const PARTITIONS = 10_000
/** Between two changes of all offsets. */
const CHANGE_EVERY_MS = 1000
/** A steady load that leaves the machine room, so that a p99 is not one of queues. */
const RATE = 500
const RECORDS = 10
const topic = 'bench'
const groupTopic = 'bench-groups'

const columns = ['round', 'quiet p50 ms', 'p99 ms', 'max ms', 'changing p50 ms', 'p99 ms', 'max ms', 'offsets changed']

/** @throws Error when a window has no answers, or when a change is refused. */
export async function runGroups(context: RunContext, progress: (line: string) => void): Promise<StudyTable> {
  const { options } = context
  const { fillAheadBytes } = options
  return withBroker(context, 'data', { fillAheadBytes, flags: [] }, broker => measureGroups(options, broker, progress))
}

async function measureGroups(
  options: BenchOptions,
  broker: BrokerProcess,
  progress: (line: string) => void
): Promise<StudyTable> {
  const http = new HttpJson(broker.addresses.http, 1)
  const load = await openLoad(options, broker, http)
  try {
    await commitAll(http)
    load.start()
    await until(load, options.warmUpMs, () => false)
    const rows: Cell[][] = []
    const differences: number[] = []
    for (let round = 0; round < options.rounds; round++) {
      const quiet = await measureWhile(load, broker.pid, () => until(load, options.windowMs, () => false))
      let changed = 0
      const changing = await measureWhile(load, broker.pid, async () => {
        changed = await changeAll(http, options.windowMs)
        return false
      })
      const difference = changing.sums.latency.p99Ms - quiet.sums.latency.p99Ms
      differences.push(difference)
      rows.push([round + 1, ...cellsOf(quiet.sums.latency), ...cellsOf(changing.sums.latency), changed])
      progress(`  round ${round + 1}: p99 ${difference < 0 ? '' : '+'}${difference.toFixed(2)} ms`)
      // What was changed last is flushed before the next quiet window.
      await until(load, CHANGE_EVERY_MS * 2, () => false)
    }
    await drain(load)
    return { columns, rows, notes: notesOf(options, differences) }
  } finally {
    load.close()
    http.close()
  }
}

async function openLoad(options: BenchOptions, broker: BrokerProcess, http: HttpJson): Promise<ProduceLoad> {
  const { partitions, connections, inFlight, valueBytes, keyed } = options
  await http.ask('POST', '/topics', { name: topic, partitions })
  await http.ask('POST', '/topics', { name: groupTopic, partitions: PARTITIONS })
  const shape = { topic, records: RECORDS, valueBytes, keyed }
  const protocol = options.protocols[0] ?? 'es01'
  const rate = options.rate ?? RATE
  return openProduceLoad({ protocol, addresses: broker.addresses, shape, partitions, connections, inFlight, rate })
}

/** Gives every group an offset in every partition. */
async function commitAll(http: HttpJson): Promise<void> {
  for (let group = 0; group < GROUPS; group++)
    await http.ask('POST', `/groups/bench-${group}/reset`, { topic: groupTopic, to: 'latest' })
}

/** Changes all offsets, again and again for so long. @returns how many changes that were. */
async function changeAll(http: HttpJson, windowMs: number): Promise<number> {
  const end = performance.now() + windowMs
  let changed = 0
  for (let dueMs = performance.now(); dueMs < end; dueMs += CHANGE_EVERY_MS) {
    await http.ask('POST', '/admin/reset-offsets', { topic: groupTopic })
    changed += GROUPS * PARTITIONS
    await sleep(Math.max(0, Math.min(dueMs + CHANGE_EVERY_MS, end) - performance.now()))
  }
  return changed
}

function cellsOf({ p50Ms, p99Ms, maxMs }: LatencySummary): Cell[] {
  return [p50Ms, p99Ms, maxMs]
}

function notesOf(options: BenchOptions, differences: readonly number[]): string[] {
  const { connections, valueBytes } = options
  return [
    `${options.rate ?? RATE} requests/s of ${RECORDS} × ${valueBytes} B over ${connections} connections, latency from the intended send time`,
    `p99 while offsets change less p99 while none do: median of rounds ${median(differences).toFixed(2)} ms, ` +
      `from ${Math.min(...differences).toFixed(2)} to ${Math.max(...differences).toFixed(2)} ms`
  ]
}
