/**
 * Reads partitions: `drain` goes through every partition from its start to its end, again and again; `tail` follows
 * the end of each partition while others write. One request per partition at a time, spread over the slots.
 * Main thread of the generator.
 */
import type { DriverConnection, DriverListener } from '../drivers/driver.ts'
import { Meter } from '../meter.ts'
import { Faults, openConnections } from './connections.ts'
import type { BrokerAddresses, Protocol } from './connections.ts'
import { perSecond } from './load.ts'
import type { Load } from './load.ts'

export interface ConsumeOptions {
  readonly protocol: Protocol
  readonly addresses: BrokerAddresses
  readonly topic: string
  readonly partitions: number
  readonly connections: number
  readonly inFlight: number
  /** Key and value bytes of every record of the topic. */
  readonly recordBytes: number
  readonly fetchBytes: number
  readonly mode: 'drain' | 'tail'
}

/** The most that the broker gives in one answer by default. */
const FETCH_RECORDS = 10_000
/** A tail reader that found nothing asks again after this time: consume answers at once, there is nothing to wait on. */
const TAIL_PAUSE_MS = 2

interface Partition {
  readonly id: number
  nextOffset: number
  highWatermark: number
}

/** Opens the connections. The caller closes the load. @param faults shared with another load, if they run together. */
export async function openConsumeLoad(options: ConsumeOptions, faults = new Faults()): Promise<ConsumeLoad> {
  const load = new ConsumeLoad(options, faults)
  load.use(await openConnections(options.protocol, options.addresses, options, load))
  return load
}

export class ConsumeLoad implements Load, DriverListener {
  readonly meter = new Meter()
  readonly faults: Faults
  readonly #options: ConsumeOptions
  readonly #partitions: Partition[] = []
  /** Partitions that no slot reads at the moment, first come first served. */
  readonly #waiting: Partition[] = []
  readonly #timers = new Set<NodeJS.Timeout>()
  #connections: readonly DriverConnection[] = []
  #reading: (Partition | null)[] = []
  #sinceMs = new Float64Array(0)
  #slotsPerConnection = 1
  #running = false
  #passes = 0
  inFlight = 0

  constructor(options: ConsumeOptions, faults: Faults) {
    this.#options = options
    this.faults = faults
    for (let id = 0; id < options.partitions; id++) {
      this.#partitions.push({ id, nextOffset: 0, highWatermark: 0 })
    }
  }

  /** Takes the connections over. */
  use(connections: readonly DriverConnection[]): void {
    this.#connections = connections
    this.#slotsPerConnection = connections[0]?.slotCount ?? 1
    const slots = connections.length * this.#slotsPerConnection
    this.#sinceMs = new Float64Array(slots)
    this.#reading = new Array<Partition | null>(slots).fill(null)
    const { topic, fetchBytes } = this.#options
    for (const connection of connections) {
      for (let slot = 0; slot < connection.slotCount; slot++) {
        connection.prepareConsume(slot, { topic, maxRecords: FETCH_RECORDS, maxBytes: fetchBytes })
      }
    }
  }

  start(): void {
    this.#running = true
    this.#waiting.push(...this.#partitions)
    this.#fillSlots()
  }

  openWindow(nowMs: number): void {
    this.meter.open(nowMs)
  }

  closeWindow(nowMs: number): void {
    this.meter.close(nowMs)
  }

  stop(): void {
    this.#running = false
    for (const timer of this.#timers) clearTimeout(timer)
    this.#timers.clear()
  }

  close(): void {
    this.stop()
    for (const connection of this.#connections) connection.close()
  }

  /** Complete passes over all partitions, and how far the readers are behind the ends they know of. */
  extras(): Readonly<Record<string, number>> {
    if (this.#options.mode === 'drain') return { passes: this.#passes }
    const sums = this.meter.sums()
    const lag = this.#partitions.reduce((sum, one) => sum + Math.max(0, one.highWatermark - one.nextOffset), 0)
    return {
      readRecordsPerSecond: perSecond(sums.records, sums.seconds),
      readP50Ms: sums.latency.p50Ms,
      readP99Ms: sums.latency.p99Ms,
      lagRecords: lag
    }
  }

  onAnswer(connection: DriverConnection, slot: number): void {
    const now = performance.now()
    this.inFlight--
    const place = this.#place(connection, slot)
    const partition = this.#reading[place]
    if (partition === null || partition === undefined) throw new Error('an answer for a slot that reads nothing')
    const { records, nextOffset, highWatermark } = connection.answer
    if (records === 0 && nextOffset < highWatermark) {
      this.faults.lose(new Error(`partition ${partition.id} has records at ${nextOffset} but gives none`))
      this.stop()
      return
    }
    partition.nextOffset = nextOffset
    partition.highWatermark = highWatermark
    if (records > 0) this.meter.count(now, this.#sinceMs[place] ?? now, records, records * this.#options.recordBytes)
    if (!this.#running) return
    if (nextOffset < highWatermark) {
      this.#read(connection, slot, partition, now)
      return
    }
    this.#reading[place] = null
    this.#reachEnd(partition)
    this.#fillSlots()
  }

  onRefused(connection: DriverConnection, slot: number, message: string): void {
    this.inFlight--
    this.faults.refuse(message)
    if (this.faults.fatal !== null) this.stop()
    const partition = this.#reading[this.#place(connection, slot)]
    this.#reading[this.#place(connection, slot)] = null
    if (partition) this.#later(partition)
  }

  onLost(_connection: DriverConnection, error: Error): void {
    this.stop()
    this.faults.lose(error)
  }

  /** A drained partition waits until all are drained, then all begin again; a tailed one is asked again shortly. */
  #reachEnd(partition: Partition): void {
    if (this.#options.mode === 'tail') {
      this.#later(partition)
      return
    }
    if (this.#waiting.length > 0 || this.#reading.some(one => one !== null)) return
    this.#passes++
    for (const one of this.#partitions) one.nextOffset = 0
    this.#waiting.push(...this.#partitions)
  }

  #later(partition: Partition): void {
    if (!this.#running) return
    const timer = setTimeout(() => {
      this.#timers.delete(timer)
      this.#waiting.push(partition)
      this.#fillSlots()
    }, TAIL_PAUSE_MS)
    this.#timers.add(timer)
  }

  #fillSlots(): void {
    for (let slot = 0; slot < this.#slotsPerConnection && this.#waiting.length > 0; slot++) {
      for (const connection of this.#connections) {
        const partition = this.#reading[this.#place(connection, slot)] === null ? this.#waiting.shift() : undefined
        if (partition !== undefined) this.#read(connection, slot, partition, performance.now())
      }
    }
  }

  #read(connection: DriverConnection, slot: number, partition: Partition, now: number): void {
    const place = this.#place(connection, slot)
    this.#reading[place] = partition
    this.#sinceMs[place] = now
    this.inFlight++
    connection.consume(slot, partition.id, partition.nextOffset)
  }

  #place(connection: DriverConnection, slot: number): number {
    return connection.index * this.#slotsPerConnection + slot
  }
}
