/**
 * A run of `millrace bench`: makes a topic, puts the broker under load, prints, deletes the topic. Main thread.
 * Must never: delete a topic that it did not make, or leave one behind that it was not asked to keep.
 */
import { randomBytes } from 'node:crypto'
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
    if (typeof peers === 'string') {
      await print(io.stderr, `millrace: ${peers}\n`)
      return exitCodes.unreachable
    }
    try {
      const report = await withTopic(options, client, topic => {
        const { signal } = interrupt
        signal.addEventListener('abort', () => io.stderr.write(endingText(options, topic, io)), { once: true })
        return measure({ options, client, peers, topic, io }, signal)
      })
      await print(io.stdout, options.isJson ? `${JSON.stringify(report)}\n` : formatBench(report))
      const errors = report.produce.errors + (report.consume?.errors ?? 0)
      return errors === 0 ? exitCodes.ok : exitCodes.refused
    } finally {
      for (const peer of peers) peer.close()
    }
  } finally {
    interrupt.forget()
  }
}

/** At the first Ctrl-C. A second one ends the process as it would without us. */
function endingText({ topic: named, keepsTopic }: BenchOptions, topic: BenchTopic, io: CliIo): string {
  const isLeft = named === null && !keepsTopic
  const start = io.stderr.isTTY === true ? CLEAR_LINE : ''
  return `${start}millrace: ending; Ctrl-C again ends at once${isLeft ? `, and leaves the topic '${topic.name}'` : ''}\n`
}

/** @returns why there are none, in words. */
async function openPeers({ binary, connections }: BenchOptions, client: HttpClient): Promise<LoadPeer[] | string> {
  if (binary === null) return Array.from({ length: connections }, () => httpPeer(client))
  try {
    await checkEs01(binary)
  } catch (error) {
    if (!(error instanceof Es01Error)) throw error
    return `${connectProblem(error, binary)}. Name the binary listener with --binary, or measure over HTTP with --http`
  }
  return Array.from({ length: connections }, () => es01Peer(binary))
}

/** node:tls tells of a side that speaks no TLS in words about its sources; a broker that wants TLS just closes. */
function connectProblem({ kind, message }: Es01Error, { host, port, tls }: ClientOptions): string {
  if (isPlainPeer(message)) {
    return `what listens at ${host}:${port} does not speak TLS, and --broker is an https address`
  }
  const mayWantTls = tls === undefined && kind === 'connection' && message.includes('closed the connection')
  return mayWantTls ? `${message}; if it wants TLS, write https:// in --broker` : message
}

interface BenchTopic {
  readonly name: string
  readonly partitions: number
}

/** The topic is there during `action`; one that was made for it is gone afterwards, whatever happened. */
async function withTopic<Result>(
  { topic: named, keepsTopic, partitions }: BenchOptions,
  client: HttpClient,
  action: (topic: BenchTopic) => Promise<Result>
): Promise<Result> {
  const name = named ?? `millrace-bench-${randomBytes(4).toString('hex')}`
  const isMade = await makeTopic(client, name, partitions, named === null)
  try {
    return await action(isMade ? { name, partitions } : await existing(client, name))
  } finally {
    if (named === null && !keepsTopic) await client.deleteTopic(name)
  }
}

/** @returns false if there is one of that name, which is as good where the user named it. */
async function makeTopic(client: HttpClient, name: string, partitions: number, mustBeNew: boolean): Promise<boolean> {
  try {
    await client.createTopic(name, partitions, {})
    return true
  } catch (error) {
    if (mustBeNew || !(error instanceof HttpClientError) || error.code !== 'TOPIC_EXISTS') throw error
    return false
  }
}

async function existing(client: HttpClient, name: string): Promise<BenchTopic> {
  const { body } = await client.describeTopic(name)
  return { name, partitions: body.partitions.length }
}

interface BenchParts {
  readonly options: BenchOptions
  readonly client: HttpClient
  readonly peers: readonly LoadPeer[]
  readonly topic: BenchTopic
  readonly io: CliIo
}

async function measure(parts: BenchParts, signal: AbortSignal): Promise<BenchReport> {
  const { options, client, peers, topic, io } = parts
  const { valueBytes, keyed, batchRecords, inFlight, recordsMax, seconds } = options
  const shape: LoadShape = {
    topic: topic.name,
    partitions: topic.partitions,
    valueBytes,
    keyed,
    batchRecords,
    inFlight
  }
  const meter = new LoadMeter()
  if (recordsMax === Number.POSITIVE_INFINITY) {
    await runProduce(peers, shape, { timeoutMs: WARM_UP_MS, recordsMax, signal }, meter)
  }
  // What is counted is what is read back: the records of the warm-up are neither.
  const starts = await endOffsets(client, topic.name)
  meter.restart()
  const bounds = { timeoutMs: seconds * 1000, recordsMax, signal }
  const produce = await watched(meter, 'written', io, () => runProduce(peers, shape, bounds, meter))
  let consume: LoadFigures | null = null
  let recordsToRead: number | null = null
  if (options.consumes) {
    const ends = await endOffsets(client, topic.name)
    const spans: ReadSpan[] = ends.map((end, partition) => ({ partition, start: starts[partition] ?? 0, end }))
    recordsToRead = spans.reduce((sum, { start, end }) => sum + end - start, 0)
    const readMeter = new LoadMeter()
    const readSeconds = Math.max(READ_SECONDS_MIN, READ_TIME_FACTOR * produce.seconds)
    const readBounds = { ...bounds, timeoutMs: readSeconds * 1000 }
    consume = await watched(readMeter, 'read', io, () => runConsume(peers, shape, spans, readBounds, readMeter))
  }
  return {
    protocol: options.binary === null ? 'http' : 'es01',
    asksGzip: options.binary?.gzip === true,
    ...shape,
    connections: options.connections,
    isInterrupted: signal.aborted,
    durability: await readDurability(client),
    host: describeHost(),
    produce,
    consume,
    recordsToRead
  }
}

/** One past the last record, by partition. */
async function endOffsets(client: HttpClient, topic: string): Promise<number[]> {
  const { body } = await client.describeTopic(topic)
  return body.partitions.map(partition => Number(partition.end_offset))
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
