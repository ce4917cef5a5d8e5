/**
 * The streams of members of groups: who hears that a group was assigned anew, and which members are seen without
 * heartbeats. Main thread only; owns who is attached, and nothing of the groups.
 * Invariant: a stream hears on a later turn of its own, once for however many changes came before it, and never after
 * its end.
 */
import type { MemberStream } from '../model/groups.ts'

/** A stream, and whose it is. */
interface Attached {
  readonly group: string
  readonly memberId: string
  readonly stream: MemberStream
}

export class MemberStreams {
  readonly #byGroup = new Map<string, Set<Attached>>()
  /** Groups that were assigned anew and whose streams have not heard. */
  #changed: Set<string> | null = null

  /** @returns ends it. */
  attach(group: string, memberId: string, stream: MemberStream): () => void {
    const attached: Attached = { group, memberId, stream }
    const streams = this.#byGroup.get(group) ?? new Set()
    this.#byGroup.set(group, streams)
    streams.add(attached)
    return () => {
      streams.delete(attached)
      if (streams.size === 0 && this.#byGroup.get(group) === streams) this.#byGroup.delete(group)
    }
  }

  /** Members whose client takes what it is sent. */
  *taking(): Generator<{ readonly group: string; readonly memberId: string }> {
    for (const streams of this.#byGroup.values()) {
      for (const attached of streams) if (attached.stream.isTaking()) yield attached
    }
  }

  /** Its streams hear of it in a microtask: whoever changes a group is not called into. */
  rebalanced(group: string): void {
    if (!this.#byGroup.has(group)) return
    if (this.#changed === null) {
      this.#changed = new Set()
      queueMicrotask(() => this.#tell())
    }
    this.#changed.add(group)
  }

  #tell(): void {
    const changed = this.#changed ?? []
    this.#changed = null
    for (const group of changed) {
      const streams = this.#byGroup.get(group)
      for (const attached of [...(streams ?? [])]) if (streams?.has(attached) === true) attached.stream.onRebalanced()
    }
  }
}
