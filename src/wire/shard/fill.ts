/** What main asks of the thread that fills slots ahead, and what it answers. Structured clones over its port. */

/** One file of zeros to make. */
export interface FillJob {
  readonly shard: number
  readonly directory: string
  readonly name: string
  readonly bytes: number
}

/** What the thread answers: one message a job. */
export interface FillDone {
  readonly job: FillJob
  /** null: the slot is there. */
  readonly problem: string | null
}
