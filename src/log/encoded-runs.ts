/**
 * The runs of an encoded group: what is indexed once the group is durable. Shard thread only; owned by one encoder.
 */
import type { PartitionLog } from './partition-log.ts'

const FIRST_RUNS = 256

export class EncodedRuns {
  /** Place of the run's partition in the group. */
  #place = new Uint32Array(FIRST_RUNS)
  #base = new Float64Array(FIRST_RUNS)
  /** From the group's start. */
  #position = new Uint32Array(FIRST_RUNS)
  #bytes = new Uint32Array(FIRST_RUNS)
  count = 0

  /** Room for that many, and none of them yet. */
  begin(runCount: number): void {
    this.count = 0
    if (runCount <= this.#place.length) return
    const capacity = Math.max(runCount, this.#place.length * 2)
    this.#place = new Uint32Array(capacity)
    this.#base = new Float64Array(capacity)
    this.#position = new Uint32Array(capacity)
    this.#bytes = new Uint32Array(capacity)
  }

  add(place: number, baseOffset: number, position: number, bytes: number): void {
    const run = this.count++
    this.#place[run] = place
    this.#base[run] = baseOffset
    this.#position[run] = position
    this.#bytes[run] = bytes
  }

  /** Puts every run into the index of its log. @param memoryPlace of the group in the encode buffer, or −1. */
  index(logs: readonly PartitionLog[], slot: number, groupPosition: number, memoryPlace: number): void {
    for (let run = 0; run < this.count; run++) {
      const { runs } = logs[this.#place[run] as number] as PartitionLog
      const position = this.#position[run] as number
      const memoryAt = memoryPlace === -1 ? -1 : memoryPlace + position
      runs.add(this.#base[run] as number, slot, groupPosition + position, this.#bytes[run] as number, memoryAt)
    }
  }
}
