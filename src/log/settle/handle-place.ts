/** What a handle is to a settle job, by what main says of the topics. Pure. */
import { findRange } from '../../model/handles.ts'
import type { TopicPlace } from '../../wire/shard/settle.ts'
import type { HandlePlace } from './settle.ts'

/** @param topics ranges of live and deleted ones, by first handle. @cost a binary search. */
export function placeOfHandle(topics: readonly TopicPlace[], handle: number): HandlePlace {
  const range = findRange(topics, handle)
  // Neither live nor a tombstone: kept all the same (V4).
  if (range === undefined) return { kind: 'kept', directory: `topics/unknown~h${handle}/0` }
  if (range.directory === null) return { kind: 'dropped' }
  return { kind: 'kept', directory: `${range.directory}/${range.firstPartition + handle - range.firstHandle}` }
}
