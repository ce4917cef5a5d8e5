/**
 * A produce on its way into the requests ring of a shard: where its bytes go, and what stands before them. Main thread; the
 * link that began a frame ends it (shard-link.ts).
 */
import type { TimestampType } from '../model/topic.ts'
import { PRODUCE_HAS_HEADERS, PRODUCE_TAKES_APPEND_TIME } from '../wire/shard/messages.ts'

/** A produce frame under way: where its bytes go. Filled by the caller, then sealed by the link. */
export interface ProduceFrame {
  readonly buffer: Buffer
  /** Where the records go, in ring layout, or a batch. */
  readonly recordsAt: number
  /** Memory of its own that moves to the shard; null: the frame lies in the ring. */
  readonly memory: ArrayBuffer | null
}

/** What stands before the records of a PRODUCE, the runs of a CHECK, the batch of a BATCH. */
export interface ProduceHead {
  readonly type: 'produce' | 'check' | 'batch'
  /** Those of the type. */
  readonly flags: number
  readonly firstHandle: number
  /** Records or runs; of a batch: the partition. */
  readonly count: number
  /** Of what follows. */
  readonly bytes: number
  /** Producer number; 0: none. */
  readonly producer: number
}

/** The flags of records: whether their ring layout has headers, and whose times count in their topic. */
export function recordFlags(hasHeaders: boolean, type: TimestampType): number {
  return (hasHeaders ? PRODUCE_HAS_HEADERS : 0) | (type === 'LogAppendTime' ? PRODUCE_TAKES_APPEND_TIME : 0)
}
