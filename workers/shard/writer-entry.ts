/**
 * Entry of a shard's writer thread: writes and syncs one group at a time, so that the shard encodes the next one
 * meanwhile. Started when a shard has large groups; ended by main with its shard. It decides nothing: it owns no state
 * of the log and writes only where the shard said.
 */
import { workerData } from 'node:worker_threads'
import { DiskError, type Disk, type DiskFile } from '../../src/disk/disk.ts'
import { parseFaultPlan } from '../../src/disk/fault-plan.ts'
import { createRealDisk } from '../../src/disk/real-disk.ts'
import { slotFileName } from '../../src/log/slot-files.ts'
import { CommitWorker } from '../../src/ring/commit-cell.ts'
import { WRITER_BUG, WRITER_DONE, writerOutcome, type WriterStart } from '../../src/wire/shard/writer.ts'

function runWriter(start: WriterStart): void {
  const disk = createRealDisk(start.faults === null ? undefined : parseFaultPlan(start.faults))
  const memory = Buffer.from(start.memory)
  const jobs = new CommitWorker(start.cell, start.bell)
  const slots = new OpenSlot(disk, start.directory)
  jobs.ready()
  for (;;) {
    jobs.next()
    const startMs = performance.now()
    let writtenMs = startMs
    let outcome = WRITER_DONE
    try {
      const file = slots.file(jobs.slotNumber)
      file.write('group.write', memory, jobs.start, jobs.end, jobs.position)
      writtenMs = performance.now()
      file.sync('group.sync')
    } catch (error) {
      // The shard throws it again on its own thread, where it is reported.
      outcome = error instanceof DiskError ? writerOutcome(error.code, error.point === 'group.sync') : WRITER_BUG
    }
    jobs.finish(outcome, (writtenMs - startMs) * 1e6, (performance.now() - writtenMs) * 1e6)
  }
}

/** The slot file written last: a shard writes one slot until it is full. */
class OpenSlot {
  readonly #disk: Disk
  readonly #directory: string
  #number = -1
  #file: DiskFile | null = null

  constructor(disk: Disk, directory: string) {
    this.#disk = disk
    this.#directory = directory
  }

  file(number: number): DiskFile {
    if (this.#file !== null && this.#number === number) return this.#file
    this.#file?.close()
    this.#file = null
    this.#file = this.#disk.open('slot.open', `${this.#directory}/${slotFileName(number)}`)
    this.#number = number
    return this.#file
  }
}

runWriter(workerData as WriterStart)
