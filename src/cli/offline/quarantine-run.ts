/** Runs `quarantine list` and `quarantine skip`. */
import { dirname } from 'node:path'
import type { Disk } from '../../disk/disk.ts'
import { Decisions, readDecisions, writeDecisions, type Decision } from '../../log/decisions.ts'
import type { OptionTexts } from '../common-options.ts'
import { exitCodes, print, UsageError, type CliIo, type ExitCode } from '../io.ts'
import type { DataDirectory } from './data-directory.ts'
import { withDataDirectory } from './offline-run.ts'
import {
  NO_GROUP,
  findItems,
  nextReadable,
  type GivenUp,
  type QuarantineItem,
  type ShardItems
} from './quarantine-items.ts'
import { showPartition } from './partition-names.ts'

const COPIED_BYTES = 1024 * 1024

/** @returns ok, refused if anything is damaged, unreachable if the directory cannot be opened. */
export function runQuarantineList(options: OptionTexts, io: CliIo): Promise<ExitCode> {
  return withDataDirectory(options, io, async directory => {
    const shards = directory.journals.map(journal => findItems(directory, journal))
    const items = shards.flatMap(shard => shard.items)
    const refusals = shards.flatMap(shard => shard.refusals)
    if (options['json'] === true) {
      for (const item of items) await print(io.stdout, `${JSON.stringify(itemJson(item, items))}\n`)
    } else {
      for (const item of items) await print(io.stdout, `${showItem(item, items)}\n`)
    }
    for (const refusal of refusals) await print(io.stderr, `millrace: ${refusal}: bring the file back from a backup\n`)
    if (items.length + refusals.length > 0) return exitCodes.refused
    await print(
      io.stderr,
      "millrace: no damage is known, and nothing is to be decided; only 'millrace verify' reads all data\n"
    )
    return exitCodes.ok
  })
}

/** @param ids of undecided items. @returns refused without --yes. @throws UsageError for an id that is none. */
export function runQuarantineSkip(ids: readonly string[], options: OptionTexts, io: CliIo): Promise<ExitCode> {
  const isAgreed = options['yes'] === true
  const skip = async (directory: DataDirectory): Promise<ExitCode> => {
    const shards = directory.journals.map(journal => findItems(directory, journal))
    const items = shards.flatMap(shard => shard.items)
    const chosen = ids.map(id => items.find(item => item.undecided?.id === id) ?? noItem(id))
    for (const item of chosen) await print(io.stdout, `${showLoss(item, items)}\n`)
    const refusal = shards.flatMap(shard => shard.refusals).at(0)
    if (refusal !== undefined) {
      await print(io.stderr, `millrace: ${refusal}: bring the file back from a backup\n`)
      return exitCodes.unreachable
    }
    if (!isAgreed) {
      await print(io.stderr, 'millrace: nothing was changed: repeat with --yes to give this up\n')
      return exitCodes.refused
    }
    for (const shard of shards) decide(directory, shard, chosen)
    await print(io.stdout, `given up: ${ids.join(' ')}\n`)
    return exitCodes.ok
  }
  return withDataDirectory(options, io, skip, isAgreed)
}

function noItem(id: string): never {
  throw new UsageError(`'${id}' is nothing to decide: 'millrace quarantine list' names what is`)
}

/** Keeps the bytes, then writes the decisions: a kill in between has changed nothing that counts. */
function decide(directory: DataDirectory, shard: ShardItems, chosen: readonly QuarantineItem[]): void {
  const { journal } = shard
  const made = chosen.flatMap(({ journal: own, undecided }) =>
    undecided === null || own.shard !== journal.shard ? [] : decisionsOf(undecided.givesUp, shard)
  )
  if (made.length === 0) return
  for (const { journal: own, undecided } of chosen) {
    if (own.shard === journal.shard && undecided?.givesUp.action === 'skip-group') {
      keepBytes(directory, journal.shard, undecided.givesUp)
    }
  }
  const old = readDecisions(directory.disk, journal.directory)
  writeDecisions(directory.disk, journal.directory, new Decisions([...old.all, ...made]))
}

