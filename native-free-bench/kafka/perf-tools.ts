/**
 * Kafka's own load generators, `kafka-producer-perf-test` and `kafka-consumer-perf-test`, and what they print. The first is
 * a closed loop: it sends as fast as 32 MB of buffer let it, so its latency is mostly the queue within the client, unless it
 * is given a rate. Main thread.
 */
import type { Address } from '../drivers/driver.ts'
import type { JavaPrograms } from './java.ts'

/** One that runs longer is taken for stuck. */
const TOOL_TIMEOUT_MS = 1_800_000

export interface ProducerRun {
  readonly topic: string
  readonly recordBytes: number
  /** Counted in `records`, and left out of the figures. */
  readonly warmUpRecords: number
  readonly records: number
  /** Records a second; null: as many as possible. */
  readonly rate: number | null
  /** Of the client, beside acks=all. */
  readonly properties: readonly string[]
}

/** What `kafka-producer-perf-test` says after the warm-up. Its MB are MiB. */
export interface ProducerFigures {
  readonly recordsPerSecond: number
  readonly mibPerSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly maxMs: number
}

/** What `kafka-consumer-perf-test` says, without the time that joining its group took. */
export interface ConsumerFigures {
  readonly recordsPerSecond: number
  readonly mibPerSecond: number
}

/** @throws Error when a record was not acknowledged. */
export async function runProducer(
  programs: JavaPrograms,
  { host, port }: Address,
  run: ProducerRun
): Promise<ProducerFigures> {
  const { topic, recordBytes, warmUpRecords, records, rate, properties } = run
  const program = ['org.apache.kafka.tools.ProducerPerformance', '--bootstrap-server', `${host}:${port}`]
  program.push('--topic', topic, '--num-records', String(records), '--warmup-records', String(warmUpRecords))
  program.push('--record-size', String(recordBytes), '--throughput', String(rate ?? -1))
  program.push('--command-property', 'acks=all', ...properties)
  return parseProducer(await programs.run(program, TOOL_TIMEOUT_MS), records)
}

/** Reads a topic from its start. @throws Error when records are missing. */
export async function runConsumer(
  programs: JavaPrograms,
  { host, port }: Address,
  topic: string,
  records: number
): Promise<ConsumerFigures> {
  const program = ['org.apache.kafka.tools.ConsumerPerformance', '--bootstrap-server', `${host}:${port}`]
  program.push('--topic', topic, '--num-records', String(records), '--hide-header')
  return parseConsumer(await programs.run(program, TOOL_TIMEOUT_MS), records)
}

const producerLine =
  /^\d+ steady state records sent, ([\d.]+) records\/sec \(([\d.]+) MB\/sec\), [\d.]+ ms avg latency, ([\d.]+) ms max latency, (\d+) ms 50th, \d+ ms 95th, (\d+) ms 99th/m

/** @param records that were to be sent: a record that is not acknowledged is not counted by the tool. */
export function parseProducer(output: string, records: number): ProducerFigures {
  const sent = [...output.matchAll(/^(\d+) records sent, .* 99th/gm)].at(-1)
  const steady = producerLine.exec(output)
  if (sent === undefined || steady === null) throw new Error(`kafka-producer-perf-test printed no result:\n${output}`)
  if (Number(sent[1]) !== records) throw new Error(`${sent[1]} of ${records} records were acknowledged:\n${output}`)
  const [recordsPerSecond, mibPerSecond, maxMs, p50Ms, p99Ms] = steady.slice(1).map(Number)
  return {
    recordsPerSecond: recordsPerSecond ?? Number.NaN,
    mibPerSecond: mibPerSecond ?? Number.NaN,
    p50Ms: p50Ms ?? Number.NaN,
    p99Ms: p99Ms ?? Number.NaN,
    maxMs: maxMs ?? Number.NaN
  }
}

/** start, end, MiB, MiB/s, records, records/s, ms of rebalancing, ms of fetching, MiB/s and records/s of those. */
export function parseConsumer(output: string, records: number): ConsumerFigures {
  const fields = output
    .split('\n')
    .map(line => line.split(',').map(field => field.trim()))
    .find(({ length }) => length === 10)
  if (fields === undefined) throw new Error(`kafka-consumer-perf-test printed no result:\n${output}`)
  if (Number(fields[4]) < records) throw new Error(`${fields[4]} of ${records} records were read:\n${output}`)
  return { recordsPerSecond: Number(fields[9]), mibPerSecond: Number(fields[8]) }
}
