/**
 * What a topic of very many partitions costs: memory, open files, the time to describe it. The broker runs under the
 * limit of open files that a Linux shell gives by default. One record goes to every partition over each protocol, and
 * each is read back over each, from the journal and again once all is settled. Main thread.
 */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { BrokerProcess } from './broker-process.ts'
import { HttpJson } from './http-json.ts'
import { protocols } from './load/connections.ts'
import { sweep } from './load/sweep.ts'
import type { SweepOptions } from './load/sweep.ts'
import { openDescriptors, processCpuSeconds, residentBytes } from './machine.ts'
import type { Cell, StudyTable } from './results.ts'
import { withBroker } from './run-case.ts'
import type { RunContext } from './run-case.ts'
import { hasSettledFiles } from './settled-files.ts'
import { median } from './statistics.ts'

/** The usual soft limit. */
const DESCRIPTORS_MAX = 1024
const DESCRIBES = 20
const MB = 1_000_000
/** Idle: less than this share of a core over one look. */
const IDLE_CORES = 0.05
const IDLE_LOOK_MS = 1000
/** Settling begins a second after the last write, and memory is given back after five quiet ones. */
const IDLE_LOOKS = 10
const IDLE_TIMEOUT_MS = 120_000
const topic = 'bench'
const compactedTopic = 'bench-compacted'

/** @throws Error when a partition does not give what was written, or when the broker never becomes idle. */
export async function runMany(
  context: RunContext,
  partitions: number,
  progress: (line: string) => void
): Promise<StudyTable> {
  const options = { fillAheadBytes: null, flags: [], descriptorsMax: DESCRIPTORS_MAX }
  const rows = await withBroker(context, 'data', options, broker => measureTopic(context, broker, partitions, progress))
  return { columns: ['figure', 'value'], rows, notes: [`the broker ran under ulimit -n ${DESCRIPTORS_MAX}`] }
}

async function measureTopic(
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
  const addMemory = (when: string): void => {
    const bytes = residentBytes(broker.pid)
    add(`RSS ${when}, MB`, bytes === null ? null : Math.round(bytes / MB))
    add(`open files ${when}`, openDescriptors(broker.pid))
  }
  const { connections, inFlight, valueBytes } = context.options
  const base = { addresses: broker.addresses, topic, partitions, connections, inFlight, valueBytes }
  const addSweeps = async (kind: SweepOptions['kind'], when: string): Promise<void> => {
    for (const protocol of protocols) {
      const recordsPerPartition = protocols.length
      const { seconds, latency } = await sweep({ ...base, kind, protocol, recordsPerPartition })
      const name = kind === 'produce' ? `one record to each over ${protocol}` : `each read over ${protocol}, ${when}`
      add(`${name}, s`, seconds)
      add(`${name}, p99 ms`, latency.p99Ms)
    }
  }
  const http = new HttpJson(broker.addresses.http, 1)
  try {
    add('topic created, ms', await millisecondsOf(() => http.ask('POST', '/topics', { name: topic, partitions })))
    addMemory('after the creation')
    await addSweeps('produce', '')
    await addSweeps('consume', 'from the journal')
    await waitUntilIdle(broker.pid)
    addMemory('idle')
    const describes: number[] = []
    for (let turn = 0; turn < DESCRIBES; turn++) {
      describes.push(await millisecondsOf(() => http.ask('GET', `/topics/${topic}`, null)))
    }
    add(`describe, p50 of ${DESCRIBES}, ms`, median(describes))
    add('describe, most, ms', Math.max(...describes))
    add('all settled, ms', await millisecondsOf(() => settle(http, join(context.workDir, 'data'))))
    await addSweeps('consume', 'settled')
    await waitUntilIdle(broker.pid)
    addMemory('idle after all was read again')
  } finally {
    http.close()
  }
  return rows
}

/**
 * Has everything settled that was written: a compaction that is asked for begins with that, if any topic is compacted.
 * One that holds nothing costs nothing.
 */
async function settle(http: HttpJson, dataDir: string): Promise<void> {
  await http.ask('POST', '/topics', { name: compactedTopic, partitions: 1, config: { cleanup_policy: 'compact' } })
  const { status, body } = await http.send('POST', '/admin/run-compaction', null)
  if (status !== 204) throw new Error(`POST /admin/run-compaction was answered ${status}: ${body.slice(0, 500)}`)
  if (!hasSettledFiles(dataDir)) throw new Error('nothing was settled though it was asked for')
}

async function millisecondsOf(act: () => Promise<unknown>): Promise<number> {
  const startedMs = performance.now()
  await act()
  return performance.now() - startedMs
}

/** Waits until a process has used next to no CPU for some looks in a row. Where nobody can tell, for as long as those take. */
async function waitUntilIdle(pid: number): Promise<void> {
  const end = performance.now() + IDLE_TIMEOUT_MS
  let quietLooks = 0
  let before = processCpuSeconds(pid)
  while (quietLooks < IDLE_LOOKS) {
    if (performance.now() > end) throw new Error(`the broker was not idle within ${IDLE_TIMEOUT_MS / 1000} s`)
    await sleep(IDLE_LOOK_MS)
    const now = processCpuSeconds(pid)
    const cores = before === null || now === null ? 0 : (now - before) / (IDLE_LOOK_MS / 1000)
    quietLooks = cores < IDLE_CORES ? quietLooks + 1 : 0
    before = now
  }
}
