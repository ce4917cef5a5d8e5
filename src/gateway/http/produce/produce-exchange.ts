/**
 * One produce over HTTP: body → records → broker → answer. Main thread.
 *
 *   small   body whole ─▶ scan ─▶ submit ─▶ taken: body given back ─▶ results or refusal
 *                                   └─ full: body kept under the budget, in line, scanned again when there is room
 *   large   body whole ─▶ moved to another thread, scanned there ─▶ body given back ─▶ its turn ─▶ submit ─▶ …
 *                                                                       └─ full: the decoded records wait in line
 *
 * The records of a small body lie in it while they are submitted, so a scan and its submit are one step and never
 * interleave with another's. A body that another thread has stays charged until that thread is done, also when its
 * client has left. Both ways give the same answers.
 */
import { refusalOf, scannedBytesMax } from '../../../background/produce-scan.ts'
import type { BodyForm, ScanProduceResult } from '../../../background/produce-scan.ts'
import { ScannedRecords } from '../../../background/scanned-records.ts'
import { assert } from '../../../base/assert.ts'
import { BrokerError, errorCodeOf } from '../../../model/errors.ts'
import { submitOutcomes } from '../../../model/requests.ts'
import type { ProduceCaller, RecordSource } from '../../../model/requests.ts'
import { JSON_TYPE, MSGPACK_TYPE, isMsgpack, mediaTypeOf, wantsMsgpack } from '../accept.ts'
import { Body, bodyLimitOf, overloaded } from '../body.ts'
import type { BodyConsumer, BodyLimit } from '../body.ts'
import { WHOLE_ANSWER_BYTES_MAX } from '../engines/engine.ts'
import type { BodySink, ReplyWatcher } from '../engines/engine.ts'
import type { Exchange } from '../exchange.ts'
import type { Step } from './scan-order.ts'
import type { Attempt, Waiter } from './wait-line.ts'

class ProduceExchange implements BodyConsumer, ProduceCaller, ReplyWatcher, Step, Waiter {
  readonly body: Body
  /** The topic: produces to one stay in order. */
  readonly lane: string
  isReady = false
  readonly #form: BodyForm
  readonly #exchange: Exchange
  /** The body while the request waits in line, or for its turn. */
  #kept: Buffer | null = null
  #length = 0
  /** Set while another thread scans the body. */
  #scan: AbortController | null = null
  /** What that thread made of the body: one of the two. */
  #scanned: ScannedRecords | null = null
  #refusal: unknown = null
  /** Request bytes charged for the scanned records, first for the most they can be. */
  #scannedBytes = 0
  /** Reply bytes charged for an answer that does not leave at once. */
  #answerBytes = 0

  constructor(exchange: Exchange, limit: BodyLimit) {
    const { requestBudget } = exchange.services
    this.#exchange = exchange
    this.lane = exchange.name
    this.#form = isMsgpack(mediaTypeOf(exchange.head.contentType)) ? 'msgpack' : 'json'
    this.body = new Body(exchange.head.contentLength, limit, requestBudget, this)
    exchange.reply.watcher = this
  }

