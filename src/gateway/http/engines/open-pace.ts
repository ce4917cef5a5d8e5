/**
 * How fast the client of an open answer takes what waits for it. Main thread, owned by the answer. How much of it is gone
 * is not known before all is: so while memory is short, all of it must be within the time that the least rate gives it.
 */
import { limits } from '../../../model/limits.ts'
import type { Lateness, PaceLook } from './answer-pace.ts'

export class OpenPace {
  /** Something waits for the socket. */
  isBlocked = false
  #blockedSinceMs = 0
  #tookAtMs = 0
  #waitingBytes = 0

  /** So many bytes more wait for the socket. */
  block(nowMs: number, bytes: number): void {
    if (!this.isBlocked) {
      this.#blockedSinceMs = nowMs
      this.#tookAtMs = nowMs
      this.#waitingBytes = 0
    }
    this.isBlocked = true
    this.#waitingBytes += bytes
  }

  /** The socket took some of it. */
  took(nowMs: number): void {
    this.#tookAtMs = nowMs
  }

  /** Nothing waits any more. */
  free(): void {
    this.isBlocked = false
  }

  /** Judges it. @param isOwnShort memory is short for its own party. */
  look({ nowMs, timeouts, isShort, wasBusy }: PaceLook, isOwnShort: boolean): Lateness | null {
    if (!this.isBlocked) return null
    const { writeMs, stalledMs } = timeouts
    const isStrict = isShort || isOwnShort
    if (this.#tookAtMs < nowMs - (isStrict ? Math.min(writeMs, stalledMs) : writeMs)) return 'stalled'
    if (!isStrict || wasBusy) return null
    const grantedMs = Math.max(stalledMs, (this.#waitingBytes * 1000) / limits.shortAnswerBytesPerSecond)
    return nowMs - this.#blockedSinceMs > grantedMs ? 'slow' : null
  }
}
