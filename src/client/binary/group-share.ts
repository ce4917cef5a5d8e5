/**
 * The life of a group's member: joins, beats, hears of other partitions, joins again when it was given up, commits at
 * intervals, leaves. Any thread with an event loop; one owner.
 *
 * Invariants
 * - Commits go one after the other, and only upwards: from where the group was when the partition was assigned.
 * - After the broker gave the member up, all its partitions begin anew where the group has committed: others may have read on.
 */
import { clientErrorOf, type ClientError } from './client-error.ts'
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

export class GroupShare {
  readonly #member: GroupMember
  readonly #reading: Reading
  readonly #owner: ShareOwner
  readonly #reconnect: Backoff
  /** What this member has committed of a reader. */
  readonly #committed = new WeakMap<PartitionReader, number>()
  #committing: Promise<void> = Promise.resolve()
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
    await this.#persist(() => this.#join())
    const fail = (error: unknown): void => {
      if (!this.#isEnded) this.#owner.onFailed(clientErrorOf(error))
    }
    this.#beat().catch(fail)
    if (this.#reading.commitIntervalMs > 0) this.#commitAtIntervals().catch(fail)
  }

  /** Commits what is finished of partitions that are still this member's. */
  commit(): Promise<void> {
    const commit = (): Promise<void> => this.#commit()
    const committing = this.#committing.then(commit, commit)
    // Whoever asked hears of it; the next commit goes on in any case.
    this.#committing = committing.catch(() => undefined)
    return committing
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
    else this.#owner.onAssigned(assigned)
  }

  async #beat(): Promise<void> {
    while (!this.#isEnded) {
      await this.#bell.wait(this.#reading.heartbeatIntervalMs)
      await this.#persist(async () => {
        const beat = await this.#member.beat()
        if (beat.kind === 'moved') this.#owner.onAssigned(beat.assigned)
        if (beat.kind !== 'lost') return
        this.#owner.onLost()
        await this.#join()
      })
    }
  }

  async #commitAtIntervals(): Promise<void> {
    while (!this.#isEnded) {
      await this.#bell.wait(this.#reading.commitIntervalMs)
      await this.#persist(() => this.commit())
    }
  }

  async #commit(): Promise<void> {
    for (const reader of this.#owner.readers()) {
      const { finishedOffset, from } = reader
      const committed = this.#committed.get(reader) ?? (typeof from === 'number' ? from : -1)
      if (finishedOffset === null || finishedOffset <= committed) continue
      // While the one before it was committed, this one may have gone to another member.
      if (!this.#owner.readers().includes(reader)) continue
      await this.#member.commit(reader, finishedOffset)
      this.#committed.set(reader, finishedOffset)
    }
  }

  /** Until it succeeds, or cannot, or the end. */
  #persist(call: () => Promise<void>): Promise<void> {
    return untilItSucceeds(call, { backoff: this.#reconnect, bell: this.#bell, isOver: () => this.#isEnded })
  }
}
