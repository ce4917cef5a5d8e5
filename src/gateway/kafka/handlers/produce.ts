/**
 * Produce: the batches of a request go to their partitions as they are, and it is answered when all of them are durable or
 * refused. Main thread; one ProduceCall a request.
 *
 *   submit all ─▶ taken ──────────────────────────────▶ answered when the last is
 *        └─ a ring is full, or others have their turn: the rest is copied, and the connection held, so that nothing
 *           overtakes it ─▶ again
 *
 * acks 0 has no response: an error closes the connection, which is how such a client hears of it.
 */
import { copyBytes } from '../../../base/copy.ts'
import type { AppendedBatch } from '../../../model/batches.ts'
import type { BrokerError } from '../../../model/errors.ts'
import { submitOutcomes } from '../../../model/requests.ts'
import { codecOf } from '../../../wire/batch/client-batch.ts'
import { BATCH_HEADER_BYTES, ZSTD_CODEC } from '../../../wire/batch/layout.ts'
import { produce } from '../../../wire/kafka/apis/produce.ts'
import { kafkaErrors } from '../../../wire/kafka/errors.ts'
import type { WriteOf } from '../../../wire/kafka/schema.ts'
import { handlerOf, type KafkaCall, type KafkaHandler } from '../handler.ts'
import { recordErrorsOf, throttleMsOf, toldOf, type Told } from '../refusals.ts'

type Response = typeof produce.response.fields
type Call = KafkaCall<typeof produce.request.fields, Response>
type ToldPartition = WriteOf<Response>['responses'][number]['partitionResponses'][number]

/** The first version whose records are batches of today's format. */
const BATCHES_SINCE = 3
/** The first version whose batches may be compressed with zstd: readers of that time know it too (KIP-110). */
const ZSTD_SINCE = 7
const ACKS_NONE = 0

export const produceHandler: KafkaHandler = handlerOf(produce, takeProduce, {
  // Whatever connections a key has, and whether or not they heed a throttle time: one request at a time leaves a debt.
  waitMsOf: ({ broker }, who) => broker.batches.produceWaitMs(who)
})

function takeProduce(call: Call): void | Promise<void> {
  const refusal = refusalOf(call)
  if (refusal === null) return new ProduceCall(call).start()
  if (call.body.acks === ACKS_NONE) return failSilently(call)
  call.answer({
    responses: call.body.topicData.map(({ name, partitionData }) => ({
      name,
      partitionResponses: partitionData.map(({ index }) => ({ index, baseOffset: -1, ...refusal }))
    }))
  })
}

/** What all of a request is refused for. */
function refusalOf({ version, body }: Call): Told | null {
  const { acks, transactionalId } = body
  if (acks < -1 || acks > 1) {
    return { errorCode: kafkaErrors.INVALID_REQUIRED_ACKS.code, errorMessage: `acks is ${acks}: −1, 0 and 1 are known` }
  }
  if (transactionalId !== null) {
    const errorMessage = 'there are no transactions here'
    return { errorCode: kafkaErrors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED.code, errorMessage }
  }
  if (version >= BATCHES_SINCE) return null
  const errorMessage = 'message sets of formats before version 2 are not taken'
  return { errorCode: kafkaErrors.UNSUPPORTED_FOR_MESSAGE_FORMAT.code, errorMessage }
}

/** No answer says so, as none was due: those behind it are given before the connection closes. */
function failSilently(call: Call): void {
  call.client.refuse('unacknowledgedFailure', produce.name)
  call.answerNothing()
}

/** Partitions that are submitted in one round of the event loop: one that is refused takes some 30 µs (measured). */
export const PARTS_A_TURN = 500
/** What one that waits for its turn takes of the memory, beside its batch. */
const PART_BYTES = 256

/** One partition of a request. */
interface Part {
  readonly topic: string
  readonly partition: number
  records: Buffer
  /** The broker has it, and will answer; or it is answered already. */
  isTaken: boolean
  told: ToldPartition | null
}

const NO_BYTES: Buffer = Buffer.alloc(0)

class ProduceCall {
  readonly #call: Call
  readonly #parts: Part[]
  #openCount: number
  /** All parts before it are taken. */
  #firstOpen = 0
  /** Of batches that would leave too deep a debt. */
  #refusedMs = 0
  #release: (() => void) | null = null
  #onAnswering: (answering: Promise<void>) => void = () => undefined
  #copiedBytes = 0

