/**
 * Goes once through all partitions of a topic: one record to each, or one read of each from its start. Every answer is
 * checked; the first thing that is not as it should be ends the sweep. Main thread of the generator.
 */
import type { DriverConnection, DriverListener } from '../drivers/driver.ts'
import { encodeEs01Produce, encodeHttpProduce } from '../drivers/records.ts'
import { LatencyRecorder } from '../latency.ts'
import type { LatencySummary } from '../latency.ts'
import { openConnections } from './connections.ts'
import type { BrokerAddresses, Protocol } from './connections.ts'

export interface SweepOptions {
  readonly kind: 'produce' | 'consume'
  readonly protocol: Protocol
  readonly addresses: BrokerAddresses
  readonly topic: string
  readonly partitions: number
  readonly connections: number
  readonly inFlight: number
  readonly valueBytes: number
  /** What every read must give. */
  readonly recordsPerPartition: number
}

export interface SweepResult {
  readonly seconds: number
  readonly latency: LatencySummary
}

/** A read asks for more than there can be, so that too many are noticed as well. */
const READ_RECORDS_MAX = 100
const READ_BYTES_MAX = 64 * 1024
/** 10,000 partitions over the slowest path take seconds. */
const TIMEOUT_MS = 300_000

/** @throws Error naming the partition and what was wrong with it. */
export async function sweep(options: SweepOptions): Promise<SweepResult> {
  const run = new Sweep(options)
  const connections = await openConnections(options.protocol, options.addresses, options, run)
  const timer = setTimeout(() => run.fail(new Error('a sweep takes too long')), TIMEOUT_MS)
  const startedMs = performance.now()
  try {
    run.begin(connections)
    await run.done
    return { seconds: (performance.now() - startedMs) / 1000, latency: run.latency.summarise() }
  } finally {
    clearTimeout(timer)
    for (const connection of connections) connection.close()
  }
}

class Sweep implements DriverListener {
  readonly latency = new LatencyRecorder()
  readonly done: Promise<void>
  readonly #options: SweepOptions
  readonly #resolve: () => void
  readonly #reject: (error: Error) => void
  /** By slot: its partition, and when it was asked. */
  #partitions = new Int32Array(0)
  #sinceMs = new Float64Array(0)
  #slotsPerConnection = 1
  #next = 0
  #answered = 0
  #isOver = false

  constructor(options: SweepOptions) {
    this.#options = options
    const { promise, resolve, reject } = Promise.withResolvers<undefined>()
    this.done = promise
    // A failure before anybody waits must not count as unhandled; whoever waits hears of it.
    promise.catch(() => undefined)
    this.#resolve = () => resolve(undefined)
    this.#reject = reject
  }

  begin(connections: readonly DriverConnection[]): void {
    this.#slotsPerConnection = connections[0]?.slotCount ?? 1
    const slots = connections.length * this.#slotsPerConnection
    this.#partitions = new Int32Array(slots)
    this.#sinceMs = new Float64Array(slots)
    for (const connection of connections) {
      for (let slot = 0; slot < connection.slotCount; slot++) {
        this.#prepare(connection, slot)
        this.#ask(connection, slot)
      }
    }
  }

  fail(error: Error): void {
    this.#isOver = true
    this.#reject(error)
  }

  onAnswer(connection: DriverConnection, slot: number): void {
    if (this.#isOver) return
    const place = this.#place(connection, slot)
    this.latency.record(performance.now() - (this.#sinceMs[place] ?? 0))
    const expected = this.#options.kind === 'produce' ? 1 : this.#options.recordsPerPartition
    const { records } = connection.answer
    if (records !== expected) {
      this.fail(new Error(`partition ${this.#partitions[place]}: ${records} records where ${expected} should be`))
      return
    }
    if (++this.#answered === this.#options.partitions) {
      this.#isOver = true
      this.#resolve()
      return
    }
    this.#ask(connection, slot)
  }

  onRefused(connection: DriverConnection, slot: number, message: string): void {
    this.fail(new Error(`partition ${this.#partitions[this.#place(connection, slot)]} was refused: ${message}`))
  }

  onLost(_connection: DriverConnection, error: Error): void {
    this.fail(new Error(`a connection was lost: ${error.message}`))
  }

  #prepare(connection: DriverConnection, slot: number): void {
    const { kind, protocol, topic, valueBytes, addresses } = this.#options
    if (kind === 'consume') {
      connection.prepareConsume(slot, { topic, maxRecords: READ_RECORDS_MAX, maxBytes: READ_BYTES_MAX })
      return
    }
    const shape = { topic, records: 1, valueBytes, keyed: false }
    const seed = 1 + this.#place(connection, slot)
    const host = `${addresses.http.host}:${addresses.http.port}`
    const template = protocol === 'es01' ? encodeEs01Produce(shape, seed) : encodeHttpProduce(shape, seed, host)
    connection.prepareProduce(slot, template)
  }

  #ask(connection: DriverConnection, slot: number): void {
    if (this.#next >= this.#options.partitions) return
    const partition = this.#next++
    const place = this.#place(connection, slot)
    this.#partitions[place] = partition
    this.#sinceMs[place] = performance.now()
    if (this.#options.kind === 'produce') connection.produce(slot, partition)
    else connection.consume(slot, partition, 0)
  }

  #place(connection: DriverConnection, slot: number): number {
    return connection.index * this.#slotsPerConnection + slot
  }
}
