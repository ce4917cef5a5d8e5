/** OffsetDelete: of topics that no member of the group subscribes to. Main thread. */
import { offsetDelete } from '../../../wire/kafka/apis/offset-delete.ts'
import { kafkaErrors } from '../../../wire/kafka/errors.ts'
import { codeOf } from '../group-codes.ts'
import { longChangeOf, type KafkaHandler } from '../handler.ts'
import { codesOfPlaces } from './codes-of-places.ts'

export const offsetDeleteHandler: KafkaHandler = longChangeOf(offsetDelete, async call => {
  const { body, who, services } = call
  const places = body.topics.flatMap(({ name, partitions }) => {
    return partitions.map(({ partitionIndex }) => ({ topic: name, partition: partitionIndex }))
  })
  try {
    const codes = (await services.broker.classicGroups.deleteOffsets(who, body.groupId, places)).map(codeOf)
    await call.answerInTurns({ errorCode: kafkaErrors.NONE.code, topics: codesOfPlaces(body.topics, codes) })
  } catch (error) {
    call.answer({ errorCode: codeOf(error), topics: [] })
  }
})
