/**
 * An answer without a known end on node:http: chunked, or up to the end of the connection for an HTTP/1.0 client. Main
 * thread; owned by its reply. It hands over one piece at a time once the socket does not take more at once, so that a
 * client shows that it reads, and must never write after its end.
 */
import type { ServerResponse } from 'node:http'
import type { Clock } from '../../../base/clock.ts'
import { WHOLE_ANSWER_BYTES_MAX } from './engine.ts'
import { OpenPace } from './open-pace.ts'

/** Bytes handed to the socket at once. */
const PIECE_BYTES = WHOLE_ANSWER_BYTES_MAX

export interface NodeOpenParts {
  readonly clock: Clock
  readonly onDrained: () => void
}

export class NodeOpenAnswer {
  readonly pace = new OpenPace()
  readonly #response: ServerResponse
  readonly #parts: NodeOpenParts
  readonly #pending: Buffer[] = []
  /** Pieces whose callback has not come. */
  #writing = 0
  #isEnded = false
  readonly #written = (error?: Error | null): void => {
    this.#writing--
    // After a failed write the reply closes by itself.
    if (error || this.#isEnded || !this.pace.isBlocked) return
    this.pace.took(this.#parts.clock.monotonicMs())
    // Also what the socket took at once is told of late: all of it must be gone.
    if (this.#writing > 0 || !this.#pour()) return
    this.pace.free()
    this.#parts.onDrained()
  }

  constructor(response: ServerResponse, parts: NodeOpenParts) {
    this.#response = response
    this.#parts = parts
  }

  /** @returns false: some of it waits. */
  push(bytes: Buffer): boolean {
    this.#pending.push(bytes)
    if (this.pace.isBlocked) this.pace.block(this.#parts.clock.monotonicMs(), bytes.length)
    else this.#pour()
    return !this.pace.isBlocked
  }

  /** From here on the client has as long as for any write. */
  end(): void {
    this.#isEnded = true
    if (!this.pace.isBlocked) this.pace.block(this.#parts.clock.monotonicMs(), 0)
    for (const bytes of this.#pending.splice(0)) this.#response.write(bytes)
    this.#response.end()
  }

  /** Hands over pieces until the socket takes no more at once. @returns false: it does not. */
  #pour(): boolean {
    for (let bytes = this.#pending.shift(); bytes !== undefined; bytes = this.#pending.shift()) {
      if (bytes.length > PIECE_BYTES) this.#pending.unshift(bytes.subarray(PIECE_BYTES))
      if (this.#write(bytes.subarray(0, PIECE_BYTES))) continue
      if (!this.pace.isBlocked) this.pace.block(this.#parts.clock.monotonicMs(), bytes.length)
      return false
    }
    return true
  }

  /**
   * What write() returns says how much node would keep, not what it keeps: no for every large piece, and yes for many small
   * ones that nobody takes. So the socket is made to try now, and asked. @returns true: the system has it.
   */
  #write(piece: Buffer): boolean {
    this.#writing++
    this.#response.write(piece, this.#written)
    const { socket } = this.#response
    // Not there: another answer is ahead of this one.
    socket?.uncork()
    return socket?.writableLength === 0
  }
}
