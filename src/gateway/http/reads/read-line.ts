/**
 * HTTP reads that wait for room in a ring or for reply memory. Main thread. One that waits stands in one of two places:
 *
 *   lanes     by partition, while its ring is full: first come, first served; other lanes go on
 *   parties   by key or address, while memory is missing
 *               share-full   only reads of that party wait: its own answers must leave first
 *               bytes-full   the party that holds least comes first, and of those that hold the same the read that came
 *                            first; nobody that holds as much or more gets memory before it
 *
 * So who holds nothing never stands behind who holds much, and who waits comes up at last: what is held is taken by its
 * client, or cut off.
 * Invariants: a read stands in one place; while someone waits, a wake-up is asked for.
 */
import { BrokerError } from '../../../model/errors.ts'
import { limits } from '../../../model/limits.ts'
import type { ReplyParty, Reservation } from './reply-memory.ts'
import type { WaitLineOptions } from '../produce/wait-line.ts'

/** taken: it is on its way, or nobody wants it any more. */
export type ReadAttempt = 'taken' | 'rings-full' | Exclude<Reservation, 'held'>

export interface ReadWaiter {
  /** The partition: its ring is the one that can be full. */
  readonly lane: string
  readonly party: Pick<ReplyParty, 'heldBytes'>
  /** Tries again; holds no memory unless taken. Must not throw, and must not enter a line. */
  attempt(): ReadAttempt
}

export interface ReadLineOptions extends WaitLineOptions {
  /** Calls back once when reply memory was given back. */
  readonly whenReleased: (callback: () => void) => void
}

interface Place {
  readonly waiter: ReadWaiter
  /** In the order in which they came. */
  readonly number: number
}

/** Keeps the order in which they came. Mostly it is the last. */
function insert(places: Place[], place: Place): void {
  let index = places.length
  while (index > 0 && (places[index - 1] as Place).number > place.number) index--
  places.splice(index, 0, place)
}

export class ReadLine {
  readonly #options: ReadLineOptions
  readonly #lanes = new Map<string, Place[]>()
  readonly #parties = new Map<ReadWaiter['party'], Place[]>()
  #count = 0
  #nextNumber = 0
  /** What the party holds that comes first of those who lack memory; Infinity: nobody lacks it. */
  #lackingHeldBytes = Infinity
  #isRoomAsked = false
  #areBytesAsked = false
  #isDraining = false
  #hasRoom = false
  #hasBytes = false

  constructor(options: ReadLineOptions) {
    this.#options = options
  }

  /** Reads that wait. */
  get count(): number {
    return this.#count
  }

  /** Tries at once if nobody is ahead; else, or if there is no room, stands in line. @throws BrokerError OVERLOADED */
  enter(waiter: ReadWaiter): void {
    const attempt = this.#try(waiter)
    if (attempt === 'taken') return
    if (this.#count >= limits.waitingRequestsMax) {
      throw new BrokerError('OVERLOADED', { what: 'the number of waiting requests', limit: limits.waitingRequestsMax })
    }
    this.#count++
    this.#stand({ waiter, number: this.#nextNumber++ }, attempt)
  }

  #try(waiter: ReadWaiter): ReadAttempt {
    if (this.#lanes.has(waiter.lane)) return 'rings-full'
    return this.#isBehind(waiter) ? 'share-full' : this.#attempt(waiter)
  }

  /** True if others get memory before one that comes now. */
  #isBehind({ party }: ReadWaiter): boolean {
    return this.#parties.has(party) || party.heldBytes >= this.#lackingHeldBytes
  }

  #attempt(waiter: ReadWaiter): ReadAttempt {
    const attempt = waiter.attempt()
    if (attempt === 'bytes-full') this.#lackingHeldBytes = waiter.party.heldBytes
    return attempt
  }

  #stand(place: Place, reason: Exclude<ReadAttempt, 'taken'>): void {
    const { lane, party } = place.waiter
    if (reason === 'rings-full') {
      const places = this.#lanes.get(lane)
      if (places === undefined) this.#lanes.set(lane, [place])
      else insert(places, place)
      this.#askForRoom()
    } else {
      const places = this.#parties.get(party)
      if (places === undefined) this.#parties.set(party, [place])
      else insert(places, place)
      this.#askForBytes()
    }
  }

  #askForRoom(): void {
    if (this.#isRoomAsked) return
    this.#isRoomAsked = true
    this.#options.whenRoom(this.#onRoom)
  }

  #askForBytes(): void {
    if (this.#areBytesAsked) return
    this.#areBytesAsked = true
    this.#options.whenReleased(this.#onReleased)
  }

  readonly #onRoom = (): void => {
    this.#isRoomAsked = false
    this.#hasRoom = true
    this.#drain()
  }

  readonly #onReleased = (): void => {
    this.#areBytesAsked = false
    this.#hasBytes = true
    this.#drain()
  }

  /** One that is taken or gives up may release bytes, which wakes this line inside its own drain: hence the loop. */
  #drain(): void {
    if (this.#isDraining) return
    this.#isDraining = true
    const before = this.#count
    while (this.#hasRoom || this.#hasBytes) {
      if (this.#hasBytes) this.#passParties()
      else this.#passLanes()
    }
    this.#isDraining = false
    if (this.#count < before) this.#options.onTaken()
  }

  #passLanes(): void {
    this.#hasRoom = false
    for (const [lane, places] of this.#lanes) {
      for (let place = places[0]; place !== undefined; place = places[0]) {
        const attempt = this.#isBehind(place.waiter) ? 'share-full' : this.#attempt(place.waiter)
        if (attempt === 'rings-full') break
        places.shift()
        if (attempt === 'taken') this.#count--
        else this.#stand(place, attempt)
      }
      if (places.length === 0) this.#lanes.delete(lane)
      else this.#askForRoom()
    }
  }

  #passParties(): void {
    this.#hasBytes = false
    this.#lackingHeldBytes = Infinity
    const tried = new Set<ReadWaiter['party']>()
    for (let party = this.#first(tried); party !== null; party = this.#first(tried)) {
      const attempt = this.#tryFirstOf(party)
      if (attempt === 'bytes-full') break
      if (attempt === 'share-full') tried.add(party)
    }
    if (this.#parties.size > 0) this.#askForBytes()
  }

  /** Tries the first of a party, which leaves its place unless memory is missing still. */
  #tryFirstOf(party: ReadWaiter['party']): ReadAttempt {
    const places = this.#parties.get(party) as Place[]
    const place = places[0] as Place
    const attempt = this.#lanes.has(place.waiter.lane) ? 'rings-full' : this.#attempt(place.waiter)
    if (attempt === 'share-full' || attempt === 'bytes-full') return attempt
    places.shift()
    if (places.length === 0) this.#parties.delete(party)
    if (attempt === 'taken') this.#count--
    else this.#stand(place, attempt)
    return attempt
  }

  /** The party whose turn it is, of those that were not tried in vain. */
  #first(tried: ReadonlySet<ReadWaiter['party']>): ReadWaiter['party'] | null {
    let first: ReadWaiter['party'] | null = null
    let firstNumber = 0
    for (const [party, places] of this.#parties) {
      const { number } = places[0] as Place
      const isBefore =
        first === null ||
        party.heldBytes < first.heldBytes ||
        (party.heldBytes === first.heldBytes && number < firstNumber)
      if (!isBefore || tried.has(party)) continue
      first = party
      firstNumber = number
    }
    return first
  }
}
