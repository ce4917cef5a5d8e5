/**
 * Every error a caller can see: number, Kafka code, HTTP status, what to do, and what became of the data.
 * Numbers are forever; a gap is a retired number. 1xx request and catalog, 2xx log and shard, 3xx access and quota,
 * 4xx groups, 5xx schemas, 6xx protocol, 9xx internal. Across threads and sockets go the number and the details, never an Error.
 */

import { spec, type ErrorSpec, type Written } from './error-spec.ts'
import { groupErrors } from './group-errors.ts'
import { limits } from './limits.ts'

export type { ErrorSpec, Retry, Written } from './error-spec.ts'

export const errorTable = {
  TOPIC_NOT_FOUND: spec(101, 404, 'not found', "no topic named '{topic}'", { kafka: 3, retry: 'refresh' }),
  TOPIC_EXISTS: spec(102, 409, 'bad request', "topic '{topic}' already exists", { kafka: 36 }),
  NAME_INVALID: spec(103, 400, 'bad request', "{field} '{value}' is not a valid name: {rule}", { kafka: 17 }),
  FIELD_INVALID: spec(104, 400, 'bad request', '{field}: {problem}', { kafka: 42 }),
  FIELD_RANGE: spec(105, 400, 'bad request', '{field} is {value}: allowed is {min} to {max}', { kafka: 42 }),
  // Clients that choose partitions must know by which hash. ES01 has no answer that says so but these words, which the
  // client library asks for (client/binary/refusals.ts): so they name it to everybody.
  PARTITION_RANGE: spec(
    106,
    400,
    'bad request',
    "partition {partition} is out of range: topic '{topic}' has {count} partition(s), numbered from 0, with keys by {partitioner}",
    { kafka: 3 }
  ),
  RECORD_TOO_LARGE: spec(
    107,
    400,
    'bad request',
    'record {index} has {size} bytes of {parts}: over the limit of {limit} ({setting}); nothing was written',
    { kafka: 10 }
  ),
  RECORDS_TOO_MANY: spec(
    108,
    400,
    'bad request',
    'the request has {count} records: over the limit of {limit}; nothing was written',
    { kafka: 10 }
  ),
  BODY_TOO_LARGE: spec(109, 413, 'bad request', 'the request body is over the limit of {limit} bytes ({setting})', {
    kafka: 10
  }),
  BODY_NOT_JSON: spec(110, 400, 'bad request', 'the request body is not valid JSON: {problem}', { kafka: 42 }),
  MEDIA_TYPE: spec(111, 415, 'bad request', "content type '{value}' is not supported here: send {accepted}", {
    kafka: 42
  }),
  ROUTE_NOT_FOUND: spec(112, 404, 'not found', 'no route {method} {path}: GET /openapi.json lists them', { kafka: 42 }),
  METHOD_NOT_ALLOWED: spec(113, 405, 'bad request', '{method} is not allowed on {path}: allowed is {allow}', {
    kafka: 42
  }),
  PRODUCER_NOT_FOUND: spec(115, 404, 'not found', "no producer id '{producer}'", { kafka: 49 }),
  SEQUENCE_INVALID: spec(116, 400, 'bad request', 'records[{index}].sequence {problem}; nothing was written', {
    kafka: 87
  }),
  BODY_NOT_MSGPACK: spec(117, 400, 'bad request', 'the request body is not valid MessagePack: {problem}', {
    kafka: 42
  }),

  BATCH_CORRUPT: spec(118, 400, 'bad request', 'the record batch is corrupt: {problem}; nothing was written', {
    kafka: 2
  }),
  BATCH_INVALID: spec(119, 400, 'bad request', 'the record batch is not valid: {problem}; nothing was written', {
    kafka: 87
  }),
  BATCH_TIMESTAMP: spec(120, 400, 'bad request', 'the record batch {problem}; nothing was written', { kafka: 32 }),
  BATCH_CODEC: spec(121, 400, 'bad request', 'the record batch has compression {codec}, which is not known', {
    kafka: 76
  }),
  BATCH_TOO_LARGE: spec(
    122,
    400,
    'bad request',
    'the record batch has {size} bytes: over the limit of {limit} ({setting}); nothing was written',
    { kafka: 10 }
  ),
  RECORD_WITHOUT_KEY: spec(
    123,
    400,
    'bad request',
    "record {index} of the batch has no key, and topic '{topic}' is compacted; nothing was written",
    { kafka: 87 }
  ),
  // POLICY_VIOLATION, as Kafka's own brokers call it where a request would make more than there may be.
  TOPICS_TOO_MANY: spec(
    124,
    400,
    'bad request',
    "topic '{topic}' would be one more than the {limit} that there may be; delete some that are not used",
    { kafka: 44 }
  ),

  DISK_FULL: spec(
    201,
    507,
    'unavailable',
    'the disk of the data directory is full; produce works again when there is room',
    { kafka: 56, retry: 'same' }
  ),
  WRITE_FAILED: spec(
    202,
    500,
    'internal error',
    'the log of shard {shard} failed while the records were written; the shard restarts by its recovery rules',
    { kafka: 56, retry: 'same', written: 'unknown' }
  ),
  SHARD_DOWN: spec(203, 503, 'unavailable', 'shard {shard} is not running; it is being restarted', {
    kafka: 5,
    retry: 'same'
  }),
  SHARD_DIED: spec(204, 503, 'unavailable', 'shard {shard} stopped while the request was in progress', {
    kafka: 7,
    retry: 'same',
    written: 'unknown'
  }),
  // Of ES01, which has no place for what HTTP says in `skipped`. Gone is what those offsets are: 410.
  DATA_DAMAGED: spec(
    205,
    410,
    'unavailable',
    'offsets {first} to {last} of partition {partition} are damaged on disk and are not served; the next readable offset is {next}',
    { kafka: 2 }
  ),
  OVERLOADED: spec(206, 503, 'unavailable', '{what} is at its limit of {limit}; try again shortly', {
    kafka: 7,
    retry: 'same'
  }),
  NOT_READY: spec(207, 503, 'unavailable', 'the broker is not ready: {problem}', { kafka: 5, retry: 'same' }),
  STOPPING: spec(208, 503, 'unavailable', 'the broker is shutting down', { kafka: 5, retry: 'same' }),
  READ_FAILED: spec(209, 503, 'unavailable', 'the disk refused a read of partition {partition} ({errno}); try again', {
    kafka: 56,
    retry: 'same'
  }),
  SEQUENCE_GAP: spec(
    210,
    400,
    'bad request',
    "sequence gap of producer id '{producer}' in partition {partition}: expected {expected}, got {got}; nothing was written",
    { kafka: 45 }
  ),
  SEQUENCE_TOO_LOW: spec(
    211,
    400,
    'bad request',
    "sequence too low of producer id '{producer}' in partition {partition}: expected {expected}, got {got}, which is not among the last {window} accepted; nothing was written",
    { kafka: 46 }
  ),
  COLD_UNAVAILABLE: spec(
    212,
    503,
    'unavailable',
    'those offsets of partition {partition} are in cold storage and could not be fetched: {problem}; try again',
    { kafka: 56, retry: 'same' }
  ),
  COMPACTION_INCOMPLETE: spec(
    213,
    503,
    'unavailable',
    'compaction left out {left}; all else was gone over, and each pass tries it again',
    { retry: 'same' }
  ),

  // Of batches of Kafka's protocol. A client that cannot go on by itself takes a new producer id, or a new epoch.
  BATCH_OUT_OF_ORDER: spec(
    214,
    400,
    'bad request',
    'sequence out of order of producer {producer} in partition {partition}: expected {expected}, got {got}; nothing was written',
    { kafka: 45 }
  ),
  BATCH_TOO_OLD: spec(
    215,
    400,
    'bad request',
    'sequence {got} of producer {producer} in partition {partition} was accepted before its last {window} batches, so it is not known any more where it is; expected {expected}',
    { kafka: 45, written: 'yes' }
  ),
  EPOCH_STALE: spec(
    216,
    400,
    'bad request',
    'epoch {epoch} of producer {producer} is over: partition {partition} has records of its epoch {known}; nothing was written',
    { kafka: 47 }
  ),
  PRODUCER_UNKNOWN: spec(
    217,
    400,
    'bad request',
    'producer {producer} is not known here, or is not any more: take a new id; nothing was written',
    { kafka: 59 }
  ),

  HOST_REFUSED: spec(
    301,
    403,
    'forbidden',
    "host '{host}' is not served without authentication: use a loopback name or --allowed-host",
    { kafka: 31 }
  ),
  PRODUCER_OWNED: spec(302, 403, 'forbidden', "producer id '{producer}' belongs to another key", { kafka: 31 }),
  PRODUCERS_TOO_MANY: spec(
    303,
    400,
    'bad request',
    "producer id '{producer}' would be one more than the {limit} that {whose}; forget some, or wait until idle ones are",
    { kafka: 44 }
  ),
  UNAUTHENTICATED: spec(304, 401, 'forbidden', 'no valid key: {problem}', { kafka: 58 }),
  // A client tells by the whole text that its connection is about to be closed (spec 12).
  KEY_REVOKED: spec(305, 401, 'forbidden', 'key revoked', { kafka: 58, es01Text: 'key revoked' }),
  FORBIDDEN: spec(306, 403, 'forbidden', "this key may not {operation}: that takes {need} on '{on}'", { kafka: 29 }),
  RATE_LIMITED: spec(307, 429, 'rate limited', 'rate limited: {problem}; retry in {seconds}s', {
    kafka: 89,
    retry: 'same',
    es01Text: 'rate limited: retry in {seconds}s'
  }),
  KEY_NOT_FOUND: spec(308, 404, 'not found', "no key '{key}'", { kafka: 42 }),
  KEYS_TOO_MANY: spec(
    309,
    400,
    'bad request',
    'there are {limit} keys that work, as many as there may be: revoke one that is not used any more',
    { kafka: 44 }
  ),
  BODY_TIMEOUT: spec(
    316,
    408,
    'bad request',
    'the request body came too slowly: {received} bytes in {seconds} s, at least {limit} bytes a second are asked for; nothing was written',
    { kafka: 7, retry: 'same' }
  ),

  ...groupErrors,

  SCHEMA_NOT_FOUND: spec(501, 404, 'not found', 'no schema {schema}, or none that this key may read'),
  SUBJECT_NOT_FOUND: spec(502, 404, 'not found', "no subject '{subject}', or none that this key may read"),
  VERSION_NOT_FOUND: spec(503, 404, 'not found', "subject '{subject}' has no version {version}"),
  SCHEMA_INVALID: spec(504, 400, 'bad request', 'schema is not a valid {type} schema: {problem}; nothing was written'),
  SCHEMA_TOO_LARGE: spec(
    505,
    400,
    'bad request',
    'schema has {size} bytes: allowed is 1 to {limit}; nothing was written'
  ),
  // The seed fixes how the words begin.
  SCHEMA_INCOMPATIBLE: spec(506, 400, 'bad request', '{mode}-incompatible: {problem}'),
  SCHEMAS_TOO_MANY: spec(
    507,
    400,
    'bad request',
    "subject '{subject}' would be over the limit of {limit} {what} of all subjects; nothing was written"
  ),
  SCHEMA_TIMEOUT: spec(
    508,
    400,
    'bad request',
    'the schema took more than {milliseconds} ms to {step}: make it simpler; nothing was written'
  ),
  // Of the Confluent-compatible API, which tells it apart from a subject that is not there.
  LEVEL_NOT_FOUND: spec(509, 404, 'not found', "subject '{subject}' has no compatibility level of its own"),
  // Of a produce to a topic with validate_schema.
  SCHEMA_MISMATCH: spec(
    510,
    400,
    'bad request',
    "record {index} does not match schema {id} (version {version} of '{subject}'): {problem}; nothing was written",
    { kafka: 87 }
  ),
  SCHEMA_MISSING: spec(
    511,
    400,
    'bad request',
    "topic '{topic}' takes only records that match the latest schema of subject '{subject}', which has none: register one; nothing was written",
    { kafka: 87 }
  ),
  VALIDATION_LIMIT: spec(
    512,
    400,
    'bad request',
    "matching the records with schema {id} (version {version} of '{subject}') took more than {limit} {unit}; nothing was written",
    { kafka: 87 }
  ),

  // Of batches of Kafka's protocol: they are not taken apart before they are written.
  BATCH_NOT_VALIDATED: spec(
    513,
    400,
    'bad request',
    "topic '{topic}' takes only records that match a schema, and those of Kafka's protocol are not matched: produce over HTTP or ES01; nothing was written",
    { kafka: 87 }
  ),

  FRAME_INVALID: spec(601, 400, 'decode', '{problem}', { kafka: 42 }),
  // Of ES01 connections that agreed on gzip.
  GZIP_INVALID: spec(602, 400, 'decode', 'the payload is not valid gzip: {problem}', { kafka: 42 }),
  INFLATED_TOO_LARGE: spec(
    603,
    400,
    'decode',
    'the payload inflates to more than the limit of {limit} bytes (--max-record-bytes and 1 MiB, at least 16 MiB)',
    { kafka: 10 }
  ),

  INTERNAL: spec(901, 500, 'internal error', 'internal error (id {id})', { written: 'unknown' })
} as const satisfies Record<string, ErrorSpec>

