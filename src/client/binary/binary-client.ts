/**
 * One request, one answer, over a connection that is made by itself. Any thread with an event loop.
 *
 * After a loss a request is sent again only where that cannot do anything twice: what never left, what only reads, and
 * a produce whose sequences the broker still knows.
 */
import { limits } from '../../model/limits.ts'
import type { ProduceRecord, ProduceResult } from '../../wire/es01/produce-frame.ts'
import type { Consumed, ConsumeRequest } from '../es01/client.ts'
import { clientErrorOf, closedError, invalidField, withWritten, type ClientError } from './client-error.ts'
import { connectingOf, ranges, type ClientOptions } from './options.ts'
import { backoffMs } from './pauses.ts'
import {
  checkedListBytesOf,
  checkName,
  checkOffset,
  checkPartition,
  checkRequestBytes,
  NO_SUCH_PARTITION
} from './records.ts'
import { Session, type Send } from './session.ts'

export interface ProduceOptions {
  /** Each record then has a partition and a sequence, one more than the last of its partition. */
  readonly producerId?: string
}

/** What sending a request twice does: nothing to the log, or it writes twice, or the broker knows it again. */
type Repeat = 'reads' | 'doubles' | 'is known'

/** A call whose arguments are in order. */
interface Call<Result> {
  readonly repeat: Repeat
  readonly send: Send<Result>
}

/** Every promise rejects with ClientError. */
export class BinaryClient {
  readonly #session: Session
  readonly #open = new Set<Promise<unknown>>()
  #isClosing = false

  /** Connects at the first call. @throws ClientError of kind invalid */
  constructor(options: ClientOptions) {
    this.#session = new Session(connectingOf(options))
  }

  /**
   * Resolves when the records are as durable as the broker promises, in their order. All are written or none.
   * Their bytes must not change until then.
   */
  produce(topic: string, records: readonly ProduceRecord[], options: ProduceOptions = {}): Promise<ProduceResult[]> {
    return this.#call(() => {
      if (typeof options !== 'object' || options === null)
        throw invalidField('options', options, 'it must be an object')
      const { producerId } = options
      if (producerId !== undefined) checkName('producerId', producerId)
      checkName('topic', topic)
      const bytes = checkedListBytesOf(records)
      checkRequestBytes(bytes, topic, producerId ?? '', this.#session.options.requestBytesMax)
      return {
        repeat: repeatOf(records, producerId),
        send: (connection, timeoutMs) => connection.produce(topic, records, producerId, { timeoutMs })
      }
    })
  }

  /** Reads a partition from an offset on. */
  consume(request: ConsumeRequest): Promise<Consumed> {
    return this.#call(() => {
      const whole = checkedReadOf(request)
      return { repeat: 'reads', send: (connection, timeoutMs) => connection.consume(whole, timeoutMs) }
    })
  }

  ping(): Promise<void> {
    return this.#call(() => ({ repeat: 'reads', send: (connection, timeoutMs) => connection.ping(timeoutMs) }))
  }

  /**
   * Takes no more calls; resolves when the open ones are settled and the connection is closed, which takes twice
   * `requestTimeoutMs` at most.
   */
  async close(): Promise<void> {
    this.#isClosing = true
    await Promise.allSettled(this.#open)
    await this.#session.close()
  }

  /** Closes at once; open calls reject. */
  destroy(): void {
    this.#isClosing = true
    this.#session.destroy()
  }

  async #call<Result>(prepare: () => Call<Result>): Promise<Result> {
    if (this.#isClosing) throw closedError()
    const running = this.#attempt(prepare())
    this.#open.add(running)
    try {
      return await running
    } finally {
      this.#open.delete(running)
    }
  }

  async #attempt<Result>({ repeat, send }: Call<Result>): Promise<Result> {
    const session = this.#session
    const deadlineMs = performance.now() + session.options.requestTimeoutMs
    let mayBeWritten = false
    for (let attempt = 0; ; attempt++) {
      // The first time again comes at once: mostly the broker was restarted, and the next connection holds.
      if (attempt > 1) await session.pause(backoffMs(attempt - 1, session.options.reconnect, Math.random()))
      let isSent = false
      try {
        const connection = await session.connected(deadlineMs)
        isSent = true
        return await session.exchange(connection, deadlineMs, send)
      } catch (error) {
        const failure = clientErrorOf(error)
        mayBeWritten ||= failure.written !== 'no'
        const isHarmless = failure.written === 'no' || repeat !== 'doubles'
        const isLost = isSent && failure.kind === 'connection' && isHarmless
        if (!isLost || session.isClosed || performance.now() >= deadlineMs) throw verdict(failure, repeat, mayBeWritten)
      }
    }
  }
}

/** What the last attempt says of the log, with those before it in mind. */
function verdict(failure: ClientError, repeat: Repeat, mayBeWritten: boolean): ClientError {
  if (repeat === 'reads') return withWritten(failure, 'no')
  return mayBeWritten && failure.written === 'no' ? withWritten(failure, 'unknown') : failure
}

/** @returns the request with its limits. @throws ClientError of kind invalid */
function checkedReadOf(request: ConsumeRequest): Required<ConsumeRequest> {
  if (typeof request !== 'object' || request === null) throw invalidField('request', request, 'it must be an object')
  const { topic, partition, offset } = request
  checkName('topic', topic)
  checkOffset('offset', offset)
  // A consumer asks for one that no topic has.
  checkPartition(partition, NO_SUCH_PARTITION)
  return {
    topic,
    partition,
    offset,
    maxRecords: limitOf('maxRecords', request),
    maxBytes: limitOf('maxBytes', request)
  }
}

function limitOf(name: 'maxRecords' | 'maxBytes', { [name]: given }: ConsumeRequest): number {
  if (given === undefined) return ranges[name].value
  if (Number.isInteger(given) && given >= 1 && given < 2 ** 32) return given
  throw invalidField(name, given, 'allowed are whole numbers from 1')
}

/** The broker knows records again by their sequences, as long as they are among the last of their producer. */
function repeatOf(records: readonly ProduceRecord[], producerId: string | undefined): Repeat {
  if (producerId === undefined || records.length > limits.producerWindow) return 'doubles'
  const isKnown = records.every(record => record.partition !== undefined && record.sequence !== undefined)
  return isKnown ? 'is known' : 'doubles'
}
