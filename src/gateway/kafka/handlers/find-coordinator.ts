/**
 * FindCoordinator: of every group, this broker, at the address that the client came by; told once of a group
 * that is named more than once. Main thread.
 */
import { findCoordinator } from '../../../wire/kafka/apis/find-coordinator.ts'
import { kafkaErrors } from '../../../wire/kafka/errors.ts'
import { longHandlerOf, type KafkaHandler } from '../handler.ts'
import { NODE_ID } from '../node.ts'

/** Kinds of keys. */
const GROUP = 0
const TRANSACTION = 1
/** The first version that asks for many. */
const MANY_SINCE = 4

export const findCoordinatorHandler: KafkaHandler = longHandlerOf(findCoordinator, call => {
  const { body, client, version } = call
  const found = body.keyType === GROUP ? { nodeId: NODE_ID, ...client.advertised } : { nodeId: -1, host: '', port: -1 }
  const told = { ...found, ...refusalOf(body.keyType) }
  if (version < MANY_SINCE) return call.answer({ ...told, coordinators: [] })
  return call.answerInTurns({ coordinators: [...new Set(body.coordinatorKeys)].map(key => ({ key, ...told })) })
})

function refusalOf(keyType: number): { readonly errorCode: number; readonly errorMessage: string | null } {
  if (keyType === GROUP) return { errorCode: kafkaErrors.NONE.code, errorMessage: null }
  if (keyType !== TRANSACTION) {
    return { errorCode: kafkaErrors.INVALID_REQUEST.code, errorMessage: `no coordinators for keys of type ${keyType}` }
  }
  const errorCode = kafkaErrors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED.code
  return { errorCode, errorMessage: 'this broker has no transactions' }
}
