/** From the broker's errors to those of the Kafka protocol. Pure, any thread. */
import { BrokerError, errorText } from '../../model/errors.ts'
import { kafkaErrors } from '../../wire/kafka/errors.ts'
import { nameOfField } from './topic-configs.ts'

/** What a client is told of an error: its code, and words where the version has a place for them. */
export interface Told {
  readonly errorCode: number
  readonly errorMessage: string
}

/** @returns what to tell. @throws what is none of the broker's errors: a bug. */
export function toldOf(error: unknown): Told {
  if (!(error instanceof BrokerError)) throw error
  return { errorCode: error.spec.kafka, errorMessage: error.message }
}

/** A record of a batch that is at fault. */
export interface RecordError {
  readonly batchIndex: number
  readonly batchIndexErrorMessage: string
}

/** Which record of its batch an error is about; none: it is about the batch. */
export function recordErrorsOf(error: BrokerError): readonly RecordError[] {
  const { index } = error.details
  return typeof index === 'number' ? [{ batchIndex: index, batchIndexErrorMessage: error.message }] : []
}

/**
 * The same of a topic that is made or changed: what is wrong with it is a setting, or the number of its partitions. Both are
 * called what the client calls them.
 * @param partitionsName the field of its request that says how many partitions.
 */
export function toldOfConfig(error: unknown, partitionsName = 'num_partitions'): Told {
  const told = toldOf(error)
  if (!(error instanceof BrokerError) || (error.code !== 'FIELD_INVALID' && error.code !== 'FIELD_RANGE')) return told
  const { code, details } = error
  const isOfPartitions = details['field'] === 'partitions'
  const field = isOfPartitions ? partitionsName : nameOfField(String(details['field']))
  return {
    errorCode: (isOfPartitions ? kafkaErrors.INVALID_PARTITIONS : kafkaErrors.INVALID_CONFIG).code,
    errorMessage: errorText(code, { ...details, field })
  }
}

/** How long a client has to wait whose key is over its quota; 0: it is not that. */
export function throttleMsOf(error: BrokerError): number {
  return error.code === 'RATE_LIMITED' ? Math.ceil(Number(error.details['seconds']) * 1000) : 0
}
