/**
 * Produces without pause: a closed loop keeps every slot busy; an open loop sends on the grid of a Pacer and measures
 * from the intended time. Requests cycle over the partitions, each going whole to one (unless the records are keyed).
 * Main thread of the generator; nothing here allocates per request.
 */
import { Worker } from 'node:worker_threads'
import { assert } from '../../src/base/assert.ts'
import { siblingModule } from '../../src/base/module-url.ts'
import type { DriverConnection, DriverListener, ProduceTemplate } from '../drivers/driver.ts'
import { encodeEs01Produce, encodeHttpProduce } from '../drivers/records.ts'
import type { RecordShape } from '../drivers/records.ts'
import { LatencyRecorder } from '../latency.ts'
import { Meter } from '../meter.ts'
import { Pacer } from '../pacing.ts'
import type { TickTask } from '../pacing-worker.ts'
import { Faults, openConnections } from './connections.ts'
import type { BrokerAddresses, Protocol } from './connections.ts'
import type { Load } from './load.ts'

export interface ProduceOptions {
  readonly protocol: Protocol
  readonly addresses: BrokerAddresses
  readonly shape: RecordShape
  readonly partitions: number
  readonly connections: number
  readonly inFlight: number
  /** Requests per second of an open loop; null for a closed loop. */
  readonly rate: number | null
}

/** The finest grid on which an open loop is woken; at higher rates a tick sends several requests. */
const TICK_MS_MIN = 0.25
/** Time that the ticking thread has to start. */
const START_DELAY_MS = 50

/**
 * Opens the connections and prepares every slot's request. The caller closes the load.
 * @param faults shared with another load, if they run together.
 */
export async function openProduceLoad(options: ProduceOptions, faults = new Faults()): Promise<ProduceLoad> {
  const load = new ProduceLoad(options, faults)
  load.use(await openConnections(options.protocol, options.addresses, options, load))
  return load
}

export class ProduceLoad implements Load, DriverListener {
  readonly meter = new Meter()
  readonly faults: Faults
  readonly #options: ProduceOptions
  readonly #pacer: Pacer | null
  /** How late the generator itself sent what was due while a slot was free. */
  readonly #lateness = new LatencyRecorder()
  readonly #freeConnections: DriverConnection[] = []
  readonly #freeSlots: number[] = []
  #connections: readonly DriverConnection[] = []
  #sinceMs = new Float64Array(0)
  #slotsPerConnection = 1
  #payloadBytes = 0
  #nextPartition = 0
  #running = false
  #ticker: Worker | null = null
  inFlight = 0

  constructor(options: ProduceOptions, faults: Faults) {
    this.#options = options
    this.faults = faults
    this.#pacer = options.rate === null ? null : new Pacer(options.rate)
  }

  /** Takes the connections over and gives each slot bytes of its own. */
  use(connections: readonly DriverConnection[]): void {
    this.#connections = connections
    this.#slotsPerConnection = connections[0]?.slotCount ?? 1
    this.#sinceMs = new Float64Array(connections.length * this.#slotsPerConnection)
    for (const connection of connections) {
      for (let slot = 0; slot < connection.slotCount; slot++) {
        const template = this.#encode(1 + connection.index * this.#slotsPerConnection + slot)
        this.#payloadBytes = template.payloadBytes
        connection.prepareProduce(slot, template)
      }
    }
  }

  start(): void {
    this.#running = true
    const pacer = this.#pacer
    for (const connection of this.#connections) {
      for (let slot = 0; slot < connection.slotCount; slot++) {
        if (pacer === null) this.#send(connection, slot, performance.now())
        else this.#release(connection, slot)
      }
    }
    if (pacer !== null) this.#startTicks(pacer)
  }

  openWindow(nowMs: number): void {
    this.meter.open(nowMs)
  }

  closeWindow(nowMs: number): void {
    this.meter.close(nowMs)
  }

  stop(): void {
    this.#running = false
    // The thread may end after us: it holds nothing and sends nothing.
    void this.#ticker?.terminate()
    this.#ticker = null
  }

  close(): void {
    this.stop()
    for (const connection of this.#connections) connection.close()
  }

  extras(): Readonly<Record<string, number>> {
    if (this.#pacer === null) return {}
    const lateness = this.#lateness.summarise()
    return { generatorLateP50Ms: lateness.p50Ms, generatorLateP99Ms: lateness.p99Ms }
  }

  onAnswer(connection: DriverConnection, slot: number): void {
    const now = performance.now()
    this.inFlight--
    this.meter.count(
      now,
      this.#sinceMs[this.#place(connection, slot)] ?? now,
      connection.answer.records,
      this.#payloadBytes
    )
    this.#continue(connection, slot, now)
  }

  onRefused(connection: DriverConnection, slot: number, message: string): void {
    this.inFlight--
    this.faults.refuse(message)
    if (this.faults.fatal !== null) this.stop()
    // The next send waits for the next turn of the loop: a broker that refuses at once must not keep us from reading.
    setImmediate(() => this.#continue(connection, slot, performance.now()))
  }

  onLost(_connection: DriverConnection, error: Error): void {
    this.stop()
    this.faults.lose(error)
  }

  #startTicks(pacer: Pacer): void {
    const startMs = performance.now() + START_DELAY_MS
    pacer.start(startMs)
    const task: TickTask = {
      startMs: performance.timeOrigin + startMs,
      intervalMs: Math.max(TICK_MS_MIN, pacer.intervalMs)
    }
    const ticker = new Worker(siblingModule(import.meta.url, '../pacing-worker'), { workerData: task })
    this.#ticker = ticker
    ticker.on('message', () => this.#sendDue())
    ticker.on('error', error => {
      this.stop()
      this.faults.lose(error)
    })
  }

  #continue(connection: DriverConnection, slot: number, now: number): void {
    if (!this.#running) return
    if (this.#pacer === null) this.#send(connection, slot, now)
    else {
      this.#release(connection, slot)
      this.#sendDue()
    }
  }

  #release(connection: DriverConnection, slot: number): void {
    this.#freeConnections.push(connection)
    this.#freeSlots.push(slot)
  }

  /** Open loop: sends all that is due, as far as slots are free. What finds none keeps its intended time. */
  #sendDue(): void {
    const pacer = this.#pacer
    assert(pacer !== null, 'only an open loop has due times')
    while (this.#running && this.#freeSlots.length > 0) {
      const now = performance.now()
      const dueMs = pacer.takeDue(now)
      if (dueMs < 0) return
      // In turn, so that an open loop sends the bytes of every slot, not those of one again and again.
      const connection = this.#freeConnections.shift()
      const slot = this.#freeSlots.shift()
      assert(connection !== undefined && slot !== undefined, 'free slots and their connections go in pairs')
      if (this.meter.isOpen) this.#lateness.record(now - dueMs)
      this.#send(connection, slot, dueMs)
    }
  }

  #send(connection: DriverConnection, slot: number, sinceMs: number): void {
    this.#sinceMs[this.#place(connection, slot)] = sinceMs
    this.inFlight++
    const partition = this.#nextPartition
    this.#nextPartition = partition + 1 === this.#options.partitions ? 0 : partition + 1
    connection.produce(slot, partition)
  }

  #place(connection: DriverConnection, slot: number): number {
    return connection.index * this.#slotsPerConnection + slot
  }

  #encode(seed: number): ProduceTemplate {
    const { protocol, shape, addresses } = this.#options
    if (protocol === 'es01') return encodeEs01Produce(shape, seed)
    return encodeHttpProduce(shape, seed, `${addresses.http.host}:${addresses.http.port}`)
  }
}
