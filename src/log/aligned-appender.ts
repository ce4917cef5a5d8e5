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
 *
 * With more than one staging, and if told to, a full one is written off this thread while another fills; where all are
 * full, one is written here. No file is closed, and no append begun, before what is under way has landed: `landed`.
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

/** How a file is gone on with. */
export interface AppendStart {
  /** What the file holds behind its last whole block, if that is known; else it is read. Borrowed until return. */
  readonly tail?: Buffer | null
  /** True: written off this thread where that saves a wait; ended by finishLater. */
  readonly isLater?: boolean
}

interface OpenAppend {
  readonly file: DiskFile
  readonly points: AppenderPoints
  readonly committedBytes: number
  readonly isLater: boolean
}

export class AlignedAppender {
  #staging: Buffer
  /** The others that are not being written. */
  readonly #spares: Buffer[]
  #open: OpenAppend | null = null
  /** Where in the file the staging begins; a whole block. */
  #stagingAt = 0
  /** Bytes in the staging that are to be written. */
  #filled = 0
  /** Writes under way off this thread; never rejects. */
  #flight: Promise<void> | null = null
  /** What the disk said to one of them. */
  #refusal: Error | null = null

  /** @param stagings aligned (alignedBuffer), of whole blocks and one length, which is that of a write; they belong to the appender. */
  constructor(...stagings: readonly [Buffer, ...Buffer[]]) {
    for (const each of stagings) {
      const isWhole = each.length > 0 && each.length % DIRECT_BLOCK_BYTES === 0
      assert(isWhole && isAligned(each, 0), 'a staging is aligned and of whole blocks')
    }
    const [staging, ...spares] = stagings
    this.#staging = staging
    this.#spares = spares
  }

  /** Resolves when no write is under way; null: none is. Never rejects. */
  get landed(): Promise<void> | null {
    return this.#flight
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
  begin(file: DiskFile, points: AppenderPoints, committedBytes: number, start: AppendStart = {}): void {
    assert(this.#flight === null, 'one append at a time')
    assert(Number.isSafeInteger(committedBytes) && committedBytes >= 0, 'a committed length is a whole number')
    this.#open = null
    const partial = committedBytes % DIRECT_BLOCK_BYTES
    const stagingAt = committedBytes - partial
    const { tail = null, isLater = false } = start
    if (partial > 0 && tail !== null) {
      assert(tail.length === partial, 'a tail is what lies behind the last whole block')
      copyBytes(tail, 0, partial, this.#staging, 0)
    } else if (partial > 0) {
      const count = file.read(points.read, this.#staging, 0, DIRECT_BLOCK_BYTES, stagingAt)
      if (count < partial) {
        throw new DiskError('EIO', points.read, `${file.path} ends before its committed length, ${committedBytes}`)
      }
    }
    this.#stagingAt = stagingAt
    this.#filled = partial
    this.#refusal = null
    this.#open = { file, points, committedBytes, isLater }
  }

  /** A copy of what lies behind the last whole block: the next append may begin with it. Before finish. */
  copyTail(): Buffer {
    return Buffer.from(this.#staging.subarray(this.#filled - (this.position % DIRECT_BLOCK_BYTES), this.#filled))
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
    assert(this.#open !== null && this.#flight === null, 'an append was begun, and nothing is under way')
    const { position } = this
    // If nothing was appended, the last block is as it should be already.
    if (position > this.#open.committedBytes && this.#filled > 0) this.#flush()
    this.#open = null
    return position
  }

  /**
   * As finish, off this thread: `landed` until it has ended. The caller syncs, closes or cuts the file only then.
   * @fails DiskError, as append
   */
  finishLater(): Promise<void> {
    const ended = this.#end()
    const flight: Promise<void> = ended.then(
      () => this.#land(flight),
      // The caller is told of it.
      () => this.#land(flight)
    )
    this.#flight = flight
    return ended
  }

  async #end(): Promise<void> {
    const open = this.#open
    assert(open !== null, 'an append was begun')
    const isDue = this.position > open.committedBytes && this.#filled > 0
    this.#open = null
    await this.#flight
    if (this.#refusal !== null) throw this.#refusal
    if (isDue) await open.file.writeLater(open.points.write, this.#staging, 0, this.#pad(), this.#stagingAt)
  }

  /** Writes the staging up to the end of its last block. An error ends the append: what was staged may be lost. */
  #flush(): void {
    const open = this.#open
    assert(open !== null, 'an append was begun')
    const end = this.#pad()
    const at = this.#stagingAt
    this.#open = null
    if (this.#refusal !== null) throw this.#refusal
    const spare = open.isLater ? this.#spares.pop() : undefined
    if (spare !== undefined) this.#launch(open, spare, end)
    else open.file.write(open.points.write, this.#staging, 0, end, at)
    this.#open = open
    this.#stagingAt = at + end
    this.#filled = 0
  }

  /** Writes the staging off this thread; the spare one is filled meanwhile. */
  #launch({ file, points }: OpenAppend, spare: Buffer, end: number): void {
    const staging = this.#staging
    this.#staging = spare
    const before = this.#flight
    const written = file
      .writeLater(points.write, staging, 0, end, this.#stagingAt)
      .catch((refusal: Error) => {
        this.#refusal ??= refusal
      })
      .then(() => {
        this.#spares.push(staging)
      })
    const flight: Promise<void> = Promise.all([before, written]).then(() => this.#land(flight))
    this.#flight = flight
  }

  #land(flight: Promise<void>): void {
    if (this.#flight === flight) this.#flight = null
  }

  /** Zeros up to the end of the last block. @returns that end. */
  #pad(): number {
    const end = Math.ceil(this.#filled / DIRECT_BLOCK_BYTES) * DIRECT_BLOCK_BYTES
    this.#staging.fill(0, this.#filled, end)
    return end
  }
}
