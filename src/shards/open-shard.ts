/**
 * What a shard is told when it has recovered: the topics and the producers that exist now. Main thread only.
 */
import { limits } from '../model/limits.ts'
import type { ShardTopic } from '../wire/shard/messages.ts'
import type { ShardLink } from './shard-link.ts'

/** Topics and producers of one control message: keeps it far below a quarter of the control ring. */
const TOPICS_PER_MESSAGE = Math.min(500, limits.topicsMax)
const PRODUCERS_PER_MESSAGE = 10_000

/** What exists: asked for when it is sent. */
export interface Existing {
  readonly topics: () => ShardTopic[]
  /** Numbers of producers. */
  readonly producers: () => number[]
}

/** @returns resolves when the shard knows all of it. */
export async function openShard(link: ShardLink, existing: Existing): Promise<void> {
  // Each part is taken from the topics as they are when it is sent, so that it cannot undo a change sent since the
  // last one. Opening is repeatable: a topic made meanwhile may be opened twice.
  for (let last = 0; ;) {
    const part = existing
      .topics()
      .filter(topic => topic.firstHandle > last)
      .sort((a, b) => a.firstHandle - b.firstHandle)
      .slice(0, TOPICS_PER_MESSAGE)
    if (part.length === 0) break
    last = part.at(-1)?.firstHandle ?? last
    await link.control(id => ({ kind: 'open', id, topics: part }))
  }
  // A producer that is forgotten from here on is told to the shard by itself; one that is new has nothing there.
  const producers = existing.producers()
  for (let from = 0; from < producers.length; from += PRODUCERS_PER_MESSAGE) {
    const numbers = producers.slice(from, from + PRODUCERS_PER_MESSAGE)
    await link.control(id => ({ kind: 'producers-known', id, numbers }))
  }
  await link.control(id => ({ kind: 'opened', id }))
}
