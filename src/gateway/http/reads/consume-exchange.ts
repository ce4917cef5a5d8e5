/**
 * One consume over HTTP: query → a wait, if it asks for one → reply bytes reserved → broker → chunks as they come. Main thread.
 * The answer arrives encoded; it is passed on, never looked at. What is held shrinks to its length once that is known, then
 * as the socket takes it; the rest goes back when the answer has left and the broker is done with it, so that the budget
 * bounds what can be on its way at any moment.
 */
import { limits } from '../../../model/limits.ts'
import { BrokerError } from '../../../model/errors.ts'
import { readFormats, submitOutcomes } from '../../../model/requests.ts'
import type { ReadCaller, ReadFormat, ReadRequest } from '../../../model/requests.ts'
import { JSON_TYPE, MSGPACK_TYPE, wantsMsgpack } from '../accept.ts'
import type { ReplyWatcher } from '../engines/engine.ts'
import type { Exchange } from '../exchange.ts'
import { clamp, parseQuery, readIsBase64, readPartition, readU64 } from '../query.ts'
import type { ReadAttempt, ReadWaiter } from './read-line.ts'
import { readWaitOf, waitNames, type ReadWait } from './read-wait.ts'
import type { ReplyHolding, ReplyParty } from './reply-memory.ts'
import { findStart, halvesOf, readStart, startNames } from './start-offset.ts'

/** Parameters of every read, wherever it begins. */
export const readNames = ['partition', 'max_records', 'max_bytes', 'encoding', ...waitNames] as const

const consumeNames = [...readNames, ...startNames]
const groupReadNames = [...readNames, 'topic']

/** A read whose beginning is not known yet. */
interface ReadForm extends Omit<ReadRequest, 'offsetHigh' | 'offsetLow' | 'isFromStart'> {
  /** null: it is made at once. */
  readonly wait: ReadWait | null
}

/** @throws BrokerError FIELD_INVALID */
function formatOf(exchange: Exchange, parameters: ReadonlyMap<string, string>): ReadFormat {
  if (!wantsMsgpack(exchange.head.accept)) {
    return readIsBase64(parameters) ? readFormats.jsonBase64 : readFormats.jsonUtf8
  }
  if (!parameters.has('encoding')) return readFormats.msgpack
  const problem = `has no meaning for ${MSGPACK_TYPE}, where bytes are as they are`
  throw new BrokerError('FIELD_INVALID', { field: 'encoding', problem })
}

/** @throws BrokerError FIELD_INVALID */
function readFormOf(exchange: Exchange, parameters: ReadonlyMap<string, string>, topic: string): ReadForm {
  const { settings } = exchange.services
  const format = formatOf(exchange, parameters)
  const partition = readPartition(parameters)
  if (partition === null) throw new BrokerError('FIELD_INVALID', { field: 'partition', problem: 'is missing' })
  const maxRecords = readU64(parameters, 'max_records') ?? BigInt(limits.fetchRecordsDefault)
  const maxBytes = clamp(
    readU64(parameters, 'max_bytes') ?? BigInt(limits.fetchBytesDefault),
    1,
    settings.maxFetchBytes
  )
  return {
    topic,
    partition,
    maxRecords: clamp(maxRecords, 1, settings.maxFetchRecords),
    maxBytes,
    format,
    wait: readWaitOf(parameters, maxBytes)
  }
}

class ConsumeExchange implements ReadCaller, ReplyWatcher, ReadWaiter {
  /** The partition: its ring is the one that can be full. */
  readonly lane: string
  readonly #exchange: Exchange
  readonly #read: ReadRequest
  readonly #holding: ReplyHolding
  /** The broker has the read and has not finished its answer. */
  #isWithBroker = false
  /** The refusal is sent: what still comes of the answer is dropped, and must not cut it off. */
  #isRefused = false

  constructor(exchange: Exchange, read: ReadRequest) {
    this.#exchange = exchange
    this.#read = read
    this.lane = `${read.topic}/${read.partition}`
    this.#holding = exchange.services.replyMemory.open(exchange.party)
    exchange.reply.holding = this.#holding
    exchange.reply.watcher = this
  }

  get party(): ReplyParty {
    return this.#holding.party
  }

  attempt(): ReadAttempt {
    if (this.#exchange.reply.isClosed) {
      // Perhaps before this began, and then nobody told it.
      this.#holding.close()
      return 'taken'
    }
    const reservation = this.#holding.reserve(this.#read.maxBytes)
    if (reservation !== 'held') return reservation
    try {
      if (!this.#submit()) {
        this.#holding.undo()
        return 'rings-full'
      }
    } catch (error) {
      this.#exchange.refuse(error)
    }
    return 'taken'
  }

