/**
 * What a request to create, change or delete a topic leads to. Pure: reads the catalog, returns changes, alters nothing.
 * Main thread. The caller reserves the changes in the same turn, commits them, then applies or abandons them.
 */
import { BrokerError } from '../model/errors.ts'
import { rangesOf, withRange } from '../model/handles.ts'
import { toTopicId } from '../model/ids.ts'
import { limits } from '../model/limits.ts'
import type { CreateTopicRequest } from '../model/requests.ts'
import type { Topic, TopicConfig, TopicConfigPatch } from '../model/topic.ts'
import type { Catalog } from './catalog.ts'
import { changedConfig, checkPartitionCount, checkTopicName, checkValidation } from './topic-rules.ts'
import type { CatalogChange } from './store-image.ts'

/** What a topic gets where its creator says nothing. */
export interface TopicDefaults {
  /** `--segment-bytes`. */
  readonly segmentBytes: number
  /** `--default-tombstone-retention-ms`. */
  readonly tombstoneRetentionMs: number
  /** The largest batch that the broker takes: no topic can be set to take larger ones. */
  readonly batchBytesMax: number
}

/** A decided change. `topic` is as it will be; of a deletion, as it was. */
export interface TopicDecision {
  readonly topic: Topic
  readonly change: CatalogChange
}

/** Handles are u32. */
const HANDLE_MAX = 0xffff_ffff

/**
 * Order of the checks, first refusal wins (spec 3): exists (or is being created) · partitions · name · config · limits.
 * @throws BrokerError TOPIC_EXISTS, FIELD_RANGE, NAME_INVALID, FIELD_INVALID, TOPICS_TOO_MANY
 */
export function decideCreate(catalog: Catalog, request: CreateTopicRequest, defaults: TopicDefaults): TopicDecision {
  const { name, partitions } = request
  if (catalog.topicNamed(name) !== undefined || catalog.isInFlight(name)) {
    throw new BrokerError('TOPIC_EXISTS', { topic: name })
  }
  checkPartitionCount(partitions)
  checkTopicName(name)
  const config = changedConfig(defaultConfig(defaults), request.config, 'config.', defaults.batchBytesMax)
  checkValidation(name, config, 'config.')
  checkRoom(catalog, name, partitions)
  const topic: Topic = {
    id: toTopicId(catalog.next.topicId),
    name,
    firstHandle: catalog.next.handle,
    partitionCount: partitions,
    config
  }
  return { topic, change: { kind: 'topic-created', topic } }
}

/**
 * @throws BrokerError TOPIC_NOT_FOUND; FIELD_RANGE, FIELD_INVALID; OVERLOADED while another change of the topic is in
 * flight (take turns by change-turns.ts and it does not come to that).
 */
export function decideConfigure(
  catalog: Catalog,
  name: string,
  patch: TopicConfigPatch,
  { batchBytesMax }: Pick<TopicDefaults, 'batchBytesMax'>
): TopicDecision {
  const topic = changeableTopic(catalog, name)
  const config = changedConfig(topic.config, patch, '', batchBytesMax)
  checkValidation(name, config, '')
  return { topic: { ...topic, config }, change: { kind: 'topic-configured', id: topic.id, config } }
}

/**
 * @param count partitions that the topic is to have, more than it has.
 * @throws BrokerError TOPIC_NOT_FOUND; FIELD_RANGE, FIELD_INVALID; OVERLOADED like decideConfigure
 */
export function decideGrow(catalog: Catalog, name: string, count: number): TopicDecision {
  const topic = changeableTopic(catalog, name)
  checkPartitionCount(count)
  const { partitionCount: has } = topic
  if (count <= has) {
    const problem = `topic '${name}' has ${has} partition(s), and cannot come to have ${count}: they can only become more`
    throw new BrokerError('FIELD_INVALID', { field: 'partitions', problem })
  }
  checkPartitionsTotal(catalog, count - has)
  const range = { firstPartition: has, firstHandle: catalog.next.handle, partitionCount: count - has }
  const grown = withRange(topic, range)
  checkRanges(topic, grown)
  return { topic: grown, change: { kind: 'topic-grown', id: topic.id, range } }
}

/** A topic that is beyond the limit, from before there was one, may grow while its ranges do not become more. */
function checkRanges(topic: Topic, grown: Topic): void {
  const count = rangesOf(grown).length
  if (count <= Math.max(limits.topicRangesMax, rangesOf(topic).length)) return
  const problem =
    `topic '${topic.name}' cannot come to have ${grown.partitionCount}: their handles would be in ${count} rows, and ` +
    `${limits.topicRangesMax} is the limit (it grew that often, with other topics made or grown between); nothing was written`
  throw new BrokerError('FIELD_INVALID', { field: 'partitions', problem })
}

/** @throws BrokerError TOPIC_NOT_FOUND; OVERLOADED like decideConfigure */
export function decideDelete(catalog: Catalog, name: string): TopicDecision {
  const topic = changeableTopic(catalog, name)
  return { topic, change: { kind: 'topic-deleted', id: topic.id } }
}

/** Two changes decided on the same state would lose one of them, so the second is refused, not merged. */
function changeableTopic(catalog: Catalog, name: string): Topic {
  const topic = catalog.topicNamed(name)
  if (topic === undefined) throw new BrokerError('TOPIC_NOT_FOUND', { topic: name })
  if (catalog.isInFlight(name)) throw new BrokerError('OVERLOADED', { what: `changing topic '${name}'`, limit: 1 })
  return topic
}

function defaultConfig(defaults: TopicDefaults): TopicConfig {
  return {
    retention_ms: null,
    retention_bytes: null,
    cleanup_policy: 'delete',
    segment_bytes: defaults.segmentBytes,
    tombstone_retention_ms: defaults.tombstoneRetentionMs,
    validate_schema: false,
    message_timestamp_type: 'CreateTime',
    max_message_bytes: null,
    segment_ms: null,
    partitioner: 'fnv1a'
  }
}

function checkRoom(catalog: Catalog, name: string, partitions: number): void {
  if (catalog.claimed.topicCount >= limits.topicsMax) {
    throw new BrokerError('TOPICS_TOO_MANY', { topic: name, limit: limits.topicsMax })
  }
  checkPartitionsTotal(catalog, partitions)
}

/** That there is room for so many more, and that there are handles for them. */
function checkPartitionsTotal(catalog: Catalog, partitions: number): void {
  const { partitionCount } = catalog.claimed
  if (partitionCount + partitions > limits.partitionsTotalMax) {
    const problem = `${partitions} more would pass the ${limits.partitionsTotalMax} of all topics (now ${partitionCount})`
    throw new BrokerError('FIELD_INVALID', { field: 'partitions', problem })
  }
  if (catalog.next.handle + partitions - 1 > HANDLE_MAX) {
    const problem = 'this data directory has used up its partition numbers'
    throw new BrokerError('FIELD_INVALID', { field: 'partitions', problem })
  }
}
