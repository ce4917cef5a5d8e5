/** DeleteTopics: by name or, since version 6, by id. Main thread. */
import { deleteTopics } from '../../../wire/kafka/apis/delete-topics.ts'
import { kafkaErrors } from '../../../wire/kafka/errors.ts'
import type { WriteOf } from '../../../wire/kafka/schema.ts'
import { handlerOf, type KafkaCall, type KafkaHandler } from '../handler.ts'
import { toldOf } from '../refusals.ts'
import { nameOfId } from '../topic-names.ts'
import { inTurns } from '../turns.ts'

type Call = KafkaCall<typeof deleteTopics.request.fields, typeof deleteTopics.response.fields>
type ToldTopic = WriteOf<typeof deleteTopics.response.fields>['responses'][number]

/** The first version that names topics by id, too. */
const TOPIC_IDS_SINCE = 6

export const deleteTopicsHandler: KafkaHandler = handlerOf(deleteTopics, async call => {
  const { version, body, services, who } = call
  const responses: ToldTopic[] = []
  const names = version < TOPIC_IDS_SINCE ? body.topicNames : []
  for await (const name of inTurns(names)) responses.push(await deleteOne(call, name))
  for await (const { name, topicId } of inTurns(body.topics)) {
    const known = name ?? nameOfId(services, who, topicId)
    if (known === null) responses.push({ name, topicId, errorCode: kafkaErrors.UNKNOWN_TOPIC_ID.code })
    else responses.push({ ...(await deleteOne(call, known)), topicId })
  }
  call.answer({ responses })
})

async function deleteOne({ who, services: { broker } }: Call, name: string): Promise<ToldTopic> {
  try {
    await broker.deleteTopic(who, name)
    return { name, errorCode: kafkaErrors.NONE.code }
  } catch (error) {
    return { name, ...toldOf(error) }
  }
}
