/** What the writer thread of a shard is started with, and the numbers by which it tells how a job ended. */

export interface WriterStart {
  /** The shard's journal. */
  readonly directory: string
  /** The shard's encode buffer. */
  readonly memory: SharedArrayBuffer
  readonly cell: SharedArrayBuffer
  readonly bell: SharedArrayBuffer
  readonly faults: string | null
}

/** Outcomes of a job: 0 all is well, 1 a bug, then the codes of write and sync failures, in twos. */
export const WRITER_DONE = 0
export const WRITER_BUG = 1
const FIRST_FAILURE = 2
/** What is not among them counts as EIO: the cautious reading. */
const codes = ['EIO', 'ENOSPC', 'EDQUOT', 'EMFILE', 'EACCES', 'EROFS', 'EFBIG']

export function writerOutcome(code: string, isSync: boolean): number {
  return FIRST_FAILURE + Math.max(0, codes.indexOf(code)) * 2 + (isSync ? 1 : 0)
}

/** Of an outcome that is neither done nor a bug. */
export function writerFailure(outcome: number): { code: string; isSync: boolean } {
  const index = outcome - FIRST_FAILURE
  return { code: codes[index >> 1] ?? 'EIO', isSync: (index & 1) === 1 }
}
