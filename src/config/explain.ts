/**
 * What the broker would run with: each effective value with its source, and the memory budget. Pure: text and JSON
 * shapes for the caller to print. Secrets are never shown.
 */
import { memoryBudget, type MemoryBudget } from './memory-budget.ts'
import { showSource, type Sources } from './resolve.ts'
import { envNameOf, schema, settingFields, showFallback, showValue, tomlKeyOf } from './schema.ts'
import type { Settings } from './settings.ts'
import { defaultShardCount } from './shards.ts'

export interface ExplainedSetting {
  readonly key: string
  readonly flag: string
  readonly env: string
  /** In the unit of `unit`; null where absent is a value; "(secret)" for a secret that is set. */
  readonly value: Settings[keyof Settings]
  readonly unit: string
  readonly source: string
  readonly default: string
  readonly allowed: string
  readonly text: string
}

export interface Explanation {
  readonly settings: readonly ExplainedSetting[]
  /** Shards that the budget was computed for. */
  readonly shards: number
  readonly memory: MemoryBudget
}

/** @param coreCount cores this process may use; the system's count if left out. */
export function explain(settings: Settings, sources: Sources, coreCount?: number): Explanation {
  const shards = settings.shards ?? defaultShardCount(coreCount)
  return {
    settings: settingFields.map(field => ({
      key: tomlKeyOf(field),
      flag: schema[field].flag,
      env: envNameOf(field),
      value: schema[field].isSecret ? showValue(field, settings[field]) : settings[field],
      unit: schema[field].kind.unit,
      source: showSource(sources[field]),
      default: showFallback(field),
      allowed: schema[field].kind.allowed,
      text: schema[field].text
    })),
    shards,
    memory: memoryBudget(settings, shards)
  }
}

/** Sums are seldom whole in one unit, so the whole table is in MiB. */
function showMebibytes(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(2)} MiB`
}

/** Columns, padded to their widest cell; the last one is not padded. */
function tabulate(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map(row => row[column]?.length ?? 0)))
  return rows.map(row =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd()
  )
}

/** The explanation for people, ready to print. */
export function formatExplanation(settings: Settings, sources: Sources, coreCount?: number): string {
  const { shards, memory } = explain(settings, sources, coreCount)
  const values = settingFields.map(field => [
    tomlKeyOf(field),
    showValue(field, settings[field]),
    showSource(sources[field])
  ])
  const rows = memory.rows.map(row => [
    row.name,
    showMebibytes(row.eachBytes),
    `× ${row.count}`,
    showMebibytes(row.totalBytes),
    row.held
  ])
  const shardNote =
    settings.shards === null ? ' (auto: what a new data directory gets here; an existing one keeps its own)' : ''
  return [
    ...tabulate([['setting', 'value', 'source'], ...values]),
    '',
    `memory budget for ${shards} shard(s)${shardNote}`,
    ...tabulate([
      ['part', 'each', 'count', 'bytes', 'held'],
      ...rows,
      ['total', '', '', showMebibytes(memory.totalBytes), '']
    ]),
    'fixed: taken at start, touched as it is first used. ceiling: only as far as load asks for it.',
    'Node itself comes on top: about 45 MB, and about 15 MB per thread (one per shard, one for the store).',
    ''
  ].join('\n')
}
