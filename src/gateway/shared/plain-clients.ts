/**
 * Clients that do not speak TLS to a listener that speaks nothing else: told in the log, with what to set, once in a while, so
 * that whoever comes again and again does not fill it. Main thread; one per listener.
 */
import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/logger.ts'

/** Least time between two lines. */
const WARN_MS = 10_000

/** What OpenSSL says of bytes that begin no TLS record; it knows those of HTTP. */
const plainFailures: ReadonlySet<unknown> = new Set(['ERR_SSL_WRONG_VERSION_NUMBER', 'ERR_SSL_HTTP_REQUEST'])

/** True if a handshake failed because the client does not speak TLS. */
export function isPlainClient(failure: Error): boolean {
  return 'code' in failure && plainFailures.has(failure.code)
}

export interface PlainClientsOptions {
  readonly logger: Logger
  readonly clock: Clock
  /** As the log calls the listener. */
  readonly protocol: string
  /** What a client needs, for whoever configures it. */
  readonly remedy: string
}

export class PlainClients {
  readonly #options: PlainClientsOptions
  #warnedMs = -Infinity

  constructor(options: PlainClientsOptions) {
    this.#options = options
  }

  /** One was closed. */
  note(remoteAddress: string): void {
    const { logger, clock, protocol, remedy } = this.#options
    const nowMs = clock.monotonicMs()
    if (nowMs - this.#warnedMs < WARN_MS) return
    this.#warnedMs = nowMs
    logger.warn({ remoteAddress }, `a client did not speak TLS to the ${protocol} listener, which does: ${remedy}`)
  }
}
