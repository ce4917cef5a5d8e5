/**
 * Which web pages may call the HTTP API (CORS). Pure; built from the settings.
 *
 *   origin of the request | answer
 *   none, or not listed   | as if this file did not exist
 *   listed                | names the origin; an OPTIONS is a preflight and is answered here, without a key
 *
 * Origins are compared as text with what the settings list: no wildcard, no suffix, no `null`.
 */

/** Names and values, in order. */
type Headers = readonly (readonly [string, string])[]

/** For how long a browser may keep the answer to a preflight: it asks before almost every request otherwise. */
const PREFLIGHT_SECONDS = 600

const preflight: Headers = [
  ['access-control-allow-methods', 'GET, POST, PUT, DELETE'],
  ['access-control-allow-headers', 'authorization, content-type, last-event-id, x-es-key'],
  ['access-control-max-age', String(PREFLIGHT_SECONDS)]
]

export interface CorsHeaders {
  /** For every answer to that origin. */
  readonly answer: Headers
  /** For the answer to its preflight, beside those. */
  readonly preflight: Headers
}

export class CorsRules {
  readonly #byOrigin: ReadonlyMap<string, CorsHeaders>

  constructor(origins: readonly string[]) {
    this.#byOrigin = new Map(
      origins.map(origin => {
        // Vary: a cache must not give one page the answer that names another.
        const answer: Headers = [
          ['access-control-allow-origin', origin],
          ['access-control-expose-headers', 'retry-after'],
          ['vary', 'Origin']
        ]
        return [origin, { answer, preflight }]
      })
    )
  }

  /** @returns null: the origin is not listed, and nothing is said of it. */
  headersFor(origin: string): CorsHeaders | null {
    return this.#byOrigin.get(origin) ?? null
  }
}
