/**
 * The broker against Apache Kafka, under the load generators that Kafka itself brings: in each round every side is started
 * on a fresh directory, gets the same loads, and is ended again. Every other round goes backwards. Main thread; brokers and
 * tools are processes of their own, one broker at a time.
 */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { formatBytes } from '../src/base/amounts.ts'
import type { ServerProcess } from './broker-process.ts'
import type { Address } from './drivers/driver.ts'
import { createTopic } from './kafka/admin.ts'
import { JavaPrograms, KAFKA_VERSION, kafkaClassPath, requireJava } from './kafka/java.ts'
import { kafkaLoads, loadOf, ratioNotes, rowOf, sides } from './kafka/loads.ts'
import type { KafkaLoad, Measurement, Side } from './kafka/loads.ts'
import { runConsumer, runProducer } from './kafka/perf-tools.ts'
import { startKafka } from './kafka/server.ts'
import { freeBytes, processCpuSeconds } from './machine.ts'
import { orderOfRound } from './plan.ts'
import type { StudyTable } from './results.ts'
import { removeSettled, waitForFill, withBroker } from './run-case.ts'
import type { RunContext } from './run-case.ts'

/** Our journal, its filled slots and the reserve of a broker. */
const SPARE_BYTES = 8e9
/** Of the data of the broker that runs. */
const folder = 'kafka'
const WARM_UP_RECORDS = 200_000
const columns = [
  'load',
  'broker',
  'round',
  'records/s',
  'MiB/s',
  'p50 ms',
  'p99 ms',
  'max ms',
  'broker CPU µs a record'
]

/** @throws Error when Java or Maven or room on the disk is missing, and when a record is not acknowledged or not read. */
export async function runKafka(context: RunContext, progress: (line: string) => void): Promise<StudyTable> {
  const { options } = context
  const loads = kafkaLoads(options.megabytes)
  requireJava()
  requireRoom(context.workDir, loads)
  const programs = new JavaPrograms(await kafkaClassPath(context.workDir, 'kafka_2.13', 'kafka-tools'))
  context.others.add(programs)
  const measured: Measurement[] = []
  for (let round = 1; round <= options.rounds; round++) {
    for (const side of orderOfRound(sides, round - 1)) {
      await withSide(context, programs, side, (server, address) =>
        measureSide({ context, programs, side, round, server, address }, loads, one => {
          measured.push(one)
          progress(`  ${rowOf(one).join('  ')}`)
        })
      )
    }
  }
  const notes = [
    `Apache Kafka ${KAFKA_VERSION}, one broker, heap 1 GB; ${options.partitions} partitions, acks=all, no compression`,
    'p99 without a rate is the queue within the client (32 MB of buffer): it goes with the throughput',
    'Kafka, flush.messages=1 gets a tenth of the records of each load',
    'broker CPU: user and system time of its process, the warm-up of each load included',
    ...ratioNotes(loads, measured)
  ]
  return { columns, rows: loads.flatMap(load => measured.filter(one => one.load === load)).map(rowOf), notes }
}

function requireRoom(directory: string, loads: readonly KafkaLoad[]): void {
  const written = loads.reduce((bytes, { records, recordBytes }) => bytes + records * recordBytes, 0)
  // A record is written twice here, to the journal and to its segment.
  const needed = 2 * written + SPARE_BYTES
  const free = freeBytes(directory)
  if (free >= needed) return
  throw new Error(`${formatBytes(needed)} of free disk are needed, ${formatBytes(free)} are there: see --megabytes`)
}

type Measure = (server: ServerProcess, address: Address) => Promise<void>

/** Starts a side, has it measured, and ends it; nothing of it is left. */
async function withSide(context: RunContext, programs: JavaPrograms, side: Side, measure: Measure): Promise<void> {
  if (!side.isOurs) return withKafka(context, programs, measure)
  const flags = ['--bind-kafka', '127.0.0.1:0']
  await withBroker(context, folder, { fillAheadBytes: null, flags }, async broker => {
    if (broker.kafkaAddress === null) throw new Error('the broker has no listener of the Kafka protocol')
    await waitForFill(context, broker, join(context.workDir, folder))
    await measure(broker, broker.kafkaAddress)
  })
}

async function withKafka(context: RunContext, programs: JavaPrograms, measure: Measure): Promise<void> {
  const directory = join(context.workDir, folder)
  mkdirSync(directory)
  try {
    const server = await startKafka(programs, directory)
    context.others.add(server)
    try {
      await measure(server, server.address)
    } finally {
      await server.stop()
      context.others.delete(server)
    }
  } finally {
    removeSettled(context.workDir, directory)
  }
}

interface SideRun {
  readonly context: RunContext
  readonly programs: JavaPrograms
  readonly side: Side
  readonly round: number
  readonly server: ServerProcess
  readonly address: Address
}

/** All loads on one broker: a produce each and, where the load has one, a consume of the same topic. */
async function measureSide(run: SideRun, loads: readonly KafkaLoad[], add: (one: Measurement) => void): Promise<void> {
  const { context, programs, side, round, server, address } = run
  const { partitions } = context.options
  const { configs } = side
  await createTopic(address, { name: 'warm-up', partitions, configs: {} })
  const warmUp = { recordBytes: 256, warmUpRecords: 1, records: WARM_UP_RECORDS, rate: null, properties: [] }
  await runProducer(programs, address, { ...warmUp, topic: 'warm-up' })
  for (const [index, load] of loads.entries()) {
    const topic = `load-${index}`
    await createTopic(address, { name: topic, partitions, configs })
    const part = loadOf(side, load)
    const { result: produced, cpuSeconds } = await withCpu(server, () =>
      runProducer(programs, address, { ...part, topic })
    )
    const base = { load, side, round }
    add({ ...base, kind: 'produce', ...produced, cpuMicroseconds: perRecord(cpuSeconds, part.records) })
    if (load.rate !== null || !side.isRead) continue
    const { result: consumed, cpuSeconds: readSeconds } = await withCpu(server, () =>
      runConsumer(programs, address, topic, load.records)
    )
    const unknown = { p50Ms: null, p99Ms: null, maxMs: null }
    add({ ...base, kind: 'consume', ...consumed, ...unknown, cpuMicroseconds: perRecord(readSeconds, load.records) })
  }
}

async function withCpu<Result>(
  { pid }: ServerProcess,
  act: () => Promise<Result>
): Promise<{ readonly result: Result; readonly cpuSeconds: number | null }> {
  const before = processCpuSeconds(pid)
  const result = await act()
  const after = processCpuSeconds(pid)
  return { result, cpuSeconds: before === null || after === null ? null : after - before }
}

function perRecord(seconds: number | null, records: number): number | null {
  return seconds === null ? null : (seconds * 1e6) / records
}
