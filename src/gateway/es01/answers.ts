/**
 * From the broker's answers to frames in a connection's outbox. Main thread only.
 * One small object per request hears its answer; it lives until then, also when its connection is gone, because the
 * reply bytes that were reserved for the request are given back by it.
 */
import { assert } from '../../base/assert.ts'
import { BrokerError, errorText, filled } from '../../model/errors.ts'
import type { Principal } from '../../model/principal.ts'
import { limits } from '../../model/limits.ts'
import type { ProduceCaller, ReadCaller } from '../../model/requests.ts'
import { RESULT_BYTES } from '../../model/requests.ts'
import { writeU32 } from '../../wire/es01/bytes.ts'
import { FRAME_HEADER_BYTES, opcodes, writeFrameHeader } from '../../wire/es01/frame.ts'
import { PRODUCED_HEADER_BYTES } from '../../wire/es01/produce-frame.ts'
import type { LatencyMeter } from '../shared/latency-meter.ts'
import { isInternal } from '../shared/internal-failures.ts'
import type { BufferPool } from './buffer-pool.ts'
import { Pieces } from './outbox.ts'
import type { Outbox } from './outbox.ts'
import type { ReplyShare } from './reply-share.ts'

/** What any request reserves at least: it may be answered by an error. */
export const ERROR_FRAME_BYTES_MAX = FRAME_HEADER_BYTES + limits.errorTextBytesMax

/** What an answer needs of its connection. */
export interface AnswerSink {
  readonly outbox: Outbox
  readonly replies: ReplyShare
  readonly pool: BufferPool
  /** Who asks. */
  readonly who: Principal
  /** Puts into the log what an internal error must not tell. @returns the id that it stands there under. */
  noteFailure(error: BrokerError): string
  /** One more answer is in the outbox, of a request that was never in progress: a ping, or a refusal of ours. */
  answered(isError: boolean): void
  /** One more answer is in the outbox, of a request in progress. */
  completed(isError: boolean): void
  /** A produce that was held is dispatched: others may follow it. */
  dispatched(): void
}

/** Header bytes on their way into an outbox; used and copied within one call. */
const header = Buffer.alloc(32)

/** @returns the message of an error frame. */
function messageOf(sink: AnswerSink, error: BrokerError): string {
  const text = isInternal(error) ? errorText('INTERNAL', { id: sink.noteFailure(error) }) : worded(error)
  // A frame has no field for it, and nothing written is what an error says by default; of a bug nothing is known.
  return error.written === 'no' || error.code === 'INTERNAL' ? text : `${text} (written: ${error.written})`
}

function worded({ message, details, spec: { es01, es01Text } }: BrokerError): string {
  if (es01Text !== undefined) return filled(es01Text, details)
  return message.startsWith(es01) ? message : `${es01}: ${message}`
}

function addErrorFrame(sink: AnswerSink, requestId: number, error: BrokerError): void {
  const { outbox } = sink
  const text = Buffer.from(messageOf(sink, error), 'utf8')
  let bytes = Math.min(text.length, limits.errorTextBytesMax)
  // A cut goes before the first byte of a character, never inside one.
  while (bytes < text.length && ((text[bytes] as number) & 0xc0) === 0x80) bytes--
  outbox.append(header, 0, writeFrameHeader(header, 0, requestId, opcodes.error, bytes))
  outbox.append(text, 0, bytes)
}

/** Answers a request at once, with an error frame. Nothing was reserved for it. */
export function answerError(sink: AnswerSink, requestId: number, error: BrokerError): void {
  addErrorFrame(sink, requestId, error)
  sink.answered(true)
}

/** Answers a ping. */
export function answerPing(sink: AnswerSink, requestId: number): void {
  sink.outbox.append(header, 0, writeFrameHeader(header, 0, requestId, opcodes.pong, 0))
  sink.answered(false)
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
    const { outbox } = this.#sink
    const resultBytes = count * RESULT_BYTES
    const payloadBytes = PRODUCED_HEADER_BYTES + resultBytes
    const at = writeFrameHeader(header, 0, this.#requestId, opcodes.produced, payloadBytes)
    outbox.append(header, 0, writeU32(header, at, count))
    outbox.append(bytes, start, start + resultBytes)
    this.#finish(false)
  }

  onProduceFailed(error: BrokerError): void {
    addErrorFrame(this.#sink, this.#requestId, error)
    this.#finish(true)
  }

  onDispatched(): void {
    this.#sink.dispatched()
  }

  #finish(isError: boolean): void {
    this.#meter.end(this.#startMs)
    this.#sink.outbox.finishAnswer(this.#reservedBytes)
    this.#sink.completed(isError)
  }
}

/** A read in progress. Owns its reservation, and the pieces of its answer until the last has come. */
export class ReadCall implements ReadCaller {
  readonly #sink: AnswerSink
  readonly #requestId: number
  #reservedBytes: number
  #pieces: Pieces | null = null
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
    const { outbox, who } = this.#sink
    // Nothing of it has left yet: it leaves as a whole, after its last chunk.
    if (isLast && who.isRevoked) return this.onReadFailed(new BrokerError('KEY_REVOKED'))
    if (this.#pieces === null) this.#chargeRest(totalBytes)
    if (isLast && this.#pieces === null) {
      assert(end - start === totalBytes, 'the only chunk of an answer is the whole of it')
      this.#addHeader(totalBytes)
      outbox.append(bytes, start, end, true)
      return this.#finish(false)
    }
    this.#pieces ??= new Pieces(this.#sink.pool)
    this.#pieces.append(bytes, start, end, true)
    if (!isLast) return
    assert(this.#pieces.bytes === totalBytes, 'the chunks of an answer sum to its total')
    this.#addHeader(totalBytes)
    outbox.adopt(this.#pieces)
    this.#finish(false)
  }

  onReadFailed(error: BrokerError): void {
    this.#pieces?.drop()
    addErrorFrame(this.#sink, this.#requestId, error)
    this.#finish(true)
  }

  /**
   * A single record may exceed what was reserved by max_bytes. Its answer is here already, so it is delivered in any
   * case; if the budget has room, the excess counts, and later requests wait for it.
   */
  #chargeRest(totalBytes: number): void {
    const excess = FRAME_HEADER_BYTES + totalBytes - this.#reservedBytes
    if (excess > 0 && this.#sink.replies.reserveMore(excess)) this.#reservedBytes += excess
  }

  #addHeader(payloadBytes: number): void {
    const end = writeFrameHeader(header, 0, this.#requestId, opcodes.consumed, payloadBytes)
    this.#sink.outbox.append(header, 0, end)
  }

  #finish(isError: boolean): void {
    this.#meter.end(this.#startMs)
    this.#sink.outbox.finishAnswer(this.#reservedBytes)
    this.#sink.completed(isError)
  }
}
