/**
 * A run of `millrace bench`: makes a topic, puts the broker under load, prints, deletes the topic. Main thread.
 * What was measured is printed, whatever becomes of the broker; what went wrong beside is told after it, on stderr.
 */
import { setInterval as every } from 'node:timers/promises'
import { formatBytes, formatCount } from '../base/amounts.ts'
import { HttpClientError, type HttpClient } from '../client/http/http-client.ts'
import type { ClientOptions } from '../client/binary/index.ts'
import { Es01Error } from '../client/es01/client.ts'
import { describeHost } from '../client/load/host.ts'
import { runConsume, runProduce, type LoadShape, type ReadSpan } from '../client/load/load.ts'
import { LoadMeter, type LoadFigures } from '../client/load/meter.ts'
import { checkEs01, es01Peer, httpPeer, type LoadPeer } from '../client/load/peer.ts'
import { isPlainPeer } from '../client/tls.ts'
import { formatBench, type BenchReport } from './bench-report.ts'
import { openBenchTopic, removeBenchTopic, type BenchTopic } from './bench-topic.ts'
import { failureJson, KEY_HINT } from './failures.ts'
import { listenForInterrupt } from './interrupt.ts'
import { exitCodes, print, type CliIo, type ExitCode } from './io.ts'

export interface BenchOptions {
  /** The binary listener and how to speak with it; null: over HTTP. */
  readonly binary: ClientOptions | null
  /** null: one of our own. */
  readonly topic: string | null
  readonly keepsTopic: boolean
  readonly recordsMax: number
  readonly seconds: number
  readonly valueBytes: number
  readonly batchRecords: number
  readonly connections: number
  readonly inFlight: number
  readonly partitions: number
  readonly keyed: boolean
  readonly consumes: boolean
  readonly isJson: boolean
}

/** Before a window by time: connections, code and caches are new. */
const WARM_UP_MS = 500
const PROGRESS_MS = 500
/** For requests that are under way when the time is over, or at Ctrl-C. */
const DRAIN_MS = 5_000
/** At a terminal: the line of progress is written anew. */
const CLEAR_LINE = '\r\x1b[K'
/** Reading back ends after so many times the time of writing, and not before READ_SECONDS_MIN: a read can be the slower of the two. */
const READ_TIME_FACTOR = 10
const READ_SECONDS_MIN = 60

/** @returns ok, or refused if a request failed. @throws HttpClientError */
export async function runBench(options: BenchOptions, client: HttpClient, io: CliIo): Promise<ExitCode> {
  const interrupt = listenForInterrupt(io)
  try {
    const peers = await openPeers(options, client)
    if ('problem' in peers) return await tellNoPeers(peers, options, io)
    try {
      const topic = await openBenchTopic(client, options)
      return await measureAndTell({ options, client, peers, topic, io }, interrupt.signal)
    } finally {
      for (const peer of peers) peer.close()
    }
  } finally {
    interrupt.forget()
  }
}

async function measureAndTell(parts: BenchParts, signal: AbortSignal): Promise<ExitCode> {
  const { options, client, topic, io } = parts
  const failures: HttpClientError[] = []
  let report: BenchReport | null = null
  try {
    report = await measure(parts, signal, failures)
  } finally {
    const left = await removeBenchTopic(client, topic)
    if (left !== null) failures.push(left)
    if (report !== null) await print(io.stdout, options.isJson ? `${JSON.stringify(report)}\n` : formatBench(report))
    for (const failure of failures) {
      const text = options.isJson ? failureJson(failure, exitCodes.refused) : `millrace: ${failure.reason}\n`
      await print(io.stderr, text)
    }
  }
  const errors = report.produce.errors + (report.consume?.errors ?? 0)
  return errors === 0 && failures.length === 0 ? exitCodes.ok : exitCodes.refused
}

/** At the first Ctrl-C. A second one ends the process as it would without us. */
function endingText(topic: BenchTopic, underWay: number, io: CliIo): string {
  const start = io.stderr.isTTY === true ? CLEAR_LINE : ''
  const waits = underWay === 0 ? '' : `, waiting for ${underWay} request(s), ${DRAIN_MS / 1000} s at most`
  const leaves = topic.isOurs ? `, and leaves the topic '${topic.name}'` : ''
  return `${start}millrace: ending${waits}; Ctrl-C again ends at once${leaves}\n`
}

/** No connection to the binary listener. */
interface NoPeers {
  readonly problem: string
  readonly error: Es01Error
  readonly binary: ClientOptions
}

async function openPeers({ binary, connections }: BenchOptions, client: HttpClient): Promise<LoadPeer[] | NoPeers> {
  if (binary === null) return Array.from({ length: connections }, () => httpPeer(client))
  try {
    await checkEs01(binary)
  } catch (error) {
    if (!(error instanceof Es01Error)) throw error
    // In a handshake only the key is refused.
    const hint =
      error.kind === 'refused' ? KEY_HINT : '. Name the binary listener with --binary, or measure over HTTP with --http'
    return { problem: `${connectProblem(error, binary)}${hint}`, error, binary }
  }
  return Array.from({ length: connections }, () => es01Peer(binary))
}

async function tellNoPeers(
  { problem, error, binary }: NoPeers,
  { isJson }: BenchOptions,
  io: CliIo
): Promise<ExitCode> {
  const exitCode = error.kind === 'refused' ? exitCodes.refused : exitCodes.unreachable
  const url = `es01://${binary.host}:${binary.port}`
  const failure = { reason: problem, method: 'CONNECT', url, status: 0, code: null, written: error.written }
  await print(io.stderr, isJson ? failureJson(failure, exitCode) : `millrace: ${problem}\n`)
  return exitCode
}

