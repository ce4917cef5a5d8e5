/**
 * An answer without a known end on uWebSockets.js, in chunked encoding. Main thread; owned by its reply.
 *
 *   push ─▶ write ─▶ true: taken
 *                └─▶ false: the library keeps the rest ─▶ onWritable: the filler is taken ─▶ drained
 *
 * The library copies what the socket does not take, and tells neither how much that is nor when it is gone: only the
 * next write shows whether everything before it is. So once a push was not taken, fillers ask until one is. It must
 * never write to the response after its end, and never push while something waits: that would grow without bound.
 */
import type { Clock } from '../../../base/clock.ts'
import { OpenPace } from './open-pace.ts'
import type { UwsResponse } from './uws-shape.ts'

export interface UwsOpenParts {
  readonly clock: Clock
  /** Of Reply.open. */
  readonly filler: Buffer
  /** Writes status and headers. Called once, corked. */
  readonly writeHead: (response: UwsResponse) => void
  readonly onDrained: () => void
}

export class UwsOpenAnswer {
  readonly pace = new OpenPace()
  readonly #response: UwsResponse
  readonly #parts: UwsOpenParts
  #hasHead = false
  #isEnded = false
  /** Pushed while something waited: kept as they are. */
  readonly #pending: Buffer[] = []

  constructor(response: UwsResponse, parts: UwsOpenParts) {
    this.#response = response
    this.#parts = parts
    response.onWritable(() => this.#drain())
  }

  /** @returns false: some of it waits. */
  push(bytes: Buffer): boolean {
    const { pace } = this
    if (pace.isBlocked) this.#pending.push(bytes)
    else if (this.#write(bytes)) return true
    pace.block(this.#parts.clock.monotonicMs(), bytes.length)
    return false
  }

  /**
   * The client has been told that the connection ends with the answer; if it does not close it, the library does as soon
   * as it is idle for long. To have the library close it here would put a header into the body.
   */
  end(): void {
    this.#isEnded = true
    for (const bytes of this.#pending.splice(0)) this.#write(bytes)
    this.#response.cork(() => {
      if (!this.#hasHead) this.#parts.writeHead(this.#response)
      this.#response.end()
    })
  }

  #write(bytes: Buffer): boolean {
    let isTaken = false
    this.#response.cork(() => {
      if (!this.#hasHead) this.#parts.writeHead(this.#response)
      this.#hasHead = true
      isTaken = this.#response.write(bytes)
    })
    return isTaken
  }

  /** The socket takes more. @returns true, as the library wants it. */
  #drain(): boolean {
    if (this.#isEnded) return true
    if (!this.pace.isBlocked) {
      // A small push that seemed taken was not, in part: the library moves it on when it is corked.
      this.#response.cork(() => undefined)
      return true
    }
    this.pace.took(this.#parts.clock.monotonicMs())
    if (!this.#write(this.#parts.filler)) return true
    for (let bytes = this.#pending.shift(); bytes !== undefined; bytes = this.#pending.shift()) {
      if (!this.#write(bytes)) return true
    }
    this.pace.free()
    this.#parts.onDrained()
    return true
  }
}
