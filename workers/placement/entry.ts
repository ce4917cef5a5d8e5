/**
 * Entry of the placement thread: one task, then it ends. Works on the journals, manifests and packs of a directory whose
 * shards do not run; blocks in the disk by design. Main commits in the store what follows from the task.
 */
import { randomBytes } from 'node:crypto'
import { parentPort, workerData } from 'node:worker_threads'
import { assert } from '../../src/base/assert.ts'
import { systemClock } from '../../src/base/clock.ts'
import { DiskError, type Disk } from '../../src/disk/disk.ts'
import { parseFaultPlan } from '../../src/disk/fault-plan.ts'
import { createRealDisk } from '../../src/disk/real-disk.ts'
import { changePlacement } from '../../src/log/placement-change.ts'
import { removeEpoch } from '../../src/log/placement-removal.ts'
import { placeOfHandle } from '../../src/log/settle/handle-place.ts'
import { SettleMemory } from '../../src/log/settle/settle-memory.ts'
import { BrokerError } from '../../src/model/errors.ts'
import {
  writePlacementProgress,
  type PlacementReply,
  type PlacementTask,
  type PlacementThreadStart
} from '../../src/wire/shard/placement.ts'

const start = workerData as PlacementThreadStart
const port = parentPort
assert(port !== null, 'a change of placement runs as a worker')
port.postMessage(run(createRealDisk(start.faults === null ? undefined : parseFaultPlan(start.faults)), start))

/** Refusals of the disk and what needs an operator are answers; only bugs are thrown. */
function run(disk: Disk, { dataDirectory, task, progress }: PlacementThreadStart): PlacementReply {
  try {
    if (task.kind === 'remove') removeEpoch(disk, dataDirectory, task.placementEpoch, task.shardCount ?? undefined)
    else change(disk, dataDirectory, task, progress)
    return { kind: 'done' }
  } catch (error) {
    if (error instanceof DiskError) return { kind: 'failed', problem: error.message }
    if (error instanceof BrokerError)
      return { kind: 'failed', problem: String(error.details['problem'] ?? error.message) }
    throw error
  }
}

function change(
  disk: Disk,
  dataDirectory: string,
  { from, to, newestSlots, topics }: Extract<PlacementTask, { kind: 'change' }>,
  shared: SharedArrayBuffer
): void {
  const steps = changePlacement({
    disk,
    dataDirectory,
    from,
    to,
    newestSlots: new Map(newestSlots),
    placeOf: handle => placeOfHandle(topics, handle),
    memory: new SettleMemory(),
    clock: systemClock,
    drawSalt: () => randomBytes(8)
  })
  for (const progress of steps) writePlacementProgress(shared, progress)
}
