/**
 * Whether a connection reads its socket. Main thread only, one owner: its connection, which decides when.
 *
 * A pause counts when it begins to be for want of something; one that is only the end of a connection does not.
 */
import type { Socket } from 'node:net'

export class SocketReading {
  isPaused = false
  readonly #counts: { pauses: number }
  #isLacking = false

  /** It is there before the socket, which asks for memory while it is made. @param counts where pauses are counted. */
  constructor(counts: { pauses: number }) {
    this.#counts = counts
  }

  /** @param isLacking because something of the broker's is full. */
  pause(socket: Socket, isLacking: boolean): void {
    if (isLacking && !this.#isLacking) {
      this.#isLacking = true
      this.#counts.pauses++
    }
    if (this.isPaused) return
    this.isPaused = true
    socket.pause()
  }

  /** Nothing is lacking. @returns false if it did read. */
  unpause(socket: Socket): boolean {
    if (!this.isPaused) return false
    this.#isLacking = false
    this.resume(socket)
    return true
  }

  /** Reads on, for whatever reason. */
  resume(socket: Socket): void {
    this.isPaused = false
    socket.resume()
  }
}
