/**
 * One request, one answer, over a connection that is made by itself. Any thread with an event loop.
 *
 * After a loss a request is sent again only where that cannot do anything twice: what never left, what only reads, and
 * a produce whose sequences the broker still knows.
 */
import { limits } from '../../model/limits.ts'
import type { ProduceRecord, ProduceResult } from '../../wire/es01/produce-frame.ts'
import type { Consumed, Es01Client } from '../es01/client.ts'
import { clientErrorOf, closedError, invalidError, type ClientError } from './client-error.ts'
import { connectingOf, ranges, type ClientOptions } from './options.ts'
import { backoffMs } from './pauses.ts'
import { checkedBytesOf, checkTopic } from './records.ts'
import { Session } from './session.ts'

/** Which records to read. */
export interface ConsumeRequest {
  readonly topic: string
  readonly partition: number
  /** Whole, from 0. One that the partition has dropped reads from its first record on. */
  readonly offset: number
  /** The broker has a ceiling of its own for both. */
  readonly maxRecords?: number
  readonly maxBytes?: number
}

export interface ProduceOptions {
  /** Each record then has a partition and a sequence, one more than the last of its partition. */
  readonly producerId?: string
}

/** What sending a request twice does: nothing to the log, or it writes twice, or the broker knows it again. */
type Repeat = 'reads' | 'doubles' | 'is known'

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
  produce(
    topic: string,
    records: readonly ProduceRecord[],
    { producerId }: ProduceOptions = {}
  ): Promise<ProduceResult[]> {
    return this.#call(repeatOf(records, producerId), () => {
      checkTopic(topic)
      for (const record of records) checkedBytesOf(record)
      return connection => connection.produce(topic, records, producerId)
    })
  }

  /** Reads a partition from an offset on. */
  consume(request: ConsumeRequest): Promise<Consumed> {
    return this.#call('reads', () => {
      const { topic, partition, offset } = request
      checkTopic(topic)
      if (!Number.isSafeInteger(offset) || offset < 0) throw invalidError(`offset is ${offset}: whole, from 0`)
      if (!Number.isInteger(partition) || partition < 0 || partition >= 2 ** 32) {
        throw invalidError(`partition is ${partition}: partitions are numbered from 0`)
      }
      const maxRecords = request.maxRecords ?? ranges.maxRecords.value
      const maxBytes = request.maxBytes ?? ranges.maxBytes.value
      for (const limit of [maxRecords, maxBytes]) {
        if (!Number.isInteger(limit) || limit < 1 || limit >= 2 ** 32)
          throw invalidError(`a limit of a read is ${limit}`)
      }
      return connection => connection.consume({ topic, partition, offset, maxRecords, maxBytes })
    })
  }

  ping(): Promise<void> {
    return this.#call('reads', () => connection => connection.ping())
  }

  /** Takes no more calls; resolves when the open ones are settled and the connection is closed. */
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

  async #call<Result>(repeat: Repeat, prepare: () => (connection: Es01Client) => Promise<Result>): Promise<Result> {
    if (this.#isClosing) throw closedError()
    const running = this.#attempt(repeat, prepare())
    this.#open.add(running)
    try {
      return await running
    } finally {
      this.#open.delete(running)
    }
  }

  async #attempt<Result>(repeat: Repeat, send: (connection: Es01Client) => Promise<Result>): Promise<Result> {
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
        return await session.exchange(connection, send)
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
  if (repeat === 'reads') return failure.written === 'no' ? failure : failure.withWritten('no')
  return mayBeWritten && failure.written === 'no' ? failure.withWritten('unknown') : failure
}

/** The broker knows records again by their sequences, as long as they are among the last of their producer. */
function repeatOf(records: readonly ProduceRecord[], producerId: string | undefined): Repeat {
  if (producerId === undefined || records.length > limits.producerWindow) return 'doubles'
  const isKnown = records.every(record => record.partition !== undefined && record.sequence !== undefined)
  return isKnown ? 'is known' : 'doubles'
}
