/** Runs `inspect`: finds what was asked for and prints it row by row. Memory is bounded by one group or block. */
import type { StoreImage } from '../../control/store-image.ts'
import { handleOf } from '../../model/handles.ts'
import { shardOf } from '../../model/ids.ts'
import { StoreOpenError } from '../../store/store-open-error.ts'
import { BatchRecords } from '../../wire/batch/records.ts'
import { batchStatus } from '../../wire/batch/view.ts'
import { requiredText, smallWholeOf, textOf, u32, type OptionTexts } from '../common-options.ts'
import { exitCodes, print, UsageError, type CliIo, type ExitCode } from '../io.ts'
import type { DataDirectory, ShardJournal } from './data-directory.ts'
import { batchRow, groupRow, recordRow, tombstoneRow, topicRow, unreadableRow, type Row } from './inspect-rows.ts'
import { manifestsOf, segmentsOf, settledBatchesOf } from './inspect-settled.ts'
import { manifestRows, segmentRow } from './inspect-settled-rows.ts'
import { batchesOf, groupsOf, type PlacedBatch, type Wanted, type WalkFaults } from './inspect-walk.ts'
import type { Inspection } from './offline-options.ts'
import { withDataDirectory } from './offline-run.ts'
import type { PartitionName } from './partition-names.ts'

/** Rows are printed in pieces of this size. */
const PRINTED_BYTES = 64 * 1024

/** Makes the rows of one inspection, lazily. @throws UsageError, StoreOpenError, DiskError */
type RowsOf = (directory: DataDirectory, options: OptionTexts, faults: WalkFaults) => Iterable<Row>

const inspections: Readonly<Record<Inspection, RowsOf>> = {
  groups: groupRows,
  batches: batchRows,
  records: recordRows,
  segments: segmentRows,
  manifest: manifestsRows,
  topics: topicRows
}

/** @returns ok, refused if damage was met, unreachable if the directory cannot be opened. @throws UsageError */
export async function runInspection(what: Inspection, options: OptionTexts, io: CliIo): Promise<ExitCode> {
  const limit = smallWholeOf(options['limit'], '--limit', { min: 1n, max: safeMax }) ?? 1
  return withDataDirectory(options, io, async directory => {
    const faults: WalkFaults = { damageCount: 0 }
    let count = 0
    let pending = ''
    for (const row of inspections[what](directory, options, faults)) {
      if (row.isDamage) faults.damageCount++
      pending += `${options['json'] === true ? JSON.stringify(row.json) : row.text}\n`
      if (pending.length >= PRINTED_BYTES) {
        await print(io.stdout, pending)
        pending = ''
      }
      if (++count === limit) break
    }
    await print(io.stdout, pending)
    if (count === 0) await print(io.stderr, 'millrace: nothing found\n')
    if (faults.damageCount === 0) return exitCodes.ok
    await print(io.stderr, "millrace: damage was met: 'millrace verify' reports all of it\n")
    return exitCodes.refused
  })
}

const safeMax = BigInt(Number.MAX_SAFE_INTEGER)

/** Groups or segments that are asked for. */
interface Chosen {
  readonly journals: readonly ShardJournal[]
  /** null: of all partitions. */
  readonly wanted: Wanted | null
}

/** What --shard, --topic, --partition and --offset choose. @throws UsageError, StoreOpenError */
function choose(directory: DataDirectory, options: OptionTexts): Chosen {
  const shard = smallWholeOf(options['shard'], '--shard', u32)
  const isFiltered = options['topic'] !== undefined || options['partition'] !== undefined
  if (!isFiltered && options['offset'] !== undefined) throw new UsageError('--offset needs --topic and --partition')
  const found = isFiltered ? findPartition(directory, options) : null
  const journals = found?.journals ?? directory.journals
  const chosen = journals.filter(journal => shard === null || journal.shard === shard)
  if (shard !== null && chosen.length === 0) throw new UsageError(`--shard ${shard} ${whyNot(directory, found)}`)
  return { journals: chosen, wanted: found?.wanted ?? null }
}

function* groupRows(directory: DataDirectory, options: OptionTexts, faults: WalkFaults): Generator<Row> {
  const { journals, wanted } = choose(directory, options)
  for (const step of groupsOf(directory, journals, wanted, faults)) yield groupRow(step, directory.names)
}

