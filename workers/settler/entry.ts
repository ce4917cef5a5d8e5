/**
 * Entry of the settler thread: one for all shards. Fills slots ahead, settles sealed ones, removes files that are due. The
 * only writer of manifests (S1). Started by main when there is something to do, ended when there is not.
 *
 * Jobs of one kind run one after another; fills and settles take turns, so that neither waits for the other.
 */
import { setImmediate as turn, setTimeout as pause } from 'node:timers/promises'
import { parentPort, workerData } from 'node:worker_threads'
import { assert } from '../../src/base/assert.ts'
import { DiskError } from '../../src/disk/disk.ts'
import { parseFaultPlan } from '../../src/disk/fault-plan.ts'
import { createRealDisk } from '../../src/disk/real-disk.ts'
import { beginFill } from '../../src/log/slot-files.ts'
import type { SettlerJob, SettlerReply, SettlerStart } from '../../src/wire/shard/settle.ts'
import { FillPace } from './fill-pace.ts'
import { ManifestDesk, type ManifestJob } from './manifest-desk.ts'

const { faults } = workerData as SettlerStart
const disk = createRealDisk(faults === null ? undefined : parseFaultPlan(faults))
const port = parentPort
assert(port !== null, 'the settler runs as a worker')

function reply(message: SettlerReply): void {
  port?.postMessage(message)
}

type FillJob = Extract<SettlerJob, { kind: 'fill' }>
const fills: FillJob[] = []
/** Of each shard that had a slot filled, which all have at their start: they tell whether it is at work. */
const countersOf = new Map<number, SharedArrayBuffer>()
const pace = new FillPace(() => countersOf.values())
const manifestJobs: ManifestJob[] = []
const cancelled = new Set<number>()
const desk = new ManifestDesk(disk, reply, shard => cancelled.has(shard))
let isFilling = false
/** Shard whose slot is filled; −1: none. */
let filling = -1
let isSettling = false

async function fillAll(): Promise<void> {
  if (isFilling) return
  isFilling = true
  for (let job = fills.shift(); job !== undefined; job = fills.shift()) {
    const { shard, name, bytes } = job
    filling = shard
    const problem = await fill(job)
    if (!cancelled.has(shard)) reply({ kind: 'filled', shard, name, bytes, problem })
  }
  filling = -1
  isFilling = false
}

/** @returns what the disk said against it: the shard goes on without filled slots. */
async function fill({ shard, directory, name, bytes }: FillJob): Promise<string | null> {
  try {
    const slot = beginFill(disk, directory, name, bytes)
    for (;;) {
      const startMs = performance.now()
      if (slot.step()) return null
      const nowMs = performance.now()
      await pause(pace.nextPauseMs(nowMs - startMs, nowMs))
      if (cancelled.has(shard)) {
        slot.abandon()
        return null
      }
    }
  } catch (error) {
    if (error instanceof DiskError) return error.message
    throw error
  }
}

async function settleAll(): Promise<void> {
  if (isSettling) return
  isSettling = true
  for (let job = manifestJobs.shift(); job !== undefined; job = manifestJobs.shift()) await desk.run(job)
  isSettling = false
}

/** Resolves when nothing of the shard runs or waits any more. What others have under way is not waited for. */
async function cancel(shard: number): Promise<void> {
  cancelled.add(shard)
  const drop = <T>(queue: T[], of: (job: T) => number): void => {
    for (let i = queue.length - 1; i >= 0; i--) if (of(queue[i] as T) === shard) queue.splice(i, 1)
  }
  drop(fills, job => job.shard)
  drop(manifestJobs, job => job.place.shard)
  while (filling === shard || desk.running === shard) {
    await (desk.running === shard ? turn() : pause(1))
  }
  desk.forget(shard)
  cancelled.delete(shard)
  reply({ kind: 'cancelled', shard })
}

port.on('message', (job: SettlerJob) => {
  if (job.kind === 'cancel') void cancel(job.shard)
  else if (job.kind === 'doubt') desk.doubt(job.shard)
  else if (job.kind === 'fill') {
    fills.push(job)
    countersOf.set(job.shard, job.counters)
    void fillAll()
  } else {
    manifestJobs.push(job)
    void settleAll()
  }
})
