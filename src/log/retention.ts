/**
 * Which of a partition's oldest segments have had their time. A decision only; pure, any thread. Whoever asks moves the
 * start offset (a directory entry in the journal, W7) and has the segments dropped from the manifest.
 *
 *   segment, oldest first                            policy with delete     pure compact
 *   not sealed                                       stop                   stop
 *   wholly below the start offset                    drop                   drop
 *   newest record strictly older than retention_ms   drop                   stop
 *   all that is left exceeds retention_bytes         drop                   stop
 *   else                                             stop                   stop
 *
 * Age is receive time, which clients cannot choose: a record dated a thousand years ahead pins nothing.
 */
import type { TopicRetention } from '../wire/shard/messages.ts'

/** What retention looks at: a segment of the manifest, or one that still lies in slots. */
export interface RetainedSegment {
  readonly baseOffset: number
  readonly nextOffset: number
  /** Stored bytes of its batches. */
  readonly bytes: number
  /** Greatest receive time of its records, Unix ms. */
  readonly receiveMsMax: number
  /** False for the one that records may still join. */
  readonly isSealed: boolean
}

export interface Expired {
  /** How many of the oldest segments go. */
  readonly count: number
  /** The partition's start offset after that. Never below the one given. */
  readonly startOffset: number
}

/**
 * Decides what goes now.
 *
 * @param segments all of the partition by offset, the active one included: it counts towards retention_bytes.
 * @param startOffset the partition's first readable offset.
 * @param nowMs wall clock, Unix ms; may go backwards.
 */
export function expiredSegments(
  segments: readonly RetainedSegment[],
  startOffset: number,
  retention: TopicRetention,
  nowMs: number
): Expired {
  let bytesLeft = 0
  for (const segment of segments) {
    // Bytes below the start offset are gone for readers; they go in any case and must not push out others.
    if (segment.nextOffset > startOffset) bytesLeft += segment.bytes
  }
  let count = 0
  let nextStart = startOffset
  for (const segment of segments) {
    if (!segment.isSealed) break
    const isBelowStart = segment.nextOffset <= startOffset
    if (!isBelowStart && !isPastLimits(segment, bytesLeft, retention, nowMs)) break
    count++
    // What is below the start offset does not move it.
    if (isBelowStart) continue
    bytesLeft -= segment.bytes
    nextStart = segments[count]?.baseOffset ?? segment.nextOffset
  }
  return { count, startOffset: nextStart }
}

/** Numbers and bigints compare exactly, so a limit of 2^64 − 1 never wraps: it is just never reached. */
function isPastLimits(
  segment: RetainedSegment,
  bytesLeft: number,
  { retentionMs, retentionBytes, cleanupPolicy }: TopicRetention,
  nowMs: number
): boolean {
  if (cleanupPolicy === 'compact') return false
  if (retentionMs !== null && nowMs - segment.receiveMsMax > retentionMs) return true
  return retentionBytes !== null && bytesLeft > retentionBytes
}
