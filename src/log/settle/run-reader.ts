/**
 * Reads the runs of one partition out of slots, small ones that lie close together at once, and checks them. Settler
 * thread, or a tool that holds the lock.
 *
 * A device that fails a read ends the job: what cannot be read now may be read later. Only a job that is told to give up
 * goes on without the runs that it cannot read, each tried alone: a bad place takes no run with it that is not there.
 */
import { limits } from '../../model/limits.ts'
import type { DirectoryEntry } from '../group-format.ts'
import { isRunWhole, isUnreadSlot } from '../slot-scan.ts'
import type { PlannedEntry, PlannedSlot } from './plan.ts'

/** Gaps read over, and bytes read at once, unless a single run is larger: as for readers (R1, measured). */
const GAP_BYTES = 16 * 1024
const PIECE_BYTES = 512 * 1024

export class RunReader {
  readonly #givesUp: boolean
  buffer = Buffer.allocUnsafeSlow(PIECE_BYTES)
  #slot: PlannedSlot | null = null
  #start = 0
  #length = 0
  /** Of a piece that the device did not read: runs of #failedSlot before it are read one by one. */
  #failedEnd = 0
  #failedSlot: PlannedSlot | null = null
  readBytes = 0

  /** @param givesUp runs that the device does not read count as absent. */
  constructor(givesUp = false) {
    this.#givesUp = givesUp
  }

  /**
   * Makes a run present: buffer[index, index + bytes) on return, until the next call.
   * @param index of the run among `runs`, in order of writing.
   * @returns its place in the buffer; −1: the slot ends before it does, or it is given up.
   * @throws DiskError; of the device's failures (isUnreadSlot) only one that does not give up.
   */
  read(runs: readonly PlannedEntry[], index: number): number {
    const { slot, entry } = runs[index] as PlannedEntry
    const end = entry.position + entry.bytes
    const isPresent = slot === this.#slot && entry.position >= this.#start && end <= this.#start + this.#length
    if (!isPresent && !this.#loadRun(runs, index)) return -1
    return end <= this.#start + this.#length ? entry.position - this.#start : -1
  }

  /** True if the run read last, at buffer[at…], is as it was written. */
  isWhole(entry: DirectoryEntry, at: number, seed: number): boolean {
    return isRunWhole(this.buffer, entry, seed, at)
  }

  /** The slots may be other files from now on. */
  forget(): void {
    this.#slot = null
    this.#length = 0
  }

  /** Reads the piece that begins with a run. @returns false: the run is given up. */
  #loadRun(runs: readonly PlannedEntry[], index: number): boolean {
    const { slot, entry } = runs[index] as PlannedEntry
    const isFailed = slot === this.#failedSlot && entry.position < this.#failedEnd
    if (!isFailed) {
      const end = this.#pieceEnd(runs, index)
      if (this.#isLoaded(slot, entry.position, end)) return true
      this.#failedSlot = slot
      this.#failedEnd = end
    }
    for (let read = 0; read < limits.unreadRunReads; read++) {
      if (this.#isLoaded(slot, entry.position, entry.position + entry.bytes)) return true
    }
    return false
  }

  /** @returns false: the device failed, and this reader gives up. */
  #isLoaded(slot: PlannedSlot, start: number, end: number): boolean {
    try {
      this.#load(slot, start, end)
      return true
    } catch (error) {
      if (!this.#givesUp || !isUnreadSlot(error)) throw error
      return false
    }
  }

  #pieceEnd(runs: readonly PlannedEntry[], index: number): number {
    const { slot, entry } = runs[index] as PlannedEntry
    let end = entry.position + entry.bytes
    for (let i = index + 1; i < runs.length; i++) {
      const next = runs[i] as PlannedEntry
      const nextEnd = next.entry.position + next.entry.bytes
      const isClose = next.entry.position >= end && next.entry.position - end <= GAP_BYTES
      if (next.slot !== slot || !isClose || nextEnd - entry.position > PIECE_BYTES) break
      end = nextEnd
    }
    return end
  }

  #load(slot: PlannedSlot, start: number, end: number): void {
    if (end - start > this.buffer.length) this.buffer = Buffer.allocUnsafeSlow(end - start)
    this.#slot = slot
    this.#start = start
    this.#length = 0
    this.#length = slot.file.read('slot.read', this.buffer, 0, end - start, start)
    this.readBytes += this.#length
  }
}