  constructor(call: Call) {
    this.#call = call
    this.#parts = call.body.topicData.flatMap(({ name, partitionData }) =>
      partitionData.map(({ index, records }) => ({
        topic: name,
        partition: index,
        records: records ?? NO_BYTES,
        isTaken: false,
        told: null
      }))
    )
    this.#openCount = this.#parts.length
  }

  /** @returns of one that has many parts what rejects on a bug while it is answered. */
  start(): void | Promise<void> {
    if (this.#parts.length <= PARTS_A_TURN) return this.#start()
    return new Promise(resolve => {
      this.#onAnswering = resolve
      this.#start()
    })
  }

  #start(): void {
    if (this.#openCount === 0) return this.#answer()
    if (this.#call.version < ZSTD_SINCE) this.#refuseZstd()
    const left = this.#submit()
    if (left === 'none') return
    // The request's bytes are borrowed for this call alone.
    this.#copyOpen()
    this.#call.services.requestBudget.charge(this.#copiedBytes)
    this.#release = this.#call.hold()
    this.#wait(left)
  }

  #refuseZstd(): void {
    for (const part of this.#parts) {
      const { partition: index, records } = part
      if (records.length < BATCH_HEADER_BYTES || codecOf(records, 0) !== ZSTD_CODEC) continue
      part.isTaken = true
      const errorMessage = `zstd is taken since version ${ZSTD_SINCE} of Produce`
      this.#settle(part, {
        index,
        baseOffset: -1,
        errorCode: kafkaErrors.UNSUPPORTED_COMPRESSION_TYPE.code,
        errorMessage
      })
    }
  }

  #copyOpen(): void {
    const open = this.#parts.filter(({ isTaken }) => !isTaken)
    const copy = Buffer.allocUnsafeSlow(open.reduce((bytes, { records }) => bytes + records.length, 0))
    let at = 0
    for (const part of open) {
      const { records } = part
      copyBytes(records, 0, records.length, copy, at)
      part.records = copy.subarray(at, at + records.length)
      at += records.length
    }
    this.#copiedBytes = copy.length + open.length * PART_BYTES
  }

  #wait(left: 'noRoom' | 'later'): void {
    const { broker, requestTurns } = this.#call.services
    if (left === 'noRoom') return broker.whenRoom(() => this.#goOn())
    requestTurns.whenNext(() => {
      this.#goOn()
      broker.turn()
    })
  }

  #goOn(): void {
    const left = this.#submit()
    if (left !== 'none') return this.#wait(left)
    this.#release?.()
    this.#call.services.requestBudget.release(this.#copiedBytes)
  }

  /** Submits a share of those that are left. @returns why some still are. */
  #submit(): 'none' | 'noRoom' | 'later' {
    let isFull = false
    let tried = 0
    for (let at = this.#firstOpen; at < this.#parts.length && tried < PARTS_A_TURN; at++) {
      const part = this.#parts[at] as Part
      if (part.isTaken) continue
      tried++
      part.isTaken = this.#submitPart(part)
      isFull ||= !part.isTaken
    }
    while (this.#parts[this.#firstOpen]?.isTaken === true) this.#firstOpen++
    if (this.#firstOpen === this.#parts.length) return 'none'
    return isFull ? 'noRoom' : 'later'
  }

  #submitPart(part: Part): boolean {
    const { broker } = this.#call.services
    const { topic, partition, records: bytes } = part
    const batch = { topic, partition, bytes, start: 0, end: bytes.length }
    const outcome = broker.batches.submitBatch(this.#call.who, batch, {
      onBatchAppended: appended => this.#settle(part, toldOfAppended(partition, appended)),
      onBatchFailed: error => this.#refuse(part, error)
    })
    return outcome !== submitOutcomes.full
  }

  #refuse(part: Part, error: BrokerError): void {
    this.#refusedMs = Math.max(this.#refusedMs, throttleMsOf(error))
    this.#settle(part, { index: part.partition, baseOffset: -1, ...toldOf(error), recordErrors: recordErrorsOf(error) })
  }

  #settle(part: Part, told: ToldPartition): void {
    part.told = told
    if (--this.#openCount === 0) this.#answer()
  }

  #answer(): void {
    const call = this.#call
    const throttleTimeMs = Math.max(this.#refusedMs, call.services.broker.batches.produceWaitMs(call.who))
    call.mute(throttleTimeMs)
    if (call.body.acks === ACKS_NONE) {
      const hasFailed = this.#parts.some(({ told }) => told?.errorCode !== kafkaErrors.NONE.code)
      return hasFailed ? failSilently(call) : call.answerNothing()
    }
    let at = 0
    const responses = call.body.topicData.map(({ name, partitionData }) => ({
      name,
      partitionResponses: partitionData.map(() => this.#parts[at++]?.told as ToldPartition)
    }))
    if (this.#parts.length <= PARTS_A_TURN) call.answer({ responses, throttleTimeMs })
    else this.#onAnswering(call.answerInTurns({ responses, throttleTimeMs }))
  }
}

function toldOfAppended(index: number, { baseOffset, logStartOffset, appendTimeMs }: AppendedBatch): ToldPartition {
  return { index, errorCode: kafkaErrors.NONE.code, baseOffset, logAppendTimeMs: appendTimeMs, logStartOffset }
}
