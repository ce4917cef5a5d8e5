/**
 * What `cleaning` does beside its load: a topic that keeps one journal budget of data only, and a compacted topic that
 * is written at a steady rate, with retention and compaction looking every second. Main thread of the generator.
 */
import type { HttpJson } from './http-json.ts'
import type { BrokerAddresses, Faults } from './load/connections.ts'
import { openProduceLoad } from './load/produce-load.ts'
import type { ProduceLoad } from './load/produce-load.ts'
import type { Load } from './load/load.ts'
import type { Meter } from './meter.ts'
import type { BrokerCase } from './plan.ts'

/** Both cleaners run all the time, and nothing that they drop stays on the disk for long. */
export const cleaningFlags = [
  ...['--retention-check-interval', '1s'],
  ...['--compaction-check-interval', '1s'],
  ...['--segment-delete-grace', '1s']
]

const SEGMENT_BYTES_MIN = 1024 * 1024
/** Segments that a partition keeps: few, yet so many that retention drops a fraction at a time. */
const SEGMENTS_KEPT = 4

/**
 * Keeps one budget over all partitions. Less would be less work, not more: what retention drops before it was settled
 * is never settled.
 */
export function cleanedTopicConfig(budgetBytes: number, partitions: number): Readonly<Record<string, number | string>> {
  const retentionBytes = Math.max(SEGMENTS_KEPT * SEGMENT_BYTES_MIN, Math.floor(budgetBytes / partitions))
  return {
    cleanup_policy: 'delete',
    retention_bytes: retentionBytes,
    segment_bytes: Math.floor(retentionBytes / SEGMENTS_KEPT)
  }
}

const topic = 'bench-compacted'
const PARTITIONS = 4
/** 20,000 records a second over 16,000 keys: every key is written again within a second. */
const shape = { topic, records: 500, valueBytes: 256, keyed: true }
const REQUESTS_PER_SECOND = 40
const CONNECTIONS = 2
const IN_FLIGHT = 16

/** The topic beside the load, and its writer. */
export class CompactedTopic {
  readonly #protocol: BrokerCase['protocol']
  readonly #addresses: BrokerAddresses
  #load: ProduceLoad | null = null

  constructor(protocol: BrokerCase['protocol'], addresses: BrokerAddresses) {
    this.#protocol = protocol
    this.#addresses = addresses
  }

  /** Creates the topic on the broker. */
  static async create(http: HttpJson, one: BrokerCase, addresses: BrokerAddresses): Promise<CompactedTopic> {
    const config = { cleanup_policy: 'compact', segment_bytes: SEGMENT_BYTES_MIN }
    await http.ask('POST', '/topics', { name: topic, partitions: PARTITIONS, config })
    return new CompactedTopic(one.protocol, addresses)
  }

  /** Opens the writer; the caller closes it. */
  async open(faults: Faults): Promise<Load> {
    const options = { partitions: PARTITIONS, connections: CONNECTIONS, inFlight: IN_FLIGHT, rate: REQUESTS_PER_SECOND }
    const load = await openProduceLoad(
      { protocol: this.#protocol, addresses: this.#addresses, shape, ...options },
      faults
    )
    this.#load = load
    return new BesideLoad(load)
  }

  /** Stored bytes as a share of the keys and values that were written. Below 1: compaction has removed something. */
  async keptShare(http: HttpJson): Promise<number> {
    const writtenBytes = this.#load?.meter.totalBytes ?? 0
    if (writtenBytes === 0) throw new Error(`nothing was written to ${topic}`)
    return storedBytes(await http.ask('GET', `/topics/${topic}`, null)) / writtenBytes
  }
}

/** Sum of size_bytes over the partitions of a description of a topic. @throws Error if it is none. */
export function storedBytes(description: unknown): number {
  const partitions =
    typeof description === 'object' && description !== null && 'partitions' in description
      ? description.partitions
      : null
  if (!Array.isArray(partitions)) throw new Error('the description of a topic has no partitions')
  return partitions.reduce((sum: number, one: unknown) => {
    const bytes = typeof one === 'object' && one !== null && 'size_bytes' in one ? one.size_bytes : null
    if (typeof bytes !== 'number') throw new Error('a partition has no size_bytes')
    return sum + bytes
  }, 0)
}

/** A writer whose figures are named as what they are: not those of the load that is measured. */
class BesideLoad implements Load {
  readonly meter: Meter
  readonly faults: Faults
  readonly #load: ProduceLoad

  constructor(load: ProduceLoad) {
    this.#load = load
    this.meter = load.meter
    this.faults = load.faults
  }

  get inFlight(): number {
    return this.#load.inFlight
  }

  openWindow(nowMs: number): void {
    this.#load.openWindow(nowMs)
  }

  closeWindow(nowMs: number): void {
    this.#load.closeWindow(nowMs)
  }

  start(): void {
    this.#load.start()
  }

  stop(): void {
    this.#load.stop()
  }

  close(): void {
    this.#load.close()
  }

  extras(): Readonly<Record<string, number>> {
    const { records, seconds, latency } = this.meter.sums()
    return { compactedRecordsPerSecond: seconds > 0 ? records / seconds : 0, compactedP99Ms: latency.p99Ms }
  }
}
