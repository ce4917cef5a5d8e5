/**
 * One round of `sustained` or `cleaning`: a fresh broker with a known journal budget, and a load that goes on until the
 * budget has been written several times over. `cleaning` is the same load on a topic that keeps little, with a
 * compacted topic written beside it and both cleaners at work. Main thread.
 */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { startBroker } from './broker-process.ts'
import type { BrokerProcess, JournalTotals } from './broker-process.ts'
import { CompactedTopic, cleanedTopicConfig, cleaningFlags } from './cleaning.ts'
import { HttpJson } from './http-json.ts'
import { DiskCalm } from './limit.ts'
import { Faults } from './load/connections.ts'
import { MixedLoad } from './load/mixed-load.ts'
import { perSecond } from './load/load.ts'
import { openProduceLoad } from './load/produce-load.ts'
import { runSustained } from './load/sustained.ts'
import type { SustainedResult } from './load/sustained.ts'
import { deviceBytesWritten, freeBytes } from './machine.ts'
import type { BrokerCase } from './plan.ts'
import type { RoundResult } from './results.ts'
import { FILL_SHARE, SHORT_WINDOW_SECONDS, ratesOf, removeSettled, waitForFill } from './run-case.ts'
import type { RunContext } from './run-case.ts'
import { hasSettledFiles } from './settled-files.ts'
import { formatBytes } from '../src/base/amounts.ts'

/** Settling begins at half the budget; headers and group directories come on top of keys and values. */
const BURST_SHARE = 0.45
/** Where half the budget has passed for certain. */
const SUSTAINED_SHARE = 0.6
/** Beside what is written: the journal itself, the broker's reserve, and some air. */
const SPARE_BUDGETS = 2.5
/** Four budgets of 3 GiB at the speed of a slow disk. */
const WINDOW_TIMEOUT_MS = 1_800_000
const MIB = 1024 * 1024
const topic = 'bench'

/** A round of one case. @throws Error when the disk is too small for it. */
export async function runSustainedCase(context: RunContext, one: BrokerCase): Promise<RoundResult> {
  const budgetBytes = await budgetOf(context, one)
  const needed = (context.options.budgets + SPARE_BUDGETS) * budgetBytes
  const free = freeBytes(context.workDir)
  if (free < needed) {
    throw new Error(`${formatBytes(needed)} of free disk are needed, ${formatBytes(free)} are there: see --budget`)
  }
  return withBroker(context, one, budgetBytes, async broker => {
    const dataDir = dataDirOf(context)
    const filledBytes = await waitForFill(context, broker, dataDir, budgetBytes)
    const notes = DiskCalm.notes(await context.calm.wait())
    return new SustainedRound(context, one, { broker, dataDir, budgetBytes, filledBytes, notes }).run()
  })
}

/**
 * The budget that a broker really has: it rounds a small one up, and has an own one where none is asked for. Only the
 * broker knows, and says so when it stops. Asked once per run and shard count.
 */
async function budgetOf(context: RunContext, one: BrokerCase): Promise<number> {
  const key = one.shards ?? 0
  const known = context.budgets.get(key)
  if (known !== undefined) return known
  const dataDir = dataDirOf(context)
  mkdirSync(dataDir)
  try {
    const flags = budgetFlags(context)
    context.current = await startBroker({ dataDir, shards: one.shards, fillAheadBytes: 0, flags })
    const budgetBytes = (await context.current.stop())?.figures['budgetBytes'] ?? 0
    if (budgetBytes <= 0) throw new Error('the broker does not say what its journal budget is')
    context.budgets.set(key, budgetBytes)
    return budgetBytes
  } finally {
    context.current = null
    removeSettled(context.workDir, dataDir)
  }
}

function budgetFlags({ options }: RunContext): string[] {
  return options.budgetBytes === null ? [] : ['--journal-budget-bytes', String(options.budgetBytes)]
}

function dataDirOf(context: RunContext): string {
  return join(context.workDir, 'data')
}

async function withBroker(
  context: RunContext,
  one: BrokerCase,
  budgetBytes: number,
  use: (broker: BrokerProcess) => Promise<RoundResult>
): Promise<RoundResult> {
  const dataDir = dataDirOf(context)
  mkdirSync(dataDir)
  try {
    const fillAheadBytes = Math.min(context.options.fillAheadBytes, budgetBytes)
    const flags = [...budgetFlags(context), ...(one.kind === 'cleaning' ? cleaningFlags : [])]
    const broker = await startBroker({ dataDir, shards: one.shards, fillAheadBytes, flags })
    context.current = broker
    let result: RoundResult
    let totals: JournalTotals | null
    try {
      result = await use(broker)
    } finally {
      totals = await broker.stop()
      context.current = null
    }
    if (totals === null) return result
    if (totals.syncs > 0) context.bytesPerSync.push(totals.journalBytes / totals.syncs)
    return withTotals(result, one, totals)
  } finally {
    removeSettled(context.workDir, dataDir)
  }
}

