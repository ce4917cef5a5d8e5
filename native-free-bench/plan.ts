/**
 * Which cases a run has and in which order they run. Pure. A case is one line of the result; every round runs all of
 * them, every other round backwards, so that slow drift of the machine falls on all alike.
 */
import type { Protocol } from './load/connections.ts'
import { LIMIT_LARGE_BYTES, LIMIT_SMALL_BYTES } from './limit.ts'
import type { SyncMode } from './minimal-log.ts'
import type { BenchOptions, HttpEngine, Scenario } from './options.ts'

/** A loop of write + fdatasync without a broker. */
export interface DiskCase {
  readonly kind: 'disk'
  readonly id: string
  readonly title: string
  /** Bytes per sync; null: the broker's mean, as seen or estimated. */
  readonly writeBytes: number | null
}

/** A load on a broker, or on the minimal server that it is held against. */
export interface BrokerCase {
  readonly kind: 'produce' | 'consume' | 'mixed' | 'sustained' | 'cleaning'
  readonly id: string
  readonly title: string
  readonly protocol: Protocol
  readonly shards: number | null
  readonly partitions: number
  readonly keyed: boolean
  readonly connections: number
  readonly inFlight: number
  readonly records: number
  readonly valueBytes: number
  readonly rate: number | null
  /** null: the broker's own choice. */
  readonly engine: HttpEngine | null
  /** null: a broker answers; else the minimal server, which syncs so. */
  readonly minimal: SyncMode | null
}

export type Case = DiskCase | BrokerCase

/** Ids that the ratios look for. */
export const limitMeanId = 'limit-mean'
export const limitLargeId = 'limit-1mib'
export const limitSmallId = 'limit-4kib'
export const minimalIds: Readonly<Record<SyncMode, string>> = { group: 'minimal-group/http', each: 'minimal-each/http' }

/** All cases of a run, in the order of the first round. */
export function planCases(options: BenchOptions): Case[] {
  const cases: Case[] = []
  const has = (name: BenchOptions['scenarios'][number]): boolean => options.scenarios.includes(name)
  // The bare loops that a broker's figures are held against come along with `limit`.
  if (has('limit') && options.scenarios.some(name => name !== 'limit' && name !== 'latency')) {
    cases.push(diskCase(limitMeanId, "write + fdatasync, the broker's mean bytes", options.limitBytes))
  }
  if (has('limit')) cases.push(diskCase(limitLargeId, 'write + fdatasync, 1 MiB', LIMIT_LARGE_BYTES))
  if (has('latency')) cases.push(diskCase(limitSmallId, 'write + fdatasync, 4 KiB', LIMIT_SMALL_BYTES))
  for (const shards of options.shards) {
    for (const protocol of options.protocols) {
      if (has('produce')) cases.push(brokerCase(options, 'produce', 'produce', { protocol, shards }))
      if (has('partitions')) cases.push(...partitionCases(options, protocol, shards))
      if (has('latency')) {
        const single = { connections: 1, inFlight: 1, records: 1, partitions: 1, keyed: false }
        cases.push(brokerCase(options, 'produce', 'latency', { protocol, shards, ...single }))
      }
      if (has('consume')) cases.push(brokerCase(options, 'consume', 'consume', { protocol, shards }))
      cases.push(...sustainedCases(options, protocol, shards))
      if (has('mixed')) cases.push(brokerCase(options, 'mixed', 'mixed', { protocol, shards }))
    }
  }
  if (has('json')) cases.push(...jsonCases(options))
  return cases
}

/** The cases of a round, 0-based: forwards in even rounds, backwards in odd ones. */
export function orderOfRound<One>(cases: readonly One[], round: number): readonly One[] {
  return round % 2 === 0 ? cases : cases.toReversed()
}

/** Id of a produce over so many partitions, as the ratios look for it. */
export function partitionsId(partitions: number, protocol: Protocol, shards: number | null): string {
  return `partitions-${partitions}${suffix(protocol, shards)}`
}

/** `/es01` or `/es01/2 shards`. */
export function suffix(protocol: Protocol, shards: number | null): string {
  return `/${protocol}${shards === null ? '' : `/${shards} shards`}`
}

