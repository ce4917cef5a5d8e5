/** The largest batch and the largest record that a topic takes. Each produce asks: words are made for those that are refused alone. Pure. */
import { BrokerError } from '../model/errors.ts'
import { batchBytesMax, limits } from '../model/limits.ts'
import type { RecordSource } from '../model/requests.ts'
import type { Topic } from '../model/topic.ts'

/** What a batch is refused for that a client encoded, and that is too large: BATCH_TOO_LARGE. null: nothing. */
export function batchSizeRefusal(topic: Topic, size: number, maxRecordBytes: number): BrokerError | null {
  const brokerLimit = batchBytesMax(maxRecordBytes)
  const limit = limitOf(topic, brokerLimit)
  if (size <= limit) return null
  const setting =
    limit < brokerLimit ? ownSetting('max.message.bytes', topic) : '--max-record-bytes, and 1 MiB for what is around it'
  return new BrokerError('BATCH_TOO_LARGE', { size, limit, setting })
}

/** What records are refused for that are too many, or too large: RECORDS_TOO_MANY, RECORD_TOO_LARGE. null: nothing. */
export function sizeRefusal(topic: Topic, records: RecordSource, maxRecordBytes: number): BrokerError | null {
  if (records.count > limits.requestRecordsMax) {
    return new BrokerError('RECORDS_TOO_MANY', { count: records.count, limit: limits.requestRecordsMax })
  }
  const limit = limitOf(topic, maxRecordBytes)
  if (records.largestPayloadBytes <= limit) return null
  return new BrokerError('RECORD_TOO_LARGE', {
    index: records.largestPayloadIndex,
    size: records.largestPayloadBytes,
    parts: records.hasHeaders ? 'key, value and headers' : 'key and value',
    limit,
    setting: limit < maxRecordBytes ? ownSetting('max_message_bytes', topic) : '--max-record-bytes'
  })
}

/** A broker that takes less than it did when a topic was set to more counts. */
function limitOf({ config }: Topic, brokerLimit: number): number {
  const { max_message_bytes: own } = config
  return own !== null && own < brokerLimit ? own : brokerLimit
}

/** @param setting as the client knows it: Kafka's clients encode batches, others send records. */
function ownSetting(setting: string, { name }: Topic): string {
  return `${setting} of topic '${name}'`
}
