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
import { formatBench, type BenchReport } from './bench-report.ts'
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
/** The same key press, heard twice. */
const ECHO_MS = 500

/** @returns ok, or refused if a request failed. @throws HttpClientError */
export async function runBench(options: BenchOptions, client: HttpClient, io: CliIo): Promise<ExitCode> {
  const interrupt = new AbortController()
  const hear = (): void => hearInterrupt(interrupt)
  process.on('SIGINT', hear).on('SIGTERM', hear)
  try {
    const peers = await openPeers(options, client)
    if (typeof peers === 'string') {
      await print(io.stderr, `millrace: ${peers}\n`)
      return exitCodes.unreachable
    }
    try {
      const report = await withTopic(options, client, topic =>
        measure({ options, client, peers, topic, io }, interrupt.signal)
      )
      await print(io.stdout, options.isJson ? `${JSON.stringify(report)}\n` : formatBench(report))
      const errors = report.produce.errors + (report.consume?.errors ?? 0)
      return errors === 0 ? exitCodes.ok : exitCodes.refused
    } finally {
      for (const peer of peers) peer.close()
    }
  } finally {
    process.off('SIGINT', hear).off('SIGTERM', hear)
  }
}

/**
 * The first one ends the load, and the topic is deleted. A later one ends the process; one at once is an echo of the same
 * key, which a terminal and a parent process both deliver.
 */
function hearInterrupt(interrupt: AbortController): void {
  const { signal } = interrupt
  if (!signal.aborted) interrupt.abort(performance.now())
  else if (performance.now() - Number(signal.reason) > ECHO_MS) process.exit(exitCodes.refused)
}

/** @returns why there are none, in words. */
async function openPeers({ binary, connections }: BenchOptions, client: HttpClient): Promise<LoadPeer[] | string> {
  if (binary === null) return Array.from({ length: connections }, () => httpPeer(client))
  try {
    await checkEs01(binary)
  } catch (error) {
    if (!(error instanceof Es01Error)) throw error
    return `${error.message}. Name the binary listener with --binary, or measure over HTTP with --http`
  }
  return Array.from({ length: connections }, () => es01Peer(binary))
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
  const starts = await endOffsets(client, topic.name)
  const meter = new LoadMeter()
  if (recordsMax === Number.POSITIVE_INFINITY) {
    await runProduce(peers, shape, { timeoutMs: WARM_UP_MS, recordsMax, signal }, meter)
    meter.restart()
  }
  const bounds = { timeoutMs: seconds * 1000, recordsMax, signal }
  const produce = await watched(meter, 'written', io, () => runProduce(peers, shape, bounds, meter))
  let consume: LoadFigures | null = null
  if (options.consumes) {
    const ends = await endOffsets(client, topic.name)
    const spans: ReadSpan[] = ends.map((end, partition) => ({ partition, start: starts[partition] ?? 0, end }))
    const readMeter = new LoadMeter()
    consume = await watched(readMeter, 'read', io, () => runConsume(peers, shape, spans, bounds, readMeter))
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
    consume
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
      io.stderr.write(`\r\x1b[K${Math.round(seconds)} s: ${formatCount(records)} records ${done}, ${rate}${failed}`)
    }
  } catch (error) {
    if (!signal.aborted) throw error
    // The loop is over; its line makes room for the figures.
    io.stderr.write('\r\x1b[K')
  }
}
