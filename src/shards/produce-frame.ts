/**
 * A produce on its way into the requests ring of a shard: where its bytes go, and what stands before them. Main thread; the
 * link that began a frame ends it (shard-link.ts).
 */

/** A produce frame under way: where its bytes go. Filled by the caller, then sealed by the link. */
export interface ProduceFrame {
  readonly buffer: Buffer
  /** Where the records go, in ring layout. */
  readonly recordsAt: number
  /** Memory of its own that moves to the shard; null: the frame lies in the ring. */
  readonly memory: ArrayBuffer | null
}

/** What stands before the records of a PRODUCE, or before the runs of a CHECK. */
export interface ProduceHead {
  readonly isCheck: boolean
  /** Of records: their ring layout has headers. */
  readonly hasHeaders: boolean
  readonly firstHandle: number
  /** Records or runs, and their bytes. */
  readonly count: number
  readonly bytes: number
  /** Producer number; 0: none. */
  readonly producer: number
}
