/**
 * Watches the free space of the data directory, so that produce stops while there is still room for what must go on:
 * settling, retention, compaction (S6). Main thread; asks the file system off the thread.
 */
import { statfs } from 'node:fs/promises'
import type { Logger } from '../base/logger.ts'

/** Between two looks: the reserve is far more than any disk takes in this time. */
const LOOK_MS = 500

export interface FreeSpaceOptions {
  /** Absolute; exists. */
  readonly directory: string
  /** Free bytes below which produce is refused; 0: never. */
  readonly reserveBytes: number
  readonly logger: Logger
  /** Of the directory's file system, for tests. */
  readonly freeBytesOf?: (directory: string) => Promise<number>
}

export class FreeSpace {
  readonly #options: FreeSpaceOptions
  readonly reserveBytes: number
  #timer: NodeJS.Timeout | null = null
  #isLow = false
  #isLooking = false
  /** At the last look; Infinity: not known. */
  freeBytes = Number.POSITIVE_INFINITY

  constructor(options: FreeSpaceOptions) {
    this.#options = options
    this.reserveBytes = options.reserveBytes
  }

  /** True while produce is refused. */
  get isLow(): boolean {
    return this.#isLow
  }

  /** Looks at once, then from time to time. */
  async start(): Promise<void> {
    await this.look()
    // Also without a reserve: compaction begins nothing that there may be no room for.
    this.#timer = setInterval(() => void this.look(), LOOK_MS)
    this.#timer.unref()
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer)
  }

  /** One at a time: a file system that does not answer must not take all threads of the pool. */
  async look(): Promise<void> {
    if (this.#isLooking) return
    this.#isLooking = true
    try {
      await this.#look()
    } finally {
      this.#isLooking = false
    }
  }

  async #look(): Promise<void> {
    const { directory, logger, freeBytesOf = freeBytes } = this.#options
    try {
      this.freeBytes = await freeBytesOf(directory)
    } catch (error) {
      // A file system that does not say how full it is: a full disk is refused when it is met.
      logger.debug({ err: error }, 'free space is not known')
      this.freeBytes = Number.POSITIVE_INFINITY
    }
    const isLow = this.freeBytes < this.reserveBytes
    if (isLow === this.#isLow) return
    this.#isLow = isLow
    const numbers = { freeBytes: this.freeBytes, reserveBytes: this.reserveBytes }
    if (isLow) logger.error(numbers, 'the disk is nearly full: produce is refused until there is room')
    else logger.info(numbers, 'the disk has room again: produce is taken')
  }
}

async function freeBytes(directory: string): Promise<number> {
  const { bavail, bsize } = await statfs(directory)
  return bavail * bsize
}
