/** What `verify` prints: for people a table and a paragraph per finding, with --json one object. Pure. */
import type { Finding } from './findings.ts'
import { showPartition } from './partition-names.ts'
import type { ShardCount } from './shard-check.ts'
import type { Verification } from './verification.ts'

const columns = ['slots', 'spares', 'groups', 'segments', 'batches', 'records', 'bytes'] as const
type Column = (typeof columns)[number]

/** The whole report; ends with a newline. */
export function formatVerification(verification: Verification, seconds: number): string {
  const { path, topics, findings } = verification
  const sections = [
    `data directory ${path}: ${topics === null ? 'the store cannot be read' : `${topics} topic(s)`}`,
    formatTable(verification.shards),
    ...findings.notes.map(note => formatFinding('note', note)),
    ...more(findings.noteCount - findings.notes.length, 'note(s)'),
    ...findings.repairs.map(repair => formatFinding('repaired', repair)),
    ...more(findings.repairCount - findings.repairs.length, 'repaired file(s)'),
    ...findings.damage.map(damage => formatFinding('damage', damage)),
    ...more(findings.damageCount - findings.damage.length, 'damaged range(s)'),
    formatVerdict(verification, seconds)
  ]
  return `${sections.join('\n\n')}\n`
}

function formatTable(shards: readonly ShardCount[]): string {
  const total = totalsOf(shards)
  const rows = [
    ['shard', ...columns],
    ...shards.map(shard => [String(shard.shard), ...columns.map(column => String(shard[column]))]),
    ['all', ...columns.map(column => String(total[column]))]
  ]
  const widths = ['shard', ...columns].map((_, index) => Math.max(...rows.map(row => row[index]?.length ?? 0)))
  return rows.map(row => row.map((cell, index) => cell.padStart(widths[index] ?? 0)).join('  ')).join('\n')
}

function totalsOf(shards: readonly ShardCount[]): Record<Column, number> {
  const total = { slots: 0, spares: 0, groups: 0, segments: 0, batches: 0, records: 0, bytes: 0 }
  for (const shard of shards) for (const column of columns) total[column] += shard[column]
  return total
}

/** `damage: journal/000/0001.slot, bytes 8192 to 8255 (64)`, then whose records, what is wrong and what it means. */
function formatFinding(kind: 'note' | 'repaired' | 'damage', finding: Finding): string {
  const { file, startByte, endByte, partition, firstOffset, lastOffset, problem, meaning } = finding
  const bytes =
    startByte === null || endByte === null ? '' : `, bytes ${startByte} to ${endByte - 1} (${endByte - startByte})`
  const offsets = partition === null ? [] : [`  ${showPartition(partition)}, offsets ${firstOffset} to ${lastOffset}`]
  return [`${kind}: ${file}${bytes}`, ...offsets, `  ${problem}`, `  ${meaning}`].join('\n')
}

function more(count: number, what: string): string[] {
  return count > 0 ? [`and ${count} ${what} more`] : []
}

function formatVerdict({ findings, shards, storeBytes }: Verification, seconds: number): string {
  const bytes = totalsOf(shards).bytes + storeBytes
  const repaired = findings.repairCount === 0 ? '' : `${findings.repairCount} file(s) repaired; `
  const read = `${repaired}${bytes} bytes checked in ${seconds.toFixed(1)} s`
  return findings.damageCount === 0
    ? `no damage found; ${read}`
    : `${findings.damageCount} damaged range(s) found; ${read}`
}

/** One line of JSON with a newline. Byte ranges exclude their end, offset ranges include it. */
export function verificationJson(verification: Verification, seconds: number): string {
  const { path, topics, storeBytes, shards, findings } = verification
  const answer = {
    data_dir: path,
    ok: findings.damageCount === 0,
    topics,
    store_bytes: storeBytes,
    shards,
    total: totalsOf(shards),
    seconds: Number(seconds.toFixed(3)),
    repaired: findings.repairs.map(findingJson),
    damage_count: findings.damageCount,
    damage: findings.damage.map(findingJson),
    note_count: findings.noteCount,
    notes: findings.notes.map(findingJson)
  }
  return `${JSON.stringify(answer)}\n`
}

function findingJson({ file, startByte, endByte, partition, ...rest }: Finding): object {
  return {
    file,
    start_byte: startByte,
    end_byte: endByte,
    handle: partition?.handle ?? null,
    topic: partition?.topic ?? null,
    partition: partition?.partition ?? null,
    first_offset: rest.firstOffset,
    last_offset: rest.lastOffset,
    problem: rest.problem,
    meaning: rest.meaning
  }
}
