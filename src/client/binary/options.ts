/**
 * Options of the client library: shapes, defaults, ranges. Pure, any thread. docs/client.md lists them; a test compares.
 */
import { frameLengthMax, limits } from '../../model/limits.ts'
import type { ClientTls } from '../tls.ts'
import { invalidError, invalidField } from './client-error.ts'
import type { Backoff } from './pauses.ts'

/** Where the broker is, and how to speak with it. */
export interface ClientOptions {
  /** Of the broker's ES01 listener. */
  readonly host: string
  readonly port: number
  /** Secret of an API key. */
  readonly token?: string
  /** Asks for payloads in gzip; used only if the broker accepts it. */
  readonly gzip?: boolean
  /** Left out: plain TCP. */
  readonly tls?: ClientTls
  /** For one connection: TCP, TLS and the handshake together. */
  readonly connectTimeoutMs?: number
  /** For each request from sending it to its answer; of a BinaryClient, with sending it again over new connections. */
  readonly requestTimeoutMs?: number
  /** Bytes of one request: what the broker's largest record and the fields around it need. */
  readonly requestBytesMax?: number
  /** Waits between attempts: the longest doubles from the first to the last, each is drawn below it. */
  readonly reconnect?: { readonly initialMs?: number; readonly maxMs?: number }
}

/** Of a PipelinedClient. */
export interface PipelinedOptions extends ClientOptions {
  /** How long a record waits for others to share its request. */
  readonly lingerMs?: number
  /** Bytes and records of one request. */
  readonly batchBytes?: number
  readonly batchRecords?: number
  /** Bytes that may wait for their answer; beyond it `send` rejects. */
  readonly bufferBytes?: number
  /** Retries never write a record twice. */
  readonly idempotent?: boolean
  /** From `send` to the end of all retries. */
  readonly deliveryTimeoutMs?: number
  /** How old the partition count and the hash of a topic may be that records go by; of an idempotent client. */
  readonly metadataMaxAgeMs?: number
}

/** Of a Consumer's reads. */
export interface ReadOptions extends ClientOptions {
  /** Bytes and records of one read; of a partition, one read is handled and one waits. */
  readonly maxBytes?: number
  readonly maxRecords?: number
  /** How old the partition count of a topic may be that is read whole; the members of a group hear of it by their heartbeats. */
  readonly metadataMaxAgeMs?: number
}

/** Of a Consumer that is a member of a group. */
export interface GroupReadOptions extends ReadOptions {
  /** Between two commits of what the loop has finished; 0: only `commit()` commits. */
  readonly commitIntervalMs?: number
  readonly heartbeatIntervalMs?: number
}

interface Range {
  readonly value: number
  readonly min: number
  readonly max: number
}

const DAY_MS = 24 * 60 * 60 * 1000
const MIB = 1024 * 1024

/** Each number that may be set: what holds without it, the least and the most. */
export const ranges = {
  connectTimeoutMs: { value: 5_000, min: 1, max: DAY_MS },
  requestTimeoutMs: { value: 30_000, min: 1, max: DAY_MS },
  'reconnect.initialMs': { value: 100, min: 1, max: DAY_MS },
  'reconnect.maxMs': { value: 5_000, min: 1, max: DAY_MS },
  lingerMs: { value: 5, min: 0, max: DAY_MS },
  // A frame of the least is taken by every broker, and one above the most by none.
  requestBytesMax: {
    value: limits.frameBytesMin,
    min: limits.frameBytesMin,
    max: frameLengthMax(limits.recordBytesMax)
  },
  // The largest batch, and what stands around its records, is below what every broker takes.
  batchBytes: { value: MIB, min: 1, max: 8 * MIB },
  batchRecords: { value: 10_000, min: 1, max: limits.requestRecordsMax },
  bufferBytes: { value: 64 * MIB, min: 1, max: 2 ** 40 },
  deliveryTimeoutMs: { value: 120_000, min: 1, max: 7 * DAY_MS },
  // As Kafka's clients have it: metadata.max.age.ms.
  metadataMaxAgeMs: { value: 300_000, min: 1, max: DAY_MS },
  maxBytes: { value: MIB, min: 1, max: 32 * MIB },
  maxRecords: { value: 1_000, min: 1, max: 100_000 },
  commitIntervalMs: { value: 5_000, min: 0, max: DAY_MS },
  heartbeatIntervalMs: { value: 3_000, min: 1, max: DAY_MS }
} as const satisfies Record<string, Range>

/** Each switch: what holds without it. */
export const switches = { gzip: false, idempotent: true } as const

/** What is neither a number nor a switch: what docs/client.md calls it when it is left out, nothing where it may not be. */
export const others = { host: '', port: '', token: 'none', tls: 'none' } as const

