/**
 * What the connections of one client address have together: how many they are, and the request memory that they may
 * hold. Main thread only; owned by the listener. An address without a connection takes no memory.
 */
import type { ByteBudget } from '../../base/byte-budget.ts'
import { limits } from '../../model/limits.ts'
import { ByteShare } from './byte-share.ts'

interface Client {
  readonly share: ByteShare
  connectionCount: number
}

export class ClientAddresses {
  readonly #budget: ByteBudget
  readonly #shareBytes: number
  readonly #clients = new Map<string, Client>()

  /**
   * One address may hold its share of the budget (`addressRequestShare`), and at least one request of the largest size with
   * what was read behind it.
   */
  constructor(budget: ByteBudget, largestRequestBytes: number) {
    this.#budget = budget
    const least = largestRequestBytes + limits.frameSurplusBytes
    this.#shareBytes = Math.max(least, budget.limitBytes / limits.addressRequestShare)
  }

  connectionsOf(address: string): number {
    return this.#clients.get(address)?.connectionCount ?? 0
  }

  /** True if a need of that size may have to wait for what the connections of this address hold. */
  isShort(address: string, largestBytes: number): boolean {
    return this.#clients.get(address)?.share.isShort(largestBytes) === true
  }

  /** Counts one more connection. @returns the memory of its address. */
  enter(address: string): ByteShare {
    const known = this.#clients.get(address)
    if (known !== undefined) {
      known.connectionCount++
      return known.share
    }
    const share = new ByteShare(this.#budget, this.#shareBytes)
    this.#clients.set(address, { share, connectionCount: 1 })
    return share
  }

  /** The connection is gone, and holds nothing any more. */
  leave(address: string): void {
    const client = this.#clients.get(address)
    if (client !== undefined && --client.connectionCount === 0) this.#clients.delete(address)
  }
}
