/** How the frame in front of one connection comes on, while others wait for the memory that its part holds. Main thread. */
import { limits } from '../../model/limits.ts'

export class FrameProgress {
  /** Since when it was watched, and what was there then. */
  #since: { readonly ms: number; readonly bytes: number } | null = null

  /**
   * Looks at what is there of the frame now. The first look only begins to watch.
   * @returns false if it was watched for so long, and less came than was asked for.
   */
  isEnough(nowMs: number, pendingBytes: number, watchedMs: number): boolean {
    this.#since ??= { ms: nowMs, bytes: pendingBytes }
    const elapsedMs = nowMs - this.#since.ms
    if (elapsedMs <= watchedMs) return true
    const least = (elapsedMs * limits.shortFrameBytesPerSecond) / 1000
    const came = pendingBytes - this.#since.bytes
    this.#since = null
    return came >= least
  }

  /** Nobody waits for it, or it is whole. */
  forget(): void {
    this.#since = null
  }
}
