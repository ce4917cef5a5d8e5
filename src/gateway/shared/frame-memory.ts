/**
 * The request memory for frames on their way, over all listeners: memory for a whole frame is set aside when its length is
 * known, or the frame waits for that in its socket. So frames in part never wait for each other. Main thread only; one per
 * process.
 *
 * Frames that need up to a MiB and larger ones have room of their own each, so that a small one never waits for a large one. What a
 * connection is better off with, and can do without, is held of the rest, and only while there is much of it.
 */
import type { ByteBudget } from '../../base/byte-budget.ts'
import { limits } from '../../model/limits.ts'
import { bufferSizes } from './buffer-pool.ts'
import { ByteShare } from './byte-share.ts'
import { TurnRoom, type Place } from './turn-room.ts'

/** What the connections of one client address have of it, and where what they hold is counted. */
export interface AddressMemory {
  /** Memory that the connection can do without. @returns false, and nothing is held, if there is none to spare. */
  trySpare(bytes: number): boolean
  /** Counts bytes that are in memory already. */
  charge(bytes: number): void
  /** Gives back what was spared or charged. */
  release(bytes: number): void
  /** Memory for one frame. @param onGranted called when it is set aside, unless it is so on return. It must not come back here. */
  ask(bytes: number, onGranted: () => void): Place
  /** Gives back what was set aside, or waits for it no more. */
  leave(place: Place): void
}

export class FrameMemory {
  readonly #budget: ByteBudget
  readonly #large: TurnRoom
  readonly #small: TurnRoom

  /** @param budget the request memory; others hold some of it too. */
  constructor(budget: ByteBudget) {
    const roomOf = (bytes: number): TurnRoom => new TurnRoom(bytes, bytes / limits.addressRequestShare, budget)
    this.#budget = budget
    this.#large = roomOf(budget.limitBytes / limits.largeFrameShare)
    this.#small = roomOf(budget.limitBytes / limits.smallFrameShare)
  }

  /** Does anybody wait for what that address holds? */
  isShortFor(address: string): boolean {
    return this.#large.isShortFor(address) || this.#small.isShortFor(address)
  }

  /** @param largestBytes what the largest frame takes: so much is not to spare. */
  memoryOf(address: string, largestBytes: number): AddressMemory {
    const budget = this.#budget
    const spared = new ByteShare(budget, budget.limitBytes / (limits.smallFrameShare * limits.addressRequestShare))
    const keptBytes = Math.max(largestBytes, budget.limitBytes / limits.largeFrameShare)
    return {
      trySpare: bytes => budget.limitBytes - budget.usedBytes - bytes >= keptBytes && spared.tryReserve(bytes),
      charge: bytes => spared.charge(bytes),
      release: bytes => spared.release(bytes),
      ask: (bytes, onGranted) => this.#roomOf(bytes).ask(address, bytes, onGranted),
      leave: place => this.#roomOf(place.bytes).leave(place)
    }
  }

  #roomOf(bytes: number): TurnRoom {
    return bytes <= bufferSizes.largest ? this.#small : this.#large
  }
}
