/**
 * Writes the batches of a group that was gathered: one copy of each record, ring to batch. Hot; shard thread only; part of
 * one encoder, whose sources, records and batches it reads and never changes.
 */
import { assert } from '../base/assert.ts'
import { copyBytes } from '../base/copy.ts'
import {
  BATCH_HEADER_BYTES,
  placeBatch,
  sealBatch,
  stampBatch,
  writeRecord,
  writeRecordWithHeaders
} from '../wire/batch/encode.ts'
import type { GroupBatches } from './group-batches.ts'
import { HAS_HEADERS, type GroupRecords } from './group-records.ts'
import type { GroupSources } from './group-sources.ts'

const NONE = -1

export class GroupBodies {
  readonly #sources: GroupSources
  readonly #records: GroupRecords
  readonly #batches: GroupBatches

  constructor(sources: GroupSources, records: GroupRecords, batches: GroupBatches) {
    this.#sources = sources
    this.#records = records
    this.#batches = batches
  }

  /** One batch at target[at…], as long as was planned. @param batch by index. @returns where it ends. */
  write(batch: number, leaderEpoch: number, receiveMs: number, target: Buffer, at: number): number {
    const end = this.#batches.isGiven(batch)
      ? this.#copyGiven(batch, leaderEpoch, receiveMs, target, at)
      : this.#encode(batch, leaderEpoch, receiveMs, target, at)
    assert(end - at === this.#batches.bytes[batch], 'a batch encodes to what was planned')
    return end
  }

  #encode(batch: number, leaderEpoch: number, receiveMs: number, target: Buffer, at: number): number {
    const { buffers } = this.#sources
    const entries = this.#records
    let position = at + BATCH_HEADER_BYTES
    let record = this.#batches.head[batch] as number
    let delta = 0
    while (record !== NONE) {
      const source = buffers[entries.source[record] as number] as Buffer
      const sourceAt = entries.at[record] as number
      if (((entries.flags[record] as number) & HAS_HEADERS) === 0)
        position = writeRecord(target, position, delta++, source, sourceAt)
      else position = writeRecordWithHeaders(target, position, delta++, source, sourceAt)
      record = entries.next[record] as number
    }
    sealBatch(target, at, position, {
      baseOffset: this.#batches.base[batch] as number,
      leaderEpoch,
      timestampMs: receiveMs,
      recordCount: delta,
      takesAppendTime: this.#batches.takesAppendTime(batch)
    })
    return position
  }

  /** A batch that a client encoded: one copy, and its place, which its CRC does not cover. */
  #copyGiven(batch: number, leaderEpoch: number, receiveMs: number, target: Buffer, at: number): number {
    const batches = this.#batches
    const record = batches.head[batch] as number
    const source = this.#sources.buffers[this.#records.source[record] as number] as Buffer
    const sourceAt = this.#records.at[record] as number
    const end = copyBytes(source, sourceAt, sourceAt + (batches.bytes[batch] as number), target, at)
    placeBatch(target, at, batches.base[batch] as number, leaderEpoch)
    if (batches.takesAppendTime(batch)) stampBatch(target, at, end, receiveMs)
    return end
  }
}
