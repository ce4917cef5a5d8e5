/** Idempotent producers as the outside sees them: string ids over HTTP and ES01. Numbers stand for them within. */

/** Where a producer stands in one partition. */
export interface ProducerPosition {
  readonly topic: string
  readonly partition: number
  /** 64 bits: a bigint, because a sequence may be anything up to 2^63 − 1. */
  readonly lastSequence: bigint
  readonly lastOffset: number
}

export interface ProducerDescription {
  readonly id: string
  readonly partitions: readonly ProducerPosition[]
}

/** A producer id as the store has it. */
export interface Producer {
  /** What the journal and the shards call it: from 1, never used again. */
  readonly number: number
  readonly id: string
  /** Id of the key that it belongs to. */
  readonly owner: string
  /** Records were written under it. What was only asked for belongs to nobody (spec D32). */
  readonly isClaimed: boolean
  /** Wall clock; may be a minute old. */
  readonly lastUsedMs: number
}