/** Of TLS in the words of the command line, not of the library; a broker that wants it just closes. */
function connectProblem({ kind, message, cause }: Es01Error, { host, port, tls }: ClientOptions): string {
  if (cause instanceof Error && isPlainPeer(cause.message)) {
    return `what listens at ${host}:${port} does not speak TLS, and --broker is an https address`
  }
  const mayWantTls = tls === undefined && kind === 'connection' && message.includes('closed the connection')
  return mayWantTls ? `${message}; if it wants TLS, write https:// in --broker` : message
}

interface BenchParts {
  readonly options: BenchOptions
  readonly client: HttpClient
  readonly peers: readonly LoadPeer[]
  readonly topic: BenchTopic
  readonly io: CliIo
}

/** @param failures hears what kept the records from being read back. @throws HttpClientError before the load only. */
async function measure(parts: BenchParts, signal: AbortSignal, failures: HttpClientError[]): Promise<BenchReport> {
  const { options, client, peers, topic, io } = parts
  const { valueBytes, keyed, batchRecords, inFlight, recordsMax, seconds } = options
  const { name, partitions } = topic
  const shape: LoadShape = { topic: name, partitions, valueBytes, keyed, batchRecords, inFlight }
  // Asked for now: at the end the broker may be gone.
  const durability = await readDurability(client)
  const meters = { produce: new LoadMeter(), consume: new LoadMeter() }
  const { produce: meter } = meters
  const tellEnding = (): void => {
    io.stderr.write(endingText(topic, meters.produce.underWay + meters.consume.underWay, io))
  }
  signal.addEventListener('abort', tellEnding, { once: true })
  const bounds = { timeoutMs: seconds * 1000, recordsMax, signal, drainMs: DRAIN_MS }
  if (recordsMax === Number.POSITIVE_INFINITY) {
    await runProduce(peers, shape, { ...bounds, timeoutMs: WARM_UP_MS }, meter)
  }
  // What is counted is what is read back: the records of the warm-up are neither.
  const starts = options.consumes ? await endOffsets(client, name, failures) : null
  meter.restart()
  const produce = await watched(meter, 'written', io, () => runProduce(peers, shape, bounds, meter))
  const ends = starts === null ? null : await endOffsets(client, name, failures)
  const spans = ends?.map((end, partition): ReadSpan => ({ partition, start: starts?.[partition] ?? 0, end })) ?? null
  let consume: LoadFigures | null = null
  if (spans !== null) {
    const readSeconds = Math.max(READ_SECONDS_MIN, READ_TIME_FACTOR * produce.seconds)
    const readBounds = { ...bounds, timeoutMs: readSeconds * 1000 }
    const { consume: meter } = meters
    consume = await watched(meter, 'read', io, () => runConsume(peers, shape, spans, readBounds, meter))
  }
  return {
    protocol: options.binary === null ? 'http' : 'es01',
    asksGzip: options.binary?.gzip === true,
    ...shape,
    connections: options.connections,
    isInterrupted: signal.aborted,
    durability,
    host: describeHost(),
    produce,
    consume,
    recordsToRead: spans?.reduce((sum, { start, end }) => sum + end - start, 0) ?? null
  }
}

/** One past the last record, by partition; null if the broker does not say. @param failures hears why. */
async function endOffsets(client: HttpClient, topic: string, failures: HttpClientError[]): Promise<number[] | null> {
  try {
    const { body } = await client.describeTopic(topic)
    return body.partitions.map(partition => Number(partition.end_offset))
  } catch (error) {
    if (!(error instanceof HttpClientError)) throw error
    failures.push(error.withReason(`nothing is read back: ${error.reason}`))
    return null
  }
}

/** The broker says of itself only where it acknowledges ahead of the sync. */
async function readDurability(client: HttpClient): Promise<'synced' | 'deferred'> {
  const { body } = await client.call<{ readonly durability?: string }>('GET', '/readyz')
  return body.durability === 'deferred' ? 'deferred' : 'synced'
}

/** Runs a loop and shows at a terminal how it goes. */
async function watched(meter: LoadMeter, done: string, io: CliIo, run: () => Promise<void>): Promise<LoadFigures> {
  const ended = new AbortController()
  const shown = io.stderr.isTTY === true ? showProgress(meter, done, io, ended.signal) : Promise.resolve()
  try {
    await run()
    return meter.read()
  } finally {
    ended.abort()
    await shown
  }
}

async function showProgress(meter: LoadMeter, done: string, io: CliIo, signal: AbortSignal): Promise<void> {
  try {
    for await (const _ of every(PROGRESS_MS, undefined, { signal })) {
      const { seconds, records, bytesPerSecond, recordsPerSecond, errors } = meter.read()
      const failed = errors === 0 ? '' : `, ${errors} failed`
      const rate = `${formatCount(recordsPerSecond)} records/s, ${formatBytes(bytesPerSecond)}/s`
      io.stderr.write(
        `${CLEAR_LINE}${Math.round(seconds)} s: ${formatCount(records)} records ${done}, ${rate}${failed}`
      )
    }
  } catch (error) {
    if (!signal.aborted) throw error
    // The loop is over; its line makes room for the figures.
    io.stderr.write(CLEAR_LINE)
  }
}
