/**
 * Replays one data set over one protocol: several lanes at once, a kill −9 half-way with requests in flight, a restart
 * on the same directory, a look at what had been written, and on. No record is sent again that is in the log, and
 * none is left out. Main thread.
 */
import type { BrokerProcess } from '../broker-process.ts'
import type { Batch, Ledger } from './ledger.ts'
import { openSide } from './sides.ts'
import type { ReadAnswer, Side, SideName } from './sides.ts'
import { Mismatch } from './verify.ts'
import type { ReadRecord } from './verify.ts'

/** The broker of the demo: killed and started again on the same directory. */
export interface DemoBroker {
  readonly current: BrokerProcess
  kill(): Promise<void>
  restart(): Promise<void>
}

export interface ReplayOptions {
  readonly broker: DemoBroker
  readonly side: SideName
  readonly topic: string
  readonly ledger: Ledger
  readonly laneCount: number
  readonly batchRecords: number
  /** Told how many records are settled. */
  readonly onProgress: (settledCount: number) => void
}

/** What a replay did. */
export interface ReplaySummary {
  readonly kill: KillSummary | null
  /** Sending only, without kill, restart and look. */
  readonly sendingMs: number
  readonly requests: number
}

export interface KillSummary {
  readonly settledBefore: number
  readonly requestsInFlight: number
  readonly doubtful: number
  readonly found: number
  /** From the kill to ready again. */
  readonly downMs: number
}

/** Rounds of sending without the kill in between; more means that the broker keeps failing. */
const ROUNDS_MAX = 5

/** Sends all records of the ledger. @throws Mismatch when the broker lost, doubled or misplaced one. */
export async function replay(options: ReplayOptions): Promise<ReplaySummary> {
  const { ledger, broker } = options
  let kill: KillSummary | null = null
  let sendingMs = 0
  let requests = 0
  for (let round = 0; !ledger.isComplete; round++) {
    const sending: Sending = new Sending(options, kill === null)
    const startedMs = performance.now()
    await sending.run()
    sendingMs += performance.now() - startedMs
    requests += sending.requests
    if (ledger.isComplete) break
    if (sending.killed === null && round >= ROUNDS_MAX) throw sending.failure ?? new Error('the broker keeps failing')
    const doubtful = ledger.doubtfulCount
    const settledBefore = ledger.settledCount
    const downFromMs = performance.now()
    if (sending.killed !== null) {
      await sending.killed.done
      await broker.restart()
    }
    const downMs = performance.now() - downFromMs
    const found = await settleDoubts(options)
    if (sending.killed !== null) {
      kill = { settledBefore, requestsInFlight: sending.killed.requestsInFlight, doubtful, found, downMs }
    }
  }
  return { kill, sendingMs, requests }
}

/** Reads every partition behind its last acknowledgement and takes in what is there. @returns records found. */
async function settleDoubts(options: ReplayOptions): Promise<number> {
  const { ledger, topic } = options
  const side = await openSide(options.side, options.broker.current.addresses)
  try {
    let found = 0
    for (let partition = 0; partition < ledger.partitions; partition++) {
      const tail = await readFrom(side, topic, partition, ledger.doubtfulFrom(partition))
      found += ledger.settle(partition, tail.records, tail.endOffset)
    }
    return found
  } finally {
    await side.close()
  }
}

/** All records of a partition from `offset` on, in as many reads as it takes. */
export async function readFrom(
  side: Side,
  topic: string,
  partition: number,
  offset: number
): Promise<{ readonly records: ReadRecord[]; readonly endOffset: number }> {
  const records: ReadRecord[] = []
  let nextOffset = offset
  for (;;) {
    const answer: ReadAnswer = await side.read(topic, partition, nextOffset)
    for (const record of answer.records) records.push(record)
    const stuck = answer.nextOffset <= nextOffset
    nextOffset = answer.nextOffset
    if (nextOffset >= answer.highWatermark) return { records, endOffset: answer.highWatermark }
    if (stuck)
      throw new Mismatch(`partition ${partition} gives nothing at ${nextOffset}, below its end ${answer.highWatermark}`)
  }
}

/** One round of sending over all lanes, until everything is acknowledged or a lane fails. */
class Sending {
  readonly #options: ReplayOptions
  readonly #mayKill: boolean
  requests = 0
  /** Set when this round killed the broker. */
  killed: { readonly requestsInFlight: number; readonly done: Promise<void> } | null = null
  /** The first error of a lane; expected after a kill. */
  failure: Error | null = null
  #requestsInFlight = 0

  constructor(options: ReplayOptions, mayKill: boolean) {
    this.#options = options
    this.#mayKill = mayKill
  }

  /** Resolves when every lane has ended. @throws Mismatch at once; other errors end the lane and are kept. */
  async run(): Promise<void> {
    const { laneCount } = this.#options
    const lanes = await Promise.allSettled(Array.from({ length: laneCount }, (_, lane) => this.#runLane(lane)))
    for (const lane of lanes) {
      if (lane.status === 'fulfilled') continue
      const reason: unknown = lane.reason
      if (reason instanceof Mismatch || !(reason instanceof Error)) throw reason
      this.failure ??= reason
    }
  }

  async #runLane(lane: number): Promise<void> {
    const { side: name, broker, ledger, laneCount, batchRecords } = this.#options
    const batches = ledger.batches(lane, laneCount, batchRecords)
    if (batches.length === 0) return
    const side = await openSide(name, broker.current.addresses)
    const pending = new Set<Promise<void>>()
    try {
      for (const batch of batches) {
        while (pending.size >= side.inFlightMax) await Promise.race(pending)
        if (this.failure !== null || this.killed !== null) break
        const sent: Promise<void> = this.#send(side, batch).finally(() => pending.delete(sent))
        pending.add(sent)
      }
      await Promise.all(pending)
    } finally {
      await Promise.allSettled(pending)
      await side.close()
    }
  }

  async #send(side: Side, batch: Batch): Promise<void> {
    const { ledger, topic, onProgress } = this.#options
    ledger.send(batch)
    this.requests++
    this.#requestsInFlight++
    try {
      const answer = side.produce(
        topic,
        batch.map(index => ledger.records[index]).filter(one => one !== undefined)
      )
      setImmediate(() => this.#killHalfWay())
      ledger.acknowledge(batch, await answer)
      onProgress(ledger.settledCount)
    } catch (error) {
      if (error instanceof Mismatch || !(error instanceof Error)) throw error
      this.failure ??= error
    } finally {
      this.#requestsInFlight--
    }
  }

  /** Runs just after a request left: more than half is acknowledged, and that request at least has no answer yet. */
  #killHalfWay(): void {
    const { ledger, broker } = this.#options
    const half = ledger.settledCount * 2 >= ledger.records.length
    if (!this.#mayKill || this.killed !== null || !half || this.#requestsInFlight === 0) return
    this.killed = { requestsInFlight: this.#requestsInFlight, done: broker.kill() }
  }
}