function numberOf(name: keyof typeof ranges, given: number | undefined): number {
  const { value, min, max } = ranges[name]
  if (given === undefined) return value
  if (Number.isInteger(given) && given >= min && given <= max) return given
  throw invalidField(name, given, `allowed are whole numbers from ${min} to ${max}`)
}

/** Options of a connection with nothing left out. */
export interface Connecting {
  readonly host: string
  readonly port: number
  readonly token: string
  readonly gzip: boolean
  readonly tls: ClientTls | null
  readonly connectTimeoutMs: number
  readonly requestTimeoutMs: number
  readonly requestBytesMax: number
  readonly reconnect: Backoff
}

function switchOf(name: keyof typeof switches, given: boolean | undefined): boolean {
  if (given === undefined) return switches[name]
  if (typeof given === 'boolean') return given
  throw invalidField(name, given, 'it must be true or false')
}

function objectOf<Options extends object>(name: string, given: Options): Options {
  if (typeof given === 'object' && given !== null) return given
  throw invalidField(name, given, 'it must be an object')
}

function checkedTls(given: ClientTls): ClientTls {
  const { ca, insecure } = objectOf('tls', given)
  if (ca !== undefined && typeof ca !== 'string') throw invalidField('tls.ca', ca, 'it must be a text in PEM')
  if (insecure !== undefined && typeof insecure !== 'boolean') {
    throw invalidField('tls.insecure', insecure, 'it must be true or false')
  }
  return given
}

/** @throws ClientError of kind invalid */
export function connectingOf(options: ClientOptions): Connecting {
  const { host, port, token = '', tls, reconnect = {} } = objectOf('options', options)
  if (typeof host !== 'string' || host === '') throw invalidField('host', host, 'it must be a name or an address')
  if (!Number.isInteger(port) || port < 1 || port > 65_535) throw invalidField('port', port, 'allowed is 1 to 65535')
  if (typeof token !== 'string' || Buffer.byteLength(token) > limits.tokenBytesMax) {
    // A secret is not repeated.
    throw invalidError(`token must be a text of at most ${limits.tokenBytesMax} bytes`)
  }
  const initialMs = numberOf('reconnect.initialMs', objectOf('reconnect', reconnect).initialMs)
  const maxMs = numberOf('reconnect.maxMs', reconnect.maxMs)
  return {
    host,
    port,
    token,
    gzip: switchOf('gzip', options.gzip),
    tls: tls === undefined ? null : checkedTls(tls),
    connectTimeoutMs: numberOf('connectTimeoutMs', options.connectTimeoutMs),
    requestTimeoutMs: numberOf('requestTimeoutMs', options.requestTimeoutMs),
    requestBytesMax: numberOf('requestBytesMax', options.requestBytesMax),
    reconnect: { initialMs, maxMs: Math.max(initialMs, maxMs) }
  }
}

/** How a PipelinedClient makes batches, with nothing left out. */
export interface Batching {
  readonly lingerMs: number
  readonly batchBytes: number
  readonly batchRecords: number
  readonly bufferBytes: number
  readonly idempotent: boolean
  readonly deliveryTimeoutMs: number
  readonly metadataMaxAgeMs: number
}

/** @throws ClientError of kind invalid */
export function batchingOf(options: PipelinedOptions): Batching {
  const lingerMs = numberOf('lingerMs', options.lingerMs)
  const deliveryTimeoutMs = numberOf('deliveryTimeoutMs', options.deliveryTimeoutMs)
  if (lingerMs >= deliveryTimeoutMs) {
    throw invalidField('lingerMs', lingerMs, `it must be below deliveryTimeoutMs, which is ${deliveryTimeoutMs}`)
  }
  return {
    lingerMs,
    batchBytes: numberOf('batchBytes', options.batchBytes),
    batchRecords: numberOf('batchRecords', options.batchRecords),
    bufferBytes: numberOf('bufferBytes', options.bufferBytes),
    idempotent: switchOf('idempotent', options.idempotent),
    deliveryTimeoutMs,
    metadataMaxAgeMs: numberOf('metadataMaxAgeMs', options.metadataMaxAgeMs)
  }
}

/** How a Consumer reads, with nothing left out. */
export interface Reading {
  readonly maxBytes: number
  readonly maxRecords: number
  readonly metadataMaxAgeMs: number
  readonly commitIntervalMs: number
  readonly heartbeatIntervalMs: number
}

/** @throws ClientError of kind invalid */
export function readingOf(options: GroupReadOptions): Reading {
  return {
    maxBytes: numberOf('maxBytes', options.maxBytes),
    maxRecords: numberOf('maxRecords', options.maxRecords),
    metadataMaxAgeMs: numberOf('metadataMaxAgeMs', options.metadataMaxAgeMs),
    commitIntervalMs: numberOf('commitIntervalMs', options.commitIntervalMs),
    heartbeatIntervalMs: numberOf('heartbeatIntervalMs', options.heartbeatIntervalMs)
  }
}
