/**
 * What stands around the bodies of the Kafka protocol: sizes, headers, and the first bytes by which a stranger is known.
 * Pure, any thread.
 *
 *   frame            i32 size of what follows · header · body
 *   request header   i16 api key · i16 api version · i32 correlation id    version 0
 *                    · string client id (i16 length, −1 null)              from version 1
 *                    · tagged fields                                       from version 2
 *   response header  i32 correlation id                                    version 0
 *                    · tagged fields                                       from version 1
 *
 * A flexible version of an API has the last of each, any other request header 1 and response header 0. The response of
 * ApiVersions always has 0: its reader does not know yet what the broker speaks.
 */
import { apiOfKey } from './apis/index.ts'
import { apiVersions } from './apis/api-versions.ts'
import type { AnyApi, Message } from './message.ts'
import { WireReader } from './reader.ts'
import type { FieldTable, WriteOf } from './schema.ts'
import { WireWriter } from './writer.ts'

/** Bytes of the size before a frame, which it does not count. */
export const FRAME_SIZE_BYTES = 4
/** Bytes of a response that are written in one step: a millisecond or two where they are small values (measured). */
const STEP_BYTES = 64 * 1024
/** The least that a request has: a header of version 1 with no client id. */
export const REQUEST_BYTES_MIN = 10

/** @returns what is wrong with the size of a request's frame, or null. @param bytesMax the largest that is taken. */
export function checkFrameSize(size: number, bytesMax: number): string | null {
  if (size < REQUEST_BYTES_MIN) return `the size of the request is ${size}: the least is ${REQUEST_BYTES_MIN}`
  return size > bytesMax ? `the size of the request is ${size}: over the limit of ${bytesMax}` : null
}

export type ForeignProtocol = 'HTTP' | 'TLS' | 'ES01'

/** First four bytes of HTTP requests; PRI begins HTTP/2. As sizes they are beyond any frame. */
const httpStarts: ReadonlySet<string> = new Set([
  'GET ',
  'HEAD',
  'POST',
  'PUT ',
  'DELE',
  'CONN',
  'OPTI',
  'TRAC',
  'PATC',
  'PRI '
])

/** Knows a client that speaks something else by its first four bytes, bytes[start, start + 4). @returns null: it may be Kafka's. */
export function foreignProtocolOf(bytes: Buffer, start: number): ForeignProtocol | null {
  // A handshake record of any version of TLS.
  if (bytes[start] === 0x16 && bytes[start + 1] === 0x03) return 'TLS'
  const text = bytes.toString('latin1', start, start + 4)
  if (text === 'ES01') return 'ES01'
  return httpStarts.has(text) ? 'HTTP' : null
}

export interface RequestHeader {
  readonly apiKey: number
  readonly apiVersion: number
  readonly correlationId: number
  readonly clientId: string | null
  /** Where the body begins. */
  readonly bodyStart: number
}

/** The version of a request's header; 1 for an API that is not known here, whose client id can be read at least. */
export function requestHeaderVersion(apiKey: number, apiVersion: number): 1 | 2 {
  return apiOfKey(apiKey)?.request.isFlexible(apiVersion) === true ? 2 : 1
}

/** The version of a response's header. */
export function responseHeaderVersion(api: AnyApi, apiVersion: number): 0 | 1 {
  return api.key !== apiVersions.key && api.response.isFlexible(apiVersion) ? 1 : 0
}

/** Reads the header of the request bytes[start, end). @returns a text if it is malformed. Neither key nor version is checked. */
export function readRequestHeader(bytes: Buffer, start: number, end: number): RequestHeader | string {
  const reader = new WireReader(bytes, start, end)
  const apiKey = reader.readInt16()
  const apiVersion = reader.readInt16()
  const correlationId = reader.readInt32()
  const clientId = reader.hasFailed ? null : reader.readText(reader.readInt16(), true)
  if (reader.hasFailed) reader.failedIn('client id')
  else if (requestHeaderVersion(apiKey, apiVersion) === 2) {
    reader.skipTaggedFields()
    if (reader.hasFailed) reader.failedIn('(tags)')
  }
  if (reader.hasFailed) return `the header of the request: ${reader.problem()}`
  return { apiKey, apiVersion, correlationId, clientId, bodyStart: reader.at }
}

