/**
 * The ES01 client: produce, consume and ping over one connection, as many at a time as the caller likes.
 * Pure TypeScript on node:net. Answers come in any order; produces to one topic are executed in the order of the calls.
 */
import { assert } from '../../base/assert.ts'
import { decodeConsumed, encodeConsumeFrame } from '../../wire/es01/consume.ts'
import type { ConsumedRecord } from '../../wire/es01/consume.ts'
import { encodeFrame, opcodes } from '../../wire/es01/frame.ts'
import type { Frame } from '../../wire/es01/frame.ts'
import { decodeProduced, encodeProduceFrame } from '../../wire/es01/produce-frame.ts'
import type { ProduceRecord, ProduceResult, SequenceRun } from '../../wire/es01/produce-frame.ts'
import { openConnection } from './connection.ts'
import type { ConnectOptions, Es01ClientConnection } from './connection.ts'
import { Es01Error } from './errors.ts'

export { Es01Error } from './errors.ts'
export type { ConnectOptions } from './connection.ts'
export type { ConsumedRecord } from '../../wire/es01/consume.ts'
export type { Frame } from '../../wire/es01/frame.ts'
export { encodeProduceFrame } from '../../wire/es01/produce-frame.ts'
export type { ProduceRecord, ProduceResult } from '../../wire/es01/produce-frame.ts'

/** Which records to read. */
export interface ConsumeRequest {
  readonly topic: string
  readonly partition: number
  /** A safe integer from 0. One that the partition has dropped reads from its first record on; one beyond the end nothing. */
  readonly offset: number
  /** The broker has a ceiling of its own for both. */
  readonly maxRecords?: number
  readonly maxBytes?: number
}

/** What a produce may have beside its records. */
export interface ProduceExtras {
  /** Where all of them go, in place of what they say themselves. */
  readonly run?: SequenceRun
  /** In place of the connection's. */
  readonly timeoutMs?: number
}

/** What one consume gave. Keys and values are the caller's. */
export interface Consumed {
  /** Where to read on. */
  readonly nextOffset: number
  /** One past the last record that can be read. */
  readonly highWatermark: number
  readonly records: readonly ConsumedRecord[]
}

/** Every promise rejects with Es01Error. */
export interface Es01Client {
  /** Requests without an answer yet. */
  readonly inFlight: number
  /** Payloads of both directions are in gzip: it was asked for, and the broker accepted. */
  readonly hasGzip: boolean
  /** False once nothing can be sent any more: make a new client. */
  readonly isOpen: boolean
  /** An answer is due, and nothing came in all the time of a request: the peer may be gone without a word. */
  readonly isSilent: boolean
  /**
   * Resolves when the records are as durable as the broker promises; results in their order. All are written or none.
   * @param producerId makes it idempotent: each record then has a sequence, one more than the last of its partition.
   */
  produce(
    topic: string,
    records: readonly ProduceRecord[],
    producerId?: string,
    extras?: ProduceExtras
  ): Promise<ProduceResult[]>
  /** @param timeoutMs in place of the connection's. */
  consume(request: Required<ConsumeRequest>, timeoutMs?: number): Promise<Consumed>
  ping(timeoutMs?: number): Promise<void>
  /**
   * Sends a whole request frame, made once with encodeProduceFrame and sent as often as wanted; its request id is
   * written over. The frame must not change, nor be sent again, until the promise settles.
   * @returns the answer, its payload the caller's; an error frame rejects.
   */
  sendFrame(frame: Buffer): Promise<Frame>
  /** Takes no more requests; resolves when the answers to the open ones have come and the connection is closed. */
  close(): Promise<void>
  /** Closes at once; open requests reject with `written` unknown. */
  destroy(): void
}

/** Connects to a broker's ES01 listener. Rejects with Es01Error of kind connection, timeout, refused or protocol. */
export async function connectEs01(options: ConnectOptions): Promise<Es01Client> {
  return new Client(await openConnection(options))
}

class Client implements Es01Client {
  readonly #connection: Es01ClientConnection

  constructor(connection: Es01ClientConnection) {
    this.#connection = connection
  }

  get inFlight(): number {
    return this.#connection.inFlight
  }

  get hasGzip(): boolean {
    return this.#connection.hasGzip
  }

  get isOpen(): boolean {
    return this.#connection.isOpen
  }

  get isSilent(): boolean {
    return this.#connection.isSilent
  }

  produce(
    topic: string,
    records: readonly ProduceRecord[],
    producerId?: string,
    { run, timeoutMs }: ProduceExtras = {}
  ): Promise<ProduceResult[]> {
    const frame = encodeProduceFrame(0, topic, records, producerId ?? null, run ?? null)
    return this.#connection.request(frame, timeoutMs ?? null, answer => {
      const results = decodeProduced(payloadOf(answer, opcodes.produced))
      if (typeof results === 'string') throw malformed(results)
      if (results.length === records.length) return results
      throw malformed(`${results.length} results for ${records.length} records`)
    })
  }

  consume(request: Required<ConsumeRequest>, timeoutMs?: number): Promise<Consumed> {
    assert(Number.isSafeInteger(request.offset) && request.offset >= 0, 'offset must be a safe integer from 0')
    return this.#connection.request(encodeConsumeFrame(0, request), timeoutMs ?? null, answer => {
      // Records are views of the payload: one copy of it for all of them.
      const consumed = decodeConsumed(Buffer.from(payloadOf(answer, opcodes.consumed)))
      if (typeof consumed === 'string') throw malformed(consumed)
      const { nextOffset, highWatermark, records } = consumed
      if (typeof nextOffset === 'bigint') throw malformed(`next_offset is ${nextOffset}`)
      return { nextOffset, highWatermark, records }
    })
  }

  ping(timeoutMs?: number): Promise<void> {
    return this.#connection.request(encodeFrame(0, opcodes.ping, Buffer.alloc(0)), timeoutMs ?? null, answer => {
      payloadOf(answer, opcodes.pong)
    })
  }

  sendFrame(frame: Buffer): Promise<Frame> {
    return this.#connection.request(frame, null, answer => ({ ...answer, payload: Buffer.from(answer.payload) }))
  }

  close(): Promise<void> {
    return this.#connection.close()
  }

  destroy(): void {
    this.#connection.destroy()
  }
}

function malformed(problem: string): Es01Error {
  return new Es01Error('protocol', 'unknown', `the broker's answer cannot be read: ${problem}`)
}

function payloadOf(answer: Frame, opcode: number): Buffer {
  if (answer.opcode !== opcode) throw malformed(`opcode ${answer.opcode} where ${opcode} was due`)
  return answer.payload
}
