/**
 * Leader epochs of all partitions that have one above 0, by handle: each shard tells them when it has recovered. Main
 * thread; filled by the shard set, read by the engine.
 */
import { handleOf, rangesOf, type PartitionHandles } from '../model/handles.ts'
import { noEpochs, type EpochsOf, type LeaderEpoch } from '../model/leader-epochs.ts'
import type { PartitionEpochs } from '../wire/shard/messages.ts'

export class LeaderEpochs {
  readonly #byHandle = new Map<number, readonly LeaderEpoch[]>()
  #changes = 0

  /** Grows with each that begins. */
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
    return partition => byHandle.get(handleOf(topic, partition)) ?? noEpochs(partition)
  }

  /** The topic is gone. */
  forget(topic: PartitionHandles): void {
    if (this.#byHandle.size === 0) return
    for (const { firstHandle, partitionCount } of rangesOf(topic)) {
      for (let handle = firstHandle; handle < firstHandle + partitionCount; handle++) this.#byHandle.delete(handle)
    }
  }
}
