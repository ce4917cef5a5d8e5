/**
 * From one whole frame to a request of the broker. Main thread only; one instance per gateway, used by all connections.
 * Never waits: a frame that cannot be taken now is left where it is, and read again when there is room.
 */
import { denialOf } from '../../model/access.ts'
import { BrokerError } from '../../model/errors.ts'
import { limits } from '../../model/limits.ts'
import type { Principal } from '../../model/principal.ts'
import type { Broker, SubmitOutcome } from '../../model/requests.ts'
import { RESULT_BYTES, readFormats, submitOutcomes } from '../../model/requests.ts'
import { decodeConsumeRequest } from '../../wire/es01/consume.ts'
import { isAnswerOpcode, opcodes, type FrameHead } from '../../wire/es01/frame.ts'
import { NameReader, readTopic } from '../../wire/es01/names.ts'
import { ProduceDecoder } from '../../wire/es01/produce-request.ts'
import type { LatencyMeter } from '../shared/latency-meter.ts'
import type { AnswerSink } from './answers.ts'
import { answerError, answerPing, ERROR_FRAME_BYTES_MAX, ProduceCall, ReadCall } from './answers.ts'
import { gzippedBytesMax } from './gzip.ts'
import type { Es01Settings } from './settings.ts'

/** Frame header and count of a produce answer, rounded up. */
const PRODUCED_OVERHEAD_BYTES = 64
/** What the answer of a read may take beside max_bytes: its fields cost less than the 32 bytes that max_bytes counts. */
const CONSUMED_OVERHEAD_BYTES = 64 * 1024

/**
 * started: it will be answered. held: so it will, but until it is dispatched nothing may follow it. answered: it was.
 * revoked: it was, and no further frame is to be taken. The others: it was not taken; offer it again later.
 */
export type FrameOutcome = 'started' | 'held' | 'answered' | 'revoked' | 'noRoom' | 'shareFull' | 'noReplyBytes'

/** How long requests take. */
export interface RequestMeters {
  readonly produce: LatencyMeter
  readonly consume: LatencyMeter
}

export class RequestReader {
  readonly #broker: Broker
  readonly #fetchRecordsMax: number
  readonly #fetchBytesMax: number
  readonly #produce = new ProduceDecoder()
  readonly #names = new NameReader()
  readonly #meters: RequestMeters

  constructor(broker: Broker, settings: Es01Settings, meters: RequestMeters) {
    this.#broker = broker
    this.#meters = meters
    this.#fetchRecordsMax = Math.max(1, settings.maxFetchRecords)
    this.#fetchBytesMax = Math.max(1, settings.maxFetchBytes)
  }

  /** What the largest answer to a read reserves. */
  get largestAnswerBytes(): number {
    return gzippedBytesMax(this.#fetchBytesMax + CONSUMED_OVERHEAD_BYTES)
  }

  /**
   * Takes a whole frame, whose payload is bytes[start, end), inflated if it was gzip. Bytes are borrowed until return.
   * A bug of ours answers this request, and the others go on; what is known about it goes to the log alone.
   */
  take(sink: AnswerSink, head: FrameHead, bytes: Buffer, start: number, end: number): FrameOutcome {
    try {
      return this.#take(sink, head, bytes, [start, end])
    } catch (error) {
      return this.#refuse(sink, head.requestId, new BrokerError('INTERNAL', {}, { cause: error }))
    }
  }

  #take(
    sink: AnswerSink,
    { requestId, opcode }: FrameHead,
    bytes: Buffer,
    payload: readonly [number, number]
  ): FrameOutcome {
    if (sink.who.isRevoked) {
      answerError(sink, requestId, new BrokerError('KEY_REVOKED'))
      return 'revoked'
    }
    const denial = this.#denialOf(sink.who, opcode, bytes, payload)
    if (denial !== null) return this.#refuse(sink, requestId, denial)
    if (opcode === opcodes.produce) return this.#takeProduce(sink, requestId, bytes, payload)
    if (opcode === opcodes.consume) return this.#takeConsume(sink, requestId, bytes, payload)
    if (isAnswerOpcode(opcode)) {
      const problem = `0x${opcode.toString(16).toUpperCase()} is an answer, not a request`
      return this.#refuse(sink, requestId, new BrokerError('FIELD_INVALID', { field: 'opcode', problem }))
    }
    answerPing(sink, requestId)
    return 'answered'
  }

