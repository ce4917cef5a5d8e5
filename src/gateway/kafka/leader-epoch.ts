/** What a client believes of the leader of a partition, and what it is told. Pure, any thread. */
import { kafkaErrors } from '../../wire/kafka/errors.ts'
import { LEADER_EPOCH } from './node.ts'

/** @param epoch that the client knows; −1: none. @returns the code of the error, NONE if it is in order. */
export function epochFault(epoch: number): number {
  return (epoch > LEADER_EPOCH ? kafkaErrors.UNKNOWN_LEADER_EPOCH : kafkaErrors.NONE).code
}
