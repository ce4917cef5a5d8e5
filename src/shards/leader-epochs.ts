/**
 * Leader epochs of all partitions that have one above 0, by handle: each shard tells them when it has recovered. Main
 * thread. The shard set notes them, the engine reads them and forgets those of topics that go.
 */
import { handleOf, rangesOf, type PartitionHandles } from '../model/handles.ts'
import { noEpochs, type EpochsOf, type LeaderEpoch } from '../model/leader-epochs.ts'
import type { PartitionEpochs } from '../wire/shard/messages.ts'

export class LeaderEpochs {
  readonly #byHandle = new Map<number, readonly LeaderEpoch[]>()
  #changes = 0

  /** Another number whenever more is known of any partition; what it counts means nothing. */
  get changes(): number {
    return this.#changes
  }

  /** What a shard found in its log: of these partitions, all that they have. */
  note(found: readonly PartitionEpochs[]): void {
    for (const { handle, epochs } of found) {
      if (this.#byHandle.get(handle)?.length !== epochs.length) this.#changes++
      this.#byHandle.set(handle, epochs)
    }
  }

  of(topic: PartitionHandles): EpochsOf {
    const byHandle = this.#byHandle
    if (byHandle.size === 0) return noEpochs
    return partition => {
      const isThere = partition >= 0 && partition < topic.partitionCount
      return (isThere ? byHandle.get(handleOf(topic, partition)) : undefined) ?? noEpochs(partition)
    }
  }

  /** The topic is gone. */
  forget(topic: PartitionHandles): void {
    if (this.#byHandle.size === 0) return
    for (const { firstHandle, partitionCount } of rangesOf(topic)) {
      for (let handle = firstHandle; handle < firstHandle + partitionCount; handle++) this.#byHandle.delete(handle)
    }
  }
}