  /**
   * Looks at the topic alone: of a frame that is refused for it nothing else is decoded. The broker asks again, for all
   * protocols; this saves it the rest of the frame.
   */
  #denialOf(
    who: Principal,
    opcode: number,
    bytes: Buffer,
    [start, end]: readonly [number, number]
  ): BrokerError | null {
    if (who.isAdmin || (opcode !== opcodes.produce && opcode !== opcodes.consume)) return null
    const topic = readTopic(bytes, start, end, this.#names)
    // A payload that ends within its topic is refused as such.
    return topic === null ? null : denialOf(who, opcode === opcodes.produce ? 'produce' : 'consume', topic)
  }

  #takeProduce(sink: AnswerSink, requestId: number, bytes: Buffer, range: readonly [number, number]): FrameOutcome {
    const records = this.#produce
    if (!records.decode(bytes, range[0], range[1])) {
      return this.#refuse(sink, requestId, new BrokerError('FRAME_INVALID', { problem: records.problem }))
    }
    const results = Math.min(records.count, limits.requestRecordsMax)
    const answer = Math.max(ERROR_FRAME_BYTES_MAX, RESULT_BYTES * results + PRODUCED_OVERHEAD_BYTES)
    const reserved = sink.gzip === null ? answer : gzippedBytesMax(answer)
    const reservation = sink.replies.reserve(reserved)
    if (reservation !== 'held') return reservation
    const call = new ProduceCall(sink, requestId, reserved, this.#meters.produce)
    const outcome = this.#submit(sink, reserved, () =>
      this.#broker.submitProduce(sink.who, records.topic, records, call)
    )
    records.release()
    return outcome
  }

  #takeConsume(sink: AnswerSink, requestId: number, bytes: Buffer, range: readonly [number, number]): FrameOutcome {
    const fields = decodeConsumeRequest(bytes, range[0], range[1], this.#names)
    if (typeof fields === 'string') {
      return this.#refuse(sink, requestId, new BrokerError('FRAME_INVALID', { problem: fields }))
    }
    const read = {
      ...fields,
      maxRecords: Math.min(Math.max(1, fields.maxRecords), this.#fetchRecordsMax),
      maxBytes: Math.min(Math.max(1, fields.maxBytes), this.#fetchBytesMax),
      format: readFormats.es01
    }
    const answer = read.maxBytes + CONSUMED_OVERHEAD_BYTES
    const reserved = sink.gzip === null ? answer : gzippedBytesMax(answer)
    const reservation = sink.replies.reserve(reserved)
    if (reservation !== 'held') return reservation
    const call = new ReadCall(sink, requestId, reserved, this.#meters.consume)
    return this.#submit(sink, reserved, () => this.#broker.submitRead(sink.who, read, call))
  }

  /** A request that was not taken, or broke the broker, gives its reservation back here: nobody will answer it. */
  #submit(sink: AnswerSink, reserved: number, submit: () => SubmitOutcome): FrameOutcome {
    let outcome: SubmitOutcome = submitOutcomes.full
    try {
      outcome = submit()
    } finally {
      if (outcome === submitOutcomes.full) sink.replies.release(reserved)
    }
    if (outcome === submitOutcomes.held) return 'held'
    return outcome === submitOutcomes.taken ? 'started' : 'noRoom'
  }

  #refuse(sink: AnswerSink, requestId: number, error: BrokerError): FrameOutcome {
    answerError(sink, requestId, error)
    return 'answered'
  }
}