export type ErrorCode = keyof typeof errorTable
export type ErrorDetails = Readonly<Record<string, string | number>>

const codeByWire = new Map<number, ErrorCode>(
  (Object.keys(errorTable) as ErrorCode[]).map(code => [errorTable[code].wire, code])
)

/** The code of a number read from a ring; unknown numbers are INTERNAL. */
export function errorCodeOf(wire: number): ErrorCode {
  return codeByWire.get(wire) ?? 'INTERNAL'
}

/** Callers choose names: what they send is not sent back at any length. */
function shown(detail: string): string {
  const { errorDetailCharactersMax: most } = limits
  return detail.length <= most ? detail : `${detail.slice(0, most)}…`
}

/** The text of an error with its {placeholders} filled. A missing detail shows as `?`, a long one is cut. */
export function errorText(code: ErrorCode, details: ErrorDetails): string {
  return filled(errorTable[code].text, details)
}

/** A text of the table with its {placeholders} filled. */
export function filled(text: string, details: ErrorDetails): string {
  return text.replace(/\{(\w+)\}/g, (_, name: string) => shown(String(details[name] ?? '?')))
}

/**
 * An error that a user or a disk caused. One class, told apart by `code`; no subclasses.
 * `written` overrides the table where the place of the failure is known better. `cause` is for the log only.
 */
export class BrokerError extends Error {
  override readonly name = 'BrokerError'
  readonly code: ErrorCode
  readonly details: ErrorDetails
  readonly written: Written

  constructor(code: ErrorCode, details: ErrorDetails = {}, options: { written?: Written; cause?: unknown } = {}) {
    super(errorText(code, details), options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.details = details
    this.written = options.written ?? errorTable[code].written
  }

  get spec(): ErrorSpec {
    return errorTable[this.code]
  }
}

/** What was thrown, as an error: itself, or INTERNAL of which it is the cause. */
export function toBrokerError(error: unknown): BrokerError {
  return error instanceof BrokerError ? error : new BrokerError('INTERNAL', {}, { cause: error })
}
