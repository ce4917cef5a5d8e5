/**
 * Turns an accepted socket into one that reads into memory of ours. Main thread only.
 *
 * Node offers `onread` for sockets that connect, not for those that a server accepts. The handle of an accepted one
 * (made with pauseOnConnect, so that nothing was read yet) can be given to a new Socket that has it. `_handle` is a
 * private field: where it is not as expected, reading falls back to 'data' events, with one more copy for split
 * frames. So does the reading of a TLS socket, whose handle must stay with it. A test pins that the direct way is taken on the Node this is built for.
 */
import { Socket } from 'node:net'
import type { SocketConstructorOpts } from 'node:net'
import { TLSSocket } from 'node:tls'

/** Where the bytes of a socket go. */
export interface ByteTaker {
  /** Direct way: where the next read is to be put. Called once at the start and after each `landed`. */
  nextTail(): Uint8Array
  /** Direct way: that many bytes were put there. */
  landed(bytes: number): void
  /** Fall-back: a chunk, lent until return. */
  arrived(chunk: Buffer): void
}

export interface TakenSocket {
  readonly socket: Socket
  /** Does it read straight into the taker's memory? */
  readonly isDirect: boolean
}

/** @param accepted a socket of a server with pauseOnConnect, or a TLS socket; the caller must not use it any more. */
export function takeSocket(accepted: Socket, taker: ByteTaker): TakenSocket {
  const handle: unknown = Reflect.get(accepted, '_handle')
  if (accepted instanceof TLSSocket || !isStreamHandle(handle)) {
    accepted.on('data', chunk => taker.arrived(chunk))
    accepted.resume()
    return { socket: accepted, isDirect: false }
  }
  Reflect.set(accepted, '_handle', null)
  // Without its handle this only tells the server that it is gone.
  accepted.destroy()
  const options: SocketConstructorOpts = {
    allowHalfOpen: true,
    readable: true,
    writable: true,
    onread: {
      buffer: () => taker.nextTail(),
      callback: bytes => {
        taker.landed(bytes)
        return true
      }
    }
  }
  return { socket: new Socket(Object.assign(options, { handle })), isDirect: true }
}

/** Writes all of the buffers with one system call, as far as the system takes them. @param written called once for all of them. */
export function writeTogether(socket: Socket, buffers: readonly Buffer[], written: () => void): void {
  socket.cork()
  buffers.forEach((buffer, i) => {
    if (i === buffers.length - 1) socket.write(buffer, written)
    else socket.write(buffer)
  })
  socket.uncork()
}

function isStreamHandle(handle: unknown): boolean {
  if (typeof handle !== 'object' || handle === null) return false
  return ['readStart', 'readStop', 'useUserBuffer', 'close'].every(
    name => typeof Reflect.get(handle, name) === 'function'
  )
}
