/**
 * How fast the client of one reply takes what waits for it. Main thread, owned by the reply. It counts what the socket
 * took; what the system buffers for a connection comes in steps, so that few bytes read may show as none, or as many.
 */
import { limits } from '../../../model/limits.ts'

/** How long a client may take nothing of an answer. */
export interface ReaderTimeouts {
  readonly writeMs: number
  /** The same while reply memory is short; and the time over which it must then keep its rate. */
  readonly stalledMs: number
}

/** One look at all replies. */
export interface PaceLook {
  readonly nowMs: number
  readonly timeouts: ReaderTimeouts
  /** Reply memory is short, for whomever. */
  readonly isShort: boolean
  /** This thread was busy since the look before: what it did not get round to write counts against nobody. */
  readonly wasBusy: boolean
}

/** stalled: it took nothing. slow: too little while reply memory is short. */
export type Lateness = 'stalled' | 'slow'

export class AnswerPace {
  /** Since when the socket takes nothing of what waits, monotonic; Infinity: nothing waits. */
  #stalledSinceMs = Infinity
  /** Over this window the rate is counted. */
  #windowSinceMs = 0
  #windowTakenBytes = 0
  /** What waited when the window began: more it could not take. */
  #windowOfferedBytes = 0

  /** Something waits for the socket from now on; if something did already, it counts as taken up to now. */
  begin(nowMs: number, waitingBytes: number): void {
    if (this.#stalledSinceMs === Infinity) this.#restartWindow(nowMs, waitingBytes)
    this.#stalledSinceMs = nowMs
  }

  /** What waits could not be taken until now. */
  restart(nowMs: number, waitingBytes: number): void {
    this.#stalledSinceMs = nowMs
    this.#restartWindow(nowMs, waitingBytes)
  }

  /** The socket took something. */
  took(nowMs: number, bytes: number): void {
    this.#stalledSinceMs = nowMs
    this.#windowTakenBytes += bytes
  }

  /** Nothing waits any more. */
  end(): void {
    this.#stalledSinceMs = Infinity
  }

  /** Judges it. @param isOwnShort memory is short for its own party. @param waitingBytes for the socket, now. */
  look({ nowMs, timeouts, isShort, wasBusy }: PaceLook, isOwnShort: boolean, waitingBytes: number): Lateness | null {
    if (this.#stalledSinceMs === Infinity) return null
    const { writeMs, stalledMs } = timeouts
    const isStrict = isShort || isOwnShort
    if (this.#stalledSinceMs < nowMs - (isStrict ? Math.min(writeMs, stalledMs) : writeMs)) return 'stalled'
    const elapsedMs = nowMs - this.#windowSinceMs
    if (elapsedMs < stalledMs && !wasBusy) return null
    const leastBytes = Math.min((elapsedMs * limits.shortAnswerBytesPerSecond) / 1000, this.#windowOfferedBytes)
    const isSlow = this.#windowTakenBytes < leastBytes
    this.#restartWindow(nowMs, waitingBytes)
    return isStrict && isSlow && !wasBusy ? 'slow' : null
  }

  #restartWindow(nowMs: number, waitingBytes: number): void {
    this.#windowSinceMs = nowMs
    this.#windowTakenBytes = 0
    this.#windowOfferedBytes = waitingBytes
  }
}
