/**
 * What `inspect` prints: each row as a line for people and as an object for --json. Pure.
 * Field names are those of the HTTP API where it has the thing.
 */
import { isUtf8 } from 'node:buffer'
import type { Tombstone } from '../../control/store-image.ts'
import { RUN_ROLLS, entryKinds, type DirectoryEntry } from '../../log/group-format.ts'
import { endOf, rangesOf, type PartitionHandles } from '../../model/handles.ts'
import type { Topic } from '../../model/topic.ts'
import type { BatchRecords } from '../../wire/batch/records.ts'
import { batchStatus, timestampOf, type BatchStatus, type BatchView } from '../../wire/batch/view.ts'
import { codecs } from '../../wire/compression/inflate.ts'
import { formatConfig, showText, showTime } from '../format.ts'
import type { LostGroups, TornGroup } from './group-walk.ts'
import type { BatchWhere, PlacedBatch, PlacedStep } from './inspect-walk.ts'
import { showPartition, type PartitionName, type PartitionNames } from './partition-names.ts'
import { showStatus } from './run-batches.ts'

/** One thing found. */
export interface Row {
  readonly json: object
  /** One line, or several. */
  readonly text: string
  /** It says that something is damaged. */
  readonly isDamage: boolean
}

const kindNames: ReadonlyMap<number, string> = new Map(
  Object.entries(entryKinds).map(([name, kind]) => [kind, name.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)])
)

/** A group with its entries; or a place where one should be. */
export function groupRow({ journal, slot, step }: PlacedStep, names: PartitionNames): Row {
  const place = { shard: journal.shard, slot: slot.name }
  if (step.kind === 'lost') return lostRow(place, step.lost)
  if (step.kind === 'torn') return tornRow(place, step.torn)
  const { number, position, totalBytes, receiveMs, isWhole, entries, damaged } = step.group
  const rows = entries.map(entry => entryRow(entry, names.nameOf(entry.handle), damaged.includes(entry)))
  const isDamaged = !isWhole || entries.some(entry => entry.kind === entryKinds.quarantined)
  const line =
    `shard=${journal.shard} slot=${slot.name} group=${number} position=${position} bytes=${totalBytes} ` +
    `received=${showTime(receiveMs)} entries=${entries.length}${isWhole ? '' : ' DAMAGED'}`
  return {
    json: {
      ...place,
      group: number,
      position,
      bytes: totalBytes,
      receive_ms: receiveMs,
      whole: isWhole,
      entries: rows.map(row => row.json)
    },
    text: [line, ...rows.map(row => row.text)].join('\n'),
    isDamage: isDamaged
  }
}

interface SlotPlace {
  readonly shard: number
  readonly slot: string
}

function lostRow(place: SlotPlace, { firstNumber, lastNumber, position, endPosition }: LostGroups): Row {
  const problem = 'neither a directory nor a trailer can be read'
  return {
    json: { ...place, group: firstNumber, last_group: lastNumber, position, bytes: endPosition - position, problem },
    text:
      `shard=${place.shard} slot=${place.slot} group=${firstNumber} position=${position} ` +
      `bytes=${endPosition - position} DAMAGED: ${problem}`,
    isDamage: true
  }
}

function tornRow(place: SlotPlace, { number, position, endPosition }: TornGroup): Row {
  const problem = 'not whole and never known to be synced: the next start cuts it'
  return {
    json: { ...place, group: number, position, bytes: endPosition - position, problem },
    text: `shard=${place.shard} slot=${place.slot} group=${number} position=${position} unfinished: ${problem}`,
    isDamage: false
  }
}

function entryRow(entry: DirectoryEntry, name: PartitionName, isDamaged: boolean): { json: object; text: string } {
  const kind = kindNames.get(entry.kind) ?? `kind_${entry.kind}`
  const rolls = (entry.flags & RUN_ROLLS) !== 0
  const json = {
    kind,
    handle: entry.handle,
    topic: name.topic,
    partition: name.partition,
    base_offset: entry.baseOffset,
    next_offset: entry.nextOffset,
    position: entry.position,
    bytes: entry.bytes,
    batches: entry.batchCount,
    records: entry.recordCount,
    leader_epoch: entry.leaderEpoch,
    begins_segment: rolls,
    damaged: isDamaged
  }
  const marks = `${rolls ? ' begins-segment' : ''}${isDamaged ? ' DAMAGED' : ''}`
  const what =
    entry.kind === entryKinds.startOffset
      ? `offset=${entry.baseOffset}`
      : entry.kind === entryKinds.leaderEpoch
        ? `epoch=${entry.leaderEpoch} from offset=${entry.baseOffset}`
        : `offsets=${entry.baseOffset}..${entry.nextOffset - 1} batches=${entry.batchCount} ` +
          `records=${entry.recordCount} position=${entry.position} bytes=${entry.bytes}`
  return { json, text: `  ${showPartition(name)} ${kind} ${what}${marks}` }
}

const codecNames: ReadonlyMap<number, string> = new Map(Object.entries(codecs).map(([name, codec]) => [codec, name]))

