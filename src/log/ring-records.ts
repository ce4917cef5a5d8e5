/**
 * Where the records of one request lie, in the ring layout of model/requests.ts. Shard thread only; made by whoever took
 * the request from its ring, and true until that ring is freed.
 */

/** Records in ring layout: source[at, end). */
export interface RingRecords {
  /** The requests ring, or shared memory of its own. */
  readonly source: Buffer
  readonly at: number
  readonly end: number
  readonly count: number
  /** Each is followed by its headers. */
  readonly hasHeaders: boolean
  /** Their batches say that the time of append counts (message.timestamp.type = LogAppendTime). */
  readonly takesAppendTime: boolean
}
