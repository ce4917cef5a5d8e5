/**
 * From the broker's answers to frames in a connection's outbox. Main thread only.
 * One small object per request hears its answer; it lives until then, also when its connection is gone, because the
 * reply bytes that were reserved for the request are given back by it.
 *
 * Where payloads are gzip, an answer is gathered in one piece, compressed, and joins the outbox as a whole frame: small
 * ones at once, large ones when the thread pool is done with them, so they may be overtaken. A request counts as in
 * progress until then.
 */
import { assert } from '../../base/assert.ts'
import { copyBytes } from '../../base/copy.ts'
import type { ErrorCode } from '../../model/errors.ts'
import { BrokerError, errorText, filled } from '../../model/errors.ts'
import type { Principal } from '../../model/principal.ts'
import { limits } from '../../model/limits.ts'
import type { ProduceCaller, ReadCaller } from '../../model/requests.ts'
import { RESULT_BYTES } from '../../model/requests.ts'
import { writeU32 } from '../../wire/es01/bytes.ts'
import { FRAME_HEADER_BYTES, opcodes, writeFrameHeader, type FrameHead } from '../../wire/es01/frame.ts'
import { PRODUCED_HEADER_BYTES } from '../../wire/es01/produce-frame.ts'
import type { LatencyMeter } from '../shared/latency-meter.ts'
import { isInternal } from '../shared/internal-failures.ts'
import type { BufferPool } from '../shared/buffer-pool.ts'
import { deflate, deflateNow, gzippedBytesMax } from './gzip.ts'
import { Pieces } from '../shared/outbox.ts'
import type { Outbox } from '../shared/outbox.ts'
import type { GzipCounts } from './probe.ts'
import type { ReplyShare } from '../shared/reply-share.ts'

/** What any request reserves at least: it may be answered by an error. */
export const ERROR_FRAME_BYTES_MAX = FRAME_HEADER_BYTES + limits.errorTextBytesMax

/** What an answer needs of its connection. */
export interface AnswerSink {
  readonly outbox: Outbox
  readonly replies: ReplyShare
  readonly pool: BufferPool
  /** Who asks. */
  readonly who: Principal
  /** Where it is counted what is compressed; null: payloads are not gzip. */
  readonly gzip: GzipCounts | null
  /** Puts into the log what an internal error must not tell. @returns the id that it stands there under. */
  noteFailure(error: BrokerError): string
  /**
   * One more answer is in the outbox, of a request that was never in progress: a ping, or a refusal of ours.
   * @param code of the error that it tells of; null: of none.
   */
  answered(code: ErrorCode | null): void
  /** One more answer is in the outbox, of a request in progress. */
  completed(code: ErrorCode | null): void
  /** A produce that was held is dispatched: others may follow it. */
  dispatched(): void
}

/** Header bytes on their way into an outbox; used and copied within one call. */
const header = Buffer.alloc(32)
const NO_BYTES: Buffer = Buffer.alloc(0)

/** @returns the message of an error frame. */
function messageOf(sink: AnswerSink, error: BrokerError): string {
  const text = isInternal(error) ? errorText('INTERNAL', { id: sink.noteFailure(error) }) : worded(error)
  // A frame has no field for it, and nothing written is what an error says by default; of a bug nothing is known.
  return error.written === 'no' || error.code === 'INTERNAL' ? text : `${text} (written: ${error.written})`
}

/** @returns what an error frame says of an error that is not internal. */
export function worded({ message, details, spec: { es01, es01Text } }: BrokerError): string {
  if (es01Text !== undefined) return filled(es01Text, details)
  return message.startsWith(es01) ? message : `${es01}: ${message}`
}

function addErrorFrame(sink: AnswerSink, requestId: number, error: BrokerError): void {
  const text = Buffer.from(messageOf(sink, error), 'utf8')
  let bytes = Math.min(text.length, limits.errorTextBytesMax)
  // A cut goes before the first byte of a character, never inside one.
  while (bytes < text.length && ((text[bytes] as number) & 0xc0) === 0x80) bytes--
  addSmallFrame(sink, requestId, opcodes.error, text.subarray(0, bytes))
}

/** Adds a frame with a payload that may be compressed at once. */
function addSmallFrame(sink: AnswerSink, requestId: number, opcode: number, payload: Buffer): void {
  if (sink.gzip !== null) addGzipFrame(sink, { requestId, opcode }, payload.length, deflateNow(payload))
  else addFrame(sink, { requestId, opcode }, payload)
}

/** Adds a whole frame. */
function addFrame({ outbox }: AnswerSink, { requestId, opcode }: FrameHead, payload: Buffer): void {
  outbox.append(header, 0, writeFrameHeader(header, 0, requestId, opcode, payload.length))
  outbox.append(payload, 0, payload.length)
}

function addGzipFrame(sink: AnswerSink, head: FrameHead, plainBytes: number, compressed: Buffer): void {
  assert(sink.gzip !== null, 'only what agreed on gzip gets it')
  sink.gzip.outPlainBytes += plainBytes
  sink.gzip.outCompressedBytes += compressed.length
  addFrame(sink, head, compressed)
}

/** Answers a request at once, with an error frame. Nothing was reserved for it. */
export function answerError(sink: AnswerSink, requestId: number, error: BrokerError): void {
  addErrorFrame(sink, requestId, error)
  sink.answered(error.code)
}

/** Answers a ping. */
export function answerPing(sink: AnswerSink, requestId: number): void {
  addSmallFrame(sink, requestId, opcodes.pong, NO_BYTES)
  sink.answered(null)
}

/** A produce in progress. Owns its reservation of reply bytes. */
export class ProduceCall implements ProduceCaller {
  readonly #sink: AnswerSink
  readonly #requestId: number
  readonly #reservedBytes: number
  readonly #meter: LatencyMeter
  readonly #startMs: number

