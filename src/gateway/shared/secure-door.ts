/**
 * The TLS handshakes of a listener of ES01 or Kafka. Main thread only. It owns the accepted sockets until their handshake is done,
 * with a deadline, and hands on what can be read in plain.
 * A client that does not speak TLS, goes away or sends nothing costs what its handshake costs, and takes nothing down.
 */
import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import type { Certificate } from './certificates.ts'
import { isPlainClient } from './plain-clients.ts'

/** Why there is no connection: not in time, no TLS at all, or anything else. */
export type HandshakeFailure = 'timeout' | 'plain' | 'other'

/** `Guest`: what the listener knows of an accepted socket, given back with it. */
export interface SecureDoorOptions<Guest> {
  readonly certificate: Certificate
  readonly handshakeMs: number
  /** The handshake is done: the socket is the listener's. */
  readonly onSecure: (socket: TLSSocket, guest: Guest) => void
  /** It failed: the connection is gone. */
  readonly onFailed: (guest: Guest, failure: HandshakeFailure) => void
}

export class SecureDoor<Guest> {
  readonly #options: SecureDoorOptions<Guest>
  readonly #handshakes = new Set<TLSSocket>()
  #certificate: Certificate

  constructor(options: SecureDoorOptions<Guest>) {
    this.#options = options
    this.#certificate = options.certificate
  }

  get handshakeCount(): number {
    return this.#handshakes.size
  }

  /** Begins the handshake of a socket that nobody has read from. */
  take(accepted: Socket, guest: Guest): void {
    const { handshakeMs, onSecure, onFailed } = this.#options
    const socket = new TLSSocket(accepted, { isServer: true, secureContext: this.#certificate.context })
    let failure: HandshakeFailure = 'other'
    const end = (): boolean => {
      clearTimeout(timer)
      return this.#handshakes.delete(socket)
    }
    const timer = setTimeout(() => {
      failure = 'timeout'
      socket.destroy()
    }, handshakeMs)
    // What fails a handshake destroys the socket: its close event is heard.
    const onError = (error: Error): void => {
      if (isPlainClient(error)) failure = 'plain'
    }
    const onEnd = (): void => void socket.destroy()
    const onClose = (): void => {
      if (end()) onFailed(guest, failure)
    }
    this.#handshakes.add(socket)
    socket.on('error', onError).once('end', onEnd).once('close', onClose)
    socket.once('secure', () => {
      if (!end()) return
      socket.off('error', onError).off('end', onEnd).off('close', onClose)
      onSecure(socket, guest)
    })
  }

  /** The next handshakes are made with this one. */
  useCertificate(certificate: Certificate): void {
    this.#certificate = certificate
  }

  /** Cuts off all handshakes. */
  close(): void {
    for (const socket of this.#handshakes) socket.destroy()
  }
}
