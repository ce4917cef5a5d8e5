/**
 * The loops of a load: each of so many lanes keeps one request under way until the time is over, the records are written or
 * it was told to stop. Main thread of the command that runs it.
 * A failed request is counted and not sent again; a load ends early when nothing but failures comes. What is under way at
 * the end is waited for, but not for long: what has no answer then is counted as failed.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { LoadMeter } from './meter.ts'
import type { LoadPeer, LoadRecord } from './peer.ts'
import { createDice, fillText, KEY_COUNT, keyOf } from './record-text.ts'

/** Failures in a row, over all lanes, after which a broker is taken for one that does not work. */
const FAILURES_MAX = 100
/** After a failure: a broker that refuses at once is not asked in a tight loop. */
const FAILURE_PAUSE_MS = 20
/** Values that records take in turn. */
const VALUES_MAX = 4096
/** And not more memory for them than this. */
const VALUES_BYTES_MAX = 32 * 1024 * 1024

export interface LoadShape {
  readonly topic: string
  readonly partitions: number
  readonly valueBytes: number
  /** True: every record has a key and goes by it. False: each request goes whole to one partition, in turn. */
  readonly keyed: boolean
  /** Records of a request. */
  readonly batchRecords: number
  /** Requests under way on each peer. */
  readonly inFlight: number
}

/** When a load ends; whatever comes first. */
export interface LoadBounds {
  readonly timeoutMs: number
  /** Infinity: only the time counts. */
  readonly recordsMax: number
  /** Ends it early. */
  readonly signal: AbortSignal
  /** How long requests may take that are under way when it ends by time, signal or failures. */
  readonly drainMs: number
}

/** Writes until a bound is met; the requests under way then are waited for. */
export async function runProduce(
  peers: readonly LoadPeer[],
  shape: LoadShape,
  bounds: LoadBounds,
  meter: LoadMeter
): Promise<void> {
  const batches = new Batches(shape)
  const course = new Course(bounds, meter)
  let left = bounds.recordsMax
  await course.drive(lanesOf(peers, shape.inFlight), async peer => {
    while (!course.isOver && left > 0) {
      const records = batches.next(Math.min(left, shape.batchRecords))
      left -= records.length
      const bytes = records.reduce((sum, { key, value }) => sum + (key?.length ?? 0) + value.length, 0)
      await course.run(async () => {
        await peer.produce(shape.topic, records)
        return { records: records.length, bytes }
      })
    }
  })
}

/** Where reading a partition begins and ends. */
export interface ReadSpan {
  readonly partition: number
  readonly start: number
  readonly end: number
}

/** Reads each span from start to end, a partition at a time on each lane. */
export async function runConsume(
  peers: readonly LoadPeer[],
  shape: LoadShape,
  spans: readonly ReadSpan[],
  bounds: LoadBounds,
  meter: LoadMeter
): Promise<void> {
  const course = new Course(bounds, meter)
  const waiting = [...spans]
  await course.drive(lanesOf(peers, shape.inFlight), async peer => {
    for (let span = waiting.shift(); span !== undefined; span = waiting.shift()) {
      const { partition, end } = span
      let offset = span.start
      while (offset < end && !course.isOver) {
        const request = { topic: shape.topic, partition, offset, maxRecords: shape.batchRecords }
        const result = await course.run(() => peer.read(request))
        offset = result?.nextOffset ?? offset
      }
    }
  })
}

function lanesOf(peers: readonly LoadPeer[], inFlight: number): LoadPeer[] {
  return peers.flatMap(peer => Array.from({ length: inFlight }, () => peer))
}

/** How a load goes: whether it is over, what a failure does, and who still waits for an answer. */
class Course {
  readonly #bounds: LoadBounds
  readonly #meter: LoadMeter
  /** Rejects what waits for the answer of a request. */
  readonly #underWay = new Set<(error: Error) => void>()
  #drainTimer: NodeJS.Timeout | undefined
  #failuresInRow = 0
  #isOver = false

  constructor(bounds: LoadBounds, meter: LoadMeter) {
    this.#bounds = bounds
    this.#meter = meter
  }

  get isOver(): boolean {
    return this.#isOver
  }

  /** Runs a lane for each peer until all have ended. */
  async drive(peers: readonly LoadPeer[], lane: (peer: LoadPeer) => Promise<void>): Promise<void> {
    const { signal, timeoutMs } = this.#bounds
    const end = (): void => this.#end()
    const timer = setTimeout(end, timeoutMs)
    signal.addEventListener('abort', end)
    if (signal.aborted) end()
    try {
      await Promise.all(peers.map(lane))
    } finally {
      clearTimeout(timer)
      clearTimeout(this.#drainTimer)
      signal.removeEventListener('abort', end)
    }
  }

  /** @returns null if it failed, or had no answer in time. */
  async run<Result extends Amount>(request: () => Promise<Result>): Promise<Result | null> {
    const sentMs = performance.now()
    this.#meter.begin()
    try {
      const result = await this.#answer(request())
      this.#meter.count(sentMs, result.records, result.bytes)
      this.#failuresInRow = 0
      return result
    } catch (error) {
      this.#meter.fail(error)
      if (++this.#failuresInRow >= FAILURES_MAX) this.#end()
      await pause(FAILURE_PAUSE_MS)
      return null
    }
  }

  #answer<Result>(request: Promise<Result>): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#underWay.add(reject)
      const forget = (): void => void this.#underWay.delete(reject)
      request.then(resolve, reject).then(forget, forget)
    })
  }

  #end(): void {
    if (this.#isOver) return
    this.#isOver = true
    const { drainMs } = this.#bounds
    this.#drainTimer = setTimeout(() => {
      const error = new Error(`no answer within ${drainMs / 1000} s of the end`)
      for (const reject of this.#underWay) reject(error)
    }, drainMs)
  }
}

/** Of one answer. */
interface Amount {
  readonly records: number
  readonly bytes: number
}

/** Makes the records of each request out of values that are made once. */
class Batches {
  readonly #shape: LoadShape
  readonly #values: readonly string[]
  readonly #dice = createDice(1)
  #nextValue = 0
  #nextPartition = 0

  constructor(shape: LoadShape) {
    this.#shape = shape
    const wanted = Math.floor(VALUES_BYTES_MAX / Math.max(1, shape.valueBytes))
    const bytes = Buffer.alloc(shape.valueBytes)
    this.#values = Array.from({ length: Math.max(1, Math.min(VALUES_MAX, wanted)) }, (_, index) => {
      fillText(bytes, 0, bytes.length, createDice(index + 1))
      return bytes.toString('latin1')
    })
  }

  next(count: number): LoadRecord[] {
    const { keyed, partitions } = this.#shape
    const partition = this.#nextPartition
    this.#nextPartition = (partition + 1) % partitions
    return Array.from({ length: count }, () => {
      const value = this.#values[this.#nextValue++ % this.#values.length] ?? ''
      return keyed ? { key: keyOf(this.#dice() % KEY_COUNT), value } : { value, partition }
    })
  }
}
