/** A batch that a client encoded, on its way into a group. */

/** Borrowed from gather to encode: source[at, at + bytes) is one whole RecordBatch v2 whose header and CRC were checked. */
export interface GivenBatch {
  readonly source: Buffer
  readonly at: number
  readonly bytes: number
  readonly partition: number
  /** Offsets that it takes: its last offset delta and one. */
  readonly recordCount: number
  /** The time of append becomes the time of its records (message.timestamp.type = LogAppendTime). */
  readonly takesAppendTime: boolean
}