function* segmentRows(directory: DataDirectory, options: OptionTexts, faults: WalkFaults): Generator<Row> {
  const { journals, wanted } = choose(directory, options)
  for (const placed of segmentsOf(directory, journals, wanted, faults)) yield segmentRow(placed, directory.names)
}

function* manifestsRows(directory: DataDirectory, options: OptionTexts): Generator<Row> {
  const { journals } = choose(directory, options)
  for (const placed of manifestsOf(directory, journals)) yield* manifestRows(placed, directory.names)
}

function whyNot({ journals }: DataDirectory, found: FoundPartition | null): string {
  if (found !== null) return `does not have that partition: shard ${found.shard} has`
  return `is not there: the directory has shards ${journals.map(journal => journal.shard).join(', ') || '(none)'}`
}

interface FoundPartition {
  readonly name: PartitionName
  readonly wanted: Wanted
  readonly shard: number
  /** The journal that has it; none before its shard wrote anything. */
  readonly journals: readonly ShardJournal[]
}

/** @throws UsageError if there is no such partition; StoreOpenError if the store cannot say. */
function findPartition({ store, names, journals }: DataDirectory, options: OptionTexts): FoundPartition {
  const topicName = requiredText(options, 'topic', '--topic')
  const partition = smallWholeOf(requiredText(options, 'partition', '--partition'), '--partition', u32) ?? 0
  const offset = smallWholeOf(options['offset'], '--offset', { min: 0n, max: safeMax }) ?? 0
  const { topics, shardCount } = imageOf(store.image)
  const topic = topics.find(topic => topic.name === topicName)
  if (topic === undefined)
    throw new UsageError(`--topic '${topicName}' is not in the store: 'millrace inspect topics' lists all`)
  if (partition >= topic.partitionCount) {
    throw new UsageError(`--partition ${partition}: topic '${topicName}' has ${topic.partitionCount}, numbered from 0`)
  }
  const handle = handleOf(topic, partition)
  const shard = shardCount === null ? 0 : shardOf(handle, shardCount)
  return {
    name: names.nameOf(handle),
    wanted: { handle, offset },
    shard,
    journals: journals.filter(journal => journal.shard === shard)
  }
}

function imageOf(image: StoreImage | null): StoreImage {
  if (image !== null) return image
  throw new StoreOpenError('damaged', "the store cannot be read, so nothing has a name: try 'inspect groups --shard 0'")
}

/** Of both layers: what is settled comes before what lies in slots. */
function* batchPlaces(directory: DataDirectory, found: FoundPartition, faults: WalkFaults): Generator<PlacedBatch> {
  yield* settledBatchesOf(directory, found.journals, found.wanted, faults)
  for (const step of groupsOf(directory, found.journals, found.wanted, faults)) {
    if (step.step.kind === 'lost') faults.damageCount++
    yield* batchesOf(step, found.wanted)
  }
}

function* batchRows(directory: DataDirectory, options: OptionTexts, faults: WalkFaults): Generator<Row> {
  const found = findPartition(directory, options)
  for (const batch of batchPlaces(directory, found, faults)) yield batchRow(batch, found.name)
}

function* recordRows(directory: DataDirectory, options: OptionTexts, faults: WalkFaults): Generator<Row> {
  const found = findPartition(directory, options)
  const records = new BatchRecords()
  const { cursor } = records
  for (const batch of batchPlaces(directory, found, faults)) {
    if (batch.status !== batchStatus.ok) {
      yield batchRow(batch, found.name)
      continue
    }
    records.open(batch.bytes, batch.view)
    while (cursor.next()) {
      if (batch.view.baseOffset + cursor.offsetDelta >= found.wanted.offset)
        yield recordRow(batch.view, records, found.name)
    }
    if (cursor.status !== batchStatus.ok) yield unreadableRow(batch, cursor.status)
  }
}

function* topicRows({ store }: DataDirectory, options: OptionTexts): Generator<Row> {
  const name = textOf(options['topic'])
  const { topics, tombstones } = imageOf(store.image)
  for (const topic of topics) if (name === null || topic.name === name) yield topicRow(topic)
  for (const topic of tombstones) if (name === null || topic.name === name) yield tombstoneRow(topic)
}
