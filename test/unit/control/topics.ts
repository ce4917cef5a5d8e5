/** Ready-made catalogs and topics for the tests of this folder and of the store. */
import { Catalog } from '../../../src/control/catalog.ts'
import type { StoreImage } from '../../../src/control/store-image.ts'
import { decideConfigure, decideCreate, decideDelete, decideGrow } from '../../../src/control/topic-decisions.ts'
import type { TopicDecision, TopicDefaults } from '../../../src/control/topic-decisions.ts'
import { toTopicId } from '../../../src/model/ids.ts'
import type { Topic, TopicConfig, TopicConfigPatch } from '../../../src/model/topic.ts'

export const defaults: TopicDefaults = {
  segmentBytes: 64 * 1024 * 1024,
  tombstoneRetentionMs: 86_400_000,
  batchBytesMax: 9 * 1024 * 1024
}

export const defaultConfig: TopicConfig = {
  retention_ms: null,
  retention_bytes: null,
  cleanup_policy: 'delete',
  segment_bytes: 67_108_864,
  tombstone_retention_ms: 86_400_000,
  validate_schema: false,
  message_timestamp_type: 'CreateTime',
  max_message_bytes: null,
  segment_ms: null,
  partitioner: 'fnv1a'
}

export const emptyImage: StoreImage = {
  directoryId: '00112233445566778899aabbccddeeff',
  shardCount: null,
  newestSlots: [],
  placementEpoch: 0,
  nextShardCount: null,
  previousShardCount: null,
  topics: [],
  tombstones: [],
  nextTopicId: 1,
  nextHandle: 1,
  producers: [],
  nextProducerNumber: 1,
  keys: [],
  groups: [],
  groupOffsets: {
    groups: new Uint32Array(0),
    topics: new Float64Array(0),
    partitions: new Uint32Array(0),
    offsets: new BigUint64Array(0),
    leaderEpochs: new Int32Array(0),
    metadata: new Map()
  },
  schemaVersions: [],
  schemaModes: [],
  nextSchemaId: 1
}

export function topicOf(fields: { id: number; name: string; firstHandle: number } & Partial<Omit<Topic, 'id'>>): Topic {
  return {
    partitionCount: 1,
    config: defaultConfig,
    ...fields,
    id: toTopicId(fields.id)
  }
}

/** Reserves and applies, as if the store had committed. */
export function carryOut(catalog: Catalog, decision: TopicDecision): Topic {
  catalog.reserve(decision.change)
  catalog.apply(decision.change)
  return decision.topic
}

export function create(catalog: Catalog, name: string, partitions = 1, config: TopicConfigPatch = {}): Topic {
  return carryOut(catalog, decideCreate(catalog, { name, partitions, config }, defaults))
}

export function configure(catalog: Catalog, name: string, patch: TopicConfigPatch): Topic {
  return carryOut(catalog, decideConfigure(catalog, name, patch, defaults))
}

export function grow(catalog: Catalog, name: string, count: number): Topic {
  return carryOut(catalog, decideGrow(catalog, name, count))
}

export function remove(catalog: Catalog, name: string): Topic {
  return carryOut(catalog, decideDelete(catalog, name))
}
