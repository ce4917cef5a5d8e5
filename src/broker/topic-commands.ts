/**
 * Topics: create, describe, offsets, configure, grow, delete. Each change is committed in the store, then carried out
 * by the engine, then answered (durability V6). Main thread.
 */
import type { Catalog } from '../control/catalog.ts'
import type { ChangeTurns } from '../control/change-turns.ts'
import {
  decideConfigure,
  decideCreate,
  decideDelete,
  decideGrow,
  type TopicDefaults
} from '../control/topic-decisions.ts'
import type { CatalogChange } from '../control/store-image.ts'
import { BrokerError } from '../model/errors.ts'
import type { AddPartitionsRequest, CreatedTopic, CreateTopicRequest, Trial } from '../model/requests.ts'
import type { PartitionOffsets, Topic, TopicConfig, TopicConfigPatch, TopicDescription } from '../model/topic.ts'
import type { Store } from '../store/store.ts'
import type { Engine } from './engine.ts'
import { hasPartition, noSuchPartition } from './partition-range.ts'
import type { ProduceGates } from './produce-gate.ts'

export interface TopicParts {
  readonly catalog: Catalog
  readonly turns: ChangeTurns
  readonly store: Store
  readonly engine: Engine
  readonly gates: ProduceGates
  readonly defaults: TopicDefaults
  /** Called when a topic is deleted in the catalog; what it returns, when every owner has dropped it. */
  readonly onDeleting: (topic: Topic) => () => void
  /** Called when a topic has more partitions than before: the answer waits for it. */
  readonly onGrown: (topic: Topic) => Promise<void>
}

export class TopicCommands {
  readonly #parts: TopicParts

  constructor(parts: TopicParts) {
    this.#parts = parts
  }

  /** The live topic of that name. @throws BrokerError TOPIC_NOT_FOUND */
  topic(name: string): Topic {
    const topic = this.#parts.catalog.topicNamed(name)
    if (topic === undefined) throw new BrokerError('TOPIC_NOT_FOUND', { topic: name })
    return topic
  }

  /** It is visible, and 201 is answered, when every owner has opened it. */
  async create(request: CreateTopicRequest): Promise<CreatedTopic> {
    const { catalog, engine, defaults } = this.#parts
    const { topic, change } = decideCreate(catalog, request, defaults)
    const created = { name: topic.name, partitions: topic.partitionCount, config: topic.config }
    if (request.isDryRun === true) return created
    catalog.reserve(change)
    await this.#commit(change)
    try {
      await engine.openTopic(topic)
    } finally {
      // As of grow().
      catalog.apply(change)
    }
    return created
  }

  configure(name: string, patch: TopicConfigPatch, { isDryRun = false }: Trial = {}): Promise<TopicConfig> {
    const { catalog, engine, turns, defaults } = this.#parts
    return turns.run(name, async () => {
      const { partitioner } = this.topic(name).config
      const isMoved = (patch.partitioner ?? partitioner) !== partitioner
      const reopen = isMoved ? await this.#closeEmpty(name) : null
      try {
        const { topic, change } = decideConfigure(catalog, name, patch, defaults)
        if (isDryRun) return topic.config
        catalog.reserve(change)
        await this.#commit(change)
        catalog.apply(change)
        await engine.configureTopic(topic)
        return topic.config
      } finally {
        reopen?.()
      }
    })
  }

  /** Partitions are added behind those that there are: nobody can write to them before every owner has them. */
  grow({ name, partitions, isDryRun = false }: AddPartitionsRequest): Promise<{ name: string; partitions: number }> {
    const { catalog, engine, turns, onGrown } = this.#parts
    return turns.run(name, async () => {
      const { topic, change } = decideGrow(catalog, name, partitions)
      const answer = { name: topic.name, partitions: topic.partitionCount }
      if (isDryRun) return answer
      catalog.reserve(change)
      await this.#commit(change)
      try {
        await engine.configureTopic(topic)
      } finally {
        // It is committed, so it is so whatever a shard says: a topic left in flight could never be changed again.
        catalog.apply(change)
        await onGrown(topic)
      }
      return answer
    })
  }

