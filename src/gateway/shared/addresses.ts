/**
 * What the connections of one client address have together: how many they are, and their part of the request memory. Main
 * thread only; owned by the listener. An address without a connection takes no memory.
 */
import { limits } from '../../model/limits.ts'
import type { AddressMemory, FrameMemory } from './frame-memory.ts'

interface Client {
  readonly memory: AddressMemory
  connectionCount: number
}

export class ClientAddresses {
  readonly #frames: FrameMemory
  readonly #largestBytes: number
  readonly #clients = new Map<string, Client>()

  /** @param largestRequestBytes of one request; what is read behind it takes more. */
  constructor(frames: FrameMemory, largestRequestBytes: number) {
    this.#frames = frames
    this.#largestBytes = largestRequestBytes + limits.frameSurplusBytes
  }

  connectionsOf(address: string): number {
    return this.#clients.get(address)?.connectionCount ?? 0
  }

  /** Does anybody wait for memory that the connections of this address hold? */
  isShort(address: string): boolean {
    return this.#frames.isShortFor(address)
  }

  /** Counts one more connection. @returns the memory of its address. */
  enter(address: string): AddressMemory {
    const known = this.#clients.get(address)
    if (known !== undefined) {
      known.connectionCount++
      return known.memory
    }
    const memory = this.#frames.memoryOf(address, this.#largestBytes)
    this.#clients.set(address, { memory, connectionCount: 1 })
    return memory
  }

  /** The connection is gone, and holds nothing any more. */
  leave(address: string): void {
    const client = this.#clients.get(address)
    if (client !== undefined && --client.connectionCount === 0) this.#clients.delete(address)
  }
}
