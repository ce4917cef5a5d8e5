/** The lines that commands print for people. Pure. With --json nothing of this is used. */
import type {
  ConsumeAnswer,
  DescribeAnswer,
  OffsetsAnswer,
  ProducerAnswer,
  ProduceResult,
  TopicConfigFields,
  Whole
} from '../client/http/http-client.ts'
import type { TopicConfig } from '../model/topic.ts'
import { alignWords } from './table.ts'

const escapes: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r' }

/**
 * Text that stays on its line and cannot steer a terminal: control characters but tab are written as \n, \r or \xNN.
 * Everything else is untouched.
 */
export function showText(text: string): string {
  return text.replace(/[\u0000-\u0008\u000a-\u001f\u007f-\u009f]/g, character => {
    return escapes[character] ?? `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`
  })
}

/** `partition=0 offset=57`, with ` (duplicate)`. */
export function formatResult({ partition, offset, duplicate }: ProduceResult): string {
  return `partition=${partition} offset=${offset}${duplicate === true ? ' (duplicate)' : ''}`
}

/** What an answer of a consume passed over, ahead of its records; null if nothing. @param label of the partition. */
export function formatSkipped({ skipped }: Pick<ConsumeAnswer, 'skipped'>, label = ''): string | null {
  if (skipped === undefined) return null
  return `-- ${label}skipped requested=${skipped.requested} earliest=${skipped.earliest}: what was between is gone or damaged`
}

/** The last line of a consume. @param partition null: the user named the only one. */
export function formatPosition(
  { next_offset: next, high_watermark: end }: Pick<ConsumeAnswer, 'next_offset' | 'high_watermark'>,
  count: number,
  partition: number | null
): string {
  const label = partition === null ? '' : `partition=${partition} `
  return `-- ${label}next_offset=${next} high_watermark=${end} (${count} record(s))`
}

/** A place to begin at where nothing is yet. */
export function beyondEndText(asked: Whole, partition: number, end: Whole): string {
  return `offset ${asked} is beyond the end of partition ${partition}, which is ${end}`
}

/** ISO 8601; the number where that is no time of a calendar. */
export function showTime(timestampMs: Whole): string {
  const date = new Date(Number(timestampMs))
  return Number.isNaN(date.getTime()) ? `${timestampMs}ms` : date.toISOString()
}

/** null in them is no limit; in others it is what the settings of the broker say. */
const limitFields = new Set(['retention_ms', 'retention_bytes'])

function formatConfigValue(name: string, value: Whole | string | boolean | null): string {
  if (value === null) return `${name}=${limitFields.has(name) ? 'unlimited' : 'default'}`
  return `${name}=${value}`
}

/** Fields that an answer leaves out where they have these values. Whoever writes to the topic needs to know them all the same. */
const silentFields = {
  validate_schema: false,
  message_timestamp_type: 'CreateTime',
  max_message_bytes: null,
  segment_ms: null,
  partitioner: 'fnv1a'
} as const satisfies Partial<TopicConfig>

/** The whole configuration of a topic, an entry per field. */
export function formatConfig(config: TopicConfigFields): string[] {
  // Those of the answer come first, in its order.
  const whole = { ...config, ...silentFields, ...config }
  return Object.entries(whole).map(([field, value]) => formatConfigValue(field, value))
}

/** Producer ids: a line per partition that one wrote to, or one that says there is none. */
export function formatProducers(producers: readonly ProducerAnswer[]): string[] {
  return alignWords(producers.flatMap(wordsOfProducer))
}

function wordsOfProducer({ producer_id: id, partitions }: ProducerAnswer): string[][] {
  if (partitions.length === 0) return [[`producer=${id}`, '(no partitions)']]
  return partitions.map(({ topic, partition, last_seen_sequence: sequence, last_offset: offset }) => [
    `producer=${id}`,
    `topic=${topic}`,
    `partition=${partition}`,
    `last_seen_sequence=${sequence}`,
    `last_offset=${offset}`
  ])
}

/** A topic: its configuration, then one line per partition. */
export function formatDescription({ name, partitions, config }: DescribeAnswer): string[] {
  const rows = partitions.map(partition => [
    `partition=${partition.id}`,
    `start_offset=${partition.start_offset}`,
    `end_offset=${partition.end_offset}`,
    `segments=${partition.segment_count}`,
    `size_bytes=${partition.size_bytes}`
  ])
  return [
    `topic '${name}' with ${partitions.length} partition(s)`,
    `config ${formatConfig(config).join(' ')}`,
    ...alignWords(rows)
  ]
}

/** The offsets of partitions; of a question by time also the record found, or that none is so late. */
export function formatOffsets(entries: readonly OffsetsAnswer[]): string[] {
  return alignWords(
    entries.map(({ partition, earliest, latest, offset, timestamp_ms: time }) => {
      const bounds = [`partition=${partition}`, `earliest=${earliest}`, `latest=${latest}`]
      return offset === undefined ? bounds : [...bounds, `offset=${offset}`, `timestamp_ms=${time ?? 'none'}`]
    })
  )
}
