/**
 * What a run found, in the shape that is printed and written as JSON, and the comparisons drawn from it.
 * Pure. Every round stays visible; a median is only ever shown beside its rounds.
 */
import type { LatencySummary } from './latency.ts'
import type { Machine } from './machine.ts'
import { limitLargeId, limitMeanId, limitSmallId, minimalIds, partitionsId, suffix, sustainedId } from './plan.ts'
import type { BrokerCase, Case } from './plan.ts'
import { median, pairedRatio } from './statistics.ts'

/** One window of one case. */
export interface RoundResult {
  readonly seconds: number
  readonly requestsPerSecond: number
  readonly recordsPerSecond: number
  /** Keys and values only, no framing. For a bare loop: bytes written. */
  readonly bytesPerSecond: number
  readonly latency: LatencySummary
  /** Records per second in each 100 ms. */
  readonly slices: readonly number[]
  /** Cores in use; null where nobody could tell. */
  readonly clientCores: number | null
  readonly brokerCores: number | null
  readonly refusals: number
  /** Further figures, by name with their unit. */
  readonly extras: Readonly<Record<string, number>>
  /** What a reader must know about this window. */
  readonly notes: readonly string[]
}

export interface CaseResult {
  readonly case: Case
  /** By round; null where the round failed (the reason is in `failures`). */
  readonly rounds: readonly (RoundResult | null)[]
  readonly failures: readonly string[]
}

export interface Comparison {
  readonly name: string
  /** One value per round in which both sides were measured. */
  readonly perRound: readonly number[]
  readonly median: number
}

/** A number keeps its unit in the name of its column or row; null where nobody could tell. */
export type Cell = string | number | null

/** What a study found. */
export interface StudyTable {
  readonly columns: readonly string[]
  readonly rows: readonly (readonly Cell[])[]
  readonly notes: readonly string[]
}

/** A study that was run; one that failed has the reason and no table. */
export interface StudyResult {
  readonly id: string
  readonly title: string
  readonly table: StudyTable | null
  readonly failure: string | null
}

export interface BenchReport {
  readonly machine: Machine
  readonly command: string
  readonly durability: string
  readonly startedAt: string
  readonly cases: readonly CaseResult[]
  readonly comparisons: readonly Comparison[]
  readonly studies: readonly StudyResult[]
  readonly notes: readonly string[]
}

/** Median over the rounds that were measured. */
export function medianOf(result: CaseResult, pick: (round: RoundResult) => number): number {
  return median(result.rounds.filter(round => round !== null).map(pick))
}

/** The round whose throughput is nearest the median: the one that a chart shows. */
export function typicalRound(result: CaseResult): RoundResult | null {
  const middle = medianOf(result, round => round.recordsPerSecond)
  let best: RoundResult | null = null
  for (const round of result.rounds) {
    if (round === null) continue
    const distance = Math.abs(round.recordsPerSecond - middle)
    if (best === null || distance < Math.abs(best.recordsPerSecond - middle)) best = round
  }
  return best
}

/** The ratios that the results allow: share of the disk's limit, many partitions to one, latency to the bare sync. */
export function compare(results: readonly CaseResult[]): Comparison[] {
  const comparisons: Comparison[] = []
  const add: AddRatio = (name, top, bottom) => {
    const ratio = pairedRatio(top, bottom)
    if (ratio.perRound.length > 0) comparisons.push({ name, ...ratio })
  }
  const find = (id: string): CaseResult | undefined => results.find(result => result.case.id === id)
  const limit = largerLimit(find(limitMeanId), find(limitLargeId))
  const bare = perRound(find(limitSmallId), round => round.latency.p50Ms)
  for (const result of results) {
    const one = result.case
    if (one.kind === 'disk') continue
    if (isLatency(one)) {
      add(
        `${one.id}: p50 ÷ bare 4 KiB write + fdatasync p50`,
        perRound(result, round => round.latency.p50Ms),
        bare
      )
    } else if (one.kind !== 'consume' && one.kind !== 'mixed') {
      add(
        `${one.id}: bytes/s ÷ limit`,
        perRound(result, round => round.bytesPerSecond),
        limit
      )
    }
  }
  for (const result of results) addSustained(result, find, add)
  for (const result of results) addMinimal(result, find, add)
  for (const { protocol, shards } of sweeps(results)) {
    const rate = (count: number): (number | undefined)[] =>
      perRound(find(partitionsId(count, protocol, shards)), round => round.recordsPerSecond)
    add(`1000 partitions ÷ 1 partition${suffix(protocol, shards)}: records/s`, rate(1000), rate(1))
  }
  return comparisons
}

type AddRatio = (name: string, top: readonly (number | undefined)[], bottom: readonly (number | undefined)[]) => void

/** What settling takes from the burst of the same round, and what the cleaners take from that. */
function addSustained(result: CaseResult, find: (id: string) => CaseResult | undefined, add: AddRatio): void {
  const one = result.case
  if (one.kind !== 'sustained' && one.kind !== 'cleaning') return
  const rates = perRound(result, round => round.recordsPerSecond)
  const bursts = perRound(result, round => round.extras['burstRecordsPerSecond'])
  add(`${one.id}: records/s ÷ burst of the same round`, rates, bursts)
  if (one.kind === 'sustained') return
  const without = sustainedId('sustained', one.partitions, one.protocol, one.shards)
  add(
    `${one.id} ÷ ${without}: records/s`,
    rates,
    perRound(find(without), round => round.recordsPerSecond)
  )
}

/** The broker against the minimal server under the same load. */
function addMinimal(result: CaseResult, find: (id: string) => CaseResult | undefined, add: AddRatio): void {
  const one = result.case
  if (one.kind === 'disk' || one.minimal !== null || !one.id.startsWith('json')) return
  const rates = perRound(result, round => round.recordsPerSecond)
  for (const id of [minimalIds.group, minimalIds.each]) {
    const theirs = perRound(find(id), round => round.recordsPerSecond)
    add(`${one.id} ÷ ${id}: records/s`, rates, theirs)
  }
}

/** Bytes/s of the faster bare loop of each round. */
function largerLimit(a: CaseResult | undefined, b: CaseResult | undefined): (number | undefined)[] {
  const first = perRound(a, round => round.bytesPerSecond)
  const second = perRound(b, round => round.bytesPerSecond)
  return Array.from({ length: Math.max(first.length, second.length) }, (_, round) => {
    const seen = [first[round], second[round]].filter(value => value !== undefined)
    return seen.length === 0 ? undefined : Math.max(...seen)
  })
}

function perRound(
  result: CaseResult | undefined,
  pick: (round: RoundResult) => number | undefined
): (number | undefined)[] {
  return result === undefined ? [] : result.rounds.map(round => (round === null ? undefined : pick(round)))
}

function isLatency(one: BrokerCase): boolean {
  return one.id.startsWith('latency/')
}

/** Each pair of protocol and shard count once. */
function sweeps(results: readonly CaseResult[]): BrokerCase[] {
  const seen = new Map<string, BrokerCase>()
  for (const { case: one } of results) if (one.kind !== 'disk') seen.set(suffix(one.protocol, one.shards), one)
  return [...seen.values()]
}
