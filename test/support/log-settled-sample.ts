/**
 * A shard whose data lies in every kind of place, for the tests of damage: in packs, in files of its own, sealed and not,
 * and in a slot. One topic; every record is known.
 *
 *   partition 0   little: extents in two packs, and a slot
 *   partition 1   much: first in a pack, then moved to its own file, of two extents, not sealed
 *   partition 2   much, in small segments: several sealed ones with indexes, and an active one
 */
import type { Disk } from '../../src/disk/disk.ts'
import { SimulatedDisk } from '../../src/disk/simulated-disk.ts'
import type { ShardLog } from '../../src/log/shard-log.ts'
import { append, openLog, partitionOf, readBack, type ReadRecord } from './log-harness.ts'
import { diceOf } from './log-random.ts'
import { settleAll } from './log-settle.ts'
import { takeTree, type DataTree } from './log-tree.ts'

export const settledSizes = { ownBytesMin: 12_000, turnBytes: 4096 }
const topic = { firstHandle: 1, partitionCount: 3, segmentBytes: 30_000 }

export interface SettledSample {
  readonly tree: DataTree
  /** Of each partition, from offset 0 on. */
  readonly records: readonly (readonly ReadRecord[])[]
}

/** @param salts so that a shard that starts again draws others. */
export function openSettled(disk: Disk, salts = 1): ShardLog {
  const dice = diceOf(salts)
  const log = openLog(disk, { drawSalt: () => dice.bytes(8) })
  log.table.open(topic)
  return log
}

export function appendTo(log: ShardLog, partition: number, ...values: readonly Buffer[]): void {
  append(log, { firstHandle: 1, records: values.map(value => ({ partition, key: null, value })) })
}

export function makeSettledSample(): SettledSample {
  const dice = diceOf(77)
  const disk = new SimulatedDisk()
  const log = openSettled(disk)
  const fill = (partition: number, groups: number, valueBytes: number): void => {
    for (let group = 0; group < groups; group++) {
      appendTo(log, partition, ...Array.from({ length: 3 }, () => dice.bytes(1 + dice.below(valueBytes))))
    }
  }
  for (const round of [0, 1]) {
    fill(0, 4, 500)
    fill(1, 4, round === 0 ? 900 : 2500)
    fill(2, 40, 900)
    log.sealOpenSlot()
    settleAll(disk, log, { sizes: settledSizes })
  }
  fill(1, 2, 500)
  log.sealOpenSlot()
  settleAll(disk, log, { sizes: settledSizes })
  fill(0, 2, 200)
  return {
    tree: takeTree(disk),
    records: [0, 1, 2].map(partition => readBack(log, partitionOf(log, 1, partition)).records)
  }
}