/** Id of a produce over so many partitions while the journal is settled, alone or beside the cleaners. */
export function sustainedId(
  kind: 'sustained' | 'cleaning',
  partitions: number,
  protocol: Protocol,
  shards: number | null
): string {
  return `${kind}-${partitions}${suffix(protocol, shards)}`
}

/** The partition counts that a scenario runs with, where the command line does not say. */
export function partitionCountsOf(scenario: Scenario, options: BenchOptions): readonly number[] {
  if (options.partitionCounts !== null) return options.partitionCounts
  if (scenario === 'recovery') return [1000, 10_000]
  if (scenario === 'many' || scenario === 'scrape') return [10_000]
  return scenario === 'sustained' ? [options.partitions, 1000] : [1, 12, 100, 1000]
}

/** Cleaning runs at the first count, and brings along the case that it is held against. */
function sustainedCases(options: BenchOptions, protocol: Protocol, shards: number | null): Case[] {
  const counts = partitionCountsOf('sustained', options)
  const cleaned = options.scenarios.includes('cleaning') ? counts.slice(0, 1) : []
  const plain = options.scenarios.includes('sustained') ? counts : cleaned
  const caseOf = (kind: 'sustained' | 'cleaning', partitions: number): Case =>
    brokerCase(options, kind, `${kind}-${partitions}`, { protocol, shards, partitions })
  return [...plain.map(count => caseOf('sustained', count)), ...cleaned.map(count => caseOf('cleaning', count))]
}

/** Produce of JSON over HTTP on our broker, and the same on the minimal server: 100 × 1 KiB a request, 8 at a time. */
function jsonCases(options: BenchOptions): Case[] {
  const load = { connections: 8, inFlight: 1, records: 100, valueBytes: 1024, keyed: false, rate: null }
  const shape = { protocol: 'http', ...load } as const
  const ours = options.shards.flatMap(shards =>
    options.engines.map(engine => {
      const name = `json${engine === null ? '' : `-${engine}`}`
      return brokerCase(options, 'produce', name, { ...shape, shards, engine })
    })
  )
  const minimal = (['group', 'each'] as const).map(mode =>
    brokerCase(options, 'produce', `minimal-${mode}`, { ...shape, shards: null, minimal: mode })
  )
  return [...ours, ...minimal]
}

function partitionCases(options: BenchOptions, protocol: Protocol, shards: number | null): Case[] {
  const counts = partitionCountsOf('partitions', options)
  const cases = counts.map(partitions =>
    brokerCase(options, 'produce', `partitions-${partitions}`, { protocol, shards, partitions, keyed: false })
  )
  const keyedCounts = options.keyed ? counts : [options.partitions]
  for (const partitions of keyedCounts) {
    cases.push(brokerCase(options, 'produce', `keyed-${partitions}`, { protocol, shards, partitions, keyed: true }))
  }
  return cases
}

function diskCase(id: string, title: string, writeBytes: number | null): DiskCase {
  return { kind: 'disk', id, title, writeBytes }
}

function brokerCase(
  options: BenchOptions,
  kind: BrokerCase['kind'],
  name: string,
  differing: Partial<BrokerCase> & Pick<BrokerCase, 'protocol' | 'shards'>
): BrokerCase {
  const { partitions, keyed, connections, inFlight, records, valueBytes, rate } = options
  const load = { partitions, keyed, connections, inFlight, records, valueBytes, rate }
  const shape = { ...load, engine: null, minimal: null, ...differing }
  const routing = shape.keyed ? 'scattered by key over' : 'requests cycle over'
  const loop = shape.rate === null ? '' : `, ${shape.rate} requests/s`
  const title =
    `${name} ${shape.protocol}${shape.shards === null ? '' : `, ${shape.shards} shards`}: ${shape.connections} × ` +
    `${shape.inFlight} × ${shape.records} × ${shape.valueBytes} B, ${routing} ${shape.partitions}${loop}`
  return { kind, id: `${name}${suffix(shape.protocol, shape.shards)}`, title, ...shape }
}
