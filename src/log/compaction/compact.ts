/**
 * One compaction pass over sealed segments of a partition: fewer bytes, the same newest record of every key. Pure: reads
 * and writes only through what it is given. A generator, so that whoever runs it may pause or stop it between pieces.
 *
 *   mark      find the records that go (mark-records.ts). None: the pass ends here and nothing is changed
 *   measure   what the segments that lose some will weigh
 *   plan      which neighbours become one segment (plan-segments.ts)
 *   write     those that lose or merge; all others are left alone
 *
 * Kept: the newest record of each key among the given segments, every record without a key, every batch whose records
 * cannot be told apart, all offsets and timestamps. The output of a stopped pass is worthless; that of a whole one takes
 * the place of the given segments in one step, or oldest segment first: a tombstone must not go before what it hides.
 * A batch that loses all its records goes, its producer fields too: whoever needs them keeps them elsewhere (W5).
 */
import { assert } from '../../base/assert.ts'
import { limits } from '../../model/limits.ts'
import { BatchReader } from './batch-reader.ts'
import { markRecords } from './mark-records.ts'
import { SegmentWalk } from './marking.ts'
import type { Marking } from './marking.ts'
import type {
  CompactionOutput,
  CompactionRequest,
  CompactionResult,
  CompactionRun,
  SourceBatch,
  SourceSegment
} from './pass.ts'
import { planSegments } from './plan-segments.ts'
import type { SegmentPlan, ThinnedSegment } from './plan-segments.ts'
import { ReadMeter } from './read-meter.ts'
import { BatchThinner, thinnedBytes } from './thin-batch.ts'

/**
 * Compacts `request.segments` into `output`. Errors of the segments and of the output pass through.
 *
 * @cost reads the segments once (twice, and once more those that lose records, if anything is to go) plus further rounds
 * where the map is too small; memory: the map, one bit a record, two of the largest batches.
 */
export function* compactSegments(request: CompactionRequest, output: CompactionOutput): CompactionRun {
  checkOrder(request.segments)
  const meter = new ReadMeter()
  const marking = yield* markRecords(request, meter)
  if (marking.dropped.count === 0) return unchanged(request, marking, meter)
  const pass = new Compaction(request, marking, meter)
  const plans = planSegments(yield* pass.measure(), request.segmentBytes)
  // What is compressed anew may come to more than it was.
  if (plans.some(({ bytes }) => bytes > limits.segmentBytesHard)) return unchanged(request, marking, meter)
  for (const plan of plans) {
    if (!plan.isUnchanged) yield* pass.write(plan, output)
  }
  return resultOf(request, marking, meter, { plans, bytesWritten: pass.bytesWritten })
}

function checkOrder(segments: readonly SourceSegment[]): void {
  let nextOffset = 0
  for (const segment of segments) {
    const isInOrder = segment.baseOffset >= nextOffset && segment.nextOffset > segment.baseOffset
    assert(isInOrder, 'segments to compact are given by offset, and do not overlap')
    nextOffset = segment.nextOffset
  }
}

function unchanged(request: CompactionRequest, marking: Marking, meter: ReadMeter): CompactionResult {
  const plans = request.segments.map((segment, index) => leftAlone(segment, index))
  const result = resultOf(request, marking, meter, { plans, bytesWritten: 0 })
  return { ...result, changed: false, recordsDropped: 0, tombstonesDropped: 0 }
}

function leftAlone(segment: SourceSegment, index: number): SegmentPlan {
  return { first: index, last: index, bytes: segment.bytes, isUnchanged: true }
}

interface Written {
  readonly plans: readonly SegmentPlan[]
  readonly bytesWritten: number
}

