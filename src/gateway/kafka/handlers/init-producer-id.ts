/**
 * InitProducerId: a fresh id, with epoch 0, each time: without a transaction there is nothing that a producer could go on
 * with. There are no transactions. Main thread.
 */
import { initProducerId } from '../../../wire/kafka/apis/init-producer-id.ts'
import { kafkaErrors } from '../../../wire/kafka/errors.ts'
import { handlerOf, type KafkaHandler } from '../handler.ts'
import { toldOf } from '../refusals.ts'

export const initProducerIdHandler: KafkaHandler = handlerOf(initProducerId, async call => {
  const { who, body, services } = call
  if (body.transactionalId !== null) {
    return call.answer({ errorCode: kafkaErrors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED.code, producerEpoch: -1 })
  }
  try {
    const producerId = await services.broker.batches.allocateProducer(who)
    call.answer({ errorCode: kafkaErrors.NONE.code, producerId: BigInt(producerId), producerEpoch: 0 })
  } catch (error) {
    call.answer({ errorCode: toldOf(error).errorCode, producerEpoch: -1 })
  }
})
