/**
 * What goes and went through each topic since the start, in plain numbers: metrics read them at scrape time. Main thread only.
 * Fed by the broker when a produce is taken, when it is acknowledged, and when the answer of a read is complete, whatever protocol asked.
 */
import type { TopicId } from '../model/ids.ts'

/** Records, and bytes of their keys and values. Duplicates of an idempotent producer were not produced again. */
export interface TopicTraffic {
  producedRecords: number
  producedBytes: number
  consumedRecords: number
  consumedBytes: number
  /** Produces that were taken and have not been answered. */
  openProduces: number
  /** No produce is taken for the moment: it waits like one that finds no room (topic-commands.ts). */
  isClosed: boolean
}

export class Traffic {
  readonly #byTopic = new Map<TopicId, TopicTraffic>()

  /** The counts of a topic, live: zeros for one that is new. */
  of(topicId: TopicId): TopicTraffic {
    let counts = this.#byTopic.get(topicId)
    if (counts === undefined) {
      const none = { producedRecords: 0, producedBytes: 0, consumedRecords: 0, consumedBytes: 0 }
      counts = { ...none, openProduces: 0, isClosed: false }
      this.#byTopic.set(topicId, counts)
    }
    return counts
  }

  /** Of a topic that is deleted. What is still in progress for it counts in what it has in hand, which nobody reads. */
  forget(topicId: TopicId): void {
    this.#byTopic.delete(topicId)
  }
}
