/**
 * Appends bytes to a file in large aligned pieces, as direct files want them; any file will do. One file at a time; on
 * the thread of whoever made it. It never syncs, never opens, closes or cuts a file.
 *
 *   file    │ committed ············▒│ appended ·········│ padding 0 │
 *   blocks  ├──────┼──────┼──────┼──────┼──────┼──────┼──────┤
 *                                ├─ staging ─────────────────▶│   begins at the block of the first byte not committed
 *
 * Invariants: a committed byte never changes. The block in which committed bytes end (▒) is read first and written
 * again with the same bytes, so it does not matter which of its sectors a power cut leaves as they were. Behind
 * `position` the file may hold anything: zeros up to the end of the block, and what an interrupted append left there.
 */
import { assert } from '../base/assert.ts'
import { copyBytes } from '../base/copy.ts'
import { DIRECT_BLOCK_BYTES, isAligned } from '../disk/aligned-memory.ts'
import { DiskError, type DiskFile } from '../disk/disk.ts'
import type { FaultPoint } from '../disk/faults.ts'

/** The points of the disk at which an appender reads and writes. */
export interface AppenderPoints {
  readonly read: FaultPoint
  readonly write: FaultPoint
}

interface OpenAppend {
  readonly file: DiskFile
  readonly points: AppenderPoints
  readonly committedBytes: number
}

export class AlignedAppender {
  readonly #staging: Buffer
  #open: OpenAppend | null = null
  /** Where in the file the staging begins; a whole block. */
  #stagingAt = 0
  /** Bytes in the staging that are to be written. */
  #filled = 0

  /** @param staging aligned (alignedBuffer) and of whole blocks; belongs to the appender. Its length is that of a write. */
  constructor(staging: Buffer) {
    const isWhole = staging.length > 0 && staging.length % DIRECT_BLOCK_BYTES === 0
    assert(isWhole && isAligned(staging, 0), 'the staging is aligned and of whole blocks')
    this.#staging = staging
  }

  /** Bytes from the start of the file: where the next byte goes. Not known after an error. */
  get position(): number {
    assert(this.#open !== null, 'an append was begun')
    return this.#stagingAt + this.#filled
  }

  /**
   * Goes on behind the first `committedBytes` of a file; an append that was not finished is forgotten. The file is
   * used until finish, and stays the caller's to close.
   *
   * @throws DiskError; EIO also if the file ends before its committed length. Nothing is written.
   */
  begin(file: DiskFile, points: AppenderPoints, committedBytes: number): void {
    assert(Number.isSafeInteger(committedBytes) && committedBytes >= 0, 'a committed length is a whole number')
    this.#open = null
    const partial = committedBytes % DIRECT_BLOCK_BYTES
    const stagingAt = committedBytes - partial
    if (partial > 0) {
      const count = file.read(points.read, this.#staging, 0, DIRECT_BLOCK_BYTES, stagingAt)
      if (count < partial) {
        throw new DiskError('EIO', points.read, `${file.path} ends before its committed length, ${committedBytes}`)
      }
    }
    this.#stagingAt = stagingAt
    this.#filled = partial
    this.#open = { file, points, committedBytes }
  }

  /**
   * Appends source[start, end), borrowed until return; whole stagings are written on the way.
   * @throws DiskError: no byte behind the committed ones counts, and the append is over; begin again.
   * @cost one copy.
   */
  append(source: Buffer, start: number, end: number): void {
    assert(this.#open !== null, 'an append was begun')
    assert(start >= 0 && start <= end && end <= source.length, 'append outside of its source')
    let at = start
    while (at < end) {
      const pieceEnd = Math.min(end, at + this.#staging.length - this.#filled)
      this.#filled = copyBytes(source, at, pieceEnd, this.#staging, this.#filled)
      at = pieceEnd
      if (this.#filled === this.#staging.length) this.#flush()
    }
  }

  /**
   * Writes what is left, padded with zeros to a whole block. The caller syncs.
   * @throws as append.
   * @returns the true length: `position`. The file is at least as long.
   */
  finish(): number {
    assert(this.#open !== null, 'an append was begun')
    const { position } = this
    // If nothing was appended, the last block is as it should be already.
    if (position > this.#open.committedBytes && this.#filled > 0) this.#flush()
    this.#open = null
    return position
  }

  /** Writes the staging up to the end of its last block. An error ends the append: what was staged may be lost. */
  #flush(): void {
    const open = this.#open
    assert(open !== null, 'an append was begun')
    const end = Math.ceil(this.#filled / DIRECT_BLOCK_BYTES) * DIRECT_BLOCK_BYTES
    this.#staging.fill(0, this.#filled, end)
    this.#open = null
    open.file.write(open.points.write, this.#staging, 0, end, this.#stagingAt)
    this.#open = open
    this.#stagingAt += end
    this.#filled = 0
  }
}