function resultOf(
  { segments }: CompactionRequest,
  marking: Marking,
  meter: ReadMeter,
  { plans, bytesWritten }: Written
): CompactionResult {
  return {
    changed: marking.dropped.count > 0,
    segments: plans.map(({ first, last, bytes, isUnchanged }) => ({
      replaces: [first, last],
      isUnchanged,
      baseOffset: (segments[first] as SourceSegment).baseOffset,
      nextOffset: (segments[last] as SourceSegment).nextOffset,
      bytes
    })),
    recordsRead: marking.startOf(segments.length).record,
    recordsDropped: marking.dropped.count,
    tombstonesDropped: marking.tombstonesDropped,
    bytesRead: meter.bytes,
    bytesWritten,
    opaqueBatches: marking.opaque.count
  }
}

/** The sweeps behind the marking. */
class Compaction {
  bytesWritten = 0
  readonly #segments: readonly SourceSegment[]
  readonly #marking: Marking
  readonly #meter: ReadMeter
  readonly #reader = new BatchReader()
  readonly #thinner = new BatchThinner()

  constructor(request: CompactionRequest, marking: Marking, meter: ReadMeter) {
    this.#segments = request.segments
    this.#marking = marking
    this.#meter = meter
  }

  /** Weighs the segments as they will be. */
  *measure(): Generator<void, readonly ThinnedSegment[], void> {
    const thinned: ThinnedSegment[] = []
    for (const [index, segment] of this.#segments.entries()) {
      const { baseOffset, nextOffset, bytes } = segment
      const hasDrops = this.#marking.hasDrops(index)
      const keptBytes = hasDrops ? yield* this.#measureSegment(index, segment) : bytes
      thinned.push({ baseOffset, nextOffset, keptBytes, hasDrops })
    }
    return thinned
  }

  *#measureSegment(index: number, segment: SourceSegment): Generator<void, number, void> {
    const walk = new SegmentWalk(this.#marking, index, this.#reader)
    let keptBytes = 0
    for (const batch of segment.batches()) {
      const hasDrops = walk.stepToDrops(batch)
      if (hasDrops) keptBytes += this.#thinnedBytes(batch, walk.firstRecord)
      else keptBytes += batch.end - batch.start
      if (this.#meter.add(batch.end - batch.start)) yield
    }
    walk.end()
    return keptBytes
  }

  /** How many bytes compressed records come to is known only when they are. */
  #thinnedBytes(batch: SourceBatch, firstRecord: number): number {
    const { dropped } = this.#marking
    if (this.#reader.isCompressed) return this.#thinner.thin(batch, this.#reader, dropped, firstRecord)
    return thinnedBytes(this.#reader, dropped, firstRecord)
  }

  /** Writes one segment of the output. */
  *write(plan: SegmentPlan, output: CompactionOutput): Generator<void, void, void> {
    const sources = this.#segments.slice(plan.first, plan.last + 1)
    const first = sources[0] as SourceSegment
    const last = sources[sources.length - 1] as SourceSegment
    const bytesBefore = this.bytesWritten
    output.beginSegment(first.baseOffset)
    for (let index = plan.first; index <= plan.last; index++) yield* this.#copySegment(index, output)
    assert(this.bytesWritten - bytesBefore === plan.bytes, 'a segment must come out as large as it was measured')
    output.endSegment({
      nextOffset: last.nextOffset,
      firstReceiveMs: sources.reduce((ms, source) => Math.min(ms, source.firstReceiveMs), Infinity),
      receiveMsMax: sources.reduce((ms, source) => Math.max(ms, source.receiveMsMax), -Infinity)
    })
  }

  *#copySegment(index: number, output: CompactionOutput): Generator<void, void, void> {
    const walk = new SegmentWalk(this.#marking, index, this.#reader)
    for (const batch of (this.#segments[index] as SourceSegment).batches()) {
      if (walk.stepToDrops(batch)) {
        const bytes = this.#thinner.thin(batch, this.#reader, this.#marking.dropped, walk.firstRecord)
        if (bytes > 0) output.batch(this.#thinner.bytes, 0, bytes)
        this.bytesWritten += bytes
      } else {
        output.batch(batch.bytes, batch.start, batch.end)
        this.bytesWritten += batch.end - batch.start
      }
      if (this.#meter.add(batch.end - batch.start)) yield
    }
    walk.end()
  }
}
