/**
 * The uWebSockets.js apps behind one listening address: how connections come in, how many there may be, and which
 * certificate they get. Main thread; owned by its engine.
 *
 *   without TLS   app ◀── listens and serves
 *   with TLS      door ──accepted sockets──▶ app of the certificate in effect
 *                                            retired apps: the certificates before, until their connections have ended
 *
 * An app reads its certificate once, when it is made, and an address that is taken exclusively cannot have a second
 * listener. So the one that listens, the door, serves nothing: it hands each socket it has accepted on to the app that
 * is current at that moment. A change of certificate closes no listener, so no connection is lost to it.
 */
import { assert } from '../../../base/assert.ts'
import { isUnchanged, type Certificate } from '../../shared/certificates.ts'
import type { ConnectionTimeouts } from './engine.ts'
import type { HttpProbe } from '../probe.ts'
import type { Uws, UwsApp, UwsRequest, UwsResponse } from './uws-shape.ts'

/** After an app was retired, before it may be closed: sockets that were accepted for it may still be on their way. */
const RETIRING_MS = 1_000

interface ServingApp {
  readonly app: UwsApp
  connectionCount: number
}

export interface UwsListenerOptions extends ConnectionTimeouts {
  readonly uws: Uws
  readonly onRequest: (response: UwsResponse, request: UwsRequest) => void
  readonly connectionsMax: number
  readonly probe: HttpProbe
  /** null: without TLS. */
  readonly certificate: Certificate | null
}

export class UwsListener {
  readonly #options: UwsListenerOptions
  readonly #door: UwsApp | null
  #current: ServingApp
  readonly #retired = new Set<ServingApp>()
  #socket: object | null = null
  #retiring: NodeJS.Timeout | null = null

  constructor(options: UwsListenerOptions) {
    this.#options = options
    this.#current = this.#serve(options.certificate)
    this.#door = options.certificate === null ? null : options.uws.SSLApp({})
    this.#door?.addChildAppDescriptor(this.#current.app.getDescriptor())
  }

  /** @throws Error if the files do not hold that certificate any more. */
  #serve(certificate: Certificate | null): ServingApp {
    const { uws, onRequest, idleMs, responseMs } = this.#options
    const app = certificate === null ? uws.App() : makeSecureApp(uws, certificate)
    // Without these two, which the original library lacks, it has ten seconds for both.
    app.setIdleTimeout?.(idleMs / 1000)
    app.setResponseTimeout?.(responseMs / 1000)
    const serving: ServingApp = { app, connectionCount: 0 }
    app.any('/*', onRequest)
    app.filter((response, change) => this.#count(serving, response, change))
    return serving
  }

  /** A connection was opened (1) or has ended (−1). */
  #count(serving: ServingApp, response: UwsResponse, change: number): void {
    const { probe, connectionsMax } = this.#options
    serving.connectionCount += change
    probe.connections += change
    if (change < 0) return
    if (probe.connections <= connectionsMax) {
      probe.connectionsAccepted++
      return
    }
    probe.connectionsRefused++
    response.close()
  }

  /** Takes the address for this process alone. @returns the port; −1: it cannot be had. */
  listen(host: string, port: number): number {
    assert(this.#socket === null, 'an engine listens once')
    const { uws } = this.#options
    let boundPort = -1
    // The callback runs before listen returns.
    const listening = this.#door ?? this.#current.app
    listening.listen(host, port, uws.LIBUS_LISTEN_EXCLUSIVE_PORT, socket => {
      if (typeof socket !== 'object' || socket === null) return
      this.#socket = socket
      boundPort = uws.us_socket_local_port(socket)
    })
    return boundPort
  }

  /** New connections get this one. @throws Error, and nothing has changed, if it cannot be used. */
  useCertificate(certificate: Certificate): void {
    assert(this.#door !== null, 'a certificate is changed only where there is one')
    const next = this.#serve(certificate)
    const before = this.#current
    this.#door.addChildAppDescriptor(next.app.getDescriptor())
    this.#door.removeChildAppDescriptor(before.app.getDescriptor())
    this.#current = next
    this.#retired.add(before)
    this.#retireLater()
  }

  #retireLater(): void {
    this.#retiring ??= setTimeout(() => {
      this.#retiring = null
      for (const serving of this.#retired) {
        if (serving.connectionCount > 0) continue
        this.#retired.delete(serving)
        serving.app.close()
      }
      if (this.#retired.size > 0) this.#retireLater()
    }, RETIRING_MS)
    this.#retiring.unref()
  }

  /** Takes no more connections; those that are open go on. */
  closeDoor(): void {
    if (this.#socket !== null) this.#options.uws.us_listen_socket_close(this.#socket)
    this.#socket = null
  }

  /** Cuts all connections. */
  close(): void {
    this.closeDoor()
    if (this.#retiring !== null) clearTimeout(this.#retiring)
    for (const { app } of [...this.#retired, this.#current]) app.close()
    this.#retired.clear()
    this.#door?.close()
  }
}

/** The library reads the files itself: they are looked at again afterwards, so that what was checked is what is served. */
function makeSecureApp(uws: Uws, certificate: Certificate): UwsApp {
  const { cert, key } = certificate.files
  let app: UwsApp
  try {
    app = uws.SSLApp({ cert_file_name: cert, key_file_name: key })
  } catch (error) {
    throw new Error(`uWebSockets.js cannot use the certificate ${cert} with its key`, { cause: error })
  }
  if (isUnchanged(certificate)) return app
  app.close()
  throw new Error(`the certificate ${cert} or its key changed while it was read`)
}