  /** @returns false if the ring is full. @throws BrokerError */
  #submit(): boolean {
    const { services, who } = this.#exchange
    const maxBytes = this.#holding.readBytesMax
    const isShortened = maxBytes < this.#read.maxBytes
    const read = isShortened ? { ...this.#read, maxBytes } : this.#read
    if (services.broker.submitRead(who, read, this) === submitOutcomes.full) return false
    this.#isWithBroker = true
    if (isShortened) services.probe.readsShortened++
    services.scheduleTurn()
    return true
  }

  onReadChunk(bytes: Buffer, start: number, end: number, totalBytes: number, isLast: boolean): void {
    if (isLast) this.#isWithBroker = false
    try {
      if (!this.#isRefused) this.#passOn(bytes, start, end, totalBytes)
    } catch (error) {
      this.#isRefused = true
      this.#exchange.refuse(error)
    }
    if (isLast) this.#releaseIfDone()
  }

  #passOn(bytes: Buffer, start: number, end: number, totalBytes: number): void {
    const { reply, who } = this.#exchange
    if (who.isRevoked) throw new BrokerError('KEY_REVOKED')
    if (!reply.isClosed && !reply.isAnswered) {
      this.#holding.settle(totalBytes)
      const contentType = this.#read.format === readFormats.msgpack ? MSGPACK_TYPE : JSON_TYPE
      reply.begin({ status: 200, contentType }, totalBytes)
    }
    reply.chunk(bytes, start, end)
  }

  onReadFailed(error: BrokerError): void {
    this.#isWithBroker = false
    if (!this.#isRefused) this.#breakOff(error)
    this.#releaseIfDone()
  }

  #breakOff(error: BrokerError): void {
    const { reply, services } = this.#exchange
    if (reply.isAnswered && !reply.isClosed) {
      const { topic, partition } = this.#read
      services.logger.warn({ topic, partition, code: error.code }, 'an answer broke off: its connection is cut')
      reply.abort()
    } else this.#exchange.refuse(error)
  }

  onReplyClosed(): void {
    this.#releaseIfDone()
  }

  #releaseIfDone(): void {
    if (!this.#isWithBroker && this.#exchange.reply.isClosed) this.#holding.close()
  }
}

/** The route `GET /topics/:name/consume`. */
export function consume(exchange: Exchange): null {
  const parameters = parseQuery(exchange.head.query, consumeNames)
  const form = readFormOf(exchange, parameters, exchange.name)
  const start = readStart(parameters)
  if (start === null) throw new BrokerError('FIELD_INVALID', { field: 'offset', problem: 'is missing' })
  if (start.kind === 'offset') enterRead(exchange, form, start.offset)
  else if (start.kind === 'earliest') enterRead(exchange, form, null)
  else {
    findStart(exchange.services.broker, exchange.who, form, start).then(
      ([found]) => {
        // Whose client went meanwhile hears of nothing more: it must not begin to wait.
        if (!exchange.reply.isClosed) exchange.guard(() => enterRead(exchange, form, found?.offset ?? null))
      },
      (error: unknown) => exchange.refuse(error)
    )
  }
  return null
}

/** The query of a read that names its topic and begins where a group is. @throws BrokerError FIELD_INVALID */
export function readGroupRead(exchange: Exchange): ReadForm {
  const parameters = parseQuery(exchange.head.query, groupReadNames)
  const topic = parameters.get('topic')
  if (topic === undefined) throw new BrokerError('FIELD_INVALID', { field: 'topic', problem: 'is missing' })
  return readFormOf(exchange, parameters, topic)
}

/**
 * Reads and answers; after a wait, if the form asks for one.
 * @param offset from which on, a u64; null: from where the partition begins.
 */
export function enterRead(exchange: Exchange, { wait, ...form }: ReadForm, offset: bigint | null): void {
  const { services, who, reply } = exchange
  const read = { ...form, ...halvesOf(offset ?? 0n), ...(offset === null ? { isFromStart: true } : {}) }
  if (wait === null) return services.readLine.enter(new ConsumeExchange(exchange, read))
  services.readWaits.begin({
    who,
    reply,
    read,
    wait,
    go: () => exchange.guard(() => services.readLine.enter(new ConsumeExchange(exchange, read))),
    refuse: error => exchange.refuse(error)
  })
}
