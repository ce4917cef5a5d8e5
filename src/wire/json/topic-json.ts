/**
 * Topics as JSON text. Pure; any thread. Written by hand where a number may be a bigint, which JSON.stringify refuses.
 */
import type { TopicConfig, TopicDescription } from '../../model/topic.ts'

/** The five fields of the seed, in the order of the API, and those that it has not where they say something; bigints digit for digit. */
export function writeTopicConfig(config: TopicConfig): string {
  return (
    `{"retention_ms":${config.retention_ms},"retention_bytes":${config.retention_bytes},` +
    `"cleanup_policy":${JSON.stringify(config.cleanup_policy)},"segment_bytes":${config.segment_bytes},` +
    `"tombstone_retention_ms":${config.tombstone_retention_ms}${writeOwnFields(config)}}`
  )
}

function writeOwnFields(config: TopicConfig): string {
  const { message_timestamp_type: timestampType, max_message_bytes: messageBytes, segment_ms: segmentMs } = config
  const { partitioner } = config
  return (
    (config.validate_schema ? ',"validate_schema":true' : '') +
    (timestampType === 'CreateTime' ? '' : `,"message_timestamp_type":"${timestampType}"`) +
    (messageBytes === null ? '' : `,"max_message_bytes":${messageBytes}`) +
    (segmentMs === null ? '' : `,"segment_ms":${segmentMs}`) +
    (partitioner === 'fnv1a' ? '' : `,"partitioner":"${partitioner}"`)
  )
}

/** Name, partitions with their offsets and sizes, resolved config. */
export function writeTopicDescription(topic: TopicDescription): string {
  const partitions = topic.partitions.map(
    ({ id, start_offset, end_offset, segment_count, size_bytes }) =>
      `{"id":${id},"start_offset":${start_offset},"end_offset":${end_offset},` +
      `"segment_count":${segment_count},"size_bytes":${size_bytes}}`
  )
  return `{"name":${JSON.stringify(topic.name)},"partitions":[${partitions.join(',')}],"config":${writeTopicConfig(topic.config)}}`
}
