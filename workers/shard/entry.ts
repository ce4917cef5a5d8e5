/**
 * Entry of a shard worker: builds the parts from workerData, opens the log by the recovery rules, runs the loop.
 * Whatever is thrown ends the thread; the main thread starts it again through recovery.
 */
import { randomBytes } from 'node:crypto'
import { workerData } from 'node:worker_threads'
import { systemClock } from '../../src/base/clock.ts'
import { IdleMemory, openHeap } from '../../src/base/idle-memory.ts'
import { parseFaultPlan } from '../../src/disk/fault-plan.ts'
import { createRealDisk } from '../../src/disk/real-disk.ts'
import { ShardLog } from '../../src/log/shard-log.ts'
import { limits } from '../../src/model/limits.ts'
import { Bell, Doorbell } from '../../src/ring/bell.ts'
import { CommitCell } from '../../src/ring/commit-cell.ts'
import { ChunkTaker } from '../../src/ring/lent-chunks.ts'
import { RingConsumer, RingProducer } from '../../src/ring/spsc-ring.ts'
import { counterIndex } from '../../src/wire/shard/counters.ts'
import type { ShardStart } from '../../src/wire/shard/start.ts'
import { Cleaning } from './cleaning.ts'
import { ColdWaits } from './cold-waits.ts'
import { epochPages } from './epoch-pages.ts'
import { ShardLoop } from './loop.ts'
import { ProduceGroup } from './produce-group.ts'
import { ReadQueue } from './read-queue.ts'
import { RecordDeletion } from './record-deletion.ts'
import { ReplyWriter } from './reply-writer.ts'
import { Settling } from './settling.ts'
import { WatchTable } from './watch-table.ts'

/** Recovery runs in here; main reads from the counters how far it is. */
function openLog(start: ShardStart, counters: Float64Array): ShardLog {
  return new ShardLog({
    disk: createRealDisk(start.faults === null ? undefined : parseFaultPlan(start.faults)),
    directory: start.directory,
    dataDirectory: start.dataDirectory,
    openFilesMax: start.openFilesMax,
    shard: start.shard,
    placementEpoch: start.placementEpoch,
    // A change of the number of shards begins each new shard with one.
    hasManifest: start.placementEpoch > 1,
    newestSlot: start.newestSlot,
    slotBytes: start.slotBytes,
    firstSlotBytes: start.firstSlotBytes,
    encodeBufferBytes: start.rings.encoded.byteLength,
    encodeMemory: start.rings.encoded,
    clock: systemClock,
    drawSalt: () => randomBytes(8),
    onScan: (doneBytes, totalBytes) => {
      counters[counterIndex.scannedBytes] = doneBytes
      counters[counterIndex.scanBytes] = totalBytes
    }
  })
}

function runShard(start: ShardStart): void {
  const { rings } = start
  const doorbell = new Doorbell(rings.asleep, start.doorbell)
  const replies = new ReplyWriter(new RingProducer(rings.replies), doorbell)
  const counters = new Float64Array(rings.counters)
  const monotonicMs = systemClock.monotonicMs
  const log = openLog(start, counters)
  counters[counterIndex.quarantinedRuns] = log.report.quarantinedRuns
  // Where nothing is filled ahead, this is not either; and a slot that is no larger is as good.
  const { recoverySlotBytes } = limits
  if (start.fillAheadBytes > 0 && start.slotBytes > recoverySlotBytes) log.files.keepReserve(recoverySlotBytes)
  for (const found of epochPages(log.table.recoveredLogs())) replies.event({ kind: 'leader-epochs', found })
  replies.event({ kind: 'recovered', report: log.report })
  const { changes, settling: settlingSettings } = start
  const settling = new Settling({ log, replies, changes, counters, settings: settlingSettings, monotonicMs })
  const watches = new WatchTable(log.table, replies)
  const group = new ProduceGroup({
    shard: start.shard,
    log,
    settling,
    requests: new RingConsumer(rings.requests),
    oversized: start.oversized,
    replies,
    cell: new CommitCell(rings.cell),
    counters,
    watches,
    onRoom: () => void doorbell.ring(),
    flushEveryRecords: start.flushEveryRecords,
    flushIntervalMs: start.flushIntervalMs,
    monotonicMs
  })
  const cleaning = new Cleaning({
    log,
    settling,
    replies,
    counters,
    settings: start.cleaning,
    monotonicMs,
    nowMs: systemClock.nowMs,
    finishGroup: () => group.finish()
  })
  const coldWaits = new ColdWaits(replies, { counters, monotonicMs })
  const chunks = new ChunkTaker(rings.lent)
  const readParts = { chunks, counters, monotonicMs, coldWaits, watches, recordBytesMax: start.recordBytesMax }
  const reads = new ReadQueue(log, new RingConsumer(rings.reads), replies, readParts)
  new ShardLoop({
    log,
    bell: new Bell(rings.bell),
    doorbell,
    control: new RingConsumer(rings.control),
    group,
    settling,
    cleaning,
    deletion: new RecordDeletion({ log, settling, replies, finishGroup: () => group.finish() }),
    reads,
    coldWaits,
    watches,
    replies,
    counters,
    idleMemory: new IdleMemory(openHeap(), monotonicMs()),
    slotBytes: start.slotBytes,
    fillAheadBytes: start.fillAheadBytes,
    budgetBytes: start.settling.budgetBytes,
    monotonicMs
  }).run()
  start.doorbell.close()
  start.oversized.close()
  start.changes.close()
}

runShard(workerData as ShardStart)
