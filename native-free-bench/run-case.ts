/**
 * Runs one case of one round: a fresh broker on a fresh directory, the topic, the load, the window, and away with it
 * all. Bare loops run with no broker beside them. Main thread.
 */
import { closeSync, fsyncSync, mkdirSync, openSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { startBroker, startMinimalServer } from './broker-process.ts'
import type { BrokerOptions, BrokerProcess, JournalTotals } from './broker-process.ts'
import { allocatedBytes, watchFill } from './fill-watch.ts'
import { HttpJson } from './http-json.ts'
import { DiskCalm, LIMIT_LARGE_BYTES, measureLimit } from './limit.ts'
import type { BrokerAddresses } from './load/connections.ts'
import { Faults } from './load/connections.ts'
import { openConsumeLoad } from './load/consume-load.ts'
import type { ConsumeLoad } from './load/consume-load.ts'
import type { Load } from './load/load.ts'
import { perSecond } from './load/load.ts'
import { MixedLoad } from './load/mixed-load.ts'
import { openProduceLoad } from './load/produce-load.ts'
import type { ProduceLoad } from './load/produce-load.ts'
import { runWindow } from './load/window.ts'
import type { WindowResult } from './load/window.ts'
import type { WindowSums } from './meter.ts'
import type { BenchOptions } from './options.ts'
import type { BrokerCase, DiskCase } from './plan.ts'
import type { RoundResult } from './results.ts'
import { formatBytes } from '../src/base/amounts.ts'

/** What can be ended at once. */
export interface Killable {
  kill(): Promise<void>
}

/** What the cases of a run share. */
export interface RunContext {
  readonly options: BenchOptions
  /** Folder of this run; removed by main. */
  readonly workDir: string
  readonly limitPath: string
  readonly calm: DiskCalm
  /** The broker that runs at the moment, for main to end when the run is broken off. */
  current: BrokerProcess | null
  /** Other processes that run at the moment, to be ended likewise. */
  readonly others: Set<Killable>
  /** Mean bytes per sync that brokers reported, newest last. */
  readonly bytesPerSync: number[]
  /** Journal budgets that brokers reported, by the number of shards asked for (0: none). */
  readonly budgets: Map<number, number>
}

/** Share of the filled slots that keys and values may use; the rest is for headers and group directories. */
export const FILL_SHARE = 0.8
/** Slots are filled at 100 MB/s at least; this is the patience on top. */
const FILL_BYTES_PER_MS = 100_000
const FILL_PATIENCE_MS = 5000
/** A window shorter than that is too short to be called steady. */
export const SHORT_WINDOW_SECONDS = 0.5
const topic = 'bench'

/** A window of the bare loop. */
export async function runDiskCase(context: RunContext, one: DiskCase): Promise<RoundResult> {
  const { options } = context
  const notes = DiskCalm.notes(await context.calm.wait())
  let writeBytes = one.writeBytes
  if (writeBytes === null) {
    const reported = context.bytesPerSync.at(-1)
    writeBytes = Math.round(reported ?? estimateBytesPerSync(options))
    notes.push(
      `${formatBytes(writeBytes)} per sync ${reported === undefined ? '(an estimate)' : '(as the broker reported)'}`
    )
  }
  const sums = await measureLimit(context.limitPath, writeBytes, {
    warmUpMs: options.warmUpMs,
    windowMs: options.windowMs
  })
  return { ...ratesOf(sums), clientCores: null, brokerCores: null, refusals: 0, extras: { writeBytes }, notes }
}

/** Half of all that can be in flight: what a group holds when it gathers while the one before is synced. */
function estimateBytesPerSync(options: BenchOptions): number {
  const inFlight = options.connections * options.inFlight * options.records * options.valueBytes
  return Math.min(2 * LIMIT_LARGE_BYTES, Math.max(4096, inFlight / 2))
}

/** A window of a load on a broker. */
export async function runBrokerCase(context: RunContext, one: BrokerCase): Promise<RoundResult> {
  const { options } = context
  if (options.broker !== null) {
    const note = 'a broker that was running already: its slots, data and CPU are unknown'
    return measure(context, one, { addresses: options.broker, pid: null, bytesMax: Infinity, notes: [note] })
  }
  const dataDir = join(context.workDir, 'data')
  mkdirSync(dataDir)
  try {
    return await runOnFreshBroker(context, one, dataDir)
  } finally {
    removeSettled(context.workDir, dataDir)
  }
}

async function runOnFreshBroker(context: RunContext, one: BrokerCase, dataDir: string): Promise<RoundResult> {
  const { fillAheadBytes } = context.options
  const broker = await startServer(one, dataDir, fillAheadBytes)
  context.current = broker
  let result: RoundResult
  let totals: JournalTotals | null
  try {
    const filledBytes = await waitForFill(context, broker, dataDir)
    const notes = DiskCalm.notes(await context.calm.wait())
    // Whole slots are filled, so some less than asked for is usual; the window is cut to what is there.
    if (filledBytes < fillAheadBytes / 2) {
      notes.push(`only ${formatBytes(filledBytes)} of slots were filled when the load began`)
    }
    const bytesMax = Math.min(filledBytes, fillAheadBytes) * FILL_SHARE
    result = await measure(context, one, { addresses: broker.addresses, pid: broker.pid, bytesMax, notes })
  } finally {
    totals = await broker.stop()
    context.current = null
  }
  if (totals === null || totals.syncs === 0) return result
  const bytesPerSync = totals.journalBytes / totals.syncs
  // One-record latency says nothing about the groups that a throughput load makes.
  if (one.kind === 'produce' && one.minimal === null && one.records * one.connections * one.inFlight > 1)
    context.bytesPerSync.push(bytesPerSync)
  const notes = [...result.notes]
  if (totals.slotsUnfilled > 0) notes.push('slots were written that had not been filled before (raise --fill-ahead)')
  return { ...result, extras: { ...result.extras, bytesPerSync }, notes }
}

/** What the case is about: a broker of ours, or the minimal server on a file of the size of the filled slots. */
function startServer(one: BrokerCase, dataDir: string, fillAheadBytes: number): Promise<BrokerProcess> {
  if (one.minimal !== null) return startMinimalServer({ dataDir, mode: one.minimal, fileBytes: fillAheadBytes })
  const flags = one.engine === null ? [] : ['--http-engine', one.engine]
  return startBroker({ dataDir, shards: one.shards, fillAheadBytes, flags })
}

/** The broker of a study, on a directory of its own: started, measured, stopped, removed. @param folder of the run's folder. */
export async function withBroker<Result>(
  context: RunContext,
  folder: string,
  options: Pick<BrokerOptions, 'fillAheadBytes' | 'flags' | 'descriptorsMax'>,
  measureBroker: (broker: BrokerProcess) => Promise<Result>
): Promise<Result> {
  const dataDir = join(context.workDir, folder)
  mkdirSync(dataDir)
  try {
    const broker = await startBroker({ ...options, dataDir, shards: context.options.shards[0] ?? null })
    context.current = broker
    try {
      if (options.fillAheadBytes !== null) await waitForFill(context, broker, dataDir)
      return await measureBroker(broker)
    } finally {
      await broker.stop()
      context.current = null
    }
  } finally {
    removeSettled(context.workDir, dataDir)
  }
}

/** @param wantedBytes less than --fill-ahead, if so. @returns bytes of slots that are filled when the load begins. */
export function waitForFill(
  context: RunContext,
  broker: BrokerProcess,
  dataDir: string,
  wantedBytes = Infinity
): Promise<number> {
  const wanted = Math.min(context.options.fillAheadBytes, wantedBytes)
  return watchFill({
    wantedBytes: wanted * FILL_SHARE,
    timeoutMs: FILL_PATIENCE_MS + wanted / FILL_BYTES_PER_MS,
    reportedBytes: () => broker.filledBytes(),
    allocatedBytes: () => allocatedBytes(dataDir)
  })
}

interface Target {
  readonly addresses: BrokerAddresses
  readonly pid: number | null
  readonly bytesMax: number
  readonly notes: readonly string[]
}

async function measure(context: RunContext, one: BrokerCase, target: Target): Promise<RoundResult> {
  const name = target.pid === null ? `${topic}-${Date.now().toString(36)}` : topic
  const http = new HttpJson(target.addresses.http, 1)
  try {
    await http.ask('POST', '/topics', { name, partitions: one.partitions })
    const { warmUpMs, windowMs } = context.options
    const writes = one.kind !== 'consume'
    const load = await openLoad(context, one, target, name)
    try {
      const window = await runWindow(load, {
        warmUpMs,
        windowMs,
        bytesMax: writes ? target.bytesMax : Infinity,
        brokerPid: target.pid
      })
      return roundOf(window, target.notes)
    } finally {
      load.close()
    }
  } finally {
    http.close()
  }
}

async function openLoad(context: RunContext, one: BrokerCase, target: Target, name: string): Promise<Load> {
  const faults = new Faults()
  if (one.kind === 'produce') return openProducers(one, target, name, faults)
  if (one.kind === 'consume') {
    await fillTopic(context, one, target, name)
    return openReaders(context, one, { target, name, mode: 'drain', faults })
  }
  const readers = await openReaders(context, one, { target, name, mode: 'tail', faults })
  try {
    return new MixedLoad(await openProducers(one, target, name, faults), readers)
  } catch (error) {
    readers.close()
    throw error
  }
}

/** Writes what a consume will read: as long as a window lasts, in half of the filled slots. */
async function fillTopic(context: RunContext, one: BrokerCase, target: Target, name: string): Promise<void> {
  const load = await openProducers({ ...one, rate: null }, target, name, new Faults())
  try {
    const windowMs = context.options.windowMs
    await runWindow(load, { warmUpMs: 0, windowMs, bytesMax: target.bytesMax / 2, brokerPid: null })
  } finally {
    load.close()
  }
}

function openProducers(one: BrokerCase, target: Target, name: string, faults: Faults): Promise<ProduceLoad> {
  const { protocol, partitions, connections, inFlight, records, valueBytes, keyed, rate } = one
  const shape = { topic: name, records, valueBytes, keyed }
  const { addresses } = target
  return openProduceLoad({ protocol, addresses, shape, partitions, connections, inFlight, rate }, faults)
}

/** Tail readers take half as many connections as the producers beside them. */
function openReaders(
  context: RunContext,
  one: BrokerCase,
  place: { readonly target: Target; readonly name: string; readonly mode: 'drain' | 'tail'; readonly faults: Faults }
): Promise<ConsumeLoad> {
  const { protocol, partitions, inFlight } = one
  const connections = place.mode === 'tail' ? Math.ceil(one.connections / 2) : one.connections
  // The key is `key-` and six digits where there is one (drivers/records.ts).
  const recordBytes = one.valueBytes + (one.keyed ? 10 : 0)
  const { addresses } = place.target
  const { fetchBytes } = context.options
  const { name, mode } = place
  return openConsumeLoad(
    { protocol, addresses, topic: name, partitions, connections, inFlight, recordBytes, fetchBytes, mode },
    place.faults
  )
}

function roundOf(window: WindowResult, notes: readonly string[]): RoundResult {
  const all = [...notes]
  if (window.endedBy === 'bytes' && window.sums.seconds < SHORT_WINDOW_SECONDS) {
    all.push(
      `a window lasted ${window.sums.seconds.toFixed(2)} s only: the filled slots were used up (raise --fill-ahead)`
    )
  }
  if (window.refusals > 0) all.push(`${window.refusals} requests were refused; the first: ${window.firstRefusal}`)
  const { clientCores, brokerCores, refusals, extras } = window
  return { ...ratesOf(window.sums), clientCores, brokerCores, refusals, extras, notes: all }
}

/** The figures of a window per second. */
export function ratesOf(
  sums: WindowSums
): Pick<RoundResult, 'seconds' | 'requestsPerSecond' | 'recordsPerSecond' | 'bytesPerSecond' | 'latency' | 'slices'> {
  const { seconds, requests, records, bytes, latency, slices } = sums
  return {
    seconds,
    requestsPerSecond: perSecond(requests, seconds),
    recordsPerSecond: perSecond(records, seconds),
    bytesPerSecond: perSecond(bytes, seconds),
    latency,
    slices
  }
}

/**
 * Removes a directory and waits until the file system has committed that: a file system that discards freed blocks
 * would otherwise do so in the middle of the next window.
 */
export function removeSettled(parent: string, directory: string): void {
  rmSync(directory, { recursive: true, force: true })
  const fd = openSync(parent, 'r')
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}
