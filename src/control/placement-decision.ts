/**
 * What a start does about the number of shards (durability, V7). Pure; main thread.
 *
 *   | the directory has             | asked for      | the start                                            |
 *   |-------------------------------|----------------|------------------------------------------------------|
 *   | nothing yet                   | –, or n        | takes the default, or n                              |
 *   | n                             | –, or n        | goes on with n                                       |
 *   | n                             | m              | changes to m                                         |
 *   | n, a change to m not finished | –, or m        | changes to m                                         |
 *   | n, a change to m not finished | n              | gives the change up                                  |
 *   | n, a change to m not finished | k              | changes to k                                         |
 *
 * The count of a machine's cores never changes it: only what somebody asked for does.
 */
import type { Placement } from './store-image.ts'

export type PlacementDecision =
  | { readonly kind: 'choose'; readonly shardCount: number }
  | { readonly kind: 'keep'; readonly shardCount: number }
  | { readonly kind: 'change'; readonly shardCount: number; readonly nextShardCount: number }
  | { readonly kind: 'give-up'; readonly shardCount: number }

/** @param wanted null: nobody asked. @param initial of a new directory that nobody asked for. */
export function decidePlacement(placement: Placement, wanted: number | null, initial: number): PlacementDecision {
  const { shardCount, nextShardCount } = placement
  if (shardCount === null) return { kind: 'choose', shardCount: wanted ?? initial }
  const target = wanted ?? nextShardCount ?? shardCount
  if (target !== shardCount) return { kind: 'change', shardCount, nextShardCount: target }
  return { kind: nextShardCount === null ? 'keep' : 'give-up', shardCount }
}
