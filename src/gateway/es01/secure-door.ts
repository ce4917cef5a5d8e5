/**
 * The TLS handshakes of the ES01 listener. Main thread only. It owns the accepted sockets until their handshake is done,
 * with a deadline, and hands on what can be read in plain.
 * A client that does not speak TLS, or sends nothing, costs what its handshake costs and takes nothing down.
 */
import type { Socket } from 'node:net'
import { createServer, type Server, type TLSSocket } from 'node:tls'
import type { Certificate } from '../shared/certificates.ts'

/** `Guest`: what the listener knows of an accepted socket, given back with it. */
export interface SecureDoorOptions<Guest> {
  readonly certificate: Certificate
  readonly handshakeMs: number
  /** The handshake is done: the socket is the listener's. */
  readonly onSecure: (socket: TLSSocket, guest: Guest) => void
  /** It failed, or was not done in time: the connection is gone. */
  readonly onFailed: (guest: Guest, timedOut: boolean) => void
}

interface Handshake<Guest> {
  readonly accepted: Socket
  readonly guest: Guest
  readonly timer: NodeJS.Timeout
}

/** What an accepted socket and the TLS socket over it have in common, and no other connection of a listener has. */
function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`
}

export class SecureDoor<Guest> {
  readonly #options: SecureDoorOptions<Guest>
  /** It never listens: sockets are given to it, as the library allows. */
  readonly #server: Server
  readonly #handshakes = new Map<string, Handshake<Guest>>()

  constructor(options: SecureDoorOptions<Guest>) {
    this.#options = options
    const { cert, key } = options.certificate
    // Its own deadline cannot be had below a second, and would not say that it was one.
    this.#server = createServer({ cert, key, allowHalfOpen: true, pauseOnConnect: true, handshakeTimeout: 2 ** 30 })
    this.#server.on('secureConnection', (socket: TLSSocket) => this.#finish(socket))
    // The socket is destroyed by the library; its close event is heard below.
    this.#server.on('tlsClientError', () => {})
  }

  get handshakeCount(): number {
    return this.#handshakes.size
  }

  /** Begins the handshake of a socket that nobody has read from. */
  take(accepted: Socket, guest: Guest): void {
    const peer = peerOf(accepted)
    let timedOut = false
    const cut = (): void => {
      timedOut = true
      accepted.destroy()
    }
    this.#handshakes.set(peer, { accepted, guest, timer: setTimeout(cut, this.#options.handshakeMs) })
    accepted.once('close', () => {
      if (this.#end(peer) !== null) this.#options.onFailed(guest, timedOut)
    })
    this.#server.emit('connection', accepted)
  }

  useCertificate({ cert, key }: Certificate): void {
    this.#server.setSecureContext({ cert, key })
  }

  /** Cuts off all handshakes. */
  close(): void {
    for (const { accepted } of this.#handshakes.values()) accepted.destroy()
  }

  #finish(socket: TLSSocket): void {
    const handshake = this.#end(peerOf(socket))
    if (handshake === null) socket.destroy()
    else this.#options.onSecure(socket, handshake.guest)
  }

  /** @returns null: it has ended already. */
  #end(peer: string): Handshake<Guest> | null {
    const handshake = this.#handshakes.get(peer)
    if (handshake === undefined) return null
    clearTimeout(handshake.timer)
    this.#handshakes.delete(peer)
    return handshake
  }
}
