/** Reads the runs of one partition out of slots, small ones that lie close together at once, and checks them. */
import type { DirectoryEntry } from '../group-format.ts'
import { isRunWhole } from '../slot-scan.ts'
import type { PlannedEntry, PlannedSlot } from './plan.ts'

/** Gaps read over, and bytes read at once, unless a single run is larger: as for readers (R1, measured). */
const GAP_BYTES = 16 * 1024
const PIECE_BYTES = 512 * 1024

export class RunReader {
  buffer = Buffer.allocUnsafeSlow(PIECE_BYTES)
  #slot: PlannedSlot | null = null
  #start = 0
  #length = 0
  readBytes = 0

  /**
   * Makes a run present: buffer[index, index + bytes) on return, until the next call.
   * @param index of the run among `runs`, in order of writing. @throws DiskError
   */
  read(runs: readonly PlannedEntry[], index: number): number {
    const { slot, entry } = runs[index] as PlannedEntry
    const end = entry.position + entry.bytes
    const isPresent = slot === this.#slot && entry.position >= this.#start && end <= this.#start + this.#length
    if (!isPresent) this.#load(slot, entry.position, this.#pieceEnd(runs, index))
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
