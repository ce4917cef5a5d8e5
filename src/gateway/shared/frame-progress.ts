/** How the frame in front of one connection comes on, while others wait for the memory that is set aside for it. Main thread. */

/** What is asked of it. */
export interface FrameRate {
  /** For how long it is watched. */
  readonly watchMs: number
  readonly bytesPerSecond: number
}

interface Watched {
  /** What was there when the watch began. */
  readonly bytes: number
  readonly elapsedMs: number
  readonly lookedMs: number
}

export class FrameProgress {
  #watched: Watched | null = null

  /**
   * Looks at what is there of the frame now. The first look only begins to watch.
   * @returns false if it was watched for so long, and less came than was asked for.
   */
  isEnough(nowMs: number, pendingBytes: number, { watchMs, bytesPerSecond }: FrameRate): boolean {
    const { bytes, elapsedMs, lookedMs } = this.#watched ?? { bytes: pendingBytes, elapsedMs: 0, lookedMs: nowMs }
    // Looks come oftener. Where one is late, nobody was read meanwhile, whatever it sent.
    const watchedMs = elapsedMs + Math.min(nowMs - lookedMs, watchMs / 2)
    this.#watched = { bytes, elapsedMs: watchedMs, lookedMs: nowMs }
    if (watchedMs <= watchMs) return true
    this.#watched = null
    return pendingBytes - bytes >= (watchedMs * bytesPerSecond) / 1000
  }

  /** Nobody waits for it, it is whole, or it is not read. */
  forget(): void {
    this.#watched = null
  }
}