  onBody(bytes: Buffer, length: number): void {
    const { scanOrder } = this.#exchange.services
    this.#length = length
    try {
      if (this.#scanElsewhere(bytes)) return
      if (scanOrder.hasAhead(this.lane)) {
        this.#keep(bytes)
        this.isReady = true
        scanOrder.enter(this)
      } else this.#submitOrWait(bytes)
    } catch (error) {
      this.#fail(error)
    }
  }

  onBodyRefused(error: BrokerError, mustClose: boolean): void {
    this.#exchange.refuse(error, { mustClose })
  }

  /**
   * Hands a large body to another thread.
   * @returns false for a small body; also if there is no memory for the way there and back: it is here, so it is scanned here.
   * @throws BrokerError OVERLOADED
   */
  #scanElsewhere(bytes: Buffer): boolean {
    const { offload, requestBudget, scanOrder } = this.#exchange.services
    const length = this.#length
    if (offload === null || length < offload.bodyBytesMin) return false
    const body = this.body.keep(bytes)?.buffer
    const resultBytes = scannedBytesMax(this.#form, length)
    if (body === undefined || !requestBudget.tryReserve(resultBytes)) return false
    this.#scannedBytes = resultBytes
    scanOrder.enter(this)
    this.#scan = new AbortController()
    void offload.pool
      .run('scanProduce', { form: this.#form, body, length }, { signal: this.#scan.signal, moves: [body] })
      .then(result => this.#takeScan(result))
      .catch((error: unknown) => (this.#refusal = error))
      .then(() => this.#endScan())
    return true
  }

  #takeScan(result: ScanProduceResult): void {
    if (result.kind === 'refused') {
      this.#refusal = new BrokerError(errorCodeOf(result.wire), result.details)
      return
    }
    const records = new ScannedRecords(result)
    assert(records.heldBytes <= this.#scannedBytes, 'scanned records fit the memory that was set aside for them')
    this.#scanned = records
  }

  /** The other thread has let go of the body: it is given back, and so is what the records do not need. */
  #endScan(): void {
    const { requestBudget, scanOrder } = this.#exchange.services
    const spareBytes = this.#scannedBytes - (this.#scanned?.heldBytes ?? 0)
    this.#scan = null
    this.#scannedBytes -= spareBytes
    this.isReady = true
    this.body.release()
    requestBudget.release(spareBytes)
    scanOrder.settle(this)
  }

  proceed(): void {
    try {
      if (this.#exchange.reply.isClosed) this.#release()
      else if (this.#refusal !== null) this.#fail(this.#refusal)
      else this.#submitOrWait(this.#kept)
    } catch (error) {
      this.#fail(error)
    }
  }

  attempt(): Attempt {
    if (this.#kept === null && this.#scanned === null) return 'taken'
    try {
      return this.#submit(this.#kept) ? 'taken' : 'rings-full'
    } catch (error) {
      this.#fail(error)
      return 'taken'
    }
  }

  /** What a step threw becomes the answer and ends the request. */
  #fail(error: unknown): void {
    this.#release()
    this.#exchange.refuse(error)
  }

  /** @param bytes the body, if its records are not there yet. @throws BrokerError */
  #submitOrWait(bytes: Buffer | null): void {
    const { produceLine } = this.#exchange.services
    if (!produceLine.hasAhead(this.lane) && this.#submit(bytes)) return
    if (bytes !== null) this.#keep(bytes)
    produceLine.wait(this)
  }

  /** @throws BrokerError OVERLOADED */
  #keep(bytes: Buffer): void {
    this.#kept = this.body.keep(bytes)
    if (this.#kept === null) throw overloaded(this.#exchange.services.requestBudget)
  }

  /** @returns false if the rings are full. @throws BrokerError for a body that cannot be produced. */
  #submit(bytes: Buffer | null): boolean {
    const isTaken = this.#scanned !== null ? this.#offer(this.#scanned) : this.#scanAndOffer(bytes)
    if (!isTaken) return false
    this.#exchange.services.scheduleTurn()
    this.#release()
    return true
  }

  #scanAndOffer(bytes: Buffer | null): boolean {
    assert(bytes !== null, 'a produce has its body or its records')
    const scanner = this.#exchange.services.scanners[this.#form]
    try {
      const refusal = refusalOf(scanner, scanner.scan(bytes, 0, this.#length))
      if (refusal !== null) throw refusal
      return this.#offer(scanner)
    } finally {
      scanner.release()
    }
  }

  #offer(records: RecordSource): boolean {
    const { services, who } = this.#exchange
    return services.broker.submitProduce(who, this.lane, records, this) !== submitOutcomes.full
  }

  #release(): void {
    const bytes = this.#scannedBytes
    this.#kept = null
    this.#scanned?.free()
    this.#scanned = null
    this.#scannedBytes = 0
    this.body.release()
    if (bytes > 0) this.#exchange.services.requestBudget.release(bytes)
  }

  onProduced(bytes: Buffer, start: number, count: number): void {
    const { resultsWriter, packedResultsWriter, replyBudget } = this.#exchange.services
    try {
      const isPacked = wantsMsgpack(this.#exchange.head.accept)
      const answer = (isPacked ? packedResultsWriter : resultsWriter).write(bytes, start, count)
      // A long answer may wait for its reader. It is bounded by the request and must leave: charged only if there is room.
      if (answer.length > WHOLE_ANSWER_BYTES_MAX && replyBudget.tryReserve(answer.length)) {
        this.#answerBytes = answer.length
      }
      this.#exchange.reply.send({ status: 200, contentType: isPacked ? MSGPACK_TYPE : JSON_TYPE }, answer)
      if (this.#exchange.reply.isClosed) this.#releaseAnswer()
    } catch (error) {
      this.#exchange.refuse(error)
    }
  }

  onProduceFailed(error: BrokerError): void {
    this.#exchange.refuse(error)
  }

  onReplyClosed(): void {
    // What another thread has is not given back before it is done; a scan that has not begun is taken back now.
    if (this.#scan !== null) this.#scan.abort()
    else this.#release()
    this.#releaseAnswer()
  }

  #releaseAnswer(): void {
    const bytes = this.#answerBytes
    this.#answerBytes = 0
    if (bytes > 0) this.#exchange.services.replyBudget.release(bytes)
  }
}

/** The route `POST /topics/:name/produce`. */
export function produce(exchange: Exchange): BodySink | null {
  const limit = bodyLimitOf(exchange.services.settings.maxRequestBodyBytes)
  return exchange.acceptsBody(limit, true) ? new ProduceExchange(exchange, limit).body : null
}