/** A batch; of a damaged one its place, what is wrong, and the offsets of its run. */
export function batchRow(batch: PlacedBatch, name: PartitionName): Row {
  const { where, position, byteCount, status, range, view } = batch
  const place = { topic: name.topic, partition: name.partition }
  const layer = where.kind === 'slot' ? { slot: where.slot, group: where.group } : { file: where.file }
  const words = `${showWhere(where)} position=${position} bytes=${byteCount}`
  if (status !== batchStatus.ok) {
    const problem = `a batch ${showStatus(status)}`
    const run = { run_base_offset: range.baseOffset, run_next_offset: range.nextOffset }
    return {
      json: { ...place, ...layer, position, bytes: byteCount, crc_ok: false, problem, ...run },
      text: `${words} DAMAGED: ${problem}; its run has offsets ${range.baseOffset} to ${range.nextOffset - 1}`,
      isDamage: true
    }
  }
  const codec = codecNames.get(view.codec) ?? 'unknown'
  return {
    json: {
      ...place,
      base_offset: view.baseOffset,
      last_offset: view.lastOffset,
      records: view.recordCount,
      leader_epoch: view.leaderEpoch,
      max_timestamp_ms: view.maxTimestampMs,
      attributes: view.attributes,
      codec,
      producer_id: view.producerId,
      producer_epoch: view.producerEpoch,
      base_sequence: view.baseSequence,
      ...layer,
      position,
      bytes: byteCount,
      crc_ok: true
    },
    text:
      `offset=${view.baseOffset} last_offset=${view.lastOffset} records=${view.recordCount} ${words} ` +
      `epoch=${view.leaderEpoch} timestamp=${showTime(view.maxTimestampMs)} codec=${codec}${showProducer(view)} crc=ok`,
    isDamage: false
  }
}

/** `slot=0001.slot`, `file=topics/…`. */
function showWhere(where: BatchWhere): string {
  return where.kind === 'slot' ? `slot=${where.slot}` : `file=${where.file}`
}

/** Of batches that say it themselves: those of Kafka's idempotent producers. */
function showProducer({ producerId, producerEpoch, baseSequence }: BatchView): string {
  return producerId < 0 ? '' : ` producer=${producerId} producer_epoch=${producerEpoch} sequence=${baseSequence}`
}

/** The record that the cursor of `records` stands on. */
export function recordRow(view: BatchView, { bytes, cursor }: BatchRecords, name: PartitionName): Row {
  const offset = view.baseOffset + cursor.offsetDelta
  const timestampMs = timestampOf(view, cursor)
  const key = fieldOf('key', bytes, cursor.keyStart, cursor.keyLength)
  const value = fieldOf('value', bytes, cursor.valueStart, cursor.valueLength)
  const place = { topic: name.topic, partition: name.partition }
  return {
    json: { ...place, offset, timestamp_ms: timestampMs, ...key.json, ...value.json },
    text: `offset=${offset} timestamp=${showTime(timestampMs)}${key.text}${value.text}`,
    isDamage: false
  }
}

/** Text as it is; what is not UTF-8 in base64, under a name that says so; null as null, which people see as nothing. */
function fieldOf(name: 'key' | 'value', bytes: Buffer, start: number, length: number): { json: object; text: string } {
  if (length < 0) return { json: { [name]: null }, text: '' }
  const field = bytes.subarray(start, start + length)
  const isText = isUtf8(field)
  const shown = field.toString(isText ? 'utf8' : 'base64')
  const label = isText ? name : `${name}_base64`
  return { json: { [label]: shown }, text: ` ${label}=${isText ? showText(shown) : shown}` }
}

/** A batch whose CRC is right and whose records cannot be shown: they are as a client sent them, which is no damage. */
export function unreadableRow({ view, where, position }: PlacedBatch, status: BatchStatus): Row {
  const problem = `a batch ${showStatus(status)}`
  const offsets = { base_offset: view.baseOffset, last_offset: view.lastOffset }
  return {
    json: { ...offsets, ...(where.kind === 'slot' ? { slot: where.slot } : { file: where.file }), position, problem },
    text: `offsets ${view.baseOffset} to ${view.lastOffset}, ${showWhere(where)} position=${position}: ${problem}`,
    isDamage: false
  }
}

/** Where the handles of a topic are: all ranges, which people see if there are several. */
function handleFields(topic: PartitionHandles): { json: object; text: string } {
  const ranges = rangesOf(topic)
  const shown = ranges.map(range => `${range.firstHandle}..${endOf(range) - 1}`).join()
  return {
    json: {
      partitions: topic.partitionCount,
      first_handle: topic.firstHandle,
      handles: ranges.map(({ firstPartition, firstHandle, partitionCount }) => {
        return { first_partition: firstPartition, first_handle: firstHandle, partitions: partitionCount }
      })
    },
    text:
      `partitions=${topic.partitionCount} first_handle=${topic.firstHandle}` +
      (ranges.length > 1 ? ` handles=${shown}` : '')
  }
}

/** A topic of the store. */
export function topicRow(topic: Topic): Row {
  const { partitioner, ...config } = topic.config
  const { id, name } = topic
  const handles = handleFields(topic)
  const json = { id, name, ...handles.json, partitioner, deleted: false }
  // Numbers beyond 2^53 are exact as text; JSON.stringify takes no bigint.
  const exact = Object.entries(config).map(([field, value]) => [
    field,
    typeof value === 'bigint' ? String(value) : value
  ])
  return {
    json: { ...json, config: Object.fromEntries(exact) as object },
    text: `${name} id=${id} ${handles.text} ${formatConfig({ ...topic.config }).join(' ')}`,
    isDamage: false
  }
}

/** A deleted topic whose handles the store remembers. */
export function tombstoneRow(tombstone: Tombstone): Row {
  const { id, name } = tombstone
  const handles = handleFields(tombstone)
  return {
    json: { id, name, ...handles.json, deleted: true },
    text: `${name} id=${id} ${handles.text} deleted`,
    isDamage: false
  }
}
