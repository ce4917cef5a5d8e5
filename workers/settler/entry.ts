/**
 * The settler thread. For now it fills slots with zeros ahead of the shards (W9): in pieces of 1 MiB, each synced, with
 * pauses, because one large background sync is what a writer on the same disk would feel.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { parentPort } from 'node:worker_threads'
import { assert } from '../../src/base/assert.ts'
import { DiskError } from '../../src/disk/disk.ts'
import { createRealDisk } from '../../src/disk/real-disk.ts'
import { beginFill } from '../../src/log/slot-files.ts'
import type { FillDone, FillJob } from '../../src/wire/shard/fill.ts'

/** Between two pieces: measured to keep a writer's p99 under 2 ms. */
const PAUSE_MS = 5

const disk = createRealDisk()
const port = parentPort
assert(port !== null, 'the settler runs as a worker')

async function fill(job: FillJob): Promise<string | null> {
  try {
    const filling = beginFill(disk, job.directory, job.name, job.bytes)
    while (!filling.step()) await pause(PAUSE_MS)
    return null
  } catch (error) {
    // The disk refused: the shard goes on without filled slots, and the log says why.
    if (error instanceof DiskError) return error.message
    throw error
  }
}

port.on('message', (job: FillJob) => {
  void fill(job).then(problem => port.postMessage({ job, problem } satisfies FillDone))
})
