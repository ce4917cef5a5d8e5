/**
 * A small journal with known content for the tests of damage: one slot sealed when it was full, one that a clean end
 * sealed, and an open one. Three topics; every group's place is known.
 */
import { SimulatedDisk } from '../../src/disk/simulated-disk.ts'
import type { ShardLog, ShardLogOptions } from '../../src/log/shard-log.ts'
import { append, openLog, partitionOf, readBack, type ReadRecord, type TestRequest } from './log-harness.ts'
import { takeImage, type JournalImage } from './log-image.ts'
import { diceOf } from './log-random.ts'

const KIB = 1024

export interface SampleGroup {
  readonly file: string
  readonly position: number
  readonly endPosition: number
}

export interface Sample {
  readonly image: JournalImage
  readonly groups: readonly SampleGroup[]
  /** By handle, from offset 0 on. */
  readonly records: ReadonlyMap<number, readonly ReadRecord[]>
  readonly fullFile: string
  readonly closedFile: string
  readonly openFile: string
}

export const sampleTopics = [
  { firstHandle: 1, partitionCount: 3, segmentBytes: 4000 },
  { firstHandle: 10, partitionCount: 1, segmentBytes: 2 ** 31 - 1 }
] as const

export const sampleOptions: Partial<ShardLogOptions> = { slotBytes: 64 * KIB, firstSlotBytes: 48 * KIB }

export function openSample(disk: SimulatedDisk, options: Partial<ShardLogOptions> = {}): ShardLog {
  const dice = diceOf(99)
  const log = openLog(disk, { ...sampleOptions, drawSalt: () => dice.bytes(8), ...options })
  for (const topic of sampleTopics) log.table.open(topic)
  return log
}

/** Every record of every handle that has any. */
export function allRecords(log: ShardLog): Map<number, ReadRecord[]> {
  const found = new Map<number, ReadRecord[]>()
  for (const { firstHandle, partitionCount } of sampleTopics) {
    for (let partition = 0; partition < partitionCount; partition++) {
      found.set(firstHandle + partition, readBack(log, partitionOf(log, firstHandle, partition)).records)
    }
  }
  return found
}

export function makeSample(): Sample {
  const dice = diceOf(2024)
  let disk = new SimulatedDisk()
  let log = openSample(disk)
  const groups: SampleGroup[] = []
  const names: string[] = []
  const appendOne = (): void => {
    const requests: TestRequest[] = sampleTopics.map(({ firstHandle, partitionCount }) => ({
      firstHandle,
      records: Array.from({ length: 4 }, (_, i) => ({
        partition: i % partitionCount,
        key: i === 0 ? null : Buffer.from(`key ${i}`),
        value: dice.bytes(20 + dice.below(600))
      }))
    }))
    append(log, ...requests)
    const group = lastGroup(log, groups.length)
    groups.push(group)
    if (names.at(-1) !== group.file) names.push(group.file)
  }
  while (names.length < 2) appendOne()
  appendOne()
  log.close()
  disk = disk.killProcess()
  log = openSample(disk)
  while (names.length < 3) appendOne()
  for (let i = 0; i < 3; i++) appendOne()
  const records = allRecords(log)
  const image = takeImage(disk)
  const [fullFile = '', closedFile = '', openFile = ''] = names
  return { image, groups, records, fullFile, closedFile, openFile }
}

/** Where the group just appended lies: its runs say so. */
function lastGroup(log: ShardLog, index: number): SampleGroup {
  const runs = partitionOf(log, 10, 0).runs
  const last = runs.count - 1
  const file = log.files.file(runs.slot(last))
  const bytes = Buffer.alloc(64)
  const position = Math.floor(runs.position(last) / 4096) * 4096
  for (let at = position; at >= 0; at -= 4096) {
    file.read('slot.read', bytes, 0, bytes.length, at)
    if (bytes.toString('latin1', 0, 4) === 'MGRP' && Number(bytes.readBigUInt64BE(8)) === index + 1) {
      return { file: file.path.split('/').at(-1) ?? '', position: at, endPosition: at + bytes.readUInt32BE(24) }
    }
  }
  throw new Error(`group ${index + 1} is not where its run is`)
}
