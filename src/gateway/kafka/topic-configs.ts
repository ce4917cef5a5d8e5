/**
 * The configuration of topics under the names that Kafka has for it: one row each, all that topics of Kafka 4 can say. What
 * is the same for all topics here is shown, and taken where it says the same: tools that spell out what is so anyway work,
 * and nobody is told that he has what he has not. Pure, any thread.
 */
import { BrokerError } from '../../model/errors.ts'
import { batchBytesMax } from '../../model/limits.ts'
import {
  BLOCK_BYTES_MIN,
  DIRTY_SHARE_MIN,
  cleanupPolicies,
  partitioners,
  timestampTypes,
  type CleanupPolicy,
  type Partitioner,
  type TopicConfig,
  type TopicConfigPatch
} from '../../model/topic.ts'
import type { KafkaSettings } from './settings.ts'

/** Types of settings as the protocol numbers them. */
export const configTypes = { boolean: 1, string: 2, int: 3, long: 5, double: 6, list: 7 } as const
const { boolean, string, int, long, double, list } = configTypes
/** Where a value comes from, likewise. */
export const configSources = { topic: 1, broker: 4, fallback: 5 } as const

/** One setting as it is shown. */
export interface ShownConfig {
  readonly name: string
  readonly value: string
  readonly isFixed: boolean
  readonly type: number
  readonly documentation: string
}

/** A setting that topics have. */
interface Row {
  readonly type: number
  readonly documentation: string
  readonly show: (config: TopicConfig, settings: KafkaSettings) => string
  /** @throws BrokerError FIELD_INVALID */
  readonly patch: (text: string, name: string) => TopicConfigPatch
  /** What is shown of a topic that says nothing. */
  readonly fallback: (settings: KafkaSettings) => string
  /** What takes a topic back there, if that is not to set it to what is shown. */
  readonly clear?: TopicConfigPatch
}

/** A setting that is the same for all topics. */
interface FixedRow {
  readonly type: number
  /** Why it is so, and what to do who wants something else. */
  readonly documentation: string
  readonly value: (settings: KafkaSettings) => string
}

const NEVER = '-1'
/** What Kafka gives an index unless it is told otherwise. Indexes here have no size of their own to tell. */
const KAFKA_INDEX_BYTES = '10485760'
const LONG_MAX = '9223372036854775807'
const showLimit = (value: number | bigint | null): string => (value === null ? NEVER : String(value))

/** What topics get that are made over Kafka: its clients put keys where this hash says. */
export const KAFKA_PARTITIONER: Partitioner = 'murmur2'
const PARTITIONER = 'millrace.partitioner'

/** What the fields of a configuration are called over Kafka. Nobody can set the schemas there, so that one keeps its name. */
const namesOfFields: Readonly<Record<keyof TopicConfig, string>> = {
  cleanup_policy: 'cleanup.policy',
  max_message_bytes: 'max.message.bytes',
  message_timestamp_type: 'message.timestamp.type',
  partitioner: PARTITIONER,
  retention_bytes: 'retention.bytes',
  retention_ms: 'retention.ms',
  segment_bytes: 'segment.bytes',
  segment_ms: 'segment.ms',
  tombstone_retention_ms: 'delete.retention.ms',
  validate_schema: 'validate_schema'
}

/** @param field of the broker's errors, also within a `config`. @returns its name over Kafka, or the field: it is no setting. */
export function nameOfField(field: string): string {
  const own = field.replace(/^config\./, '')
  return Object.hasOwn(namesOfFields, own) ? namesOfFields[own as keyof TopicConfig] : field
}

