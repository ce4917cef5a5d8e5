/** Batches given to the broker of this process, and read back: what a listener of Kafka's protocol does, as promises. */
import type { AppendedBatch } from '../../src/model/batches.ts'
import { anonymous } from '../../src/model/principal.ts'
import { readFormats, submitOutcomes, type Broker } from '../../src/model/requests.ts'
import { STORED_BATCHES_AT, storedBatchesHead, type StoredBatchesHead } from '../../src/wire/batch/stored-batches.ts'
import { splitBatches } from './client-batches.ts'

export interface BatchTarget {
  readonly topic: string
  readonly partition?: number
}

/** Rejects with the BrokerError of a refusal. Waits for room. */
export function appendBatch(broker: Broker, target: BatchTarget, bytes: Buffer): Promise<AppendedBatch> {
  return new Promise((resolve, reject) => {
    const batch = { partition: 0, ...target, bytes, start: 0, end: bytes.length }
    const caller = { onBatchAppended: resolve, onBatchFailed: reject }
    const submit = (): void => {
      if (broker.batches.submitBatch(anonymous, batch, caller) === submitOutcomes.full) broker.whenRoom(submit)
    }
    submit()
  })
}

export interface ReadBatches {
  readonly head: StoredBatchesHead
  readonly batches: readonly Buffer[]
}

export function readBatches(
  broker: Broker,
  { topic, partition = 0 }: BatchTarget,
  offset: number,
  maxBytes = 1024 * 1024
): Promise<ReadBatches> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    const read = { topic, partition, offsetHigh: 0, offsetLow: offset, maxRecords: 1, maxBytes }
    broker.submitRead(
      anonymous,
      { ...read, format: readFormats.batches },
      {
        onReadChunk(bytes, start, end, _total, isLast) {
          chunks.push(Buffer.from(bytes.subarray(start, end)))
          if (!isLast) return
          const all = Buffer.concat(chunks)
          resolve({ head: storedBatchesHead(all, 0), batches: splitBatches(all.subarray(STORED_BATCHES_AT)) })
        },
        onReadFailed: reject
      }
    )
  })
}