  constructor(sink: AnswerSink, requestId: number, reservedBytes: number, meter: LatencyMeter) {
    this.#meter = meter
    this.#startMs = meter.begin()
    this.#sink = sink
    this.#requestId = requestId
    this.#reservedBytes = reservedBytes
  }

  onProduced(bytes: Buffer, start: number, count: number): void {
    const { outbox, gzip } = this.#sink
    const resultBytes = count * RESULT_BYTES
    const payloadBytes = PRODUCED_HEADER_BYTES + resultBytes
    if (gzip !== null) {
      const payload = Buffer.allocUnsafe(payloadBytes)
      bytes.copy(payload, writeU32(payload, 0, count), start, start + resultBytes)
      return this.#finishGzip(payload)
    }
    const at = writeFrameHeader(header, 0, this.#requestId, opcodes.produced, payloadBytes)
    outbox.append(header, 0, writeU32(header, at, count))
    outbox.append(bytes, start, start + resultBytes)
    this.#finish(null)
  }

  onProduceFailed(error: BrokerError): void {
    addErrorFrame(this.#sink, this.#requestId, error)
    this.#finish(error.code)
  }

  onDispatched(): void {
    this.#sink.dispatched()
  }

  #finishGzip(payload: Buffer): void {
    deflate(payload, compressed => {
      if (compressed instanceof BrokerError) return this.onProduceFailed(compressed)
      const head = { requestId: this.#requestId, opcode: opcodes.produced }
      addGzipFrame(this.#sink, head, payload.length, compressed)
      this.#finish(null)
    })
  }

  #finish(code: ErrorCode | null): void {
    this.#meter.end(this.#startMs)
    this.#sink.outbox.finishAnswer(this.#reservedBytes)
    this.#sink.completed(code)
  }
}

/** A read in progress. Owns its reservation, and the pieces of its answer until the last has come. */
export class ReadCall implements ReadCaller {
  readonly #sink: AnswerSink
  readonly #requestId: number
  #reservedBytes: number
  #pieces: Pieces | null = null
  /** Where payloads are gzip, instead of pieces. */
  #whole: Buffer | null = null
  #wholeBytes = 0
  readonly #meter: LatencyMeter
  readonly #startMs: number

  constructor(sink: AnswerSink, requestId: number, reservedBytes: number, meter: LatencyMeter) {
    this.#meter = meter
    this.#startMs = meter.begin()
    this.#sink = sink
    this.#requestId = requestId
    this.#reservedBytes = reservedBytes
  }

  onReadChunk(bytes: Buffer, start: number, end: number, totalBytes: number, isLast: boolean): void {
    const { outbox, who, gzip } = this.#sink
    // Nothing of it has left yet: it leaves as a whole, after its last chunk.
    if (isLast && who.isRevoked) return this.onReadFailed(new BrokerError('KEY_REVOKED'))
    if (this.#pieces === null && this.#whole === null) this.#chargeRest(totalBytes)
    if (gzip !== null) return this.#gather(bytes.subarray(start, end), totalBytes, isLast)
    if (isLast && this.#pieces === null) {
      assert(end - start === totalBytes, 'the only chunk of an answer is the whole of it')
      this.#addHeader(totalBytes)
      outbox.append(bytes, start, end, true)
      return this.#finish(null)
    }
    this.#pieces ??= new Pieces(this.#sink.pool)
    this.#pieces.append(bytes, start, end, true)
    if (!isLast) return
    assert(this.#pieces.bytes === totalBytes, 'the chunks of an answer sum to its total')
    this.#addHeader(totalBytes)
    outbox.adopt(this.#pieces)
    this.#finish(null)
  }

  onReadFailed(error: BrokerError): void {
    this.#pieces?.drop()
    addErrorFrame(this.#sink, this.#requestId, error)
    this.#finish(error.code)
  }

  /** Gathers the answer in one piece, which is what can be compressed. */
  #gather(chunk: Buffer, totalBytes: number, isLast: boolean): void {
    const { who } = this.#sink
    const whole = (this.#whole ??= Buffer.allocUnsafeSlow(totalBytes))
    this.#wholeBytes = copyBytes(chunk, 0, chunk.length, whole, this.#wholeBytes)
    if (!isLast) return
    assert(this.#wholeBytes === totalBytes, 'the chunks of an answer sum to its total')
    deflate(whole, compressed => {
      if (compressed instanceof BrokerError) return this.onReadFailed(compressed)
      if (who.isRevoked) return this.onReadFailed(new BrokerError('KEY_REVOKED'))
      addGzipFrame(this.#sink, { requestId: this.#requestId, opcode: opcodes.consumed }, totalBytes, compressed)
      this.#finish(null)
    })
  }

  /**
   * A single record may exceed what was reserved by max_bytes. Its answer is here already, so it is delivered in any
   * case; if the budget has room, the excess counts, and later requests wait for it.
   */
  #chargeRest(totalBytes: number): void {
    const answerBytes = FRAME_HEADER_BYTES + totalBytes
    const excess = (this.#sink.gzip === null ? answerBytes : gzippedBytesMax(answerBytes)) - this.#reservedBytes
    if (excess > 0 && this.#sink.replies.reserveMore(excess)) this.#reservedBytes += excess
  }

  #addHeader(payloadBytes: number): void {
    const end = writeFrameHeader(header, 0, this.#requestId, opcodes.consumed, payloadBytes)
    this.#sink.outbox.append(header, 0, end)
  }

  #finish(code: ErrorCode | null): void {
    this.#meter.end(this.#startMs)
    this.#sink.outbox.finishAnswer(this.#reservedBytes)
    this.#sink.completed(code)
  }
}
