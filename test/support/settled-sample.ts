/**
 * A data directory with data in both layers, for the tests of what reads it: a partition with files of its own and one
 * that still grows, a tiny one in packs, and records of all of them in slots behind.
 */
import { createHash } from 'node:crypto'
import { dirname } from 'node:path'
import type { Disk } from '../../src/disk/disk.ts'
import { DiskError } from '../../src/disk/disk.ts'
import { SimulatedDisk } from '../../src/disk/simulated-disk.ts'
import { readManifest } from '../../src/log/manifest-file.ts'
import type { Manifest, ManifestPartition } from '../../src/log/manifest.ts'
import type { ShardLog } from '../../src/log/shard-log.ts'
import { append, openLog, partitionOf, readBack, testDirectory, type DamagedRange } from './log-harness.ts'
import { settleAll } from './log-settle.ts'

/** Handles 1 to 3 are partitions of one topic, whose id is 1. */
export const settledTopic = { firstHandle: 1, partitionCount: 3, segmentBytes: 700 * 1024 }

export function openSettled(disk: Disk): ShardLog {
  const log = openLog(disk)
  log.table.open(settledTopic)
  return log
}

const SETTLED_ROUNDS = 4
const ROUND_RECORDS = 16
const UNSETTLED_RECORDS = 4
/** Of partitions 0 and 1 each. */
export const settledRecords = SETTLED_ROUNDS * ROUND_RECORDS
export const allSettledRecords = 2 * settledRecords + 1
export const unsettledRecords = 2 * UNSETTLED_RECORDS

/** Partition 0: large records; 1: small ones; 2: one in the first round only. */
function appendRound(log: ShardLog, round: number, count: number): void {
  for (let i = 0; i < count; i++) {
    const records = [
      { partition: 0, key: Buffer.from(`k${i}`), value: Buffer.from(`${round}.${i} `.padEnd(30_000, 'x')) },
      { partition: 1, key: null, value: Buffer.from(`small ${round}.${i}`) }
    ]
    if (round === 0 && i === 0) records.push({ partition: 2, key: null, value: Buffer.from('only one') })
    append(log, { firstHandle: 1, records })
  }
}

/** Four rounds settled one by one, some of a fifth in slots. */
export function makeSettled(): SimulatedDisk {
  const disk = new SimulatedDisk()
  const log = openSettled(disk)
  for (let round = 0; round < SETTLED_ROUNDS; round++) {
    appendRound(log, round, ROUND_RECORDS)
    log.sealOpenSlot()
    settleAll(disk, log, { placeOf: handle => ({ kind: 'kept', directory: `topics/orders~1/${handle - 1}` }) })
  }
  appendRound(log, SETTLED_ROUNDS, UNSETTLED_RECORDS)
  log.close()
  return disk.killProcess()
}

export interface Served {
  /** Offset, epoch and a digest of each record: short enough for a readable difference. */
  readonly records: readonly string[]
  readonly damaged: readonly DamagedRange[]
}

/** All that a start over these files serves of a partition of the topic. */
export function servedOf(tree: Tree, partition: number): Served {
  const log = openSettled(diskOfTree(tree))
  const { records, damaged } = readBack(log, partitionOf(log, 1, partition))
  return {
    damaged,
    records: records.map(({ offset, leaderEpoch, key, value }) => {
      const digest = createHash('sha1').update(String(key)).update(value).digest('hex').slice(0, 12)
      return `${offset} ${leaderEpoch} ${digest}`
    })
  }
}

export function manifestOf(disk: Disk): Manifest {
  const verdict = readManifest(disk, testDirectory)
  if (verdict?.kind !== 'manifest') throw new Error('there is no whole manifest')
  return verdict.manifest
}

export function settledPartition(disk: Disk, partition: number): ManifestPartition {
  const found = manifestOf(disk).partitions.get(partition + 1)
  if (found === undefined) throw new Error(`partition ${partition} is not settled`)
  return found
}

/** Files by their path relative to /data. */
export type Tree = ReadonlyMap<string, Buffer>

/** Every file below /data as the next process would see it. */
export function takeTree(disk: Disk, folder = '/data', tree = new Map<string, Buffer>()): Map<string, Buffer> {
  for (const name of disk.list(folder)) {
    const path = `${folder}/${name}`
    if (isDirectory(disk, path)) takeTree(disk, path, tree)
    else tree.set(path.slice('/data/'.length), bytesOf(disk, path))
  }
  return tree
}

function bytesOf(disk: Disk, path: string): Buffer {
  const file = disk.open('segment.open', path)
  const bytes = Buffer.alloc(file.sizeBytes())
  file.read('segment.read', bytes, 0, bytes.length, 0)
  file.close()
  return bytes
}

function isDirectory(disk: Disk, path: string): boolean {
  try {
    disk.list(path)
    return true
  } catch (error) {
    if (error instanceof DiskError) return false
    throw error
  }
}

/** A disk that durably holds these files and nothing else. */
export function diskOfTree(tree: Tree): SimulatedDisk {
  const directories = new Set<string>(['/data'])
  for (const path of tree.keys()) {
    for (let folder = dirname(path); folder !== '.'; folder = dirname(folder)) directories.add(`/data/${folder}`)
  }
  const disk = new SimulatedDisk({ directories: [...directories].sort() })
  for (const [path, bytes] of tree) {
    const file = disk.create('segment.create', `/data/${path}`)
    file.write('segment.write', new Uint8Array(bytes), 0, bytes.length, 0)
    file.sync('segment.sync')
    file.close()
  }
  for (const directory of directories) disk.syncDirectory('segment.directory-sync', directory)
  return disk
}

/** The files with one of them changed by `change`, which gets a copy of its bytes; null takes it away. */
export function withFile(tree: Tree, path: string, change: (bytes: Buffer) => Buffer | null): Tree {
  const old = tree.get(path)
  if (old === undefined) throw new RangeError(`there is no ${path}`)
  const changed = new Map(tree)
  const bytes = change(Buffer.from(old))
  if (bytes === null) changed.delete(path)
  else changed.set(path, bytes)
  return changed
}

/** The files with one bit turned. */
export function withBit(tree: Tree, path: string, at: number, bit = 0): Tree {
  return withFile(tree, path, bytes => {
    bytes[at] = (bytes[at] ?? 0) ^ (1 << bit)
    return bytes
  })
}
