/**
 * The fetch sessions of all clients of the listener (KIP-227): who has which, and who has to leave. Main thread.
 *
 * A session belongs to a key and may go on over another connection of that key. It costs memory and watches, so all is
 * bounded: where there is no room, a client is told that it has no session, and asks for everything each time.
 *
 * One whose connection is gone holds nothing of that connection, and ends when none has come back to it in fetchSessionIdleMs.
 *
 *   no room ─▶ those that nobody used for fetchSessionIdleMs leave ─▶ the smallest leaves, if it is smaller than the new one
 */
import { randomInt } from 'node:crypto'
import { assert } from '../../base/assert.ts'
import type { Clock } from '../../base/clock.ts'
import { limits } from '../../model/limits.ts'
import type { FetchSession } from './fetch-session.ts'

/** Ids are positive i32; 0 is none. */
const ID_END = 2 ** 31

/** Whose a session is. */
interface Holder {
  readonly keyId: string
  /** The connection that used it last; null: that is gone. */
  client: object | null
}

/** What is counted of sessions; read at scrape time. */
export interface SessionCounts {
  sessions: number
  partitions: number
  /** Since the start: sessions that had to leave for others. */
  evicted: number
}

export class FetchSessions {
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #counts: SessionCounts
  readonly #sessions = new Map<number, FetchSession>()
  readonly #holders = new Map<FetchSession, Holder>()
  /** Of connections that are there, oldest first. */
  readonly #ofClient = new Map<object, Set<FetchSession>>()
  #timer: NodeJS.Timeout | null = null

  /** @param counts are kept right here. */
  constructor(clock: Pick<Clock, 'monotonicMs'>, counts: SessionCounts) {
    this.#clock = clock
    this.#counts = counts
  }

  /** Gives a session its id, or leaves it without one. */
  open(session: FetchSession, keyId: string, client: object): void {
    const size = session.partitions.size
    if (size === 0 || size > limits.fetchSessionPartitionsMax) return
    const own = this.#ofClient.get(client) ?? new Set()
    const [oldest] = own
    if (oldest !== undefined && own.size >= limits.connectionFetchSessionsMax) this.#evict(oldest)
    if (!this.#makeRoom(size)) return
    do session.id = randomInt(1, ID_END)
    while (this.#sessions.has(session.id))
    session.use(this.#clock.monotonicMs())
    this.#sessions.set(session.id, session)
    this.#holders.set(session, { keyId, client })
    this.#ofClient.set(client, own.add(session))
    this.#counts.sessions++
    this.#counts.partitions += size
  }

  /** @returns the session of that key with that id, or null. */
  find(id: number, keyId: string): FetchSession | null {
    const session = this.#sessions.get(id)
    return session !== undefined && this.#holders.get(session)?.keyId === keyId ? session : null
  }

  /** Runs what changes the partitions of a session. @returns false if it has more than it may: then it is closed. */
  change(session: FetchSession, client: object, action: () => void): boolean {
    const before = session.partitions.size
    action()
    this.#give(session, client)
    const { size } = session.partitions
    this.#counts.partitions += size - before
    const isWithin = this.#counts.partitions <= limits.fetchSessionPartitionsTotalMax
    if (size <= limits.fetchSessionPartitionsMax && isWithin) return true
    this.close(session)
    return false
  }

  close(session: FetchSession): void {
    const holder = this.#holders.get(session)
    if (holder === undefined) return
    this.#holders.delete(session)
    this.#sessions.delete(session.id)
    this.#takeFrom(holder.client, session)
    this.#counts.sessions--
    this.#counts.partitions -= session.partitions.size
    session.close()
  }

  /** It goes on over that connection. */
  #give(session: FetchSession, client: object): void {
    session.use(this.#clock.monotonicMs())
    const holder = this.#holders.get(session)
    if (holder === undefined || holder.client === client) return
    this.#takeFrom(holder.client, session)
    holder.client = client
    this.#ofClient.set(client, (this.#ofClient.get(client) ?? new Set()).add(session))
  }

  #takeFrom(client: object | null, session: FetchSession): void {
    if (client === null) return
    const own = this.#ofClient.get(client)
    own?.delete(session)
    if (own?.size === 0) this.#ofClient.delete(client)
  }

  /** A connection is gone: its sessions wait for another one, and watch nothing meanwhile. */
  clientLeft(client: object): void {
    const own = this.#ofClient.get(client)
    if (own === undefined) return
    this.#ofClient.delete(client)
    for (const session of own) {
      const holder = this.#holders.get(session)
      assert(holder?.client === client, 'a session is of the connection that has it')
      holder.client = null
      session.leave()
    }
    this.#timer ??= setInterval(() => this.#endLeft(), limits.fetchSessionIdleMs).unref()
  }

  /** Ends what no connection came back to. There is a timer while there is any of it. */
  #endLeft(): void {
    let isAnyLeft = false
    for (const session of this.#sessions.values()) {
      if (!session.isLeft) continue
      if (this.#isIdle(session)) this.close(session)
      else isAnyLeft = true
    }
    if (!isAnyLeft) this.stop()
  }

  /** Ends the timer. */
  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer)
    this.#timer = null
  }

  #makeRoom(size: number): boolean {
    if (this.#hasRoom(size)) return true
    for (const session of this.#sessions.values()) if (this.#isIdle(session)) this.#evict(session)
    while (!this.#hasRoom(size)) {
      let smallest: FetchSession | null = null
      for (const session of this.#sessions.values())
        if (smallest === null || session.partitions.size < smallest.partitions.size) smallest = session
      if (smallest === null || smallest.partitions.size >= size) return false
      this.#evict(smallest)
    }
    return true
  }

  #hasRoom(size: number): boolean {
    const { sessions, partitions } = this.#counts
    return sessions < limits.fetchSessionsMax && partitions + size <= limits.fetchSessionPartitionsTotalMax
  }

  #isIdle({ isBusy, lastUsedMs }: FetchSession): boolean {
    return !isBusy && this.#clock.monotonicMs() - lastUsedMs >= limits.fetchSessionIdleMs
  }

  #evict(session: FetchSession): void {
    this.#counts.evicted++
    this.close(session)
  }
}