const rows: Readonly<Record<string, Row>> = {
  'cleanup.policy': {
    type: list,
    documentation: 'delete drops old segments, compact keeps the last record of each key',
    show: config => config.cleanup_policy,
    patch: (text, name) => ({ cleanup_policy: policyOf(text, name) }),
    fallback: () => 'delete'
  },
  'delete.retention.ms': {
    type: long,
    documentation: 'how long compaction keeps a tombstone',
    show: config => String(config.tombstone_retention_ms),
    patch: (text, name) => ({ tombstone_retention_ms: numberOf(text, name) }),
    fallback: settings => String(settings.defaultTombstoneRetentionMs)
  },
  'max.message.bytes': {
    type: int,
    documentation: 'the largest batch; at most --max-record-bytes, and 1 MiB for what is around a record',
    show: (config, settings) => {
      const limit = batchBytesMax(settings.maxRecordBytes)
      return String(Math.min(config.max_message_bytes ?? limit, limit))
    },
    patch: (text, name) => ({ max_message_bytes: Number(positiveOf(text, name)) }),
    fallback: settings => String(batchBytesMax(settings.maxRecordBytes)),
    clear: { max_message_bytes: -1 }
  },
  'message.timestamp.type': {
    type: string,
    documentation: 'CreateTime: records keep the times of their producer, LogAppendTime: they get that of their append',
    show: config => config.message_timestamp_type,
    patch: (text, name) => ({ message_timestamp_type: wordOf(text, name, timestampTypes) }),
    fallback: () => 'CreateTime'
  },
  [PARTITIONER]: {
    type: string,
    documentation:
      'how HTTP and ES01 put keys into partitions: fnv1a, or murmur2 as Kafka; it changes while the topic is empty',
    show: config => config.partitioner,
    patch: (text, name) => ({ partitioner: wordOf(text, name, partitioners) }),
    fallback: () => KAFKA_PARTITIONER
  },
  'retention.bytes': {
    type: long,
    documentation: 'bytes of a partition beyond which its oldest segments are dropped; −1: never',
    show: config => showLimit(config.retention_bytes),
    patch: (text, name) => ({ retention_bytes: numberOf(text, name) }),
    fallback: () => NEVER
  },
  'retention.ms': {
    type: long,
    documentation: 'age at which segments are dropped; −1: never',
    show: config => showLimit(config.retention_ms),
    patch: (text, name) => ({ retention_ms: numberOf(text, name) }),
    fallback: () => NEVER
  },
  'segment.bytes': {
    type: int,
    documentation: 'size at which a segment ends',
    show: config => String(config.segment_bytes),
    patch: (text, name) => ({ segment_bytes: Number(numberOf(text, name)) }),
    fallback: settings => String(settings.segmentBytes)
  },
  'segment.ms': {
    type: long,
    documentation: 'age at which a segment ends; looked at every --retention-check-interval',
    show: (config, settings) => String(config.segment_ms ?? settings.segmentMs),
    patch: (text, name) => ({ segment_ms: positiveOf(text, name) }),
    fallback: settings => String(settings.segmentMs),
    clear: { segment_ms: -1 }
  }
}

function fixed(type: number, value: string | ((settings: KafkaSettings) => string), documentation: string): FixedRow {
  return { type, documentation, value: typeof value === 'string' ? () => value : value }
}

const asProduced = 'batches are stored as their producer compressed them: choose there'
const noReplicas = 'there is one copy, so no replication to throttle: quotas belong to API keys'
const noRemoteTier = 'cold storage is configured for the whole broker (--cold-storage)'

const fixedRows: Readonly<Record<string, FixedRow>> = {
  'compression.gzip.level': fixed(int, '-1', asProduced),
  'compression.lz4.level': fixed(int, '9', asProduced),
  'compression.type': fixed(string, 'producer', asProduced),
  'compression.zstd.level': fixed(int, '3', asProduced),
  'file.delete.delay.ms': fixed(
    long,
    settings => String(settings.segmentDeleteGraceMs),
    'when the files of dropped segments are removed: --segment-delete-grace'
  ),
  'flush.messages': fixed(
    long,
    settings => String(settings.flushEveryRecords),
    '1: an acknowledged record is on disk. All topics share a journal: --flush-every-records'
  ),
  'flush.ms': fixed(
    long,
    settings => (settings.flushEveryRecords === 1 ? LONG_MAX : String(settings.flushIntervalMs)),
    'no record waits for a clock to be synced, unless --flush-every-records is above 1: then --flush-interval'
  ),
  'follower.replication.throttled.replicas': fixed(list, '', noReplicas),
  'index.interval.bytes': fixed(int, String(BLOCK_BYTES_MIN), 'bytes between two entries of an index'),
  'leader.replication.throttled.replicas': fixed(list, '', noReplicas),
  'local.retention.bytes': fixed(long, '-2', 'as retention.bytes says'),
  'local.retention.ms': fixed(long, '-2', 'as retention.ms says'),
  'max.compaction.lag.ms': fixed(long, LONG_MAX, 'compaction goes by the share of what can go, not by its age'),
  'message.downconversion.enable': fixed(boolean, 'false', 'batches are sent as they are stored, in format 2'),
  'message.timestamp.after.max.ms': fixed(
    long,
    LONG_MAX,
    'no time of a producer is refused, and retention does not go by it. LogAppendTime sets it aside'
  ),
  'message.timestamp.before.max.ms': fixed(
    long,
    LONG_MAX,
    'no time of a producer is refused, and retention does not go by it. LogAppendTime sets it aside'
  ),
  'min.cleanable.dirty.ratio': fixed(
    double,
    String(DIRTY_SHARE_MIN),
    'share of a partition that compaction has not seen when it begins'
  ),
  'min.compaction.lag.ms': fixed(
    long,
    '0',
    'a record may be compacted away as soon as its segment has ended: a longer segment.ms keeps it longer'
  ),
  'min.insync.replicas': fixed(int, '1', 'there is one copy, which has every acknowledged record'),
  preallocate: fixed(boolean, 'false', 'segment files grow; what is written first is the journal'),
  'remote.copy.disable': fixed(boolean, 'false', noRemoteTier),
  'remote.log.delete.on.disable': fixed(boolean, 'false', noRemoteTier),
  'remote.storage.enable': fixed(boolean, 'false', noRemoteTier),
  'segment.index.bytes': fixed(int, KAFKA_INDEX_BYTES, 'the index of the largest segment has less'),
  'segment.jitter.ms': fixed(long, '0', 'segments end at their age: segment.ms'),
  'unclean.leader.election.enable': fixed(boolean, 'false', 'there is one copy, so nobody else can lead')
}

