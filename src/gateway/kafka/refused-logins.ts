/**
 * Logins that failed, and those that never came, as the log has them: all at level debug, as refused requests of HTTP, and one at
 * a time at warn, so that whoever hammers does not fill it. Main thread; one per gateway.
 *
 * Invariant: no secret is written, also not of a client that sends it in the place of the user.
 */
import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/logger.ts'
import { SECRET_PREFIX } from '../../model/keys.ts'
import type { SaslClaim } from './sasl-session.ts'

/** Least time between two lines at level warn. */
const WARN_MS = 10_000
/** Characters of a user that are repeated: an id has 16, and half of a secret lets nobody in. */
const USER_CHARACTERS_MAX = 24

/** Whose login failed, or did not come. */
export interface RefusedClient {
  readonly remoteAddress: string
  readonly advertised: { readonly host: string; readonly port: number }
  readonly sasl: { readonly claim: SaslClaim | null }
}

export class RefusedLogins {
  readonly #logger: Logger
  readonly #clock: Clock
  #warnedMs = -Infinity
  /** Since the last line at level warn. */
  #unwarnedCount = 0

  constructor(logger: Logger, clock: Clock) {
    this.#logger = logger
    this.#clock = clock
  }

  /** @param problem what is wrong; a client whose login failed is told the same. */
  note({ remoteAddress, advertised, sasl }: RefusedClient, problem: string): void {
    const { mechanism = null, user = null } = sasl.claim ?? {}
    const listener = `${advertised.host}:${advertised.port}`
    const keyId = user === null ? null : shownUser(user)
    const fields = { listener, remoteAddress, mechanism, keyId, problem }
    const nowMs = this.#clock.monotonicMs()
    if (nowMs - this.#warnedMs < WARN_MS) {
      this.#unwarnedCount++
      return this.#logger.debug(fields, 'a Kafka login was refused')
    }
    const unwarnedBefore = this.#unwarnedCount
    this.#warnedMs = nowMs
    this.#unwarnedCount = 0
    this.#logger.warn({ ...fields, unwarnedBefore }, 'a Kafka login was refused')
  }
}

/** A user as the log may have it: short, in printable ASCII, and no secret. */
function shownUser(user: string): string {
  if (user.toLowerCase().includes(SECRET_PREFIX)) return '(looks like a secret)'
  const start = user.slice(0, USER_CHARACTERS_MAX)
  const shown = start.replace(
    /[^\x20-\x5b\x5d-\x7e]/g,
    unit => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
  )
  return user.length > start.length ? `${shown}…` : shown
}
