/**
 * What the HTTP gateway counted since it started: plain numbers, read at scrape time. Main thread only; its engine and its
 * dispatcher write.
 */
import type { Clock } from '../../base/clock.ts'
import type { Histogram } from '../../base/histogram.ts'
import { latencyHistogram } from '../shared/latency-meter.ts'
import type { Lateness } from './engines/answer-pace.ts'

/** The route of a request, as far as it is told. */
export interface RouteName {
  readonly method: string
  readonly pattern: string
}

/** Stands for the status of a request whose connection ended before its answer began. */
export const NO_STATUS = 0

export class HttpProbe {
  readonly clock: Clock
  /** Open now, those in their TLS handshake included. */
  connections = 0
  /** All that were taken. */
  connectionsAccepted = 0
  /** Turned away because there were too many. */
  connectionsRefused = 0
  /** Streams that are open, and events that were sent on all of them. */
  streams = 0
  streamEvents = 0
  /** Streams that were cut because their client did not take its events while reply memory was short. */
  streamsCut = 0
  /** Bodies that came too slowly. */
  bodiesLate = 0
  /** Clients cut off for how they took an answer. */
  readonly readersCut: Record<Lateness, number> = { stalled: 0, slow: 0 }
  /** Reads made smaller because reply memory was short. */
  readsShortened = 0
  /** Requests that the parser refused before there was one. node:http only: uWebSockets.js does not say. */
  malformedRequests = 0
  /** From the head of a request to the last byte of its answer; null: it had no route, or was refused before. */
  readonly latencies = new Map<RouteName | null, Histogram>()
  /** Answers by status. */
  readonly statuses = new Map<number, number>()
  /** Refusals by the code of the error. */
  readonly refusals = new Map<string, number>()

  constructor(clock: Clock) {
    this.clock = clock
  }

  refused(code: string): void {
    this.refusals.set(code, (this.refusals.get(code) ?? 0) + 1)
  }

  /** A request came. */
  begin(): RequestMeter {
    return new RequestMeter(this)
  }
}

/** One request, until its reply is closed. */
export class RequestMeter {
  route: RouteName | null = null
  status = NO_STATUS
  readonly #probe: HttpProbe
  readonly #startMs: number

  constructor(probe: HttpProbe) {
    this.#probe = probe
    this.#startMs = probe.clock.monotonicMs()
  }

  /** The head of an answer without a known end is on its way: that is what is measured of it. */
  endAs(status: number): void {
    this.status = status
    this.end()
  }

  /** The answer is with the system, or the connection is gone. */
  end(): void {
    const { latencies, statuses, clock } = this.#probe
    let latency = latencies.get(this.route)
    if (latency === undefined) {
      latency = latencyHistogram()
      latencies.set(this.route, latency)
    }
    latency.observe((clock.monotonicMs() - this.#startMs) / 1000)
    statuses.set(this.status, (statuses.get(this.status) ?? 0) + 1)
  }
}
