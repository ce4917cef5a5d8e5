/**
 * What one replay has sent, what was acknowledged, and what must therefore be in the log: per partition a list in
 * order, and three marks: acknowledged ≤ sent ≤ all. A fresh topic that nobody else writes to gives the record at
 * position i offset i, so every acknowledgement can be checked at once. Pure; main thread.
 */
import { partitionOfKey } from './records.ts'
import type { DemoRecord } from './records.ts'
import { Mismatch } from './verify.ts'
import type { ReadRecord } from './verify.ts'

/** What the broker said of one record. */
export interface ProduceResult {
  readonly partition: number
  readonly offset: number
}

/** One request: indices into the records of the ledger. */
export type Batch = readonly number[]

export class Ledger {
  readonly records: readonly DemoRecord[]
  readonly partitions: number
  /** Record indices per partition, in the order in which they are sent. */
  readonly #byPartition: number[][]
  readonly #partitionOf: Uint16Array
  readonly #positionOf: Uint32Array
  readonly #ackedEnd: Uint32Array
  readonly #sentEnd: Uint32Array
  /** Records acknowledged or found in the log. */
  settledCount = 0

  constructor(records: readonly DemoRecord[], partitions: number) {
    this.records = records
    this.partitions = partitions
    this.#byPartition = Array.from({ length: partitions }, () => [])
    this.#partitionOf = new Uint16Array(records.length)
    this.#positionOf = new Uint32Array(records.length)
    this.#ackedEnd = new Uint32Array(partitions)
    this.#sentEnd = new Uint32Array(partitions)
    const known = new Map<string, number>()
    records.forEach((record, index) => {
      const partition = known.get(record.key) ?? partitionOfKey(record.key, partitions)
      known.set(record.key, partition)
      const list = this.#byPartition[partition] ?? []
      this.#partitionOf[index] = partition
      this.#positionOf[index] = list.length
      list.push(index)
    })
  }

  get isComplete(): boolean {
    return this.settledCount === this.records.length
  }

  /** What a partition must hold in the end, in order. */
  expected(partition: number): DemoRecord[] {
    return (this.#byPartition[partition] ?? []).map(index => this.#record(index))
  }

  /**
   * What is left to send, in requests of one lane: lane l carries the partitions p with p mod lanes = l, in the order
   * of the data. All of a partition goes over one lane, so its order is the lane's order.
   */
  batches(lane: number, laneCount: number, batchRecords: number): Batch[] {
    const batches: number[][] = []
    let batch: number[] = []
    for (let index = 0; index < this.records.length; index++) {
      const partition = this.#partitionOf[index] ?? 0
      if (partition % laneCount !== lane || (this.#positionOf[index] ?? 0) < (this.#ackedEnd[partition] ?? 0)) continue
      batch.push(index)
      if (batch.length === batchRecords) {
        batches.push(batch)
        batch = []
      }
    }
    if (batch.length > 0) batches.push(batch)
    return batches
  }

  /** Call before a batch leaves. */
  send(batch: Batch): void {
    for (const index of batch) this.#raise(this.#sentEnd, index)
  }

  /** Checks the answer to a batch: each record in its partition, at its offset. @throws Mismatch */
  acknowledge(batch: Batch, results: readonly ProduceResult[]): void {
    if (results.length !== batch.length) {
      throw new Mismatch(`${batch.length} records were sent, ${results.length} acknowledged`)
    }
    batch.forEach((index, i) => {
      const partition = this.#partitionOf[index]
      const offset = this.#positionOf[index]
      const result = results[i]
      if (result?.partition !== partition || result?.offset !== offset) {
        const said = `${result?.partition}/${result?.offset}`
        throw new Mismatch(
          `a record that belongs at partition/offset ${partition}/${offset} was acknowledged at ${said}`
        )
      }
      this.#raise(this.#ackedEnd, index)
    })
    this.#count()
  }

  /** Records sent whose outcome is unknown. */
  get doubtfulCount(): number {
    return this.#sentEnd.reduce((sum, end, partition) => sum + end - (this.#ackedEnd[partition] ?? 0), 0)
  }

  /** Where the reading of a partition begins when it is looked what became of the doubtful records. */
  doubtfulFrom(partition: number): number {
    return this.#ackedEnd[partition] ?? 0
  }

  /**
   * Takes in what a partition holds from doubtfulFrom on: it may hold any first part of the doubtful records.
   * What is not there counts as never sent. @returns records found. @throws Mismatch
   */
  settle(partition: number, found: readonly ReadRecord[], endOffset: number): number {
    const from = this.doubtfulFrom(partition)
    const sentEnd = this.#sentEnd[partition] ?? 0
    if (endOffset < from) {
      throw new Mismatch(`partition ${partition} ends at ${endOffset}, but ${from} records were acknowledged`)
    }
    if (from + found.length !== endOffset) {
      throw new Mismatch(
        `partition ${partition} gave ${found.length} records from ${from} on, but ends at ${endOffset}`
      )
    }
    if (endOffset > sentEnd) {
      throw new Mismatch(`partition ${partition} holds ${endOffset} records, but only ${sentEnd} were sent`)
    }
    found.forEach((actual, i) => {
      const index = this.#byPartition[partition]?.[from + i] ?? -1
      const expected = this.#record(index)
      if (actual.offset !== from + i || actual.key !== expected.key || actual.value !== expected.value) {
        throw new Mismatch(`partition ${partition} holds another record at ${from + i} than the one sent there`)
      }
    })
    this.#ackedEnd[partition] = endOffset
    this.#sentEnd[partition] = endOffset
    this.#count()
    return found.length
  }

  #record(index: number): DemoRecord {
    const record = this.records[index]
    if (record === undefined) throw new Error(`no record ${index}`)
    return record
  }

  #raise(ends: Uint32Array, index: number): void {
    const partition = this.#partitionOf[index] ?? 0
    ends[partition] = Math.max(ends[partition] ?? 0, (this.#positionOf[index] ?? 0) + 1)
  }

  #count(): void {
    this.settledCount = this.#ackedEnd.reduce((sum, end) => sum + end, 0)
  }
}
