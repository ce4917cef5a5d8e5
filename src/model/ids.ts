/**
 * Branded numbers. A raw number becomes an id or an offset only here, after a check.
 */
import { assert } from '../base/assert.ts'

declare const brand: unique symbol
type Branded<T, Tag extends string> = T & { readonly [brand]: Tag }

/** Place of a record in its partition: a safe integer ≥ 0. */
export type Offset = Branded<number, 'Offset'>
/** One life of one partition of one topic; never re-used, u32. Partition p of a topic has handle firstHandle + p. */
export type Handle = Branded<number, 'Handle'>
/** One life of a topic; never re-used. */
export type TopicId = Branded<number, 'TopicId'>
/** Index of a shard, 0-based. */
export type ShardIndex = Branded<number, 'ShardIndex'>

export function toOffset(value: number): Offset {
  assert(Number.isSafeInteger(value) && value >= 0, 'offset must be a safe integer from 0')
  return value as Offset
}

export function toHandle(value: number): Handle {
  assert(Number.isInteger(value) && value >= 1 && value <= 0xffff_ffff, 'handle must be a u32 from 1')
  return value as Handle
}

export function toTopicId(value: number): TopicId {
  assert(Number.isSafeInteger(value) && value >= 1, 'topic id must be a safe integer from 1')
  return value as TopicId
}

export function toShardIndex(value: number): ShardIndex {
  assert(Number.isInteger(value) && value >= 0 && value < 1024, 'shard index must be below 1024')
  return value as ShardIndex
}

/** The shard that owns a partition: fixed while the shard count is (durability V7). */
export function shardOf(handle: number, shardCount: number): number {
  return handle % shardCount
}
