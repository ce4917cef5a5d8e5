/** From what becomes of a group's request to the codes of the Kafka protocol. Pure, any thread. */
import type { ClassicFault } from '../../model/classic-groups.ts'
import { BrokerError, type ErrorCode } from '../../model/errors.ts'
import { kafkaErrors } from '../../wire/kafka/errors.ts'
import { toldOf } from './refusals.ts'

/** What passes by itself: clients look for the coordinator and ask it again. */
const passing: readonly ErrorCode[] = ['DISK_FULL', 'INTERNAL', 'NOT_READY', 'OVERLOADED', 'STOPPING']

/** @param outcome null: it was done. @throws what is none of the broker's errors: a bug. */
export function codeOf(outcome: unknown): number {
  if (outcome === null) return kafkaErrors.NONE.code
  if (isFault(outcome)) return kafkaErrors[outcome].code
  if (outcome instanceof BrokerError) {
    if (passing.includes(outcome.code)) return kafkaErrors.COORDINATOR_NOT_AVAILABLE.code
    if (outcome.code === 'NAME_INVALID') return kafkaErrors.INVALID_GROUP_ID.code
  }
  return toldOf(outcome).errorCode
}

function isFault(outcome: unknown): outcome is ClassicFault {
  return typeof outcome === 'string' && outcome in kafkaErrors
}
