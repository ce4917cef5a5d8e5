/** DeleteTopics: by name or, since version 6, by id. Main thread. */
import { deleteTopics } from '../../../wire/kafka/apis/delete-topics.ts'
import { kafkaErrors } from '../../../wire/kafka/errors.ts'
import type { WriteOf } from '../../../wire/kafka/schema.ts'
import { longChangeOf, type KafkaCall, type KafkaHandler } from '../handler.ts'
import { refusalOfMany } from '../named-topics.ts'
import { toldOf } from '../refusals.ts'
import { nameOfId } from '../topic-names.ts'

type Call = KafkaCall<typeof deleteTopics.request.fields, typeof deleteTopics.response.fields>
type ToldTopic = WriteOf<typeof deleteTopics.response.fields>['responses'][number]

/** The first version that names topics by id, too. */
const TOPIC_IDS_SINCE = 6

export const deleteTopicsHandler: KafkaHandler = longChangeOf(deleteTopics, async call => {
  const { version, body, services, who } = call
  const { pace } = call
  if (version < TOPIC_IDS_SINCE) {
    const refusal = refusalOfMany('topic_names', body.topicNames.length)
    const responses = await pace.inOrder(body.topicNames, name =>
      refusal ? { name, ...refusal } : deleteOne(call, name)
    )
    return call.answerInTurns({ responses })
  }
  const refusal = refusalOfMany('topics', body.topics.length)
  const responses = await pace.inOrder(body.topics, async ({ name, topicId }): Promise<ToldTopic> => {
    if (refusal !== null) return { name, topicId, ...refusal }
    const known = name ?? nameOfId(services, who, topicId)
    if (known === null) return { name, topicId, errorCode: kafkaErrors.UNKNOWN_TOPIC_ID.code }
    return { ...(await deleteOne(call, known)), topicId }
  })
  await call.answerInTurns({ responses })
})

async function deleteOne({ who, services: { broker } }: Call, name: string): Promise<ToldTopic> {
  try {
    await broker.deleteTopic(who, name)
    return { name, errorCode: kafkaErrors.NONE.code }
  } catch (error) {
    return { name, ...toldOf(error) }
  }
}
