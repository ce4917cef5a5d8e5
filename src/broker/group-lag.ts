/**
 * How far groups are behind: records between a committed offset and the end, and the age of the first of them. Main
 * thread. One object for one answer: it asks for the ends of a topic once, and looks at so many records at most.
 */
import type { Clock } from '../base/clock.ts'
import type { Catalog } from '../control/catalog.ts'
import type { TopicOffsets } from '../control/groups/topic-offsets.ts'
import { BrokerError } from '../model/errors.ts'
import { toTopicId } from '../model/ids.ts'
import { limits } from '../model/limits.ts'
import { readFormats, submitOutcomes } from '../model/requests.ts'
import type { PartitionOffsets, Topic } from '../model/topic.ts'
import { readI64 } from '../wire/primitives/u64.ts'
import type { Engine, EngineRead, EngineReadCaller } from './engine.ts'

export interface LagParts {
  readonly catalog: Catalog
  readonly engine: Engine
  readonly clock: Clock
}

export interface Lag {
  /** null: a shard that has some of it cannot be asked. */
  readonly records: number | null
  /** Since the oldest record that is not read; null: not known. */
  readonly seconds: number | null
}

/** A partition whose first record that is not read is to be looked at. */
interface Behind {
  readonly topic: Topic
  readonly partition: number
  readonly offset: number
}

/** Offsets between two turns of the event loop: about a millisecond, or one topic of a group. */
const TURN_OFFSETS = 10_000

export class LagReader {
  readonly #parts: LagParts
  /** By topic id. null: they cannot be asked for. */
  readonly #ends = new Map<number, Promise<PartitionOffsets[] | null>>()
  #readsLeft: number = limits.lagReadsMax
  #walked = 0

  constructor(parts: LagParts) {
    this.#parts = parts
  }

  /** Of these offsets, over all of their topics. */
  async lagOf(offsets: Iterable<TopicOffsets>): Promise<Lag> {
    const behind: Behind[] = []
    let records = 0
    for (const committed of [...offsets]) {
      // What is known is there without a turn of the loop, and there may be millions of it.
      if (this.#walked >= TURN_OFFSETS) await this.#breathe()
      this.#walked += committed.count
      const topic = this.#parts.catalog.topicOfId(toTopicId(committed.topicId))
      if (topic === undefined) continue
      const ends = await this.#endsOf(topic)
      if (ends === null) return { records: null, seconds: null }
      for (const [partition, offset] of committed.entries()) {
        const latest = ends[partition]?.latest ?? 0
        if (offset >= latest) continue
        records += latest - Number(offset)
        // One more than may be read is enough to know that there are too many.
        if (behind.length <= this.#readsLeft) behind.push({ topic, partition, offset: Number(offset) })
      }
    }
    return { records, seconds: await this.#secondsOf(behind) }
  }

  async #breathe(): Promise<void> {
    this.#walked = 0
    await new Promise(resolve => setImmediate(resolve))
  }

  #endsOf(topic: Topic): Promise<PartitionOffsets[] | null> {
    const known = this.#ends.get(topic.id)
    if (known !== undefined) return known
    const ends = this.#parts.engine.offsetsAt(topic, null, null).catch(nullIfUnavailable)
    this.#ends.set(topic.id, ends)
    return ends
  }

  async #secondsOf(behind: readonly Behind[]): Promise<number | null> {
    if (behind.length === 0) return 0
    if (behind.length > this.#readsLeft) return null
    this.#readsLeft -= behind.length
    let oldestMs = Number.POSITIVE_INFINITY
    let isWhole = true
    const waiting = behind.values()
    const work = async (): Promise<void> => {
      for (const { topic, partition, offset } of waiting) {
        const timestampMs = await timeOfNext(this.#parts.engine, topic, partition, offset)
        if (timestampMs === null) isWhole = false
        else oldestMs = Math.min(oldestMs, timestampMs)
      }
    }
    await Promise.all(Array.from({ length: limits.lagReadsAtOnce }, work))
    if (!isWhole) return null
    // A clock that was set back makes no age of less than nothing.
    return Math.max(0, this.#parts.clock.nowMs() - oldestMs) / 1000
  }
}

/** The timestamp of the first record from an offset on; null: it cannot be read now. */
function timeOfNext(engine: Engine, topic: Topic, partition: number, offset: number): Promise<number | null> {
  const read: EngineRead = {
    topic,
    partition,
    offsetHigh: Math.floor(offset / 2 ** 32),
    offsetLow: offset % 2 ** 32,
    maxRecords: 1,
    maxBytes: 1,
    format: readFormats.es01
  }
  return new Promise((resolve, reject) => {
    const reader = new TimeReader(resolve, reject)
    const send = (): void => {
      if (engine.read(read, reader) === submitOutcomes.full) engine.whenRoom(send)
      else engine.publishSoon()
    }
    send()
  })
}

/** next_offset u64 · high_watermark u64 · count u32 · partition u32 · offset u64 · timestamp i64 (wire/es01/consume.ts) */
const COUNT_AT = 16
const TIMESTAMP_AT = 32
const ANSWER_BYTES = TIMESTAMP_AT + 8

/** Takes the timestamp out of an answer in ES01 form; the rest of a large record passes by. */
class TimeReader implements EngineReadCaller {
  readonly #resolve: (timestampMs: number | null) => void
  readonly #reject: (error: unknown) => void
  #hasBegun = false

  constructor(resolve: (timestampMs: number | null) => void, reject: (error: unknown) => void) {
    this.#resolve = resolve
    this.#reject = reject
  }

  onReadChunk(bytes: Buffer, start: number, end: number): void {
    if (this.#hasBegun) return
    this.#hasBegun = true
    // No record: what was there has gone between the two questions.
    const isThere = end - start >= ANSWER_BYTES && bytes.readUInt32BE(start + COUNT_AT) > 0
    this.#resolve(isThere ? readI64(bytes, start + TIMESTAMP_AT) : null)
  }

  /** Nobody is charged for it. */
  onReadCounted(): void {}

  onReadFailed(error: BrokerError): void {
    if (error.spec.http === 500) this.#reject(error)
    else this.#resolve(null)
  }
}

/** A shard that is down, a topic that was deleted meanwhile: the rest can be told. */
function nullIfUnavailable(error: unknown): null {
  if (error instanceof BrokerError && error.spec.http !== 500) return null
  throw error
}
