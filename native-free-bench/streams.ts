/**
 * What a thousand idle streams cost, and how soon one record is with all of them: the memory of the broker before and
 * with them, and for each of some produces the time from its acknowledgement to the receipt on each stream. The streams are
 * read by this process, the broker is another. Main thread.
 */
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { BrokerProcess } from './broker-process.ts'
import type { Address } from './drivers/driver.ts'
import { HttpJson } from './http-json.ts'
import { LatencyRecorder } from './latency.ts'
import type { LatencySummary } from './latency.ts'
import { residentBytes } from './machine.ts'
import { httpEngines } from './options.ts'
import type { HttpEngine } from './options.ts'
import type { Cell, StudyTable } from './results.ts'
import { withBroker } from './run-case.ts'
import type { RunContext } from './run-case.ts'

const STREAMS = 1_000
/** Streams opened at once: the system's queue of new connections is short. */
const OPENED_AT_ONCE = 50
const PRODUCES_MIN = 50
/** Between a record that all have and the next: each is measured alone. */
const PAUSE_MS = 20
/** Before memory is looked at: what was garbage of the work before is given back. */
const REST_MS = 8_000
/** For a record to reach all. */
const REACH_TIMEOUT_MS = 30_000
/** A room for other connections beside the streams. */
const CONNECTIONS = STREAMS + 50
const topic = 'bench'

const columns = [
  'HTTP engine',
  'streams',
  'KiB a stream',
  'ack p50 ms',
  'each stream p50 ms',
  'p99 ms',
  'last stream p50 ms',
  'p99 ms',
  'max ms'
]

/** @throws Error when a stream does not open, ends, or does not get a record. */
export async function runStreams(context: RunContext, progress: (line: string) => void): Promise<StudyTable> {
  const asked = context.options.engines.filter(engine => engine !== null)
  const rows: Cell[][] = []
  for (const engine of asked.length > 0 ? asked : httpEngines) {
    const row = await measureEngine(context, engine)
    progress(`  ${engine}: ${row.slice(2).join(' · ')}`)
    rows.push(row)
  }
  const notes = [
    'KiB a stream: growth of the resident memory of the broker, without the buffers of the system',
    'each stream: from the acknowledgement of a produce to its record on each of the streams, read by one process',
    'last stream: the same until all of them have it'
  ]
  return { columns, rows, notes }
}

async function measureEngine(context: RunContext, engine: HttpEngine): Promise<Cell[]> {
  const { fillAheadBytes } = context.options
  const flags = ['--http-engine', engine, '--http-max-connections', String(CONNECTIONS)]
  return withBroker(context, `data-${engine}`, { fillAheadBytes, flags }, broker => measure(context, broker, engine))
}

/** What one produce showed. */
interface Reached {
  readonly ackMs: number
  /** From the acknowledgement, of each stream, in the order in which they had it; 0: before it. */
  readonly afterAckMs: readonly number[]
}

async function measure({ options }: RunContext, broker: BrokerProcess, engine: HttpEngine): Promise<Cell[]> {
  const http = new HttpJson(broker.addresses.http, 1)
  const readers = new Readers(broker.addresses.http)
  try {
    await http.ask('POST', '/topics', { name: topic, partitions: 1 })
    await sleep(REST_MS)
    const before = residentBytes(broker.pid)
    await readers.open(STREAMS)
    await sleep(REST_MS)
    const idle = residentBytes(broker.pid)
    const [acks, each, last] = [new LatencyRecorder(), new LatencyRecorder(), new LatencyRecorder()]
    const endMs = performance.now() + options.rounds * options.windowMs
    for (let i = 0; i < PRODUCES_MIN || performance.now() < endMs; i++) {
      const { ackMs, afterAckMs } = await readers.measureOne(http, 'v'.repeat(options.valueBytes))
      acks.record(ackMs)
      for (const ms of afterAckMs) each.record(ms)
      last.record(afterAckMs.at(-1) ?? 0)
      await sleep(PAUSE_MS)
    }
    const kib = before === null || idle === null ? null : Math.round((idle - before) / STREAMS / 102.4) / 10
    return [engine, STREAMS, kib, ...cellsOf(acks.summarise(), each.summarise(), last.summarise())]
  } finally {
    readers.close()
    http.close()
  }
}

function cellsOf(acks: LatencySummary, each: LatencySummary, last: LatencySummary): Cell[] {
  return [acks.p50Ms, each.p50Ms, each.p99Ms, last.p50Ms, last.p99Ms, last.maxMs]
}

/** Clients of streams that only note when something comes. */
class Readers {
  readonly #address: Address
  readonly #sockets: Socket[] = []
  #opened = 0
  /** When each that has the record of now had it. */
  #receivedMs: number[] = []
  #failure: Error | null = null
  #onAll: () => void = () => undefined

  constructor(address: Address) {
    this.#address = address
  }

  /** Opens so many streams at the end of the topic. */
  async open(count: number): Promise<void> {
    while (this.#sockets.length < count) {
      for (let i = 0; i < OPENED_AT_ONCE && this.#sockets.length < count; i++) this.#openOne()
      await this.#until(() => this.#opened === this.#sockets.length, 'the streams to open')
    }
  }

  #openOne(): void {
    const socket = connect({ ...this.#address, noDelay: true })
    this.#sockets.push(socket)
    socket.write(`GET /topics/${topic}/stream?partition=0 HTTP/1.1\r\nHost: localhost\r\n\r\n`)
    let isOpen = false
    socket.on('data', (bytes: Buffer) => {
      if (!isOpen && bytes.includes('retry: ')) {
        isOpen = true
        this.#opened++
      }
      // A comment now and then is no record.
      if (bytes.includes('data: ')) this.#receivedMs.push(performance.now())
      if (this.#receivedMs.length === this.#sockets.length) this.#onAll()
    })
    socket.on('error', error => (this.#failure ??= error))
    socket.on('close', () => (this.#failure ??= new Error('a stream ended')))
  }

  /** Produces one record and waits until all have it. */
  async measureOne(http: HttpJson, value: string): Promise<Reached> {
    this.#receivedMs = []
    const all = new Promise<void>(resolve => (this.#onAll = resolve))
    const sentMs = performance.now()
    await http.ask('POST', `/topics/${topic}/produce`, { records: [{ value, partition: 0 }] })
    const ackedMs = performance.now()
    const timeout = sleep(REACH_TIMEOUT_MS, undefined, { ref: false })
    await Promise.race([all, timeout])
    const received = this.#receivedMs
    if (this.#failure !== null) throw this.#failure
    if (received.length !== this.#sockets.length) {
      throw new Error(`${received.length} of ${this.#sockets.length} streams had the record in ${REACH_TIMEOUT_MS} ms`)
    }
    return { ackMs: ackedMs - sentMs, afterAckMs: received.map(ms => Math.max(0, ms - ackedMs)) }
  }

  async #until(condition: () => boolean, what: string): Promise<void> {
    const endMs = performance.now() + REACH_TIMEOUT_MS
    while (!condition()) {
      if (this.#failure !== null) throw this.#failure
      if (performance.now() > endMs) throw new Error(`waited in vain for ${what}`)
      await sleep(1)
    }
  }

  close(): void {
    for (const socket of this.#sockets) {
      socket.removeAllListeners('close')
      socket.destroy()
    }
  }
}
