/**
 * Produce: the batches of a request go to their partitions as they are, and it is answered when all of them are durable or
 * refused. Main thread; one ProduceCall a request.
 *
 *   submit all ─▶ taken ──────────────────────────────▶ answered when the last is
 *        └─ a ring is full: the rest is copied, and the connection held, so that nothing overtakes it ─▶ again
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

function takeProduce(call: Call): void {
  const refusal = refusalOf(call)
  if (refusal === null) return new ProduceCall(call).start()
  if (call.body.acks === ACKS_NONE) return call.close('unacknowledgedFailure')
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
  /** Of batches that would leave too deep a debt. */
  #refusedMs = 0
  #release: (() => void) | null = null
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

  start(): void {
    if (this.#openCount === 0) return this.#answer()
    if (this.#call.version < ZSTD_SINCE) this.#refuseZstd()
    if (this.#submit()) return
    // The request's bytes are borrowed for this call alone.
    for (const part of this.#parts) if (!part.isTaken) part.records = this.#copy(part.records)
    this.#call.services.requestBudget.charge(this.#copiedBytes)
    this.#release = this.#call.hold()
    this.#waitForRoom()
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

  #copy(records: Buffer): Buffer {
    const copy = Buffer.allocUnsafeSlow(records.length)
    copyBytes(records, 0, records.length, copy, 0)
    this.#copiedBytes += records.length
    return copy
  }

  #waitForRoom(): void {
    this.#call.services.broker.whenRoom(() => {
      if (!this.#submit()) return this.#waitForRoom()
      this.#release?.()
      this.#call.services.requestBudget.release(this.#copiedBytes)
    })
  }

  /** @returns false if some are left for which there was no room. */
  #submit(): boolean {
    for (const part of this.#parts) part.isTaken ||= this.#submitPart(part)
    return this.#parts.every(({ isTaken }) => isTaken)
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
      return hasFailed ? call.close('unacknowledgedFailure') : call.answerNothing()
    }
    let at = 0
    const responses = call.body.topicData.map(({ name, partitionData }) => ({
      name,
      partitionResponses: partitionData.map(() => this.#parts[at++]?.told as ToldPartition)
    }))
    call.answer({ responses, throttleTimeMs })
  }
}

function toldOfAppended(index: number, { baseOffset, logStartOffset, appendTimeMs }: AppendedBatch): ToldPartition {
  return { index, errorCode: kafkaErrors.NONE.code, baseOffset, logAppendTimeMs: appendTimeMs, logStartOffset }
}
