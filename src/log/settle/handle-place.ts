/** What a handle is to a settle job, by what main says of the topics. Pure. */
import type { TopicPlace } from '../../wire/shard/settle.ts'
import type { HandlePlace } from './settle.ts'

/** @param topics live and deleted ones, by first handle. @cost a binary search. */
export function placeOfHandle(topics: readonly TopicPlace[], handle: number): HandlePlace {
  let low = 0
  let high = topics.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((topics[middle] as TopicPlace).firstHandle <= handle) low = middle + 1
    else high = middle
  }
  const topic = topics[low - 1]
  if (topic === undefined || handle >= topic.firstHandle + topic.partitionCount) {
    // Neither live nor a tombstone: kept all the same (V4).
    return { kind: 'kept', directory: `topics/unknown~h${handle}/0` }
  }
  if (topic.directory === null) return { kind: 'dropped' }
  return { kind: 'kept', directory: `${topic.directory}/${handle - topic.firstHandle}` }
}
