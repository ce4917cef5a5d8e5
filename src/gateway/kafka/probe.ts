/** What the Kafka listener counted since it started: plain numbers, read at scrape time. Main thread only. */
import type { Histogram } from '../../base/histogram.ts'
import { latencyHistogram } from '../shared/latency-meter.ts'
import type { AheadCounts } from './handlers/ahead-read.ts'
import { noneOf } from '../shared/none-of.ts'
import type { SessionCounts } from './fetch-sessions.ts'

/** Why a connection was closed, or not taken, by the broker. */
const closeReasons = [
  'connectionsPerIp',
  'connectionsTotal',
  'handshakeTimeout',
  'handshakeFailed',
  'authTimeout',
  'authRequired',
  'authFailed',
  'keyRevoked',
  'foreignProtocol',
  'frameSize',
  'malformed',
  'unknownApi',
  'unsupportedVersion',
  'unacknowledgedFailure',
  'bodyTimeout',
  'idleTimeout',
  'slowReader',
  'memory',
  'bug'
] as const
export type CloseReason = (typeof closeReasons)[number]

/** What is counted of one API. */
export interface ApiCounts {
  requests: number
  /** From the time a request was taken until it is answered. */
  readonly seconds: Histogram
}

/** Counters; `refused` by reason counts connections, `errors` error codes within responses. */
export interface KafkaProbe {
  accepted: number
  /** By name of the API. */
  readonly apis: Map<string, ApiCounts>
  /** By name of the code. */
  readonly errors: Map<string, number>
  socketErrors: number
  acceptErrors: number
  receivedBytes: number
  sentBytes: number
  /** Times a connection's reading stopped because something of the broker's was full. */
  pauses: number
  readonly fetchSessions: SessionCounts
  readonly readAhead: AheadCounts
  readonly refused: Record<CloseReason, number>
}

/** @returns a probe of zeros. */
export function createProbe(): KafkaProbe {
  return {
    accepted: 0,
    apis: new Map(),
    errors: new Map(),
    socketErrors: 0,
    acceptErrors: 0,
    receivedBytes: 0,
    sentBytes: 0,
    pauses: 0,
    fetchSessions: { sessions: 0, partitions: 0, evicted: 0 },
    readAhead: { used: 0, dropped: 0 },
    refused: noneOf(closeReasons)
  }
}

/** The counts of an API, made at its first request. */
export function countsOf({ apis }: KafkaProbe, name: string): ApiCounts {
  let counts = apis.get(name)
  if (counts === undefined) {
    counts = { requests: 0, seconds: latencyHistogram() }
    apis.set(name, counts)
  }
  return counts
}
