/** CreateTopics: each topic for itself, one after the other. There is one copy of everything, on this broker. Main thread. */
import type { TopicConfigPatch } from '../../../model/topic.ts'
import { createTopics } from '../../../wire/kafka/apis/create-topics.ts'
import { kafkaErrors } from '../../../wire/kafka/errors.ts'
import type { ReadOf, WriteOf } from '../../../wire/kafka/schema.ts'
import { DEFAULT_PARTITIONS } from '../broker-configs.ts'
import { longChangeOf, type KafkaCall, type KafkaHandler } from '../handler.ts'
import { refusalOfMany } from '../named-topics.ts'
import { COPIES, isHereAlone, NODE_ID } from '../node.ts'
import { toldOfConfig, type Told } from '../refusals.ts'
import { repeatedNames, repeatedTopic } from '../repeated-names.ts'
import { KAFKA_PARTITIONER, patchOf, showConfig } from '../topic-configs.ts'

type Call = KafkaCall<typeof createTopics.request.fields, typeof createTopics.response.fields>
type Wanted = ReadOf<typeof createTopics.request.fields>['topics'][number]
type ToldTopic = WriteOf<typeof createTopics.response.fields>['topics'][number]

/** What leaves something to the broker. */
const UP_TO_BROKER = -1

export const createTopicsHandler: KafkaHandler = longChangeOf(createTopics, async call => {
  const refusal = refusalOfMany('topics', call.body.topics.length)
  const repeated = repeatedNames(call.body.topics)
  const topics = await call.pace.inOrder(call.body.topics, (wanted): ToldTopic | Promise<ToldTopic> => {
    const { name } = wanted
    const refused = refusal ?? (repeated.has(name) ? repeatedTopic : null)
    return refused === null ? createOne(call, wanted) : { name, ...refused }
  })
  await call.answerInTurns({ topics })
})

async function createOne(call: Call, wanted: Wanted): Promise<ToldTopic> {
  const { who, services, body } = call
  const { broker, settings, topicIds } = services
  const { name } = wanted
  const fault = placementFault(wanted)
  if (fault !== null) return { name, ...fault }
  try {
    const patches = wanted.configs.map(config => patchOf(config.name, config.value, settings))
    const config = Object.assign({ partitioner: KAFKA_PARTITIONER }, ...patches) as TopicConfigPatch
    const partitions = partitionsOf(wanted)
    const isDryRun = body.validateOnly
    const created = await broker.createTopic(who, { name, partitions, config, isDryRun })
    const isMade = { name, errorCode: kafkaErrors.NONE.code, errorMessage: null }
    // Said of a trial too: the Java client trips over a topic that is fine and has none.
    const configs = showConfig(created.config, settings).map(shown => ({
      name: shown.name,
      value: shown.value,
      readOnly: shown.isFixed,
      configSource: shown.source,
      isSensitive: false
    }))
    const shape = { numPartitions: partitions, replicationFactor: COPIES, configs }
    if (isDryRun) return { ...isMade, ...shape }
    return { ...isMade, ...shape, topicId: topicIds.uuidOf(broker.topicIdOf(who, name)) }
  } catch (error) {
    return { name, ...toldOfConfig(error) }
  }
}

function partitionsOf({ numPartitions, assignments }: Wanted): number {
  if (assignments.length > 0) return assignments.length
  return numPartitions === UP_TO_BROKER ? DEFAULT_PARTITIONS : numPartitions
}

/** What is wrong with where the copies are to be. */
function placementFault({ numPartitions, replicationFactor, assignments }: Wanted): Told | null {
  if (assignments.length === 0) {
    if (replicationFactor === UP_TO_BROKER || replicationFactor === COPIES) return null
    const errorMessage = `the replication factor is ${replicationFactor}: there is one broker, so it is 1`
    return { errorCode: kafkaErrors.INVALID_REPLICATION_FACTOR.code, errorMessage }
  }
  if (numPartitions !== UP_TO_BROKER || replicationFactor !== UP_TO_BROKER) {
    const errorMessage = 'with assignments the number of partitions and the replication factor must be −1'
    return { errorCode: kafkaErrors.INVALID_REQUEST.code, errorMessage }
  }
  const indexes = assignments.map(({ partitionIndex }) => partitionIndex).sort((one, other) => one - other)
  const isInOrder = indexes.every((index, i) => index === i)
  const isHere = assignments.every(({ brokerIds }) => isHereAlone(brokerIds))
  if (isInOrder && isHere) return null
  const errorMessage = `assignments must name partitions from 0 on, and broker ${NODE_ID} alone for each`
  return { errorCode: kafkaErrors.INVALID_REPLICA_ASSIGNMENT.code, errorMessage }
}
