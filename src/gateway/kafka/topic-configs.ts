/**
 * The configuration of topics under the names that Kafka has for it: one row each. What the broker has fixed is shown, and
 * taken where it says the same. Pure, any thread.
 */
import { BrokerError } from '../../model/errors.ts'
import { limits } from '../../model/limits.ts'
import { cleanupPolicies, type CleanupPolicy, type TopicConfig, type TopicConfigPatch } from '../../model/topic.ts'
import type { KafkaSettings } from './settings.ts'

/** Types of settings as the protocol numbers them. */
export const configTypes = { boolean: 1, string: 2, int: 3, long: 5, list: 7 } as const
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
  readonly show: (config: TopicConfig) => string
  /** @throws BrokerError FIELD_INVALID */
  readonly patch: (text: string, name: string) => TopicConfigPatch
  /** The text that stands for what a topic has that says nothing. */
  readonly fallback: (settings: KafkaSettings) => string
}

/** A setting that is the same for all topics. */
interface FixedRow {
  readonly type: number
  readonly documentation: string
  readonly value: (settings: KafkaSettings) => string
}

const NEVER = '-1'
const showLimit = (value: number | bigint | null): string => (value === null ? NEVER : String(value))

const rows: Readonly<Record<string, Row>> = {
  'cleanup.policy': {
    type: configTypes.list,
    documentation: 'delete drops old segments, compact keeps the last record of each key',
    show: config => config.cleanup_policy,
    patch: (text, name) => ({ cleanup_policy: policyOf(text, name) }),
    fallback: () => 'delete'
  },
  'delete.retention.ms': {
    type: configTypes.long,
    documentation: 'how long compaction keeps a tombstone',
    show: config => String(config.tombstone_retention_ms),
    patch: (text, name) => ({ tombstone_retention_ms: numberOf(text, name) }),
    fallback: settings => String(settings.defaultTombstoneRetentionMs)
  },
  'retention.bytes': {
    type: configTypes.long,
    documentation: 'bytes of a partition beyond which its oldest segments are dropped; −1: never',
    show: config => showLimit(config.retention_bytes),
    patch: (text, name) => ({ retention_bytes: numberOf(text, name) }),
    fallback: () => NEVER
  },
  'retention.ms': {
    type: configTypes.long,
    documentation: 'age at which segments are dropped; −1: never',
    show: config => showLimit(config.retention_ms),
    patch: (text, name) => ({ retention_ms: numberOf(text, name) }),
    fallback: () => NEVER
  },
  'segment.bytes': {
    type: configTypes.int,
    documentation: 'size at which a segment ends',
    show: config => String(config.segment_bytes),
    patch: (text, name) => ({ segment_bytes: Number(numberOf(text, name)) }),
    fallback: settings => String(settings.segmentBytes)
  }
}

const fixedRows: Readonly<Record<string, FixedRow>> = {
  'compression.type': {
    type: configTypes.string,
    documentation: 'batches are stored as their producer compressed them',
    value: () => 'producer'
  },
  'max.message.bytes': {
    type: configTypes.int,
    documentation: 'the largest batch: --max-record-bytes, and 1 MiB for what is around it',
    value: settings => String(batchBytesMax(settings))
  },
  'message.timestamp.type': {
    type: configTypes.string,
    documentation: 'records keep the times that their producer gave them',
    value: () => 'CreateTime'
  },
  'min.insync.replicas': {
    type: configTypes.int,
    documentation: 'there is one copy, which has every acknowledged record',
    value: () => '1'
  }
}

/** Bytes of the largest batch that is taken. */
export function batchBytesMax({ maxRecordBytes }: KafkaSettings): number {
  return maxRecordBytes + limits.batchSurplusBytes
}

/** All settings of a topic, by name. */
export function showConfig(
  config: TopicConfig,
  settings: KafkaSettings
): (ShownConfig & { readonly source: number })[] {
  const own = Object.entries(rows).map(([name, { type, documentation, show, fallback }]) => {
    const value = show(config)
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
  if (row !== undefined) return row.patch(text ?? row.fallback(settings), name)
  const fixed = Object.hasOwn(fixedRows, name) ? fixedRows[name] : undefined
  if (fixed === undefined) throw invalid(name, 'is not a setting that topics have here')
  const value = fixed.value(settings)
  if (text !== null && text !== value) throw invalid(name, `is always ${value} here`)
  return {}
}

/** Everything back to what a topic has that says nothing. */
export function fallbackPatch(settings: KafkaSettings): TopicConfigPatch {
  return Object.assign({}, ...Object.keys(rows).map(name => patchOf(name, null, settings))) as TopicConfigPatch
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

/** A number wherever it is exact as one. */
function numberOf(text: string, name: string): number | bigint {
  if (!/^-?\d{1,19}$/.test(text)) throw invalid(name, `is '${text}', which is not a whole number`)
  const number = Number(text)
  return Number.isSafeInteger(number) ? number : BigInt(text)
}

function invalid(setting: string, problem: string): BrokerError {
  return new BrokerError('FIELD_INVALID', { field: setting, problem })
}