function decisionsOf(givesUp: GivenUp, { newestSlot, missing }: ShardItems): Decision[] {
  const decided = { newestSlot, decidedMs: Date.now() }
  switch (givesUp.action) {
    case 'skip-group':
      return [{ action: 'skip-group', slot: givesUp.slot, position: givesUp.position, ...decided }]
    case 'skip-slots':
      return [{ action: 'skip-slots', firstSlot: givesUp.firstSlot, lastSlot: givesUp.lastSlot, ...decided }]
    case 'skip-file': {
      const file: Decision = { action: 'skip-file', file: givesUp.file, ...decided }
      if (missing.length > 0) return [file]
      // It may have been the newest slot, of which nothing else knows: its number is not given again.
      const slot = newestSlot + 1
      return [file, { action: 'skip-slots', firstSlot: slot, lastSlot: slot, ...decided, newestSlot: slot }]
    }
  }
}

/** Copies the bytes of lost groups below `quarantine`: their slot will be used again. */
function keepBytes(
  { disk, path: dataDir }: DataDirectory,
  shard: number,
  lost: GivenUp & { action: 'skip-group' }
): void {
  const folder = `${dataDir}/quarantine`
  if (!disk.exists(folder)) disk.makeDirectory('segment.directory', folder)
  const path = `${folder}/${shard}-slot-${lost.slot}-${lost.position}.bytes`
  if (disk.exists(path)) disk.remove('segment.remove', path)
  copyRange(disk, lost, path)
  disk.syncDirectory('segment.directory-sync', folder)
  disk.syncDirectory('segment.directory-sync', dirname(folder))
}

function copyRange(disk: Disk, { path, bytes }: GivenUp & { action: 'skip-group' }, target: string): void {
  const source = disk.open('slot.open', path)
  const copy = disk.create('quarantine.create', target)
  try {
    const piece = Buffer.alloc(COPIED_BYTES)
    for (let at = bytes.startByte; at < bytes.endByte;) {
      const read = source.read('slot.read', piece, 0, Math.min(piece.length, bytes.endByte - at), at)
      if (read === 0) break
      copy.write('quarantine.write', piece, 0, read, at - bytes.startByte)
      at += read
    }
    copy.sync('quarantine.sync')
  } finally {
    copy.close()
    source.close()
  }
}

/** `damaged: file, bytes 8192 to 9000 (809)`, whose records and what is known; the command that decides, if one must. */
function showItem(item: QuarantineItem, items: readonly QuarantineItem[]): string {
  const lines = showPlace(item, items)
  if (item.undecided === null) return `damaged: ${lines.join('\n  ')}`
  const command = `its shard does not start; to give it up: millrace quarantine skip ${item.undecided.id}`
  return `undecided: ${[...lines, command].join('\n  ')}`
}

function showPlace(item: QuarantineItem, items: readonly QuarantineItem[]): string[] {
  const { file, bytes, offsets, problem } = item
  const range =
    bytes === null ? '' : `, bytes ${bytes.startByte} to ${bytes.endByte - 1} (${bytes.endByte - bytes.startByte})`
  const whose =
    offsets === null
      ? []
      : [
          `${showPartition(offsets.partition)}, offsets ${offsets.firstOffset} to ${offsets.lastOffset}; ` +
            `next readable offset ${nextReadable(item, items)}`
        ]
  return [`${file}${range}`, ...whose, problem]
}

/** What a decision gives up: also the offsets that are known to be missing from its shard. */
function showLoss(item: QuarantineItem, items: readonly QuarantineItem[]): string {
  const { journal } = item
  const gaps = items.filter(other => other.journal.shard === journal.shard && other.problem === NO_GROUP)
  const missing = gaps.map(gap => `  missing from the shard: ${showPlace(gap, items).slice(1, 2).join('')}`)
  const unknown =
    missing.length > 0
      ? '  and, of partitions to which nothing was written later, records whose offsets nothing knows'
      : '  records of this shard whose partitions and offsets nothing knows'
  const epochs = `  all partitions of shard ${journal.shard} begin a new leader epoch; offsets that nothing knows are given again`
  return [`to give up: ${showPlace(item, items).join('\n  ')}`, ...missing, unknown, epochs].join('\n')
}

/** Byte ranges exclude their end, offset ranges include it. */
function itemJson(item: QuarantineItem, items: readonly QuarantineItem[]): object {
  const { journal, file, bytes, offsets, problem, undecided } = item
  return {
    kind: undecided === null ? 'damaged' : 'undecided',
    id: undecided?.id ?? null,
    shard: journal.shard,
    topic: offsets?.partition.topic ?? null,
    partition: offsets?.partition.partition ?? null,
    first_offset: offsets?.firstOffset ?? null,
    last_offset: offsets?.lastOffset ?? null,
    next_offset: nextReadable(item, items),
    file,
    start_byte: bytes?.startByte ?? null,
    end_byte: bytes?.endByte ?? null,
    problem
  }
}
