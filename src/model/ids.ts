/**
 * The branded id of a topic, and who owns a partition. A raw number becomes an id only here, after a check. Any thread.
 */
import { assert } from '../base/assert.ts'

declare const brand: unique symbol
type Branded<T, Tag extends string> = T & { readonly [brand]: Tag }

/** One life of a topic; never re-used. */
export type TopicId = Branded<number, 'TopicId'>

/** @returns the id. A number that is none is a bug of the caller. */
export function toTopicId(value: number): TopicId {
  assert(Number.isSafeInteger(value) && value >= 1, 'topic id must be a safe integer from 1')
  return value as TopicId
}

/** The shard that owns a partition: fixed while the shard count is (durability V7). */
export function shardOf(handle: number, shardCount: number): number {
  return handle % shardCount
}
