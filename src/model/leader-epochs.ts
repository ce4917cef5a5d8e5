/**
 * Leader epochs of a partition (KIP-101, KIP-320): which part of its log was written since which loss. A new one begins where
 * a start cut data (durability V5), so that who had read what is gone learns of it. Pure, any thread.
 */

/** Records from `startOffset` on have that epoch, until the next begins. */
export interface LeaderEpoch {
  /** Above 0: what was written before the first of them has epoch 0. */
  readonly epoch: number
  readonly startOffset: number
}

/** By partition of one topic: its epochs above 0, ascending in both. None of a partition that there is not. */
export type EpochsOf = (partition: number) => readonly LeaderEpoch[]

const none: readonly LeaderEpoch[] = []

/** Of a topic none of whose partitions ever lost anything. */
export const noEpochs: EpochsOf = () => none

/** The epoch of what is written now. */
export function leaderEpochOf(epochs: readonly LeaderEpoch[]): number {
  return epochs.at(-1)?.epoch ?? 0
}

/** The epoch in which an offset was written. */
export function epochAt(epochs: readonly LeaderEpoch[], offset: number): number {
  return epochs.findLast(({ startOffset }) => startOffset <= offset)?.epoch ?? 0
}

/**
 * Up to where a reader whose last record has that epoch has read what this log has.
 * @param logEnd end of the partition. @returns the largest epoch that is not above it, and where that ends; null: the
 * log never had one so high.
 */
export function endOfEpoch(
  epochs: readonly LeaderEpoch[],
  wanted: number,
  logEnd: number
): { readonly epoch: number; readonly endOffset: number } | null {
  if (wanted < 0 || wanted > leaderEpochOf(epochs)) return null
  const epoch = epochs.findLast(each => each.epoch <= wanted)?.epoch ?? 0
  return { epoch, endOffset: epochs.find(each => each.epoch > wanted)?.startOffset ?? logEnd }
}