/** Adds what the broker counted over its whole life. A case that was not what its name says is noted. */
function withTotals(result: RoundResult, one: BrokerCase, { figures, journalBytes }: JournalTotals): RoundResult {
  const count = (name: string): number => figures[name] ?? 0
  const notes = [...result.notes]
  if (count('settleJobs') === 0) notes.push('nothing was settled: this is no sustained figure')
  if (count('settleBuffered') > 0) notes.push('settled through the page cache: direct writes were refused')
  if (count('settleFailures') > 0) notes.push(`${count('settleFailures')} settle jobs failed`)
  if (one.kind === 'cleaning' && count('retentionSegments') === 0) notes.push('retention dropped nothing')
  const recordBytes = count('recordBytes')
  const amplification =
    recordBytes > 0 ? { brokerWriteAmplification: (journalBytes + count('settleWrittenBytes')) / recordBytes } : {}
  const dropped = one.kind === 'cleaning' ? { retentionMiB: count('retentionBytes') / MIB } : {}
  const extras = {
    settledMiB: count('settleWrittenBytes') / MIB,
    heldMs: count('heldMs'),
    ...amplification,
    ...dropped
  }
  return { ...result, extras: { ...result.extras, ...extras }, notes }
}

interface RoundParts {
  readonly broker: BrokerProcess
  readonly dataDir: string
  readonly budgetBytes: number
  readonly filledBytes: number
  readonly notes: readonly string[]
}

/** The load of one round on a broker that is ready. */
class SustainedRound {
  readonly #context: RunContext
  readonly #case: BrokerCase
  readonly #parts: RoundParts

  constructor(context: RunContext, one: BrokerCase, parts: RoundParts) {
    this.#context = context
    this.#case = one
    this.#parts = parts
  }

  async run(): Promise<RoundResult> {
    const one = this.#case
    const { broker, budgetBytes } = this.#parts
    const http = new HttpJson(broker.addresses.http, 1)
    try {
      const config = one.kind === 'cleaning' ? cleanedTopicConfig(budgetBytes, one.partitions) : {}
      await http.ask('POST', '/topics', { name: topic, partitions: one.partitions, config })
      if (one.kind === 'sustained') return resultOf(await this.#produce(null), this.#parts)
      const compacted = await CompactedTopic.create(http, one, broker.addresses)
      const result = resultOf(await this.#produce(compacted), this.#parts)
      const compactedShare = await compacted.keptShare(http)
      const notes = compactedShare < 1 ? [] : ['compaction removed nothing']
      return { ...result, extras: { ...result.extras, compactedShare }, notes: [...result.notes, ...notes] }
    } finally {
      http.close()
    }
  }

  async #produce(beside: CompactedTopic | null): Promise<SustainedResult> {
    const { options } = this.#context
    const { protocol, partitions, connections, inFlight, records, valueBytes, keyed, rate } = this.#case
    const { broker, dataDir, budgetBytes, filledBytes } = this.#parts
    const shape = { topic, records, valueBytes, keyed }
    const { addresses } = broker
    const faults = new Faults()
    const producers = await openProduceLoad(
      { protocol, addresses, shape, partitions, connections, inFlight, rate },
      faults
    )
    try {
      const load = beside === null ? producers : new MixedLoad(producers, await beside.open(faults))
      try {
        return await runSustained(load, {
          warmUpMs: options.warmUpMs,
          burstBytesMax: Math.min(BURST_SHARE * budgetBytes, FILL_SHARE * filledBytes),
          sustainedFromBytes: SUSTAINED_SHARE * budgetBytes,
          bytesMax: options.budgets * budgetBytes,
          hasSettled: () => hasSettledFiles(dataDir),
          brokerPid: broker.pid,
          deviceBytes: () => deviceBytesWritten(dataDir),
          timeoutMs: WINDOW_TIMEOUT_MS
        })
      } finally {
        load.close()
      }
    } finally {
      producers.close()
    }
  }
}

/** The second window is the round; the first is what it is held against. */
function resultOf(measured: SustainedResult, parts: RoundParts): RoundResult {
  const { burst, sustained, deviceBytes } = measured
  const notes = [...parts.notes]
  if (burst.sums.seconds < SHORT_WINDOW_SECONDS) {
    notes.push(`the burst lasted ${burst.sums.seconds.toFixed(2)} s only (raise --budget)`)
  }
  const refusals = burst.refusals + sustained.refusals
  if (refusals > 0) notes.push(`${refusals} requests were refused; the first: ${sustained.firstRefusal}`)
  const amplification =
    deviceBytes === null || sustained.sums.bytes === 0
      ? {}
      : { deviceWriteAmplification: deviceBytes / sustained.sums.bytes }
  return {
    ...ratesOf(sustained.sums),
    clientCores: sustained.clientCores,
    brokerCores: sustained.brokerCores,
    refusals,
    extras: {
      budgetMiB: parts.budgetBytes / MIB,
      windowSeconds: sustained.sums.seconds,
      burstRecordsPerSecond: perSecond(burst.sums.records, burst.sums.seconds),
      burstMiBPerSecond: perSecond(burst.sums.bytes, burst.sums.seconds) / MIB,
      burstSeconds: burst.sums.seconds,
      burstP99Ms: burst.sums.latency.p99Ms,
      longestStallMs: sustained.sums.longestGapMs,
      ...amplification,
      ...sustained.extras
    },
    notes
  }
}
