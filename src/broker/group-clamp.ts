/**
 * Brings committed offsets that lie beyond the end of a partition back to it, after a start that cut its log (durability
 * V5): what is written there next would never be read by those groups. Main thread.
 */
import type { Logger } from '../base/logger.ts'
import type { Catalog } from '../control/catalog.ts'
import type { GroupTable } from '../control/groups/group-table.ts'
import { toTopicId } from '../model/ids.ts'
import type { Topic } from '../model/topic.ts'
import type { Engine } from './engine.ts'

export interface ClampParts {
  readonly table: GroupTable
  readonly catalog: Catalog
  readonly engine: Engine
  readonly logger: Logger
}

/**
 * Every change is logged. @param isConcerned whether the log of a partition was cut.
 * @fails what Engine.offsetsAt fails with; what was done by then stays done, and doing it again is harmless.
 */
export async function clampToEnds(
  { table, catalog, engine, logger }: ClampParts,
  isConcerned: (topic: Topic, partition: number) => boolean
): Promise<void> {
  for (const topicId of table.topicIds()) {
    const topic = catalog.topicOfId(toTopicId(topicId))
    if (topic === undefined) continue
    const places = await engine.offsetsAt(topic, null, null)
    for (const offsets of table.offsetsOfTopic(topicId)) {
      const group = table.groupWithNumber(offsets.group)
      if (group === undefined) continue
      const beyond = [...offsets.entries()].filter(([partition, offset]) => {
        return isConcerned(topic, partition) && offset > (places[partition]?.latest ?? offset)
      })
      for (const [partition, offset] of beyond) {
        const latest = places[partition]?.latest ?? 0
        table.commit(group, topicId, partition, latest)
        const fields = { group: group.name, topic: topic.name, partition, committed: String(offset), latest }
        logger.warn(fields, 'a committed offset was beyond the end of a log that was cut: it is the end now')
      }
    }
  }
}