export interface ResponseHeader {
  readonly correlationId: number
  /** Where the body begins. */
  readonly bodyStart: number
}

/** Reads the header of the response bytes[start, end) to a request of that API and version. @returns a text if it is malformed. */
export function readResponseHeader(
  api: AnyApi,
  apiVersion: number,
  bytes: Buffer,
  start: number,
  end: number
): ResponseHeader | string {
  const reader = new WireReader(bytes, start, end)
  const correlationId = reader.readInt32()
  if (responseHeaderVersion(api, apiVersion) === 1) reader.skipTaggedFields()
  if (!reader.hasFailed) return { correlationId, bodyStart: reader.at }
  reader.failedIn('(correlation id or tags)')
  return `the header of the response: ${reader.problem()}`
}

/** What a request says beside its body. */
export interface RequestFields {
  /** Within the versions of the API. */
  readonly apiVersion: number
  readonly correlationId: number
  readonly clientId: string | null
}

/** @returns the frame of a request, its size included, in pieces: records are borrowed until they are sent. */
export function requestFrame<Request extends FieldTable>(
  api: AnyApi & { readonly request: Message<Request> },
  { apiVersion, correlationId, clientId }: RequestFields,
  body: WriteOf<Request>
): Buffer[] {
  const writer = new WireWriter()
  writer.writeInt32(0)
  writer.writeInt16(api.key)
  writer.writeInt16(apiVersion)
  writer.writeInt32(correlationId)
  writer.writeText(clientId, false)
  if (requestHeaderVersion(api.key, apiVersion) === 2) writer.writeUvarint(0)
  api.request.write(writer, apiVersion, body)
  return sized(writer)
}

/** A response as it leaves. */
export interface ResponseFrame {
  /** Its size included; records are borrowed until they are sent. */
  readonly pieces: readonly Buffer[]
  /** All that are said within, at any depth. */
  readonly errorCodes: readonly number[]
}

type Answerable<Response extends FieldTable> = AnyApi & { readonly response: Message<Response> }

/** @returns the frame of a response. */
export function responseFrame<Response extends FieldTable>(
  api: Answerable<Response>,
  apiVersion: number,
  correlationId: number,
  body: WriteOf<Response>
): ResponseFrame {
  const writer = beginResponse(api, apiVersion, correlationId)
  api.response.write(writer, apiVersion, body)
  return { pieces: sized(writer), errorCodes: writer.errorCodes }
}

/**
 * Makes the same frame in steps: one ends behind the element of a list of the response with which it has STEP_BYTES, and says
 * how many bytes it wrote.
 */
export function* responseSteps<Response extends FieldTable>(
  api: Answerable<Response>,
  apiVersion: number,
  correlationId: number,
  body: WriteOf<Response>
): Generator<number, ResponseFrame> {
  const writer = beginResponse(api, apiVersion, correlationId)
  let begun = 0
  for (const _ of api.response.steps(writer, apiVersion, body)) {
    const written = writer.length - begun
    if (written < STEP_BYTES) continue
    // What is a piece is not copied when there is more.
    writer.cut()
    begun = writer.length
    yield written
  }
  return { pieces: sized(writer), errorCodes: writer.errorCodes }
}

function beginResponse(api: AnyApi, apiVersion: number, correlationId: number): WireWriter {
  const writer = new WireWriter()
  writer.writeInt32(0)
  writer.writeInt32(correlationId)
  if (responseHeaderVersion(api, apiVersion) === 1) writer.writeUvarint(0)
  return writer
}

/** Writes the size of the frame over its first four bytes. */
function sized(writer: WireWriter): Buffer[] {
  const size = writer.length - FRAME_SIZE_BYTES
  const pieces = writer.finish()
  pieces[0]?.writeInt32BE(size)
  return pieces
}
