/** CreatePartitions: the partitions of a topic are fixed when it is made, which is what each answer says. Main thread. */
import { denialOf } from '../../../model/access.ts'
import { createPartitions } from '../../../wire/kafka/apis/create-partitions.ts'
import { kafkaErrors } from '../../../wire/kafka/errors.ts'
import { handlerOf, type KafkaCall, type KafkaHandler } from '../handler.ts'
import { toldOf, type Told } from '../refusals.ts'

type Call = KafkaCall<typeof createPartitions.request.fields, typeof createPartitions.response.fields>

export const createPartitionsHandler: KafkaHandler = handlerOf(createPartitions, call => {
  call.answer({ results: call.body.topics.map(({ name, count }) => ({ name, ...refusalOf(call, name, count) })) })
})

function refusalOf({ who, services: { broker } }: Call, name: string, count: number): Told {
  const denial = denialOf(who, 'create topic')
  if (denial !== null) return toldOf(denial)
  try {
    const has = broker.partitionCountOf(who, name)
    const errorMessage = `topic '${name}' has ${has} partition(s), fixed when it was made: it cannot have ${count}`
    return { errorCode: kafkaErrors.INVALID_PARTITIONS.code, errorMessage }
  } catch (error) {
    return toldOf(error)
  }
}
