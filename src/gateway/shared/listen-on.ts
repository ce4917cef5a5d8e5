/** A server of node:net that listens. Main thread. */
import type { Server } from 'node:net'
import { assert } from '../../base/assert.ts'
import { limits } from '../../model/limits.ts'
import { splitAddress } from './address.ts'

/** Connections that wait to be accepted; the system may cut it. */
const BACKLOG = 511

/** Keep-alive: a peer that is gone without a word ends its connection, in whatever state that is. */
export const acceptOptions = {
  pauseOnConnect: true,
  allowHalfOpen: true,
  noDelay: true,
  keepAlive: true,
  keepAliveInitialDelay: limits.binaryKeepAliveMs
} as const

/** What is to be listened on, and how a failure names it. */
export interface ListenPlace {
  /** host:port. */
  readonly address: string
  readonly protocol: string
  readonly flag: string
  /** Called for each connection that could not be accepted. */
  readonly onAcceptError: (error: Error) => void
}

/** Rejects with an Error of one clear line. @returns the address that was bound. */
export function listenOn(server: Server, place: ListenPlace): Promise<{ host: string; port: number }> {
  const { host, port } = splitAddress(place.address)
  return new Promise((resolve, reject) => {
    const onRefused = (error: NodeJS.ErrnoException) => reject(listenError(place, error.code ?? '', error.message))
    server.once('error', onRefused)
    server.listen({ host, port, exclusive: true, backlog: BACKLOG }, () => {
      server.off('error', onRefused)
      server.on('error', place.onAcceptError)
      const bound = server.address()
      assert(bound !== null && typeof bound === 'object', 'a listening server has an address')
      resolve({ host: bound.address, port: bound.port })
    })
  })
}

/** Why an address cannot be had, in one clear line. @param code of the system's error. @param message for a code that is not known. */
export function listenError(place: Omit<ListenPlace, 'onAcceptError'>, code: string, message = code): Error {
  const { address, protocol, flag } = place
  const reasons: Readonly<Record<string, string>> = {
    EADDRINUSE: `the address is in use by another process: stop it or choose another ${flag}`,
    EADDRNOTAVAIL: 'this machine does not have that address',
    EACCES: 'the system does not permit it: choose a port above 1023',
    ENOTFOUND: 'the host name is not known'
  }
  return new Error(`cannot listen for ${protocol} on ${address} (${flag}): ${reasons[code] ?? message}`)
}
