/**
 * What the ES01 gateway counted since it started: plain numbers, read at scrape time. Main thread only.
 */

import type { Histogram } from '../../base/histogram.ts'
import type { ErrorCode } from '../../model/errors.ts'
import { latencyHistogram } from '../shared/latency-meter.ts'
import { noneOf } from '../shared/none-of.ts'

/** Why a connection was closed, or not taken, by the broker. */
const closeReasons = [
  'connectionsPerIp',
  'connectionsTotal',
  'handshakeTimeout',
  'handshakeFailed',
  'helloTimeout',
  'badMagic',
  'tokenTooLong',
  'authFailed',
  'authRequired',
  'keyRevoked',
  'frameLength',
  'unknownOpcode',
  'bodyTimeout',
  'idleTimeout',
  'slowReader',
  'memory',
  'bug'
] as const
export type CloseReason = (typeof closeReasons)[number]

/** Bytes of payloads on connections that agreed on gzip: what was inflated, and to what; what was compressed, and to what. */
export interface GzipCounts {
  inCompressedBytes: number
  inPlainBytes: number
  outPlainBytes: number
  outCompressedBytes: number
}

/** Counters; `refused` by reason counts connections, `errorFrames` requests by the code of the error. */
export interface Es01Probe {
  accepted: number
  requests: number
  readonly errorFrames: Map<ErrorCode, number>
  socketErrors: number
  acceptErrors: number
  receivedBytes: number
  readonly gzip: GzipCounts
  /** Times a connection's reading stopped because something of the broker's was full. */
  pauses: number
  readonly refused: Record<CloseReason, number>
  /** From the time a frame was taken until its answer goes out. */
  readonly produceSeconds: Histogram
  readonly consumeSeconds: Histogram
}

/** @returns a probe of zeros. */
export function createProbe(): Es01Probe {
  return {
    accepted: 0,
    requests: 0,
    errorFrames: new Map(),
    socketErrors: 0,
    acceptErrors: 0,
    receivedBytes: 0,
    gzip: { inCompressedBytes: 0, inPlainBytes: 0, outPlainBytes: 0, outCompressedBytes: 0 },
    pauses: 0,
    refused: noneOf(closeReasons),
    produceSeconds: latencyHistogram(),
    consumeSeconds: latencyHistogram()
  }
}

/** Counts one more error frame. */
export function countError({ errorFrames }: Es01Probe, code: ErrorCode): void {
  errorFrames.set(code, (errorFrames.get(code) ?? 0) + 1)
}
