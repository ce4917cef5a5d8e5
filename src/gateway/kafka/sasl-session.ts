/**
 * Where a connection is in saying who it is (KIP-43, KIP-152): a mechanism is agreed on, then its tokens follow, either as
 * SaslAuthenticate requests or, after a handshake of version 0, bare. Main thread; one per connection.
 */
import type { Principal } from '../../model/principal.ts'

/** Who a client says it is. */
export interface SaslClaim {
  readonly mechanism: string
  /** As its tokens have it, of any length; null: none that can be read. */
  readonly user: string | null
}

/** What a mechanism says to a token. */
export type SaslStep =
  | { readonly kind: 'done'; readonly who: Principal; readonly reply: Buffer }
  | { readonly kind: 'more'; readonly reply: Buffer }
  /** `told`: what the client hears. */
  | { readonly kind: 'refused'; readonly told: string }

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
  /** Who it said to be when it was refused. */
  claim: SaslClaim | null = null
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
  take(token: Buffer): SaslStep {
    const exchange = this.#exchange
    if (exchange === null) return { kind: 'refused', told: 'no mechanism was agreed on before this token' }
    const step = exchange.take(token)
    if (step.kind === 'more') return step
    if (step.kind === 'refused') this.claim = { mechanism: exchange.mechanism, user: exchange.user }
    this.#exchange = null
    this.isBare = false
    if (step.kind === 'done') this.who = step.who
    return step
  }
}
