/**
 * The life of a group's member: joins, beats, hears of other partitions, joins again when it was given up, commits at
 * intervals, leaves. Any thread with an event loop; one owner.
 *
 * Invariants
 * - Commits go one after the other, and only upwards: from where the group was when the partition was assigned.
 * - A commit says as of which assignment: the broker refuses it once the group was assigned anew, so a member whose event
 *   loop was blocked does not set the group back behind the others. What is still this member's then is committed anew.
 * - After the broker gave the member up, all its partitions begin anew where the group has committed: others may have read on.
 */
import { clientErrorOf, type ClientError } from './client-error.ts'
import type { Whole } from '../http/http-client.ts'
import type { Assigned, GroupMember } from './group-member.ts'
import type { Reading } from './options.ts'
import type { PartitionReader } from './partition-reader.ts'
import { Bell, type Backoff } from './pauses.ts'
import { untilItSucceeds } from './retries.ts'

export interface ShareOwner {
  /** Those of the partitions that are this member's now. */
  readonly readers: () => readonly PartitionReader[]
  readonly onAssigned: (assigned: Assigned) => void
  readonly onLost: () => void
  readonly onFailed: (error: ClientError) => void
}

/** How often a member asks. */
export interface ShareTimes {
  readonly reading: Reading
  /** Pauses while the broker cannot be asked. */
  readonly reconnect: Backoff
}

/** Calls that wait for those before them. */
class Turns {
  #last: Promise<void> = Promise.resolve()

  /** Whoever asked hears of a failure; the next call is made in any case. */
  take(call: () => Promise<void>): Promise<void> {
    const taken = this.#last.then(call)
    this.#last = taken.catch(() => undefined)
    return taken
  }
}

export class GroupShare {
  readonly #member: GroupMember
  readonly #reading: Reading
  readonly #owner: ShareOwner
  readonly #reconnect: Backoff
  /** What this member has committed of a reader. */
  readonly #committed = new WeakMap<PartitionReader, number>()
  /** Joins and beats, one after the other: an answer from before a join is no news after it. */
  readonly #asking = new Turns()
  readonly #committing = new Turns()
  /** Of the assignment that the readers are of. */
  #generation: Whole = 0
  #isEnded = false
  readonly #bell = new Bell()

  constructor(member: GroupMember, { reading, reconnect }: ShareTimes, owner: ShareOwner) {
    this.#member = member
    this.#reading = reading
    this.#reconnect = reconnect
    this.#owner = owner
  }

  /** Joins; beats and commits from then on. @throws ClientError */
  async start(): Promise<void> {
    await this.#persist(() => this.#asking.take(() => this.#join()))
    const fail = (error: unknown): void => {
      if (!this.#isEnded) this.#owner.onFailed(clientErrorOf(error))
    }
    this.#beat().catch(fail)
    if (this.#reading.commitIntervalMs > 0) this.#commitAtIntervals().catch(fail)
  }

  /** Commits what is finished of partitions that are still this member's. */
  commit(): Promise<void> {
    return this.#committing.take(() => this.#commit())
  }

  /** @throws ClientError: what was finished is not committed */
  async end(): Promise<void> {
    this.#isEnded = true
    this.#bell.ring()
    const failure = await this.commit().then(() => null, clientErrorOf)
    const leaving = this.#member.leave()
    if (failure === null) return leaving
    // That records come again is worse than that the others wait until the broker has given the member up.
    await leaving.catch(clientErrorOf)
    throw failure
  }

  async #join(): Promise<void> {
    const assigned = await this.#member.join()
    if (this.#isEnded) await this.#member.leave()
    else this.#assign(assigned)
  }

  #assign(assigned: Assigned): void {
    this.#generation = assigned.generation
    this.#owner.onAssigned(assigned)
  }

  /** Asks whether this is still a member; joins again if not. */
  async #confirm(): Promise<void> {
    const beat = await this.#member.beat()
    if (beat.kind === 'moved') this.#assign(beat.assigned)
    if (beat.kind !== 'lost') return
    this.#owner.onLost()
    if (!this.#isEnded) await this.#join()
  }

  async #beat(): Promise<void> {
    while (!this.#isEnded) {
      await this.#bell.wait(this.#reading.heartbeatIntervalMs)
      await this.#persist(() => this.#asking.take(() => this.#confirm()))
    }
  }

  async #commitAtIntervals(): Promise<void> {
    while (!this.#isEnded) {
      await this.#bell.wait(this.#reading.commitIntervalMs)
      await this.#persist(() => this.commit())
    }
  }

  async #commit(): Promise<void> {
    while (!(await this.#commitFinished())) await this.#asking.take(() => this.#confirm())
  }

  /** @returns false: the group was assigned anew, and this member must hear how. */
  async #commitFinished(): Promise<boolean> {
    for (const reader of this.#owner.readers()) {
      const { finishedOffset, from } = reader
      const committed = this.#committed.get(reader) ?? (typeof from === 'number' ? from : -1)
      if (finishedOffset === null || finishedOffset <= committed) continue
      // While the one before it was committed, this one may have gone to another member.
      if (!this.#owner.readers().includes(reader)) continue
      if (!(await this.#member.commit(reader, finishedOffset, this.#generation))) return false
      this.#committed.set(reader, finishedOffset)
    }
    return true
  }

  /** Until it succeeds, or cannot, or the end. */
  #persist(call: () => Promise<void>): Promise<void> {
    return untilItSucceeds(call, { backoff: this.#reconnect, bell: this.#bell, isOver: () => this.#isEnded })
  }
}
