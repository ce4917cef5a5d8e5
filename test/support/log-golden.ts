/**
 * The journal of test/fixtures/journal-v1, made again from nothing: fixed salts, fixed clock, known records.
 *
 *   0001.slot  sealed because it was full
 *   0002.slot  found open with a torn last group, sealed by the start that found it
 *   0003.slot  the copy of the last whole group, the new leader epoch, one group more; sealed by a clean end
 */
import { SimulatedDisk } from '../../src/disk/simulated-disk.ts'
import type { ShardLog } from '../../src/log/shard-log.ts'
import { ManualClock, append, openLog, partitionOf, readBack, textRecord, type TestRequest } from './log-harness.ts'
import { diskOf, takeImage, withChange, type JournalImage } from './log-image.ts'

export const goldenTopics = [
  { firstHandle: 1, partitionCount: 2, segmentBytes: 2000 },
  { firstHandle: 3, partitionCount: 1, segmentBytes: 2 ** 31 - 1 }
] as const

const KIB = 1024

/** One request to each topic; the numbers make the records different. */
function requestsOf(group: number): TestRequest[] {
  const orders = [0, 1, 2].map(i =>
    textRecord(i % 2, `order-${group}-${i}`, `{"group":${group},"item":${i},"pad":"${'p'.repeat(200 * i)}"}`)
  )
  const notes = [textRecord(0, null, `note ${group}`), textRecord(0, 'gone', '')]
  return [
    { firstHandle: 1, records: orders },
    { firstHandle: 3, records: notes }
  ]
}

export function openGolden(
  image: JournalImage,
  salts: readonly string[],
  clock = new ManualClock()
): { log: ShardLog; disk: SimulatedDisk } {
  const disk = image.size === 0 ? new SimulatedDisk() : diskOf(image)
  let drawn = 0
  const log = openLog(disk, {
    slotBytes: 32 * KIB,
    firstSlotBytes: 32 * KIB,
    placementEpoch: 5,
    clock,
    drawSalt: () => Buffer.from(salts[drawn++] ?? 'no salt!')
  })
  for (const topic of goldenTopics) log.table.open(topic)
  return { log, disk }
}

/** The files of the journal, byte for byte. */
export function buildGolden(): JournalImage {
  const clock = new ManualClock(1_700_000_000_000)
  const first = openGolden(new Map(), ['salt one', 'salt two'], clock)
  for (let group = 1; group <= 7; group++) {
    append(first.log, ...requestsOf(group))
    clock.wallMs += 1000
  }
  // The last group loses its end.
  const torn = withChange(takeImage(first.disk), '0002.slot', bytes => bytes.fill(0, bytes.length - 2048))
  const second = openGolden(torn, ['salt 333'], clock)
  append(second.log, ...requestsOf(8))
  second.log.close()
  return takeImage(second.disk)
}

/** What the golden journal holds, as plain values for JSON. */
export function goldenRecords(log: ShardLog): unknown {
  return goldenTopics.flatMap(({ firstHandle, partitionCount }) =>
    Array.from({ length: partitionCount }, (_, partition) => {
      const partitionLog = partitionOf(log, firstHandle, partition)
      return {
        handle: firstHandle + partition,
        segments: partitionLog.segmentCount,
        bytes: partitionLog.sizeBytes,
        records: readBack(log, partitionLog).records.map(({ offset, key, value, timestampMs, leaderEpoch }) => ({
          offset,
          key: key?.toString() ?? null,
          value: value.toString(),
          timestampMs,
          leaderEpoch
        }))
      }
    })
  )
}