  /**
   * Nothing was ever written to the topic, and nothing will be until it is opened again: records are routed by its
   * partitioner when they are taken, so none may be on its way by the former one. Produces wait meanwhile, and notice
   * nothing.
   * @returns opens it. @throws BrokerError FIELD_INVALID: there is something; those of a look at the shards
   */
  async #closeEmpty(name: string): Promise<() => void> {
    const { engine, gates } = this.#parts
    const topic = this.topic(name)
    const gate = gates.of(topic.id)
    const open = (): void => {
      gate.open()
      // Those who wait try again.
      engine.turn()
    }
    if (!gate.tryClose()) throw notEmpty(topic, 'records are on their way to it')
    try {
      const partitions = await engine.describeTopic(topic)
      const used = partitions.find(({ end_offset: end }) => end > 0)
      if (used !== undefined) throw notEmpty(topic, `partition ${used.id} ends at offset ${used.end_offset}`)
      return open
    } catch (error) {
      open()
      throw error
    }
  }

  delete(name: string): Promise<{ name: string; partitions: number }> {
    const { catalog, engine, turns, onDeleting } = this.#parts
    return turns.run(name, async () => {
      const { topic, change } = decideDelete(catalog, name)
      catalog.reserve(change)
      await this.#commit(change)
      catalog.apply(change)
      const onDropped = onDeleting(topic)
      await engine.dropTopic(topic)
      onDropped()
      return { name: topic.name, partitions: topic.partitionCount }
    })
  }

  async describe(name: string): Promise<TopicDescription> {
    const topic = this.topic(name)
    const partitions = await this.#parts.engine.describeTopic(topic)
    return { name: topic.name, partitions, config: topic.config }
  }

  async offsetsAt(name: string, partition: number | null, timestampMs: bigint | null): Promise<PartitionOffsets[]> {
    const topic = this.topic(name)
    checkPartition(topic, partition)
    return this.#parts.engine.offsetsAt(topic, partition, storedTimeOf(timestampMs))
  }

  /** Beyond the end the shard says where that is; what no offset can be is asked about all the same. */
  async deleteRecords(name: string, partition: number, offset: bigint): Promise<number> {
    const topic = this.topic(name)
    checkPartition(topic, partition)
    const isOffset = offset <= BigInt(Number.MAX_SAFE_INTEGER)
    try {
      return await this.#parts.engine.deleteRecords(
        topic,
        partition,
        isOffset ? Number(offset) : Number.MAX_SAFE_INTEGER
      )
    } catch (error) {
      if (isOffset || !(error instanceof BrokerError) || error.code !== 'FIELD_RANGE') throw error
      throw new BrokerError('FIELD_RANGE', { ...error.details, value: String(offset) })
    }
  }

  async #commit(change: CatalogChange): Promise<void> {
    const { catalog, store } = this.#parts
    try {
      await store.commit([change])
    } catch (error) {
      catalog.abandon(change)
      throw error
    }
  }
}

function notEmpty({ name, config: { partitioner } }: Topic, reason: string): BrokerError {
  const problem = `of topic '${name}' stays ${partitioner}: it changes only while no record was ever written, and ${reason}; nothing was changed`
  return new BrokerError('FIELD_INVALID', { field: 'partitioner', problem })
}

/** @param partition null: all of them. @throws BrokerError PARTITION_RANGE */
export function checkPartition(topic: Topic, partition: number | null): void {
  if (partition !== null && !hasPartition(topic, partition)) throw noSuchPartition(topic, partition)
}

/**
 * A time as it may be stored. No stored time is beyond a safe integer: what is, is later than all records (null: there
 * is nothing to look for), or earlier.
 */
export function storedTimeOf(timestampMs: bigint | null): number | null {
  if (timestampMs === null || timestampMs > BigInt(Number.MAX_SAFE_INTEGER)) return null
  return Math.max(Number(timestampMs), Number.MIN_SAFE_INTEGER)
}
