/** What `millrace top` shows: made of two pages of /metrics and what the broker says of its health. Pure. */
import { quantileOf, sumBy, type MetricsPage, type Sample } from './metrics-page.ts'

/** One scrape. */
export interface Scrape {
  /** Monotonic. */
  readonly atMs: number
  readonly page: MetricsPage
  readonly troubles: readonly string[]
}

/** null: not known, since there is no scrape before, or the key may not see it. Rates are per second. */
export interface Reading {
  readonly recordsIn: number | null
  readonly bytesIn: number | null
  readonly recordsOut: number | null
  readonly bytesOut: number | null
  readonly topics: readonly { readonly topic: string; readonly recordsIn: number; readonly recordsOut: number }[]
  readonly lagRecords: number | null
  readonly groups: readonly { readonly group: string; readonly lagRecords: number }[]
  readonly syncs: number | null
  readonly syncP99Ms: number | null
  /** Records that one sync carries, on average. */
  readonly groupRecords: number | null
  readonly shards: readonly ShardReading[]
  readonly residentBytes: number | null
  /** Bytes held for requests and for answers, and the most of both. */
  readonly budgets: readonly { readonly budget: string; readonly usedBytes: number; readonly bytes: number }[]
  readonly connections: readonly { readonly protocol: string; readonly count: number }[]
  readonly streams: number | null
  readonly troubles: readonly string[]
}

export interface ShardReading {
  readonly shard: string
  readonly state: string
  /** Requests that it has not answered. */
  readonly queue: number
  readonly ringBytes: number
  readonly turnP99Ms: number | null
}

/** The series that are read, as lines of a page name them. */
export const seriesRead: ReadonlySet<string> = new Set([
  'es_topic_records_produced_total',
  'es_topic_bytes_produced_total',
  'es_topic_records_consumed_total',
  'es_topic_bytes_consumed_total',
  'es_group_lag',
  'millrace_journal_sync_seconds_bucket',
  'millrace_journal_sync_seconds_count',
  'millrace_group_records_sum',
  'millrace_group_records_count',
  'millrace_shard_state',
  'millrace_shard_requests_in_progress',
  'millrace_shard_turn_seconds_bucket',
  'millrace_ring_used_bytes',
  'millrace_process_resident_memory_bytes',
  'millrace_memory_budget_used_bytes',
  'millrace_memory_budget_bytes',
  'millrace_connections',
  'millrace_http_streams'
])

/** Topics and groups of a reading. */
const LISTED_MAX = 10

/** @param before null: there are no rates. */
export function readingOf(before: Scrape | null, after: Scrape): Reading {
  const { page, troubles } = after
  const grown = (name: string): readonly Sample[] | null => {
    if (before === null || page.samples(name).length === 0) return null
    return page.grownSince(before.page, name)
  }
  const seconds = before === null ? 0 : (after.atMs - before.atMs) / 1_000
  const rate = (name: string): number | null => perSecond(totalOf(grown(name)), seconds)
  // Who sees the process sees all: a series that is not there has nothing to count yet. Of other keys that is not known.
  const none = page.samples('millrace_process_resident_memory_bytes').length > 0 ? 0 : null
  const topicRate = (name: string): number | null => rate(name) ?? (before === null ? null : none)
  const groupCount = totalOf(grown('millrace_group_records_count'))
  const groupSum = totalOf(grown('millrace_group_records_sum'))
  const lags = page.sumBy('es_group_lag', 'group')
  return {
    recordsIn: topicRate('es_topic_records_produced_total'),
    bytesIn: topicRate('es_topic_bytes_produced_total'),
    recordsOut: topicRate('es_topic_records_consumed_total'),
    bytesOut: topicRate('es_topic_bytes_consumed_total'),
    topics: busiest(
      grown('es_topic_records_produced_total') ?? [],
      grown('es_topic_records_consumed_total') ?? [],
      seconds
    ),
    lagRecords: page.sum('es_group_lag') ?? none,
    groups: [...lags]
      .map(([group, lagRecords]) => ({ group, lagRecords }))
      .sort((a, b) => b.lagRecords - a.lagRecords)
      .slice(0, LISTED_MAX),
    syncs: rate('millrace_journal_sync_seconds_count'),
    syncP99Ms: p99Ms(grown('millrace_journal_sync_seconds_bucket') ?? []),
    groupRecords: groupCount === null || groupCount === 0 ? null : (groupSum ?? 0) / groupCount,
    shards: shardsOf(page, grown('millrace_shard_turn_seconds_bucket') ?? []),
    residentBytes: page.sum('millrace_process_resident_memory_bytes'),
    budgets: budgetsOf(page),
    connections: [...page.sumBy('millrace_connections', 'protocol')].map(([protocol, count]) => ({ protocol, count })),
    streams: page.sum('millrace_http_streams'),
    troubles
  }
}

function totalOf(samples: readonly Sample[] | null): number | null {
  return samples === null ? null : samples.reduce((sum, { value }) => sum + value, 0)
}

function perSecond(count: number | null, seconds: number): number | null {
  return count === null || seconds <= 0 ? null : count / seconds
}

function p99Ms(buckets: readonly Sample[]): number | null {
  const seconds = quantileOf(sumBy(buckets, 'le'), 0.99)
  return seconds === null ? null : seconds * 1_000
}

function busiest(written: readonly Sample[], read: readonly Sample[], seconds: number): Reading['topics'] {
  const ins = sumBy(written, 'topic')
  const outs = sumBy(read, 'topic')
  return [...new Set([...ins.keys(), ...outs.keys()])]
    .map(topic => ({
      topic,
      recordsIn: perSecond(ins.get(topic) ?? 0, seconds) ?? 0,
      recordsOut: perSecond(outs.get(topic) ?? 0, seconds) ?? 0
    }))
    .filter(({ recordsIn, recordsOut }) => recordsIn + recordsOut > 0)
    .sort((a, b) => b.recordsIn + b.recordsOut - a.recordsIn - a.recordsOut)
    .slice(0, LISTED_MAX)
}

function shardsOf(page: MetricsPage, turns: readonly Sample[]): ShardReading[] {
  const queues = page.sumBy('millrace_shard_requests_in_progress', 'shard')
  const rings = page.sumBy('millrace_ring_used_bytes', 'shard')
  return page
    .samples('millrace_shard_state')
    .filter(({ value }) => value === 1)
    .map(({ labels: { shard = '', state = '' } }) => ({
      shard,
      state,
      queue: queues.get(shard) ?? 0,
      ringBytes: rings.get(shard) ?? 0,
      turnP99Ms: p99Ms(turns.filter(({ labels }) => labels['shard'] === shard))
    }))
}

function budgetsOf(page: MetricsPage): Reading['budgets'] {
  const used = page.sumBy('millrace_memory_budget_used_bytes', 'budget')
  return [...page.sumBy('millrace_memory_budget_bytes', 'budget')].map(([budget, bytes]) => {
    return { budget, usedBytes: used.get(budget) ?? 0, bytes }
  })
}
