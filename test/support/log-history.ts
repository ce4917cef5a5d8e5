/**
 * What callers were told, against what the log says: the judge of the power-loss test. Knows nothing of slots.
 *
 *   begun    the group was given to the disk; nobody was told anything
 *   written  the write returned (or is known to be in the page cache): a kill must not lose it, a power cut may
 *   acked    the callers were told that it is on disk: nothing may lose it
 *   refused  the callers were told that it is not written: it must never be seen
 *
 * A group is atomic: after a restart all of it is there, or none.
 */
import assert from 'node:assert/strict'

/** Content must be unique in the life of a test, so that a record that turns up at a wrong place is recognised. */
export interface ToldRecord {
  readonly handle: number
  readonly offset: number
  readonly content: string
}

export interface PendingGroup {
  readonly records: readonly ToldRecord[]
  isWritten: boolean
}

/** Contents by offset from 0, without holes, of each partition handle that has any. */
export type LogContents = ReadonlyMap<number, readonly string[]>

export class LogHistory {
  /** What must be there from now on, by handle and offset: acked, or seen after a recovery. */
  readonly #truth = new Map<number, string[]>()
  #pending: PendingGroup[] = []
  readonly #gone = new Set<string>()
  ackedRecords = 0

  begin(records: readonly ToldRecord[]): PendingGroup {
    const group = { records, isWritten: false }
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
    }
    this.#pending = kept
  }

  /** The newest pending group was refused with `written: no`. */
  refuse(group: PendingGroup): void {
    assert.equal(this.#pending.pop(), group, 'only the newest group can be refused')
    for (const record of group.records) this.#gone.add(record.content)
  }

  /** What readers must see of a partition while the process runs: everything published. */
  readable(handle: number): string[] {
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
      const present = group.records.filter(record => found.get(record.handle)?.[record.offset] === record.content)
      assert.ok(present.length === 0 || present.length === group.records.length, 'a group came back in part')
      if (present.length > 0) {
        assert.ok(!isCut, 'a group came back though one before it did not')
        this.#adopt(group)
      } else {
        assert.ok(!(keepsWritten && group.isWritten), 'a kill lost a group whose write had returned')
        isCut = true
        for (const record of group.records) this.#gone.add(record.content)
      }
    }
    this.#pending = []
    for (const [handle, contents] of this.#truth) this.#compare(handle, found.get(handle) ?? [], contents)
    for (const [handle, contents] of found) this.#compare(handle, contents, this.#truth.get(handle) ?? [])
  }

  #compare(handle: number, found: readonly string[], truth: readonly string[]): void {
    const refused = found.find(content => this.#gone.has(content))
    assert.equal(refused, undefined, `handle ${handle}: a record that was refused or lost is there again`)
    assert.ok(
      found.length >= truth.length,
      `handle ${handle}: acked records lost, ${found.length} of ${truth.length} left`
    )
    truth.forEach((content, offset) => {
      assert.equal(found[offset], content, `handle ${handle}: offset ${offset} was seen with two values`)
    })
    assert.equal(found.length, truth.length, `handle ${handle}: records that nobody appended`)
  }

  #adopt(group: PendingGroup): void {
    for (const record of group.records) {
      let contents = this.#truth.get(record.handle)
      if (contents === undefined) {
        contents = []
        this.#truth.set(record.handle, contents)
      }
      assert.equal(record.offset, contents.length, `handle ${record.handle}: offsets follow each other without a hole`)
      contents.push(record.content)
    }
  }
}
