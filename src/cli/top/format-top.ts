/** A reading as a screen, as a line, and as JSON. Pure. What is not known shows as -. */
import { formatBytes, formatCount, formatMs } from '../../base/amounts.ts'
import type { Colour } from '../colours.ts'
import { formatTable } from '../table.ts'
import type { Reading, ShardReading } from './reading.ts'

/** A line of a screen, coloured as a whole so that it can be cut to the width. */
export interface ScreenLine {
  readonly text: string
  readonly colour?: Colour
}

const shown = (value: number | null, format: (value: number) => string): string =>
  value === null ? '-' : format(value)
const count = (value: number | null): string => shown(value, formatCount)
const size = (bytes: number | null): string => shown(bytes, formatBytes)
const ms = (value: number | null): string => shown(value, known => `${formatMs(known)} ms`)

function shardLines(shards: readonly ShardReading[]): ScreenLine[] {
  const columns = [
    { head: 'SHARD', isNumber: true },
    { head: 'STATE' },
    { head: 'QUEUE', isNumber: true },
    { head: 'RING', isNumber: true },
    { head: 'TURN P99', isNumber: true }
  ]
  const rows = shards.map(({ shard, state, queue, ringBytes, turnP99Ms }) => {
    return [shard, state, count(queue), size(ringBytes), ms(turnP99Ms)]
  })
  const [head = '', ...lines] = formatTable(columns, rows)
  const ofShard = (text: string, i: number): ScreenLine =>
    shards[i]?.state === 'ready' ? { text } : { text, colour: 'red' }
  return shards.length === 0 ? [] : [{ text: '' }, { text: head, colour: 'bold' }, ...lines.map(ofShard)]
}

function listLines(heads: readonly string[], rows: readonly (readonly string[])[]): ScreenLine[] {
  if (rows.length === 0) return []
  const columns = heads.map((head, i) => ({ head, isNumber: i > 0 }))
  const [head = '', ...lines] = formatTable(columns, rows)
  return [{ text: '' }, { text: head, colour: 'bold' }, ...lines.map(text => ({ text }))]
}

function syncText({ syncP99Ms, syncs, groupRecords }: Reading): string {
  return `p99 ${ms(syncP99Ms)}, ${count(syncs)} syncs/s, ${count(groupRecords)} records each`
}

/** The whole screen, its first line excepted. @param isFirst there is no interval yet that rates could be of. */
export function screenOf(reading: Reading, isFirst: boolean): ScreenLine[] {
  const rates = (text: string): string => (isFirst ? 'reading…' : text)
  const { recordsIn, bytesIn, recordsOut, bytesOut, budgets, connections } = reading
  const held = budgets.map(({ budget, usedBytes, bytes }) => `${budget} ${size(usedBytes)} of ${size(bytes)}`)
  const open = connections.map(({ protocol, count: open }) => `${protocol} ${open}`)
  return [
    ...reading.troubles.map((text): ScreenLine => ({ text: `trouble      ${text}`, colour: 'red' })),
    { text: `in           ${rates(`${count(recordsIn)} records/s, ${size(bytesIn)}/s`)}` },
    { text: `out          ${rates(`${count(recordsOut)} records/s, ${size(bytesOut)}/s`)}` },
    {
      text: `lag          ${count(reading.lagRecords)} records`,
      ...((reading.lagRecords ?? 0) > 0 ? { colour: 'yellow' as const } : {})
    },
    {
      text: `sync         ${rates(syncText(reading))}`
    },
    { text: `memory       ${[`resident ${size(reading.residentBytes)}`, ...held].join(', ')}` },
    { text: `connections  ${[...open, `streams ${count(reading.streams)}`].join(', ')}` },
    ...shardLines(reading.shards),
    ...listLines(
      ['TOPIC', 'IN/S', 'OUT/S'],
      reading.topics.map(({ topic, recordsIn, recordsOut }) => [topic, count(recordsIn), count(recordsOut)])
    ),
    ...listLines(
      ['GROUP', 'LAG'],
      reading.groups.map(({ group, lagRecords }) => [group, count(lagRecords)])
    )
  ]
}

/** One line for an interval, where there is no terminal. */
export function lineOf(reading: Reading): string {
  const { recordsIn, bytesIn, recordsOut, bytesOut, shards } = reading
  const plain = (value: number | null): string => (value === null ? '-' : String(Math.round(value * 100) / 100))
  const turns = shards.flatMap(({ turnP99Ms }) => (turnP99Ms === null ? [] : [turnP99Ms]))
  const isKnown = shards.length > 0
  const words = {
    records_in: plain(recordsIn),
    bytes_in: plain(bytesIn),
    records_out: plain(recordsOut),
    bytes_out: plain(bytesOut),
    lag: plain(reading.lagRecords),
    syncs: plain(reading.syncs),
    sync_p99_ms: plain(reading.syncP99Ms),
    group_records: plain(reading.groupRecords),
    shards_ready: isKnown ? `${shards.filter(({ state }) => state === 'ready').length}/${shards.length}` : '-',
    queue: isKnown ? plain(shards.reduce((sum, { queue }) => sum + queue, 0)) : '-',
    turn_p99_ms: plain(turns.length === 0 ? null : Math.max(...turns)),
    resident_bytes: plain(reading.residentBytes),
    connections: reading.connections.map(({ protocol, count: open }) => `${protocol}:${open}`).join(',') || '-',
    troubles: String(reading.troubles.length)
  }
  return Object.entries(words)
    .map(([name, value]) => `${name}=${value}`)
    .join(' ')
}

/** One line of JSON. @param timeMs Unix ms. @param intervalMs that the rates are of. */
export function jsonOf(reading: Reading, timeMs: number, intervalMs: number): string {
  return JSON.stringify({
    time_ms: timeMs,
    interval_ms: Math.round(intervalMs),
    records_in_per_second: reading.recordsIn,
    bytes_in_per_second: reading.bytesIn,
    records_out_per_second: reading.recordsOut,
    bytes_out_per_second: reading.bytesOut,
    topics: reading.topics.map(({ topic, recordsIn, recordsOut }) => {
      return { topic, records_in_per_second: recordsIn, records_out_per_second: recordsOut }
    }),
    lag_records: reading.lagRecords,
    groups: reading.groups.map(({ group, lagRecords }) => ({ group, lag_records: lagRecords })),
    syncs_per_second: reading.syncs,
    sync_p99_ms: reading.syncP99Ms,
    group_records: reading.groupRecords,
    shards: reading.shards.map(({ shard, state, queue, ringBytes, turnP99Ms }) => {
      return { shard: Number(shard), state, queue, ring_bytes: ringBytes, turn_p99_ms: turnP99Ms }
    }),
    resident_bytes: reading.residentBytes,
    budgets: reading.budgets.map(({ budget, usedBytes, bytes }) => ({ budget, used_bytes: usedBytes, bytes })),
    connections: Object.fromEntries(reading.connections.map(({ protocol, count: open }) => [protocol, open])),
    streams: reading.streams,
    troubles: reading.troubles
  })
}
