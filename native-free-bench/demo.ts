/**
 * `npm run demo`: two real data sets, each over HTTP and over ES01, a kill −9 half-way through each, and a proof that
 * nothing was lost, doubled or put out of order. Ends non-zero on any mismatch. Main thread.
 * Must never: leave a broker or a data directory behind.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { startBroker } from './broker-process.ts'
import type { BrokerProcess } from './broker-process.ts'
import { Ledger } from './demo/ledger.ts'
import { readDataSets } from './demo/records.ts'
import type { DataSet } from './demo/records.ts'
import { readFrom, replay } from './demo/replay.ts'
import type { DemoBroker, ReplaySummary } from './demo/replay.ts'
import { openSide, sideNames } from './demo/sides.ts'
import type { SideName } from './demo/sides.ts'
import { Mismatch, verifyPartition } from './demo/verify.ts'
import { HttpJson } from './http-json.ts'
import { onInterrupt } from './interrupt.ts'
import { describeMachine } from './machine.ts'
import { formatBytes } from '../src/base/amounts.ts'

const helpText = `Usage: npm run demo -- [--data-dir DIR]

Replays vega-datasets' flights-200k.json and earthquakes.json over HTTP and over ES01 into a broker of its own, kills
it half-way through each replay (SIGKILL, requests in flight), starts it again on the same directory and goes on, then
reads everything back over both protocols and compares count and SHA-256 of every partition in order.

  --data-dir DIR   where the temporary data directory is made (default: the current folder)
`

/** Lanes: connections that send at once; every partition belongs to one of them. */
const LANES_MAX = 4
/** Named so that the repository ignores it. */
const WORK_PREFIX = 'bench-report-demo-'

async function main(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: { 'data-dir': { type: 'string', default: '.' }, help: { type: 'boolean', default: false } }
  })
  if (values.help) {
    console.log(helpText)
    return 0
  }
  const dataSets = readDataSets()
  const workDir = mkdtempSync(join(resolve(values['data-dir']), WORK_PREFIX))
  const broker = new RestartableBroker(join(workDir, 'data'))
  const release = onInterrupt(workDir, () => broker.end())
  try {
    await broker.start()
    const machine = describeMachine(workDir)
    console.log(
      `Millrace demo on ${machine.cpu}, ${machine.cores} cores, ${machine.fileSystem}, Node.js ${machine.node}`
    )
    console.log(
      `A broker of its own, durable before every acknowledgement; ready in ${broker.current.readyMs.toFixed(0)} ms.\n`
    )
    for (const dataSet of dataSets) {
      const bytes = dataSet.records.reduce((sum, one) => sum + one.key.length + Buffer.byteLength(one.value), 0)
      const count = dataSet.records.length.toLocaleString('en')
      console.log(
        `${dataSet.name}: ${count} records, ${formatBytes(bytes)}, key "${dataSet.keyField}", ${dataSet.partitions} partitions`
      )
      for (const side of sideNames) await runReplay(broker, dataSet, side)
    }
    console.log('\nVerified: every record once, in its partition, in order, across the kills.')
    return 0
  } catch (error) {
    if (!(error instanceof Mismatch)) throw error
    console.error(`\nMISMATCH: ${error.message}`)
    return 1
  } finally {
    release()
    await broker.stop()
    rmSync(workDir, { recursive: true, force: true })
  }
}

async function runReplay(broker: RestartableBroker, dataSet: DataSet, side: SideName): Promise<void> {
  const topic = `${dataSet.name}-${side.toLowerCase()}`
  const http = new HttpJson(broker.current.addresses.http, 1)
  await http.ask('POST', '/topics', { name: topic, partitions: dataSet.partitions })
  http.close()
  const ledger = new Ledger(dataSet.records, dataSet.partitions)
  const laneCount = Math.min(LANES_MAX, dataSet.partitions)
  const total = dataSet.records.length
  const { batchRecords } = dataSet
  const onProgress = (settled: number): void => showProgress(`  ${side}: ${settled} of ${total}`)
  const summary = await replay({ broker, side, topic, ledger, laneCount, batchRecords, onProgress })
  showProgress('')
  printReplay(summary, side, dataSet, laneCount)
  const hashes: string[][] = []
  for (const reader of sideNames) hashes.push(await verifyTopic(broker, topic, ledger, reader))
  console.log(`        SHA-256 by partition: ${hashes[0]?.map(hash => hash.slice(0, 8)).join(' ')}`)
}

function printReplay(summary: ReplaySummary, side: SideName, dataSet: DataSet, laneCount: number): void {
  const { kill, sendingMs, requests } = summary
  const total = dataSet.records.length
  if (kill === null) throw new Mismatch(`the replay over ${side} ended before the broker was killed: it proves nothing`)
  console.log(
    `  ${side}  kill -9 at ${count(kill.settledBefore)} of ${count(total)} with ${kill.requestsInFlight} requests ` +
      `(${count(kill.doubtful)} records) in flight; ready again after ${kill.downMs.toFixed(0)} ms; ` +
      `${count(kill.found)} of the ${count(kill.doubtful)} were in the log and were not sent again`
  )
  console.log(
    `        sent in ${requests} requests over ${laneCount} connections, up to ${dataSet.batchRecords} records each: ` +
      `${count((total * 1000) / sendingMs)} records/s`
  )
}

/** Reads a whole topic over one protocol and compares it. @returns the content hash of each partition. */
async function verifyTopic(broker: DemoBroker, topic: string, ledger: Ledger, reader: SideName): Promise<string[]> {
  const side = await openSide(reader, broker.current.addresses)
  const hashes: string[] = []
  let readMs = 0
  try {
    for (let partition = 0; partition < ledger.partitions; partition++) {
      const startedMs = performance.now()
      const { records } = await readFrom(side, topic, partition, 0)
      readMs += performance.now() - startedMs
      hashes.push(verifyPartition(`${topic}/${partition} read over ${reader}`, ledger.expected(partition), records))
    }
  } finally {
    await side.close()
  }
  const rate = (ledger.records.length * 1000) / readMs
  console.log(
    `        read back over ${reader}: ${count(ledger.records.length)} records equal, ${count(rate)} records/s`
  )
  return hashes
}

/** The demo's broker: one directory, one process at a time. */
class RestartableBroker implements DemoBroker {
  readonly #dataDir: string
  #process: BrokerProcess | null = null

  constructor(dataDir: string) {
    this.#dataDir = dataDir
  }

  get current(): BrokerProcess {
    if (this.#process === null) throw new Error('the broker is not running')
    return this.#process
  }

  async start(): Promise<void> {
    this.#process = await startBroker({ dataDir: this.#dataDir, shards: null, fillAheadBytes: null, flags: [] })
  }

  kill(): Promise<void> {
    return this.current.kill()
  }

  restart(): Promise<void> {
    this.#process = null
    return this.start()
  }

  async stop(): Promise<void> {
    await this.#process?.stop()
    this.#process = null
  }

  async end(): Promise<void> {
    await this.#process?.kill()
  }
}

/** One line that is written over, on a terminal only. An empty text clears it. */
function showProgress(line: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\u001b[K${line}`)
}

function count(value: number): string {
  return Math.round(value).toLocaleString('en')
}

process.exitCode = await main(process.argv.slice(2))
