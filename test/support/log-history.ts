/**
 * What callers were told, against what the log says: the judge of the power-loss test. Knows nothing of slots.
 *
 *   begun    the group was given to the disk; nobody was told anything
 *   written  the write returned (or is known to be in the page cache): a kill must not lose it, a power cut may
 *   acked    the callers were told that it is on disk: nothing may lose it
 *   refused  the callers were told that it is not written: it must never be seen
 *
 * A group is atomic: after a restart all of it is there, or none. It holds records, or moves of start offsets (W7): what
 * lies below a start that was acked is never seen again.
 */
import assert from 'node:assert/strict'

/** Content must be unique in the life of a test, so that a record that turns up at a wrong place is recognised. */
export interface ToldRecord {
  readonly handle: number
  readonly offset: number
  readonly content: string
}

/** A start offset to be, of a partition. */
export interface ToldMove {
  readonly handle: number
  /** Above the present one. */
  readonly offset: number
}

export interface PendingGroup {
  readonly records: readonly ToldRecord[]
  readonly moves: readonly ToldMove[]
  isWritten: boolean
}

/** What a restart found of a partition: contents by offset from `start` on, without holes. */
export interface FoundPartition {
  readonly start: number
  readonly contents: readonly string[]
}

/** By partition handle, of each that has any. */
export type LogContents = ReadonlyMap<number, FoundPartition>

const nothing: FoundPartition = { start: 0, contents: [] }

export class LogHistory {
  /** What was told or seen of each handle, by offset from 0 on, whether it still must be there or not. */
  readonly #truth = new Map<number, string[]>()
  readonly #starts = new Map<number, number>()
  readonly #dropped = new Set<number>()
  #pending: PendingGroup[] = []
  readonly #gone = new Set<string>()
  ackedRecords = 0
  ackedMoves = 0

  begin(records: readonly ToldRecord[], moves: readonly ToldMove[] = []): PendingGroup {
    const group = { records, moves, isWritten: false }
    this.#pending.push(group)
    return group
  }

  /** Every pending group was acked; but for `newest`, if it is given. */
  ack(newest?: PendingGroup): void {
    const kept = newest === undefined ? [] : [newest]
    for (const group of this.#pending) {
      if (group === newest) continue
      this.#adopt(group)
      this.ackedRecords += group.records.length
      this.ackedMoves += group.moves.length
    }
    this.#pending = kept
  }

  /** The newest pending group was refused with `written: no`. */
  refuse(group: PendingGroup): void {
    assert.equal(this.#pending.pop(), group, 'only the newest group can be refused')
    for (const record of group.records) this.#gone.add(record.content)
  }

  /** Its topic is deleted, durably: nothing is said about it any more. */
  drop(handle: number): void {
    this.#dropped.add(handle)
    this.#truth.delete(handle)
    this.#starts.delete(handle)
  }

  /** First offset that readers see. */
  startOf(handle: number): number {
    return this.#starts.get(handle) ?? 0
  }

  /** All that was published of a partition while the process runs, from offset 0 on; readers see it from its start on. */
  published(handle: number): string[] {
    const contents = [...(this.#truth.get(handle) ?? [])]
    for (const group of this.#pending) {
      if (!group.isWritten) continue
      for (const record of group.records) if (record.handle === handle) contents.push(record.content)
    }
    return contents
  }

  /**
   * Judges what a restart found, and takes it for the truth from then on.
   * @param keepsWritten no power was cut since the pending groups were written.
   */
  settle(found: LogContents, keepsWritten: boolean): void {
    let isCut = false
    for (const group of this.#pending) {
      const seen = this.#seenOf(group, found)
      const presentCount = seen.filter(isSeen => isSeen).length
      assert.ok(presentCount === 0 || presentCount === seen.length, 'a group came back in part')
      // Of a group whose topic is deleted nothing can be said; it tells nothing about others either.
      if (seen.length === 0) continue
      if (presentCount > 0) {
        assert.ok(!isCut, 'a group came back though one before it did not')
        this.#adopt(group)
      } else {
        assert.ok(!(keepsWritten && group.isWritten), 'a kill lost a group whose write had returned')
        isCut = true
        for (const record of group.records) this.#gone.add(record.content)
      }
    }
    this.#pending = []
    for (const handle of this.#truth.keys()) this.#compare(handle, found.get(handle) ?? nothing)
    for (const [handle, partition] of found) this.#compare(handle, partition)
  }

  /** Of each record and move of the group, whether it is there. */
  #seenOf(group: PendingGroup, found: LogContents): boolean[] {
    const records = group.records.filter(({ handle }) => !this.#dropped.has(handle))
    const moves = group.moves.filter(({ handle }) => !this.#dropped.has(handle))
    return [
      ...records.map(({ handle, offset, content }) => {
        const { start, contents } = found.get(handle) ?? nothing
        // Below a start that moved on: the move came behind it, so the record was there.
        return offset < start || contents[offset - start] === content
      }),
      ...moves.map(({ handle, offset }) => (found.get(handle) ?? nothing).start >= offset)
    ]
  }

  #compare(handle: number, { start, contents }: FoundPartition): void {
    const truth = this.#truth.get(handle) ?? []
    const refused = contents.find(content => this.#gone.has(content))
    assert.equal(refused, undefined, `handle ${handle}: a record that was refused or lost is there again`)
    const end = start + contents.length
    assert.ok(end >= truth.length, `handle ${handle}: acked records lost, ${end} of ${truth.length} left`)
    assert.equal(start, this.startOf(handle), `handle ${handle}: the start offset is not what was acked`)
    for (let offset = start; offset < truth.length; offset++) {
      assert.equal(
        contents[offset - start],
        truth[offset],
        `handle ${handle}: offset ${offset} was seen with two values`
      )
    }
    assert.equal(end, truth.length, `handle ${handle}: records that nobody appended`)
  }

  #adopt(group: PendingGroup): void {
    for (const record of group.records) {
      if (this.#dropped.has(record.handle)) continue
      let contents = this.#truth.get(record.handle)
      if (contents === undefined) {
        contents = []
        this.#truth.set(record.handle, contents)
      }
      assert.equal(record.offset, contents.length, `handle ${record.handle}: offsets follow each other without a hole`)
      contents.push(record.content)
    }
    for (const { handle, offset } of group.moves) if (!this.#dropped.has(handle)) this.#starts.set(handle, offset)
  }
}
