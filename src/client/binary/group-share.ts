/**
 * The life of a group's member: joins, beats, hears of other partitions, joins again when it was given up, commits at
 * intervals, leaves. Any thread with an event loop; one owner.
 *
 * Invariants
 * - Commits go one after the other, and only upwards while a partition stays.
 * - After the broker gave the member up, all its partitions begin anew where the group has committed: others may have read on.
 */
import { clientErrorOf, closedError, type ClientError } from './client-error.ts'
import type { Assigned, GroupMember } from './group-member.ts'
import type { Reading } from './options.ts'
import type { PartitionReader } from './partition-reader.ts'
import { backoffMs, Bell } from './pauses.ts'

export interface ShareOwner {
  readonly onAssigned: (assigned: Assigned) => void
  readonly onLost: () => void
  readonly onFailed: (error: ClientError) => void
}

/** Pauses while the broker cannot be asked. */
const failing = { initialMs: 100, maxMs: 5_000 }

export class GroupShare {
  readonly #member: GroupMember
  readonly #reading: Reading
  readonly #owner: ShareOwner
  /** What the group has of a reader. */
  readonly #committed = new WeakMap<PartitionReader, number>()
  #committing: Promise<void> = Promise.resolve()
  #isEnded = false
  readonly #bell = new Bell()

  constructor(member: GroupMember, reading: Reading, owner: ShareOwner) {
    this.#member = member
    this.#reading = reading
    this.#owner = owner
  }

  /** Joins; beats and commits from then on. @param readers those there are now. @throws ClientError */
  async start(readers: () => readonly PartitionReader[]): Promise<void> {
    await this.#persist(() => this.#join())
    const fail = (error: unknown): void => {
      if (!this.#isEnded) this.#owner.onFailed(clientErrorOf(error))
    }
    this.#beat().catch(fail)
    if (this.#reading.commitIntervalMs > 0) this.#commitAtIntervals(readers).catch(fail)
  }

  /** Commits what is finished of partitions that are still this member's. */
  commit(readers: readonly PartitionReader[]): Promise<void> {
    const commit = (): Promise<void> => this.#commit(readers)
    const committing = this.#committing.then(commit, commit)
    // Whoever asked hears of it; the next commit goes on in any case.
    this.#committing = committing.catch(() => undefined)
    return committing
  }

  /** @throws ClientError: what was finished is not committed */
  async end(readers: readonly PartitionReader[]): Promise<void> {
    this.#isEnded = true
    this.#bell.ring()
    try {
      await this.commit(readers)
    } finally {
      await this.#member.leave()
    }
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

  async #commitAtIntervals(readers: () => readonly PartitionReader[]): Promise<void> {
    while (!this.#isEnded) {
      await this.#bell.wait(this.#reading.commitIntervalMs)
      await this.#persist(() => this.commit(readers()))
    }
  }

  async #commit(readers: readonly PartitionReader[]): Promise<void> {
    for (const reader of readers) {
      const { finishedOffset } = reader
      const isOurs = this.#isEnded || !reader.isStopped
      if (finishedOffset === null || !isOurs || finishedOffset <= (this.#committed.get(reader) ?? -1)) continue
      await this.#member.commit(reader, finishedOffset)
      this.#committed.set(reader, finishedOffset)
    }
  }

  /** Until it succeeds, or cannot, or the end. */
  async #persist(call: () => Promise<void>): Promise<void> {
    for (let attempt = 1; !this.#isEnded; attempt++) {
      try {
        return await call()
      } catch (error) {
        const failure = clientErrorOf(error)
        if (!failure.retryable) throw failure
        await this.#bell.wait(backoffMs(attempt, failing, Math.random()))
      }
    }
    throw closedError()
  }
}
