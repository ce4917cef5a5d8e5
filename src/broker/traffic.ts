/**
 * What went through each topic since the start, in plain numbers: metrics read them at scrape time. Main thread only. Fed
 * by the broker when a produce is acknowledged, and when the answer of a read is complete, whatever protocol asked.
 */
import type { TopicId } from '../model/ids.ts'

/** Records, and bytes of their keys and values. Duplicates of an idempotent producer were not produced again. */
export interface TopicTraffic {
  producedRecords: number
  producedBytes: number
  consumedRecords: number
  consumedBytes: number
}

export class Traffic {
  readonly #byTopic = new Map<TopicId, TopicTraffic>()

  /** The counts of a topic, live: zeros for one that is new. */
  of(topicId: TopicId): TopicTraffic {
    let counts = this.#byTopic.get(topicId)
    if (counts === undefined) {
      counts = { producedRecords: 0, producedBytes: 0, consumedRecords: 0, consumedBytes: 0 }
      this.#byTopic.set(topicId, counts)
    }
    return counts
  }

  /** Of a topic that is deleted. What is still in progress for it counts in what it has in hand, which nobody reads. */
  forget(topicId: TopicId): void {
    this.#byTopic.delete(topicId)
  }
}
