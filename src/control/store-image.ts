/** The shapes that travel between the main thread and the store thread: state at open, and changes. */
import type { HandleRange, PartitionHandles } from '../model/handles.ts'
import type { Topic, TopicConfig } from '../model/topic.ts'
import type { Producer } from '../model/producer.ts'
import type { TopicId } from '../model/ids.ts'
import type { StoredKey } from '../model/keys.ts'
import type { CompatibilityMode, SchemaVersion } from '../model/schemas.ts'

/** A deleted topic whose handles may still stand in a slot (durability V6). */
export interface Tombstone extends PartitionHandles {
  readonly id: TopicId
  readonly name: string
}

/** A journal slot that was durable when this was noted; later ones may exist. */
export interface NewestSlot {
  readonly shard: number
  readonly sequence: number
}

/**
 * Where the partitions live (durability V7). Handles go to shard `handle % shardCount`; a change of the count begins a new
 * epoch, whose files lie beside those of the old one.
 *
 *   stable(n, e) ─▶ draining(n → m, e) ─▶ clearing(m, e + 1, left n) ─▶ stable(m, e + 1)
 *                          └─▶ stable(n, e)   given up
 */
export interface Placement {
  /** null until the first start has chosen. */
  readonly shardCount: number | null
  readonly epoch: number
  /** The count that is being changed to: nothing of it counts yet. null: none. */
  readonly nextShardCount: number | null
  /** The count of the epoch before, whose files are to be removed. null: none are. */
  readonly previousShardCount: number | null
}

/** A consumer group. */
export interface GroupRow {
  /** What the rows of its offsets call it. */
  readonly number: number
  readonly name: string
  /** Id of the key that it belongs to. */
  readonly owner: string
}

/** Committed offsets, a column each, all of one length: there may be millions. */
export interface GroupOffsetRows {
  /** Numbers of groups. */
  readonly groups: Uint32Array
  /** Topic ids. */
  readonly topics: Float64Array
  readonly partitions: Uint32Array
  readonly offsets: BigUint64Array
  /** −1: not told. */
  readonly leaderEpochs: Int32Array
  /** What is noted beside them, by their places in the columns; those that have nothing are not in it. */
  readonly metadata: ReadonlyMap<number, string>
}

/** A compatibility mode that was chosen. */
export interface SchemaModeRow {
  /** null: the general one. */
  readonly subject: string | null
  readonly mode: CompatibilityMode
}

/** What the store held when it was opened. */
export interface StoreImage {
  /** Random, made with the directory: hex, 32 digits. */
  readonly directoryId: string
  /** Shards that own partitions (durability V7); null in a new directory. */
  readonly shardCount: number | null
  readonly placementEpoch: number
  readonly nextShardCount: number | null
  readonly previousShardCount: number | null
  readonly topics: readonly Topic[]
  readonly tombstones: readonly Tombstone[]
  /** By shard: sequence of the newest journal slot known to be durable. A start that finds less is missing slots (V2). */
  readonly newestSlots: readonly NewestSlot[]
  /** Next ids to allot: above every one ever allotted. */
  readonly nextTopicId: number
  readonly nextHandle: number
  readonly producers: readonly Producer[]
  readonly nextProducerNumber: number
  /** In the order in which they were made. */
  readonly keys: readonly StoredKey[]
  readonly groups: readonly GroupRow[]
  /** Of these groups, on live topics. */
  readonly groupOffsets: GroupOffsetRows
  /** By id, then subject. */
  readonly schemaVersions: readonly SchemaVersion[]
  readonly schemaModes: readonly SchemaModeRow[]
  /** Above every id that a schema ever had. */
  readonly nextSchemaId: number
}

/** A change of the catalog: placement, journals, topics. */
export type CatalogChange =
  /** With a new epoch the newest slots of the old one are forgotten: the new shards have journals of their own. */
  | {
      readonly kind: 'placement'
      readonly shardCount: number
      readonly epoch: number
      /** Absent: none. */
      readonly nextShardCount?: number
      readonly previousShardCount?: number
    }
  | { readonly kind: 'slot-opened'; readonly shard: number; readonly sequence: number }
  | { readonly kind: 'topic-created'; readonly topic: Topic }
  | { readonly kind: 'topic-configured'; readonly id: TopicId; readonly config: TopicConfig }
  /** It has these partitions too. */
  | { readonly kind: 'topic-grown'; readonly id: TopicId; readonly range: HandleRange }
  | { readonly kind: 'topic-deleted'; readonly id: TopicId }
  /** Nothing mentions the handles of these deleted topics any more. */
  | { readonly kind: 'tombstones-forgotten'; readonly ids: readonly TopicId[] }

export type ProducerChange =
  | { readonly kind: 'producer-added'; readonly producer: Producer }
  /** When it was used last, and whether it is claimed. Rows that are not there any more stay away. */
  | { readonly kind: 'producer-used'; readonly producer: Pick<Producer, 'number' | 'isClaimed' | 'lastUsedMs'> }
  | { readonly kind: 'producer-forgotten'; readonly number: number }

export type KeyChange =
  | { readonly kind: 'key-created'; readonly key: StoredKey }
  | { readonly kind: 'key-revoked'; readonly keyId: string }
  /** Only of a revoked key. */
  | { readonly kind: 'key-forgotten'; readonly keyId: string }

/** A partition, by the id of its topic. */
export interface OffsetPlace {
  readonly topic: number
  readonly partition: number
}

export type GroupChange =
  | { readonly kind: 'group-added'; readonly group: GroupRow }
  /** With its offsets. */
  | { readonly kind: 'group-removed'; readonly number: number; readonly topics: readonly number[] }
  /** Rows that are there are replaced. */
  | { readonly kind: 'group-offsets'; readonly rows: GroupOffsetRows }
  /** Of one group. Those that are not there are passed over. */
  | { readonly kind: 'group-offsets-removed'; readonly number: number; readonly places: readonly OffsetPlace[] }

export type SchemaChange =
  /** Its id is a new one, or that of a schema with the same text and type. */
  | { readonly kind: 'schema-added'; readonly version: SchemaVersion }
  /** mode null: none is chosen any more. */
  | { readonly kind: 'schema-mode'; readonly subject: string | null; readonly mode: CompatibilityMode | null }

/** One durable change. A commit applies all of its changes or none. */
export type StoreChange = CatalogChange | ProducerChange | KeyChange | GroupChange | SchemaChange
