/** What a client believes of the leader of a partition, and what it is told (KIP-320). Main thread. */
import { leaderEpochOf, type LeaderEpoch } from '../../model/leader-epochs.ts'
import { kafkaErrors } from '../../wire/kafka/errors.ts'

/** @param believed the epoch that the client knows; −1: none. @returns the code of the error, NONE if it is in order. */
export function epochFault(epochs: readonly LeaderEpoch[], believed: number): number {
  const current = leaderEpochOf(epochs)
  if (believed < 0 || believed === current) return kafkaErrors.NONE.code
  return (believed > current ? kafkaErrors.UNKNOWN_LEADER_EPOCH : kafkaErrors.FENCED_LEADER_EPOCH).code
}
