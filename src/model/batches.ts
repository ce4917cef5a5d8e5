/**
 * Record batches that clients encoded, as a gateway gives them to the broker: what Kafka's produce needs. Main thread.
 * Reading them back is submitRead with readFormats.batches.
 */
import type { BrokerError } from './errors.ts'
import type { Principal } from './principal.ts'
import type { SubmitOutcome } from './submit-outcomes.ts'

/** One RecordBatch v2 for one partition: bytes[start, end), borrowed until submitBatch returns. */
export interface BatchSubmission {
  readonly topic: string
  readonly partition: number
  readonly bytes: Buffer
  readonly start: number
  readonly end: number
}

/** Hears what became of one batch. Exactly one of the two is called, once, never before submitBatch returned. */
export interface BatchCaller {
  /** The batch is as durable as the broker promises; a duplicate is since it came first. */
  onBatchAppended(appended: AppendedBatch): void
  onBatchFailed(error: BrokerError): void
}

export interface AppendedBatch {
  /** Offset of its first record; of a duplicate, that of its original. */
  readonly baseOffset: number
  readonly logStartOffset: number
  /** Unix ms; −1: the records have their own times, or it is a duplicate. */
  readonly appendTimeMs: number
  readonly isDuplicate: boolean
}

/** What a quota lets its key read. */
export interface ReadAllowance {
  /** Reads are refused for so long; 0: they are not. */
  readonly waitMs: number
  /** What can be charged: of more than that the rest would be free. */
  readonly roomBytes: number
}

export interface BatchUseCases {
  /**
   * Writes a batch as it is, but for its base offset and leader epoch. Its header is checked here, its checksum by the shard;
   * its records by nobody, but for those of a compacted topic, which must have keys. What it costs is its bytes, and the key
   * may go into debt for them: whoever calls lets a key that is in debt wait before (produceWaitMs). Order: of one caller and
   * partition, that of the calls.
   *
   * Refusals: FORBIDDEN, TOPIC_NOT_FOUND, PARTITION_RANGE, BATCH_NOT_VALIDATED, DISK_FULL, BATCH_TOO_LARGE, BATCH_CORRUPT,
   * BATCH_INVALID, RECORD_WITHOUT_KEY, BATCH_TIMESTAMP, BATCH_CODEC, RATE_LIMITED; with a producer id also PRODUCER_UNKNOWN,
   * PRODUCER_OWNED, EPOCH_STALE, BATCH_OUT_OF_ORDER, BATCH_TOO_OLD.
   */
  submitBatch(who: Principal, batch: BatchSubmission, caller: BatchCaller): SubmitOutcome
  /** Ms until the key is out of the debt that its batches left; 0: it is in none. */
  produceWaitMs(who: Principal): number
  /** What the consume quota of the caller's key lets it read now; null: it has none. */
  readAllowance(who: Principal): ReadAllowance | null
  /**
   * A fresh producer id, with epoch 0, that belongs to the caller's key; durable before it is given out.
   * @throws BrokerError KEY_REVOKED, PRODUCERS_TOO_MANY; those of the store
   */
  allocateProducer(who: Principal): Promise<number>
}
