/**
 * Decides which neighbours a compaction pass merges into one segment. Pure, any thread.
 */
import { limits } from '../../model/limits.ts'

/** A segment as it will be without the records it loses. */
export interface ThinnedSegment {
  readonly baseOffset: number
  readonly nextOffset: number
  /** Stored bytes that stay. */
  readonly keptBytes: number
  readonly hasDrops: boolean
}

/** Neighbours, by index, both included, that become one segment. */
export interface SegmentPlan {
  readonly first: number
  readonly last: number
  readonly bytes: number
  /** One segment that loses nothing: it is left alone. */
  readonly isUnchanged: boolean
}

/**
 * Joins neighbours from the oldest on, as long as they fit into `segmentBytes` and into the 31 bits of Kafka's files.
 * Not joined are neighbours with a hole between them, for a segment must not claim what it does not have; and a segment
 * that loses nothing and fills more than half of `segmentBytes`, for that much is not worth writing again to save a file.
 */
export function planSegments(segments: readonly ThinnedSegment[], segmentBytes: number): readonly SegmentPlan[] {
  const bytesMax = Math.min(segmentBytes, limits.segmentBytesHard)
  const plans: SegmentPlan[] = []
  let open: SegmentPlan | null = null
  for (const [index, segment] of segments.entries()) {
    const isLeftAlone = isFull(segment, bytesMax)
    const bytes = segment.keptBytes
    if (open !== null && !isLeftAlone && canJoin(segments, open, index, bytesMax)) {
      open = { first: open.first, last: index, bytes: open.bytes + bytes, isUnchanged: false }
      plans[plans.length - 1] = open
      continue
    }
    const alone: SegmentPlan = { first: index, last: index, bytes, isUnchanged: !segment.hasDrops }
    plans.push(alone)
    open = isLeftAlone ? null : alone
  }
  return plans
}

function isFull(segment: ThinnedSegment, bytesMax: number): boolean {
  return !segment.hasDrops && segment.keptBytes * 2 > bytesMax
}

function canJoin(segments: readonly ThinnedSegment[], open: SegmentPlan, index: number, bytesMax: number): boolean {
  const first = segments[open.first] as ThinnedSegment
  const last = segments[open.last] as ThinnedSegment
  const segment = segments[index] as ThinnedSegment
  if (last.nextOffset !== segment.baseOffset) return false
  if (segment.nextOffset - first.baseOffset > limits.segmentBytesHard) return false
  return open.bytes + segment.keptBytes <= bytesMax
}
