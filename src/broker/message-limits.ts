/** The largest batch and the largest record that a topic takes, and the name of what says so. Pure. */
import { BrokerError } from '../model/errors.ts'
import { batchBytesMax, limits } from '../model/limits.ts'
import type { RecordSource } from '../model/requests.ts'
import type { Topic } from '../model/topic.ts'

/** A limit in bytes. */
export interface MessageLimit {
  readonly limit: number
  /** Words for the one who reached it. */
  readonly setting: string
}

/** Of a batch that a client encoded. A broker that takes less than it did when a topic was set to more counts. */
export function batchLimit(topic: Topic, maxRecordBytes: number): MessageLimit {
  const limit = batchBytesMax(maxRecordBytes)
  return (
    ownLimit(topic, limit) ?? {
      limit,
      setting: '--max-record-bytes, and 1 MiB for what is around it'
    }
  )
}

/** What records are refused for that are too many, or too large: RECORDS_TOO_MANY, RECORD_TOO_LARGE. null: nothing. */
export function sizeRefusal(topic: Topic, records: RecordSource, maxRecordBytes: number): BrokerError | null {
  if (records.count > limits.requestRecordsMax) {
    return new BrokerError('RECORDS_TOO_MANY', { count: records.count, limit: limits.requestRecordsMax })
  }
  const { limit, setting } = recordLimit(topic, maxRecordBytes)
  if (records.largestPayloadBytes <= limit) return null
  return new BrokerError('RECORD_TOO_LARGE', {
    index: records.largestPayloadIndex,
    size: records.largestPayloadBytes,
    parts: records.hasHeaders ? 'key, value and headers' : 'key and value',
    limit,
    setting
  })
}

/** Of key, value and headers of one record. */
function recordLimit(topic: Topic, maxRecordBytes: number): MessageLimit {
  return (
    ownLimit(topic, maxRecordBytes) ?? {
      limit: maxRecordBytes,
      setting: '--max-record-bytes'
    }
  )
}

/** null: the topic does not say less than its broker. */
function ownLimit({ name, config }: Topic, brokerLimit: number): MessageLimit | null {
  const { max_message_bytes: limit } = config
  return limit !== null && limit < brokerLimit ? { limit, setting: `max_message_bytes of topic '${name}'` } : null
}
