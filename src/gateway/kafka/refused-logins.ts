/**
 * Logins that failed, and those that never came, as the log has them: all at level debug, as refused requests of HTTP, and one at
 * a time at warn, so that whoever hammers does not fill it. Main thread; one per gateway.
 *
 * Invariant: no secret is written, also not of a client that sends it in another place.
 */
import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/logger.ts'
import { SECRET_PREFIX } from '../../model/keys.ts'
import type { SaslClaim } from './sasl-session.ts'

/** Least time between two lines at level warn. */
const WARN_MS = 10_000
/** Characters of a user or a mechanism that are repeated: an id has 16, and half of a secret lets nobody in. */
const WORD_CHARACTERS_MAX = 24

/** Whose login failed, or did not come. */
export interface RefusedClient {
  readonly remoteAddress: string
  /** Names the listener: where the client is told to come again. */
  readonly advertised: { readonly host: string; readonly port: number }
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
  note({ remoteAddress, advertised }: RefusedClient, { mechanism, user }: SaslClaim, problem: string): void {
    const listener = `${advertised.host}:${advertised.port}`
    const fields = { listener, remoteAddress, mechanism: shownWord(mechanism), keyId: shownWord(user), problem }
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

/** What a client sent, as the log may have it: short, in printable ASCII, and no secret. */
function shownWord(word: string | null): string | null {
  if (word === null) return null
  if (word.toLowerCase().includes(SECRET_PREFIX)) return '(looks like a secret)'
  const start = word.slice(0, WORD_CHARACTERS_MAX)
  const shown = start.replace(
    /[^\x20-\x5b\x5d-\x7e]/g,
    unit => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
  )
  return word.length > start.length ? `${shown}…` : shown
}
