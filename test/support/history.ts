/**
 * What clients were told against what the log says: the judge of the crash tests. Pure; knows no protocol, no disk.
 *
 *   told       what must hold of the record in the log
 *   acked      there, exactly once, in the partition and at the offset of the answer
 *   refused    (`written: no`) not there
 *   unknown    (`written: unknown`, or no answer) there at most once
 *
 * And of the log itself: offsets without a hole; nothing that nobody sent; records of one connection to one partition
 * in the order in which they were sent; an offset that was read or acknowledged once never has another value.
 * Values are unique over the life of a test, so that a record that turns up at a wrong place is recognised.
 */
import { crc32 } from 'node:zlib'

export type Told = 'acked' | 'refused' | 'unknown'

/** One record as a client sent it. Kept in the order of sending; `told`, `partition`, `offset` are set by the answer. */
export interface SentRecord {
  /** Who sent it: order holds per connection. */
  readonly connection: string
  readonly topic: string
  readonly value: string
  /** Where it was to go, or where the answer says it is; −1: by its key, and no answer. */
  partition: number
  /** −1 without an acknowledgement. */
  offset: number
  told: Told
}

/** A record as it was read. */
export interface FoundRecord {
  readonly topic: string
  readonly partition: number
  readonly offset: number
  readonly value: string
}

/** One partition read from `firstOffset` to its end. */
export interface PartitionContents {
  readonly topic: string
  readonly partition: number
  readonly firstOffset: number
  readonly records: readonly FoundRecord[]
}

export type AnomalyKind =
  'lost' | 'moved' | 'duplicated' | 'written though refused' | 'foreign' | 'gap' | 'reordered' | 'two values' | 'unread'

export interface Anomaly {
  readonly kind: AnomalyKind
  readonly detail: string
}

export interface Verdict {
  readonly acked: number
  readonly refused: number
  readonly unknown: number
  /** Records told unknown that are in the log. */
  readonly unknownFound: number
  /** Records in the log. */
  readonly found: number
  readonly anomalies: readonly Anomaly[]
}

/** A value that carries its id and a checksum of all of it. `id` is unique and has no '|'. */
export function makeValue(id: string, bytes: number): string {
  const body = `${id}|${'.'.repeat(Math.max(0, bytes - id.length - 10))}`
  return `${body}|${crc32(body).toString(16).padStart(8, '0')}`
}

/** Whether a value is as makeValue made it. */
export function isIntact(value: string): boolean {
  const bar = value.lastIndexOf('|')
  return bar > 0 && crc32(value.slice(0, bar)).toString(16).padStart(8, '0') === value.slice(bar + 1)
}

/**
 * Judges.
 * @param sent in the order of sending. @param contents of every partition, or of their tails if `sent` is of that time.
 * @param read what readers saw before, of the same range: it must be there still.
 */
export function judge(
  sent: readonly SentRecord[],
  contents: readonly PartitionContents[],
  read: readonly FoundRecord[] = []
): Verdict {
  const anomalies: Anomaly[] = []
  const note = (kind: AnomalyKind, detail: string): void => void anomalies.push({ kind, detail })
  const byValue = placeAll(contents, note)
  const sentValues = new Set(sent.map(record => record.value))
  for (const [value, place] of byValue) {
    if (sentValues.has(value)) continue
    note(
      'foreign',
      `${where(place)}: ${isIntact(value) ? 'an intact value' : 'a damaged value'} that nobody sent: ${short(value)}`
    )
  }
  const counts = { acked: 0, refused: 0, unknown: 0 }
  let unknownFound = 0
  for (const record of sent) {
    counts[record.told]++
    const place = byValue.get(record.value)
    if (record.told === 'unknown' && place !== undefined) unknownFound++
    judgeRecord(record, place, note)
  }
  judgeOrder(sent, byValue, note)
  judgeSingleValues(sent, contents, read, note)
  return { ...counts, unknownFound, found: byValue.size, anomalies }
}

type Note = (kind: AnomalyKind, detail: string) => void

/** Every value with its first place. Notes holes and values that stand in two places. */
function placeAll(contents: readonly PartitionContents[], note: Note): Map<string, FoundRecord> {
  const byValue = new Map<string, FoundRecord>()
  for (const part of contents) {
    let expected = part.firstOffset
    for (const record of part.records) {
      if (record.offset !== expected) note('gap', `${where(record)} where offset ${expected} is next`)
      expected = record.offset + 1
      const other = byValue.get(record.value)
      if (other === undefined) byValue.set(record.value, record)
      else note('duplicated', `${where(record)} and ${where(other)} hold the same: ${short(record.value)}`)
    }
  }
  return byValue
}

function judgeRecord(record: SentRecord, place: FoundRecord | undefined, note: Note): void {
  if (record.told === 'refused') {
    if (place !== undefined) note('written though refused', `${where(place)}: ${short(record.value)}`)
    return
  }
  if (place === undefined) {
    if (record.told === 'acked') note('lost', `${where(record)} was acknowledged: ${short(record.value)}`)
    return
  }
  const isElsewhere =
    place.topic !== record.topic ||
    (record.partition >= 0 && place.partition !== record.partition) ||
    (record.told === 'acked' && place.offset !== record.offset)
  if (isElsewhere) note('moved', `${where(place)}, sent for ${where(record)}: ${short(record.value)}`)
}

function judgeOrder(sent: readonly SentRecord[], byValue: ReadonlyMap<string, FoundRecord>, note: Note): void {
  const lastOffsets = new Map<string, number>()
  for (const record of sent) {
    const place = byValue.get(record.value)
    if (place === undefined) continue
    const line = `${record.connection} ${place.topic}/${place.partition}`
    const last = lastOffsets.get(line) ?? -1
    if (place.offset < last) note('reordered', `${where(place)} was sent after offset ${last} by ${record.connection}`)
    lastOffsets.set(line, place.offset)
  }
}

/** What was acknowledged or read at an offset is what stands there. */
function judgeSingleValues(
  sent: readonly SentRecord[],
  contents: readonly PartitionContents[],
  read: readonly FoundRecord[],
  note: Note
): void {
  const values = new Map<string, Map<number, string>>()
  const valuesOf = ({ topic, partition }: { topic: string; partition: number }): Map<number, string> => {
    const name = `${topic}/${partition}`
    let found = values.get(name)
    if (found === undefined) values.set(name, (found = new Map()))
    return found
  }
  for (const part of contents) for (const record of part.records) valuesOf(record).set(record.offset, record.value)
  for (const record of read) {
    const present = valuesOf(record).get(record.offset)
    if (present === undefined) note('unread', `${where(record)} was read and is gone: ${short(record.value)}`)
    else if (present !== record.value)
      note('two values', `${where(record)} was read as ${short(record.value)}, now ${short(present)}`)
  }
  const told = new Map<string, string>()
  for (const record of sent) {
    if (record.told !== 'acked') continue
    const place = where(record)
    const other = told.get(place)
    if (other !== undefined)
      note('two values', `${place} was acknowledged for ${short(other)} and for ${short(record.value)}`)
    told.set(place, record.value)
  }
}

function where({ topic, partition, offset }: { topic: string; partition: number; offset: number }): string {
  return `${topic}/${partition} offset ${offset}`
}

function short(value: string): string {
  return value.length <= 40 ? value : `${value.slice(0, 40)}…`
}
