/**
 * What a shard is told when it has recovered: the topics and the producers that exist now. Main thread only.
 */
import { rangesOf } from '../model/handles.ts'
import type { ShardTopic } from '../wire/shard/messages.ts'
import type { ShardLink } from './shard-link.ts'

/**
 * What one control message holds: far below a quarter of the control ring. A topic weighs 1, and 1 for each of its ranges;
 * each of these is at most 100 bytes of msgpack.
 */
const WEIGHT_PER_MESSAGE = 1_000
/** Of any message that names producers by their numbers, which take up to 9 bytes each. */
export const PRODUCERS_PER_MESSAGE = 10_000

/** What exists: asked for when it is sent. */
export interface Existing {
  readonly topics: () => ShardTopic[]
  /** Numbers of producers. */
  readonly producers: () => number[]
}

/** @returns resolves when the shard knows all of it. */
export async function openShard(link: Pick<ShardLink, 'control'>, existing: Existing): Promise<void> {
  // Each part is taken from the topics as they are when it is sent, so that it cannot undo a change sent since the
  // last one. Opening is repeatable: a topic made meanwhile may be opened twice.
  for (let last = 0; ;) {
    const left = existing.topics().filter(topic => topic.firstHandle > last)
    const part = firstPage(left.sort((a, b) => a.firstHandle - b.firstHandle))
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

/** As many of the topics as one message holds, but always one: the link refuses what is too large for a message alone. */
function firstPage(topics: readonly ShardTopic[]): readonly ShardTopic[] {
  let weight = 0
  const end = topics.findIndex(topic => (weight += weightOf(topic)) > WEIGHT_PER_MESSAGE)
  return end < 0 ? topics : topics.slice(0, Math.max(end, 1))
}

function weightOf(topic: ShardTopic): number {
  return 1 + rangesOf(topic).length
}
