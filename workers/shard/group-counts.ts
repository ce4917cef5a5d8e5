/**
 * What the groups of a shard come to: counters and histograms in its shared block. Shard thread only; plain additions, once
 * a group.
 */
import { copied } from '../../src/base/copy.ts'
import type { Histogram } from '../../src/base/histogram.ts'
import type { GroupEncoder } from '../../src/log/group-encoder.ts'
import type { ShardLog } from '../../src/log/shard-log.ts'
import { counterIndex } from '../../src/wire/shard/counters.ts'
import { shardHistogram } from '../../src/wire/shard/histograms.ts'

export class GroupCounts {
  readonly #counters: Float64Array
  readonly #syncSeconds: Histogram
  readonly #groupRecords: Histogram
  readonly #groupBytes: Histogram

  /** @param counters the block of the shard. */
  constructor(counters: Float64Array) {
    this.#counters = counters
    this.#syncSeconds = shardHistogram(counters, 'syncSeconds')
    this.#groupRecords = shardHistogram(counters, 'groupRecords')
    this.#groupBytes = shardHistogram(counters, 'groupBytes')
  }

  /** One sync of the journal. */
  sync(ns: number): void {
    this.#counters[counterIndex.syncNs]! += ns
    this.#counters[counterIndex.syncs]! += 1
    this.#syncSeconds.observe(ns / 1e9)
  }

  /** A group that was written. */
  group(encoder: GroupEncoder, log: ShardLog): void {
    const counters = this.#counters
    const recordCount = encoder.newRecordCount
    counters[counterIndex.groups]! += 1
    counters[counterIndex.journalBytes]! += encoder.totalBytes
    counters[counterIndex.records]! += recordCount
    counters[counterIndex.recordBytes]! += encoder.payloadBytes
    counters[counterIndex.batches]! += encoder.batchCount
    counters[counterIndex.copiedBytes] = copied.bytes
    counters[counterIndex.slotsRolled] = log.rolledSlots
    counters[counterIndex.slotsUnfilled] = log.unfilledSlots
    this.#groupRecords.observe(recordCount)
    this.#groupBytes.observe(encoder.totalBytes)
  }
}