/** All settings of a topic, by name. */
export function showConfig(
  config: TopicConfig,
  settings: KafkaSettings
): (ShownConfig & { readonly source: number })[] {
  const own = Object.entries(rows).map(([name, { type, documentation, show, fallback }]) => {
    const value = show(config, settings)
    const source = value === fallback(settings) ? configSources.fallback : configSources.topic
    return { name, value, isFixed: false, type, documentation, source }
  })
  const fixed = Object.entries(fixedRows).map(([name, { type, documentation, value }]) => ({
    name,
    value: value(settings),
    isFixed: true,
    type,
    documentation,
    source: configSources.fallback
  }))
  return [...own, ...fixed].sort((one, other) => (one.name < other.name ? -1 : 1))
}

/**
 * What a text changes.
 * @param text null: back to what a topic has that says nothing. @throws BrokerError FIELD_INVALID
 */
export function patchOf(name: string, text: string | null, settings: KafkaSettings): TopicConfigPatch {
  const row = Object.hasOwn(rows, name) ? rows[name] : undefined
  if (row !== undefined) {
    if (text === null && row.clear !== undefined) return row.clear
    return row.patch((text ?? row.fallback(settings)).trim(), name)
  }
  const fixedRow = Object.hasOwn(fixedRows, name) ? fixedRows[name] : undefined
  if (fixedRow === undefined) throw invalid(name, 'is not a setting that topics have here')
  const value = fixedRow.value(settings)
  if (text === null || text.trim() === value || (fixedRow.type === double && Number(text) === Number(value))) return {}
  throw invalid(name, `is '${text}': it is always ${value === '' ? 'empty' : value} here (${fixedRow.documentation})`)
}

/** Everything back to what a topic has that says nothing; but for the partitioner, which a topic with records cannot change. */
export function fallbackPatch(settings: KafkaSettings): TopicConfigPatch {
  const names = Object.keys(rows).filter(name => name !== PARTITIONER)
  return Object.assign({}, ...names.map(name => patchOf(name, null, settings))) as TopicConfigPatch
}

/** The list of policies with one more, or one less. @throws BrokerError FIELD_INVALID if it is no list. */
export function changedList(name: string, current: TopicConfig, text: string, isMore: boolean): string {
  if (name !== 'cleanup.policy') throw invalid(name, 'is not a list: it can be set, not appended to')
  const words = new Set<string>(current.cleanup_policy.split(','))
  for (const word of wordsOf(text)) {
    if (isMore) words.add(word)
    else words.delete(word)
  }
  return [...words].join(',')
}

function wordsOf(text: string): string[] {
  return text.split(',').map(word => word.trim())
}

function policyOf(text: string, name: string): CleanupPolicy {
  const words = [...new Set(wordsOf(text))].sort().join(',')
  const known = cleanupPolicies.find(policy => policy === words)
  if (known === undefined) throw invalid(name, `is '${text}': allowed are delete, compact, and both`)
  return known
}

function wordOf<Word extends string>(text: string, name: string, words: readonly Word[]): Word {
  const known = words.find(word => word === text)
  if (known === undefined) throw invalid(name, `is '${text}': allowed are ${words.join(' and ')}`)
  return known
}

/** −1, which means the broker's over HTTP, is no value in Kafka. */
function positiveOf(text: string, name: string): number | bigint {
  const number = numberOf(text, name)
  if (number < 1) throw invalid(name, `is '${text}', and must be 1 or more`)
  return number
}

/** A number wherever it is exact as one. */
function numberOf(text: string, name: string): number | bigint {
  if (!/^-?\d{1,19}$/.test(text)) throw invalid(name, `is '${text}', which is not a whole number`)
  const number = Number(text)
  return Number.isSafeInteger(number) ? number : BigInt(text)
}

function invalid(setting: string, problem: string): BrokerError {
  return new BrokerError('FIELD_INVALID', { field: setting, problem })
}
