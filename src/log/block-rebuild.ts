/**
 * Makes the block entries of a log again from its batches, when they are missing or bad, or to find how much of a log is
 * whole. Pure over a reader, any thread. A generator that yields between pieces, so that its caller may do other work,
 * or stop for good. It believes no length that it reads: memory is bounded by the caller's largest batch. Base offset and
 * leader epoch of a batch are not in its own checksum: what they say is taken as long as offsets grow.
 */
import { assert } from '../base/assert.ts'
import { limits } from '../model/limits.ts'
import { BatchView, batchBytesAt, batchStatus, checkBatch } from '../wire/batch/view.ts'
import type { BatchStatus } from '../wire/batch/view.ts'
import type { BlockBuilder } from './segment-blocks.ts'

/** Bytes read at once: large enough to read at the disk's speed, small enough to pause every millisecond. */
const PIECE_BYTES = 1024 * 1024

/** Reads up to `length` bytes of the log at `position` into target[0…]. @returns bytes read: fewer only at the end of the log. */
export type ReadLog = (target: Buffer, length: number, position: number) => number

export interface RebuildRange {
  readonly segmentBase: number
  /** Where a batch begins: of the `.log` or, in a pack file, counted from the extent's start. */
  readonly startPosition: number
  /** Exclusive. */
  readonly endPosition: number
  /** Memory to spend on one batch: one that claims more than this, and more than a piece, is damage. */
  readonly batchBytesMax: number
  /** Whether a whole batch is the one that must stand there; absent: any whose offsets follow. Asked in order. */
  readonly accepts?: (view: BatchView) => boolean
}

export interface RebuildEnd {
  /** Behind the last whole batch: the range's end, or where the first batch that is not whole begins. */
  readonly endPosition: number
  /** Behind the last whole batch; the segment's base offset if there is none. */
  readonly nextOffset: number
  /** ok, or what is wrong with the batch at endPosition; badHeader also if its offsets do not follow. */
  readonly status: BatchStatus
}

/**
 * Adds an extent to `builder`: the blocks of the batches of that range, up to the first one whose length, checksum or
 * offsets are not right. The builder is closed at the end. Errors of `read` pass through.
 */
export function* rebuildBlocks(
  read: ReadLog,
  range: RebuildRange,
  builder: BlockBuilder
): Generator<undefined, RebuildEnd, undefined> {
  const { startPosition, endPosition } = range
  assert(startPosition >= 0 && startPosition <= endPosition, 'a range of a log must not end before it starts')
  assert(endPosition <= limits.segmentBytesHard, 'a segment has 31-bit positions')
  builder.begin(range.segmentBase)
  const walk = new BatchWalk(range, builder)
  let window = Buffer.allocUnsafe(Math.min(PIECE_BYTES, endPosition - startPosition))
  while (walk.position < endPosition && walk.status === batchStatus.ok) {
    const wanted = Math.min(window.length, endPosition - walk.position)
    const filled = read(window, wanted, walk.position)
    assert(filled >= 0 && filled <= wanted, 'no more is read than was asked for')
    const isLast = filled < wanted || walk.position + filled === endPosition
    if (!walk.take(window, filled, isLast)) {
      const needed = batchBytesAt(window, 0)
      const isPossible = needed <= range.batchBytesMax && walk.position + needed <= endPosition
      if (isPossible) window = Buffer.allocUnsafe(needed)
      else walk.status = needed <= range.batchBytesMax ? batchStatus.truncated : batchStatus.badLength
    }
    yield
  }
  builder.close()
  return { endPosition: walk.position, nextOffset: walk.nextOffset, status: walk.status }
}

/** How far a rebuild is. */
class BatchWalk {
  position: number
  nextOffset: number
  status: BatchStatus = batchStatus.ok
  readonly #range: RebuildRange
  readonly #builder: BlockBuilder
  readonly #view = new BatchView()

  constructor(range: RebuildRange, builder: BlockBuilder) {
    this.position = range.startPosition
    this.nextOffset = range.segmentBase
    this.#range = range
    this.#builder = builder
  }

  /**
   * Adds the whole batches of window[0, filled), which begins at `position`, and moves on behind them.
   *
   * @param isLast nothing of the log follows, so a batch that goes on is cut.
   * @returns false if the window is too short for the first batch, which may be whole.
   */
  take(window: Buffer, filled: number, isLast: boolean): boolean {
    let at = 0
    let status: BatchStatus = batchStatus.ok
    while (at < filled) {
      status = this.#checkAt(window, at, filled)
      if (status !== batchStatus.ok) break
      this.#builder.add(window, at, this.#view.end, this.position + at)
      this.nextOffset = this.#view.lastOffset + 1
      at = this.#view.end
    }
    this.position += at
    if (status === batchStatus.truncated && !isLast) return at > 0
    this.status = status === batchStatus.ok && filled === 0 ? batchStatus.truncated : status
    return true
  }

  #checkAt(window: Buffer, at: number, filled: number): BatchStatus {
    const status = checkBatch(window, at, filled)
    if (status !== batchStatus.ok) return status
    const opened = this.#view.open(window, at, filled)
    if (opened !== batchStatus.ok && opened !== batchStatus.compressed) return opened
    const { baseOffset, lastOffset } = this.#view
    const doesFollow = baseOffset >= this.nextOffset && lastOffset - this.#range.segmentBase <= limits.segmentBytesHard
    if (!doesFollow || this.#range.accepts?.(this.#view) === false) return batchStatus.badHeader
    return batchStatus.ok
  }
}
