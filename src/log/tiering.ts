/**
 * Which segments of a partition are to go to cold storage now. Decisions only; pure, any thread.
 */
import type { TopicRetention } from '../wire/shard/messages.ts'
import { expiredSegments } from './retention.ts'
import type { ManifestPartition, ManifestSegment } from './manifest.ts'

/**
 * Sealed segments on the local disk that are beyond what may stay there, oldest first. The limits are those of retention;
 * what is in cold storage already counts towards none. Segments without a record have nothing to be moved.
 * @param nowMs wall clock, Unix ms.
 */
export function tierableSegments(
  { segments, startOffset }: ManifestPartition,
  limits: Pick<TopicRetention, 'retentionMs' | 'retentionBytes'>,
  nowMs: number
): ManifestSegment[] {
  const here = segments.filter(({ cold, nextOffset }) => cold === undefined && nextOffset > startOffset)
  const { count } = expiredSegments(here, startOffset, { ...limits, cleanupPolicy: 'delete' }, nowMs)
  return here.slice(0, count).filter(({ extents }) => extents.length > 0)
}

/**
 * Base offsets of the segments in cold storage, ascending.
 * @param startOffset the present one: what lies below it is gone, also while the manifest does not know yet.
 */
export function coldBaseOffsets({ segments }: ManifestPartition, startOffset: number): number[] {
  return segments.flatMap(({ baseOffset, nextOffset, cold }) =>
    cold !== undefined && nextOffset > startOffset ? [baseOffset] : []
  )
}
