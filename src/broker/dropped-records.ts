/** What compactions dropped, by partition, since the process started. Main thread; owned by Compaction. */
import type { TopicId } from '../model/ids.ts'
import type { CompactedFigures } from '../model/metrics.ts'
import type { Topic } from '../model/topic.ts'

export class DroppedRecords {
  readonly #byTopic = new Map<TopicId, Map<number, CompactedFigures>>()

  /** A compaction of that partition dropped so many. */
  add(topic: TopicId, partition: number, records: number): void {
    const partitions = this.#byTopic.get(topic) ?? new Map<number, CompactedFigures>()
    this.#byTopic.set(topic, partitions)
    const { runs, recordsDropped } = partitions.get(partition) ?? { runs: 0, recordsDropped: 0 }
    partitions.set(partition, { runs: runs + 1, recordsDropped: recordsDropped + records })
  }

  /** null: nothing was dropped there. */
  of(topic: TopicId, partition: number): CompactedFigures | null {
    return this.#byTopic.get(topic)?.get(partition) ?? null
  }

  /** Forgets all other topics: they are deleted. */
  keep(topics: readonly Topic[]): void {
    if (this.#byTopic.size === 0) return
    const live = new Set(topics.map(({ id }) => id))
    for (const id of this.#byTopic.keys()) if (!live.has(id)) this.#byTopic.delete(id)
  }
}
