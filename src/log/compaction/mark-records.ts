/**
 * The first part of a pass: finds the records that go. Reads only. Owned by one pass; any one thread.
 *
 * The map of newest records has a fixed size, the keys of a partition have not. So it goes in *rounds*: each maps the log
 * from where the round before stopped, oldest first, until the map is full, and then looks up everything older than that.
 *
 *   round 1   ├─ map ──────┤
 *   round 2   ├─ look up ──┼─ map ──────┤
 *   round 3   ├─ look up ──┴────────────┼─ map ─┤
 *
 * A record is marked only when a newer one of its key was seen, in the same stretch (the map gives back the one that was
 * its newest) or in a later one (the look-up finds the key), so each round is right by itself; and since every pair of
 * stretches meets in some round, nothing that is to go is missed. What it costs is reading: r rounds read the segments
 * (r + 1) / 2 times. A key that recurs in every stretch is marked each time but the last.
 *
 * A tombstone that is past its time goes whether it is its key's newest record or not, and takes part in the map like any
 * other: what it hides is marked for it. It stays if a batch before it is opaque, for that may hold what it hides.
 */
import { randomBytes } from 'node:crypto'
import { BatchReader } from './batch-reader.ts'
import { KEY_SECRET_BYTES } from './key-hash.ts'
import { KEY_MAP_FULL, KeyMap } from './key-map.ts'
import { Marking, SegmentWalk } from './marking.ts'
import { COMPACTION_MAP_BYTES } from './pass.ts'
import type { CompactionRequest, SourceBatch, SourceSegment } from './pass.ts'
import type { ReadMeter } from './read-meter.ts'

/** Map bytes that surely suffice per byte of input: a record with a key has 8 bytes and more, a key takes 32 at most. */
const MAP_BYTES_PER_BYTE = 4

/** Marks the records to drop; yields between pieces. */
export function* markRecords(request: CompactionRequest, meter: ReadMeter): Generator<void, Marking, void> {
  const marker = new RecordMarker(request, meter)
  try {
    yield* marker.run()
  } finally {
    marker.free()
  }
  return marker.marking
}

/** Where mapping stopped: a segment by index and, in it, the ordinal of the first record that is not mapped. */
interface Stretch {
  readonly segment: number
  readonly record: number
}

class RecordMarker {
  readonly marking = new Marking()
  readonly #request: CompactionRequest
  readonly #meter: ReadMeter
  readonly #map: KeyMap
  readonly #reader = new BatchReader()
  /** Batches below this ordinal were checked. */
  #checkedBatches = 0
  /** Tombstones from this ordinal on stay: an opaque batch lies before them. */
  #tombstonesEnd = Infinity

  constructor(request: CompactionRequest, meter: ReadMeter) {
    this.#request = request
    this.#meter = meter
    const inputBytes = request.segments.reduce((sum, segment) => sum + segment.bytes, 0)
    const mapBytes = Math.min(request.mapBytes ?? COMPACTION_MAP_BYTES, inputBytes * MAP_BYTES_PER_BYTE)
    this.#map = new KeyMap(mapBytes, randomBytes(KEY_SECRET_BYTES))
  }

  free(): void {
    this.#map.free()
  }

  *run(): Generator<void, void, void> {
    let from: Stretch | null = { segment: 0, record: 0 }
    while (from !== null) {
      const start: Stretch = from
      from = yield* this.#mapStretch(start)
      yield* this.#lookUpOlder(start.record)
      this.#map.clear()
    }
  }

  /** Maps records from `start` on. @returns where the map was full, or null: everything is mapped. */
  *#mapStretch(start: Stretch): Generator<void, Stretch | null, void> {
    const { marking } = this
    for (let index = start.segment; index < this.#request.segments.length; index++) {
      const segment = this.#segment(index)
      let { record, batch } = marking.startOf(index)
      for (const source of segment.batches()) {
        const isDue = this.#meter.add(source.end - source.start)
        if (this.#isReadable(source, batch)) {
          this.#reader.open(source)
          const next = record + this.#reader.view.recordCount
          const stop = next > start.record ? this.#mapBatch(segment, record, start.record) : -1
          if (stop >= 0) return { segment: index, record: stop }
          record = next
        } else {
          this.#tombstonesEnd = Math.min(this.#tombstonesEnd, record)
        }
        batch++
        if (isDue) yield
      }
      marking.starts[index + 1] = { record, batch }
    }
    return null
  }

  #segment(index: number): SourceSegment {
    return this.#request.segments[index] as SourceSegment
  }

  /** Checks each batch once, when it is met first, and keeps the answer. */
  #isReadable(source: SourceBatch, batch: number): boolean {
    const { opaque } = this.marking
    if (batch >= this.#checkedBatches) {
      this.#checkedBatches = batch + 1
      if (!this.#reader.check(source)) opaque.add(batch)
    }
    return !opaque.has(batch)
  }

  /** Maps the open batch, whose first record is `first`, from `start` on. @returns the record that found no room, or −1. */
  #mapBatch(segment: SourceSegment, first: number, start: number): number {
    const { dropped } = this.marking
    this.#reader.readRecords()
    const { cursor, bytes } = this.#reader
    for (let record = first; cursor.next(); record++) {
      if (record < start || cursor.keyLength < 0) continue
      const before = this.#map.put(bytes, cursor.keyStart, cursor.keyStart + cursor.keyLength, record)
      if (before === KEY_MAP_FULL) return record
      if (before >= 0) dropped.add(before)
      const isTombstone = cursor.valueLength < 0 && record < this.#tombstonesEnd
      if (isTombstone && this.#isPastTime(segment)) {
        dropped.add(record)
        this.marking.tombstonesDropped++
      }
    }
    return -1
  }

  /**
   * Whether the record at the cursor was received longer ago than tombstones are kept.
   *
   *   timestamp within the segment's receive times   it is the receive time (every HTTP and ES01 record), or near it
   *   below or above them                            a client's own time, which must neither hurry nor hold up the drop:
   *                                                  the latest time at which the record can have come counts
   */
  #isPastTime({ firstReceiveMs, receiveMsMax }: SourceSegment): boolean {
    const { tombstoneRetentionMs, nowMs } = this.#request
    if (tombstoneRetentionMs === null) return false
    const timestampMs = this.#reader.timestampMs()
    const isReceiveTime = timestampMs >= firstReceiveMs && timestampMs <= receiveMsMax
    // Comparing a number with a bigint is exact, so a retention of 2^64 − 1 is just very long.
    return nowMs - (isReceiveTime ? timestampMs : receiveMsMax) > tombstoneRetentionMs
  }

  /** Marks the records below `end` whose key is in the map: all that is mapped is newer. */
  *#lookUpOlder(end: number): Generator<void, void, void> {
    for (let index = 0; this.marking.startOf(index).record < end; index++) {
      const walk = new SegmentWalk(this.marking, index, this.#reader)
      for (const source of this.#segment(index).batches()) {
        const isDue = this.#meter.add(source.end - source.start)
        if (walk.step(source)) this.#lookUpBatch(walk.firstRecord, end)
        if (walk.nextRecord >= end) return
        if (isDue) yield
      }
      walk.end()
    }
  }

  #lookUpBatch(first: number, end: number): void {
    const { dropped } = this.marking
    this.#reader.readRecords()
    const { cursor, bytes } = this.#reader
    for (let record = first; record < end && cursor.next(); record++) {
      if (cursor.keyLength < 0 || dropped.has(record)) continue
      if (this.#map.has(bytes, cursor.keyStart, cursor.keyStart + cursor.keyLength)) dropped.add(record)
    }
  }
}
