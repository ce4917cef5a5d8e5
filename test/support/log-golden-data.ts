/**
 * The data directory of test/fixtures/data-v1, made again from nothing: fixed salts, fixed clock, known records.
 *
 *   handle 1   little, of producer 7 too: extents in two packs, and a slot
 *   handle 2   from a pack to a file of its own, sealed; one run was damaged in its slot and is in quarantine; and a slot
 *   handle 3   small segments with files of their own: sealed ones with indexes, an active one; its start offset moved
 */
import type { Disk } from '../../src/disk/disk.ts'
import { SimulatedDisk } from '../../src/disk/simulated-disk.ts'
import type { ShardLog } from '../../src/log/shard-log.ts'
import {
  ManualClock,
  append,
  openLog,
  partitionOf,
  readBack,
  testDirectory,
  textRecord,
  type TestRequest
} from './log-harness.ts'
import { settleAll } from './log-settle.ts'
import { takeTree, type DataTree } from './log-tree.ts'

const KIB = 1024
const PRODUCER = 7
const topic = { firstHandle: 1, partitionCount: 3, segmentBytes: 9000 }

/** Of its manifest and packs. Its slots say 5, which nobody reads. */
export const GOLDEN_EPOCH = 1
const SLOTS_EPOCH = 5

export function openGoldenData(
  disk: Disk,
  salts: readonly string[],
  clock = new ManualClock(),
  placementEpoch = GOLDEN_EPOCH
): ShardLog {
  let drawn = 0
  const log = openLog(disk, {
    slotBytes: 64 * KIB,
    firstSlotBytes: 64 * KIB,
    placementEpoch,
    clock,
    drawSalt: () => Buffer.from(salts[drawn++] ?? 'no salt!')
  })
  log.table.open(topic)
  return log
}

/** Every file, byte for byte, by absolute path. */
export function buildGoldenData(): DataTree {
  const clock = new ManualClock(1_700_000_000_000)
  const disk = new SimulatedDisk()
  const log = openGoldenData(disk, ['salt one', 'salt two', 'salt 333', 'salt 4444'], clock, SLOTS_EPOCH)
  let sequence = 2n ** 40n
  const write = (round: number): void => {
    for (let group = 0; group < 3; group++) {
      append(log, ...requestsOf(round * 10 + group, sequence))
      sequence += 2n
      clock.wallMs += 1000
    }
  }
  for (const round of [0, 1]) {
    write(round)
    if (round === 1) damageOneRun(disk, log)
    log.sealOpenSlot()
    settleAll(disk, log, { sizes: { ownBytesMin: 6000, turnBytes: 4096 }, nowMs: clock.wallMs })
  }
  write(2)
  log.moveStarts([{ log: partitionOf(log, 1, 2), offset: 5 }])
  return takeTree(disk)
}

function requestsOf(group: number, sequence: bigint): TestRequest[] {
  const text = (name: string, length: number): string => `${name} ${group} `.padEnd(length, '.-')
  return [
    {
      firstHandle: 1,
      producer: PRODUCER,
      records: [0, 1].map(i => ({ ...textRecord(0, `k${i}`, text('paid', 30)), sequence: sequence + BigInt(i) }))
    },
    { firstHandle: 1, records: [textRecord(0, null, text('note', 20)), textRecord(1, 'gone', '')] },
    {
      firstHandle: 1,
      records: [textRecord(1, 'k', text('large', 1500)), textRecord(2, null, text('seen', 4000))]
    }
  ]
}

/** Turns a bit of the second run of handle 2 in the open slot. */
function damageOneRun(disk: SimulatedDisk, log: ShardLog): void {
  const { runs } = partitionOf(log, 1, 1)
  const file = disk.open('slot.open', `${testDirectory}/${log.files.nameOf(runs.slot(1))}`)
  file.write('slot.fill', Uint8Array.of(0x21), 0, 1, runs.position(1) + 300)
  file.close()
}

/** What it holds, as plain values for JSON. */
export function goldenDataContents(log: ShardLog): unknown {
  return Array.from({ length: topic.partitionCount }, (_, partition) => {
    const partitionLog = partitionOf(log, 1, partition)
    const { startOffset, highWatermark, segmentCount, sizeBytes } = partitionLog
    const { records, damaged } = readBack(log, partitionLog, startOffset)
    const producer = partitionLog.producers.of(PRODUCER)
    return {
      handle: partitionLog.handle,
      startOffset,
      highWatermark,
      segments: segmentCount,
      bytes: sizeBytes,
      nextSequence: producer === null ? null : String(producer.sequenceAt(producer.next)),
      damaged,
      records: records.map(({ offset, key, value, timestampMs, leaderEpoch }) => ({
        offset,
        key: key?.toString() ?? null,
        value: value.toString(),
        timestampMs,
        leaderEpoch
      }))
    }
  })
}
