/**
 * Whose a group is, and the making of it: what the use cases of both kinds of groups ask first. Main thread.
 *
 * Invariants: the row of a new group is durable before anybody hears of it, so that no crash gives it to another key; while
 * a group is being made or removed, whoever would change it waits.
 */
import { echo } from '../control/echo.ts'
import type { Group, GroupTable } from '../control/groups/group-table.ts'
import { BrokerError } from '../model/errors.ts'
import type { Principal } from '../model/principal.ts'
import type { Store } from '../store/store.ts'

export class GroupOwnership {
  readonly #table: GroupTable
  readonly #store: Store
  /** By name: the commit under way that makes or removes it. */
  readonly #busy = new Map<string, Promise<unknown>>()

  constructor({ table, store }: { readonly table: GroupTable; readonly store: Store }) {
    this.#table = table
    this.#store = store
  }

  /** undefined: there is none. @throws BrokerError GROUP_OWNED */
  ownGroup(who: Principal, name: string): Group | undefined {
    const group = this.#table.withName(name)
    if (group !== undefined && group.owner !== who.keyId && !who.isAdmin) {
      throw new BrokerError('GROUP_OWNED', { group: name })
    }
    return group
  }

  /** @throws BrokerError GROUP_NOT_FOUND, GROUP_OWNED */
  existingGroup(who: Principal, name: string): Group {
    const group = this.ownGroup(who, name)
    if (group === undefined) throw new BrokerError('GROUP_NOT_FOUND', { group: echo(name) })
    return group
  }

  /** The groups of the caller, in the order in which they were made; admin: all. */
  groupsOf(who: Principal): Group[] {
    return [...this.#table.groups()].filter(({ owner }) => who.isAdmin || owner === who.keyId)
  }

  /**
   * Uses the group of that name, made if there is none: durable, and the caller's. Nothing comes between the making and
   * the use. @param entries that it is to have of a group that would be new: without room for them none is made.
   * @fails GROUP_OWNED, GROUPS_TOO_MANY, GROUP_OFFSETS_TOO_MANY; what `use` throws
   */
  async claim<T>(who: Principal, name: string, entries: number, use: (group: Group) => T): Promise<T> {
    for (let change = this.changeOf(name); change !== undefined; change = this.changeOf(name)) await change
    // From here to the change nothing else runs.
    const known = this.ownGroup(who, name)
    if (known !== undefined) return use(known)
    this.#table.checkRoom({ name, offsetCount: 0 }, entries)
    const group = this.#table.add(name, who.keyId)
    const { number, owner } = group
    const adding = this.#store.commit([{ kind: 'group-added', group: { number, name, owner } }]).then(
      () => use(group),
      (error: unknown) => {
        this.#table.remove(group)
        throw error
      }
    )
    return this.whileBusy(name, adding)
  }

  /** Uses the group of that name, and makes none. @param use undefined: there is none. @fails GROUP_OWNED; what `use` throws */
  async useKnown<T>(who: Principal, name: string, use: (group: Group | undefined) => T): Promise<T> {
    for (let change = this.changeOf(name); change !== undefined; change = this.changeOf(name)) await change
    return use(this.ownGroup(who, name))
  }

  /** Resolves when the change of that name that is under way has ended, however; undefined: there is none. Then ask again. */
  changeOf(name: string): Promise<unknown> | undefined {
    // However it ended: whoever began it hears of it.
    return this.#busy.get(name)?.catch(() => undefined)
  }

  /** Keeps others off a name until a change of it has ended. */
  whileBusy<T>(name: string, change: Promise<T>): Promise<T> {
    const busy = change.finally(() => this.#busy.delete(name))
    this.#busy.set(name, busy)
    return busy
  }
}
