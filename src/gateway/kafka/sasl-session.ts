/**
 * Where a connection is in saying who it is (KIP-43, KIP-152): a mechanism is agreed on, then its tokens follow, either as
 * SaslAuthenticate requests or, after a handshake of version 0, bare. Main thread; one per connection.
 */
import type { Principal } from '../../model/principal.ts'

/** Who a client says it is. */
export interface SaslClaim {
  /** As the client calls it; null: none was agreed on. */
  readonly mechanism: string | null
  /** As its tokens have it, of any length; null: none that can be read. */
  readonly user: string | null
}

/** The exchange goes on, or has succeeded. */
type SaslProgress =
  | { readonly kind: 'done'; readonly who: Principal; readonly reply: Buffer }
  | { readonly kind: 'more'; readonly reply: Buffer }

/** The exchange is over. `told`: what the client hears. */
interface SaslRefusal {
  readonly kind: 'refused'
  readonly told: string
}

/** What a mechanism says to a token. */
export type SaslStep = SaslProgress | SaslRefusal

/** The same of a session, with who a refused client said it is. */
export type SessionStep = SaslProgress | (SaslRefusal & { readonly claim: SaslClaim })

/** One exchange of tokens. */
export interface SaslExchange extends SaslClaim {
  /** @param token borrowed until return. */
  take(token: Buffer): SaslStep
}

export class SaslSession {
  /** Tokens come without the header of a request. */
  isBare = false
  /** null: nobody yet. */
  who: Principal | null
  /** null: no mechanism was agreed on, or the exchange is over. */
  #exchange: SaslExchange | null = null

  /** @param who null: the client is to say who it is. */
  constructor(who: Principal | null) {
    this.who = who
  }

  /** A mechanism was agreed on: its tokens follow. */
  begin(exchange: SaslExchange, isBare: boolean): void {
    this.#exchange = exchange
    this.isBare = isBare
  }

  /** Is a token expected? */
  get isUnderWay(): boolean {
    return this.#exchange !== null
  }

  /** @param token borrowed until return. */
  take(token: Buffer): SessionStep {
    const exchange = this.#exchange
    if (exchange === null) {
      const claim = { mechanism: null, user: null }
      return { kind: 'refused', told: 'no mechanism was agreed on before this token', claim }
    }
    const step = exchange.take(token)
    if (step.kind === 'more') return step
    this.#exchange = null
    this.isBare = false
    if (step.kind === 'refused') return { ...step, claim: { mechanism: exchange.mechanism, user: exchange.user } }
    this.who = step.who
    return step
  }
}
