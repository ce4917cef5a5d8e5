/**
 * The entrance of a listener: which accepted sockets become connections, by the limits on all and on one address, and by way
 * of which handshake. Main thread only. An address is counted in here, and out where the handshake fails; the end of a
 * connection is told by who holds them (`OpenConnections`).
 */
import type { Socket } from 'node:net'
import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/logger.ts'
import { plainAddress } from './address.ts'
import type { ClientAddresses } from './addresses.ts'
import type { Certificates } from './certificates.ts'
import type { AddressMemory } from './frame-memory.ts'
import { PlainClients } from './plain-clients.ts'
import { SecureDoor } from './secure-door.ts'

/** Counters, written here and read at scrape time. */
export interface EntranceCounts {
  accepted: number
  acceptErrors: number
  readonly refused: Record<'connectionsTotal' | 'connectionsPerIp' | 'handshakeTimeout' | 'handshakeFailed', number>
}

export interface EntranceOptions {
  /** As the log calls it. */
  readonly protocol: string
  /** What a client that speaks no TLS has to set where this listener does. */
  readonly tlsRemedy: string
  readonly logger: Logger
  readonly clock: Clock
  readonly counts: EntranceCounts
  readonly addresses: ClientAddresses
  /** Handshakes that are not done count as connections. */
  readonly connectionsMax: number
  /** Of one address; 0 counts as 1. */
  readonly connectionsPerAddressMax: number
  /** Connections that are open now. */
  readonly openCount: () => number
  /** From accepting to the end of the TLS handshake. */
  readonly handshakeMs: number
  /** null: without TLS. */
  readonly certificates: Certificates | null
}

/** Who has come in: the client's address, and what the requests of all its connections may hold. */
export interface Arrival {
  readonly remoteAddress: string
  readonly memory: AddressMemory
}

/** Makes a connection of a socket that may be read in plain, and is its owner's now. */
export type Admit = (socket: Socket, arrival: Arrival) => void

type Guest = Arrival & { readonly admit: Admit }

export class Entrance {
  readonly #options: EntranceOptions
  readonly #door: SecureDoor<Guest> | null
  #isClosed = false

  constructor(options: EntranceOptions) {
    this.#options = options
    this.#door = options.certificates === null ? null : this.#buildDoor(options.certificates)
  }

  /** Connections whose TLS handshake is not done. */
  get handshakeCount(): number {
    return this.#door?.handshakeCount ?? 0
  }

  /** @param socket that a server has just accepted. @param admit is called at once, after the handshake, or never. */
  take(socket: Socket, admit: Admit): void {
    const { counts, addresses, connectionsMax, connectionsPerAddressMax, openCount } = this.#options
    const remoteAddress = plainAddress(socket.remoteAddress ?? '')
    if (openCount() + this.handshakeCount >= connectionsMax) return this.#turnAway(socket, 'connectionsTotal')
    if (addresses.connectionsOf(remoteAddress) >= Math.max(1, connectionsPerAddressMax)) {
      return this.#turnAway(socket, 'connectionsPerIp')
    }
    // An empty address: the client was gone before it was accepted.
    if (remoteAddress === '' || this.#isClosed) {
      socket.destroy()
      return
    }
    counts.accepted++
    const arrival = { remoteAddress, memory: addresses.enter(remoteAddress) }
    if (this.#door === null) admit(socket, arrival)
    else this.#door.take(socket, { ...arrival, admit })
  }

  /** A server could not accept somebody. */
  missed(error: Error): void {
    const { counts, logger, protocol } = this.#options
    counts.acceptErrors++
    logger.warn({ error: error.message }, `a connection of ${protocol} could not be accepted`)
  }

  /** Takes nobody any more, and cuts off all handshakes. */
  close(): void {
    this.#isClosed = true
    this.#door?.close()
  }

  #buildDoor(certificates: Certificates): SecureDoor<Guest> {
    const { protocol, tlsRemedy: remedy, logger, clock, counts, addresses, handshakeMs } = this.#options
    const plainClients = new PlainClients({ protocol, remedy, logger, clock })
    const door = new SecureDoor<Guest>({
      certificate: certificates.current,
      handshakeMs,
      onSecure: (socket, guest) => guest.admit(socket, guest),
      onFailed: ({ remoteAddress }, failure) => {
        if (!this.#isClosed) counts.refused[failure === 'timeout' ? 'handshakeTimeout' : 'handshakeFailed']++
        if (failure === 'plain') plainClients.note(remoteAddress)
        addresses.leave(remoteAddress)
      }
    })
    certificates.onChange(certificate => door.useCertificate(certificate))
    return door
  }

  #turnAway(socket: Socket, reason: 'connectionsTotal' | 'connectionsPerIp'): void {
    this.#options.counts.refused[reason]++
    socket.destroy()
  }
}
