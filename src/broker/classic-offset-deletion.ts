/** Forgetting single offsets of a group, as Kafka's tools do. Main thread. */
import type { Catalog } from '../control/catalog.ts'
import { metadataOf } from '../control/groups/classic/member.ts'
import type { ClassicTable } from '../control/groups/classic/classic-table.ts'
import type { Coordinator } from '../control/groups/coordinator.ts'
import type { CommittedOffset, Group, GroupTable } from '../control/groups/group-table.ts'
import type { OffsetPlace } from '../control/store-image.ts'
import { authorise } from '../model/access.ts'
import type { PlaceOutcome } from '../model/classic-groups.ts'
import { BrokerError } from '../model/errors.ts'
import type { TopicPartition } from '../model/groups.ts'
import { toTopicId } from '../model/ids.ts'
import type { Principal } from '../model/principal.ts'
import type { Store } from '../store/store.ts'
import { CONSUMER, subscribedTopics } from './group-members.ts'
import type { GroupOwnership } from './group-ownership.ts'
import { inParts } from './places-in-parts.ts'

type RemovedOffset = OffsetPlace & CommittedOffset

export interface DeletionParts {
  readonly table: GroupTable
  readonly ownership: GroupOwnership
  readonly coordinator: Coordinator
  readonly classic: ClassicTable
  readonly catalog: Catalog
  readonly store: Store
}

/** @fails what ClassicGroupUseCases.deleteOffsets fails with */
export async function deleteOffsets(
  parts: DeletionParts,
  who: Principal,
  name: string,
  places: readonly TopicPartition[]
): Promise<PlaceOutcome[]> {
  const { ownership, catalog, table, store } = parts
  authorise(who, 'use group')
  const refusals = await inParts(places, ({ topic }) => refusalOf(catalog, who, topic))
  for (let change = ownership.changeOf(name); change !== undefined; change = ownership.changeOf(name)) await change
  const group = ownership.existingGroup(who, name)
  const subscribed = subscribedBy(parts, group)
  const removed: RemovedOffset[] = []
  const outcomes = places.map(({ topic: topicName, partition }, index): PlaceOutcome => {
    const refusal = refusals[index] ?? null
    if (refusal !== null) return refusal
    const topic = catalog.topicNamed(topicName)
    // Deleted meanwhile.
    if (topic === undefined) return new BrokerError('TOPIC_NOT_FOUND', { topic: topicName })
    if (subscribed.has(topicName)) return 'GROUP_SUBSCRIBED_TO_TOPIC'
    // Out of the table first: no flush may write it behind the removal.
    const committed = table.removeOffset(group, topic.id, partition)
    if (committed !== null) removed.push({ topic: topic.id, partition, ...committed })
    return null
  })
  if (removed.length === 0) return outcomes
  const gone = removed.map(({ topic, partition }) => ({ topic, partition }))
  const removing = store
    .commit([{ kind: 'group-offsets-removed', number: group.number, places: gone }])
    .catch((error: unknown) => {
      restore(parts, group, removed)
      throw error
    })
  await ownership.whileBusy(name, removing)
  return outcomes
}

/** Why nothing of a topic is deleted, whatever the group has of it. */
function refusalOf(catalog: Catalog, who: Principal, topic: string): BrokerError | null {
  if (!who.mayRead(topic)) return new BrokerError('FORBIDDEN', { operation: 'use group', need: 'read', on: topic })
  return catalog.topicNamed(topic) === undefined ? new BrokerError('TOPIC_NOT_FOUND', { topic }) : null
}

/** Of topics that are there, what nobody has committed meanwhile. */
function restore({ table, catalog }: DeletionParts, group: Group, removed: readonly RemovedOffset[]): void {
  for (const { topic: id, partition, offset, note } of removed) {
    if (catalog.topicOfId(toTopicId(id)) === undefined || table.offsetOf(group, id, partition) !== null) continue
    table.commit(group, id, partition, offset, note)
  }
}

/** Topics that members of a group subscribe to. @throws GROUP_NOT_EMPTY */
function subscribedBy({ coordinator, classic }: DeletionParts, group: Group): Set<string> {
  const topics = new Set(coordinator.membershipOf(group)?.topics() ?? [])
  const kafka = classic.groupOf(group.number)
  if (kafka === undefined || kafka.memberCount === 0) return topics
  if (kafka.protocolType !== CONSUMER) {
    throw new BrokerError('GROUP_NOT_EMPTY', { group: group.name, count: kafka.memberCount })
  }
  for (const member of kafka.members()) {
    for (const { name } of member.protocols)
      for (const topic of subscribedTopics(metadataOf(member, name))) topics.add(topic)
  }
  return topics
}
