/**
 * What is waited for of one client, since when, and whether that is too long: that it takes a write, that the rest of a frame
 * comes, that another one does, that it closes too. Main thread only, one owner: its connection.
 *
 *   silence ─ length of a frame ─▶ frame ─ taken ─▶ silence        lingering: a silence that has no frame any more
 *
 * The owner restarts it when it reads on after a pause: a wait counts only while the client could have ended it.
 */
import type { Clock } from '../../base/clock.ts'
import { limits } from '../../model/limits.ts'
import { FrameProgress } from './frame-progress.ts'
import type { ReceiveBuffer } from './receive-buffer.ts'

/** How long what may take, in ms. */
export interface ClientTimeouts {
  /** From the length of a frame to its last byte. */
  readonly bodyMs: number
  /** From one frame, or the last answer that was taken, to the next frame. */
  readonly idleMs: number
  /** For one write of at most 256 KiB. */
  readonly writeMs: number
  /** The same while reply memory is short; and how long a frame may fall short of its rate while request memory is. */
  readonly stalledMs: number
  /** For the client to close too after the broker's last byte; so that bytes on their way do not reset the answers. */
  readonly lingerMs: number
}

/** As both protocols have them; idle is a setting. */
export function clientTimeoutsOf(idleMs: number): ClientTimeouts {
  return {
    bodyMs: limits.frameTimeoutMs,
    idleMs,
    writeMs: limits.binaryWriteTimeoutMs,
    stalledMs: limits.stalledReaderMs,
    lingerMs: limits.binaryLingerMs
  }
}

/** Of a connection that is read. */
export interface Awaited {
  readonly receive: Pick<ReceiveBuffer, 'heldBytes' | 'pendingBytes' | 'expectedBytes'>
  /** Is request memory short: does, or may, somebody wait for what is set aside for the frame? */
  readonly isShort: boolean
  /** Has the client an answer to come, or to read? */
  readonly isOwed: boolean
}

export class ClientDeadlines {
  readonly #clock: Clock
  readonly #timeouts: ClientTimeouts
  readonly #progress = new FrameProgress()
  /** Monotonic time at which the frame or the silence began. */
  #sinceMs: number
  #isInFrame = false

  /** A silence begins. */
  constructor(clock: Clock, timeouts: ClientTimeouts) {
    this.#clock = clock
    this.#timeouts = timeouts
    this.#sinceMs = clock.monotonicMs()
  }

  /** What is waited for is waited for from now on. */
  restart(): void {
    this.#progress.forget()
    this.#sinceMs = this.#clock.monotonicMs()
  }

  /** The length of the frame in front is there, maybe not since now. */
  noteFrame(): void {
    if (this.#isInFrame) return
    this.#isInFrame = true
    this.restart()
  }

  /** The frame in front is taken. */
  frameTaken(): void {
    this.#isInFrame = false
    this.restart()
  }

  /** Reading its answers is a sign of life too: the silence begins when the last of them was taken. */
  writeTaken(): void {
    if (!this.#isInFrame) this.restart()
  }

  /** @returns ms since the frame or the silence began. */
  elapsedMs(nowMs: number): number {
    return nowMs - this.#sinceMs
  }

  isLingerOver(nowMs: number): boolean {
    return this.elapsedMs(nowMs) > this.#timeouts.lingerMs
  }

  /** @param sinceMs when the write began; negative: there is none. @param isHurried others wait for what it holds. */
  isWriteLate(nowMs: number, sinceMs: number, isHurried: boolean): boolean {
    const { writeMs, stalledMs } = this.#timeouts
    return sinceMs >= 0 && nowMs - sinceMs > (isHurried ? Math.min(writeMs, stalledMs) : writeMs)
  }

  /** @returns why the frame in part, or the silence, has lasted too long; null: it has not. */
  lateFrame(nowMs: number, { receive, isShort, isOwed }: Awaited): 'bodyTimeout' | 'memory' | 'idleTimeout' | null {
    const { bodyMs, idleMs, stalledMs } = this.#timeouts
    const elapsedMs = this.elapsedMs(nowMs)
    if (!this.#isInFrame) return elapsedMs > idleMs && !isOwed ? 'idleTimeout' : null
    if (elapsedMs > bodyMs) return 'bodyTimeout'
    if (receive.heldBytes > 0 && isShort) {
      // What is set aside is as large as the frame will be: it has to come as fast as it must to be whole in time.
      const bytesPerSecond = Math.max(limits.shortFrameBytesPerSecond, (receive.expectedBytes * 1000) / bodyMs)
      const isEnough = this.#progress.isEnough(nowMs, receive.pendingBytes, { watchMs: stalledMs, bytesPerSecond })
      return isEnough ? null : 'memory'
    }
    this.#progress.forget()
    return null
  }
}
