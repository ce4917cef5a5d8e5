/**
 * Metadata: who leads which partition, which is always this broker, at the address that the client came by. Main thread.
 *
 *   | a topic that is asked for            | answer                                               |
 *   | by name, and the caller may read it  | its partitions                                       |
 *   | by name, and it may not              | TOPIC_AUTHORIZATION_FAILED, whether it exists or not |
 *   | by name, and there is none           | UNKNOWN_TOPIC_OR_PARTITION, or it is made (setting)  |
 *   | by an id of none that may be read    | UNKNOWN_TOPIC_ID                                     |
 *
 * A topic of a few bytes may have a thousand partitions to tell, so it is told once, however often it is asked for.
 */
import { BrokerError } from '../../../model/errors.ts'
import { leaderEpochOf, noEpochs, type EpochsOf } from '../../../model/leader-epochs.ts'
import { metadata } from '../../../wire/kafka/apis/metadata.ts'
import { kafkaErrors } from '../../../wire/kafka/errors.ts'
import { ZERO_UUID, type WriteOf } from '../../../wire/kafka/schema.ts'
import { DEFAULT_PARTITIONS } from '../broker-configs.ts'
import { longHandlerOf, type KafkaCall, type KafkaHandler } from '../handler.ts'
import { NODE_ID } from '../node.ts'
import { toldOf } from '../refusals.ts'
import type { Pace } from '../request-turns.ts'
import { KAFKA_PARTITIONER } from '../topic-configs.ts'
import { nameOfId } from '../topic-names.ts'

type Request = typeof metadata.request.fields
type Response = typeof metadata.response.fields
type Call = KafkaCall<Request, Response>
type ToldTopic = WriteOf<Response>['topics'][number]

export const metadataHandler: KafkaHandler = longHandlerOf(metadata, async call => {
  // What is made here is there for what comes behind this.
  const release = mayMake(call) ? call.hold() : null
  try {
    await answer(call, await wantedTopics(call))
  } finally {
    release?.()
  }
})

function answer(call: Call, topics: readonly ToldTopic[]): Promise<void> {
  const { client, services } = call
  const { host, port } = client.advertised
  const brokers = [{ nodeId: NODE_ID, host, port }]
  return call.answerInTurns({ brokers, clusterId: services.clusterId, controllerId: NODE_ID, topics })
}

/** Does it make topics that there are not? */
function mayMake({ body, who, services }: Call): boolean {
  return services.settings.autoCreateTopics && body.allowAutoTopicCreation && who.isAdmin
}

/** Null are all of them; so are none, in version 0. */
async function wantedTopics(call: Call): Promise<ToldTopic[]> {
  const { version, body, who, services } = call
  const { topics } = body
  const { pace } = call
  if (topics === null || (version === 0 && topics.length === 0)) {
    const told = await pace.inOrder(services.broker.listTopics(who), name => inShares(pace, describe(call, name)))
    // Deleted meanwhile.
    return told.filter(({ errorCode }) => errorCode !== kafkaErrors.UNKNOWN_TOPIC_OR_PARTITION.code)
  }
  const names = new Set<string>()
  const unknownIds = new Set<string>()
  for (const { name, topicId } of topics) {
    const isById = name === null || (name === '' && topicId !== ZERO_UUID)
    const known = isById ? nameOfId(services, who, topicId) : name
    if (known === null) unknownIds.add(topicId)
    else names.add(known)
  }
  const told = [...unknownIds].map(topicId => unknownTopic(topicId, version))
  return told.concat(await pace.inOrder(names, async name => inShares(pace, await topicNamed(call, name))))
}

/** What is said of partitions is there already, so a hundred of them count as one entry more. */
async function inShares(pace: Pace, topic: ToldTopic): Promise<ToldTopic> {
  await pace.after(Math.floor(topic.partitions.length / 100))
  return topic
}

function unknownTopic(topicId: string, version: number): ToldTopic {
  const errorCode = kafkaErrors.UNKNOWN_TOPIC_ID.code
  return { errorCode, name: version >= 12 ? null : '', topicId, partitions: [] }
}

async function topicNamed(call: Call, name: string): Promise<ToldTopic> {
  const topic = describe(call, name)
  const isMissing = topic.errorCode === kafkaErrors.UNKNOWN_TOPIC_OR_PARTITION.code
  return isMissing && mayMake(call) ? createAndDescribe(call, name) : topic
}

async function createAndDescribe(call: Call, name: string): Promise<ToldTopic> {
  try {
    const config = { partitioner: KAFKA_PARTITIONER }
    await call.services.broker.createTopic(call.who, { name, partitions: DEFAULT_PARTITIONS, config })
  } catch (error) {
    // Somebody else makes it, or has made it.
    if (!(error instanceof BrokerError && error.code === 'TOPIC_EXISTS')) {
      return { errorCode: toldOf(error).errorCode, name, partitions: [] }
    }
  }
  const topic = describe(call, name)
  if (topic.errorCode !== kafkaErrors.UNKNOWN_TOPIC_OR_PARTITION.code) return topic
  return { ...topic, errorCode: kafkaErrors.LEADER_NOT_AVAILABLE.code }
}

function describe({ services: { broker, topicIds }, who }: Call, name: string): ToldTopic {
  try {
    const count = broker.partitionCountOf(who, name)
    const topicId = topicIds.uuidOf(broker.topicIdOf(who, name))
    const partitions = partitionsOf(count, broker.leaderEpochs(who, name))
    return { errorCode: kafkaErrors.NONE.code, name, topicId, partitions }
  } catch (error) {
    return { errorCode: toldOf(error).errorCode, name, partitions: [] }
  }
}

type ToldPartition = ToldTopic['partitions'][number]

const onlyNode: readonly number[] = [NODE_ID]
/** By their indexes, those that were ever told of: what is said of them is the same in all topics that never lost anything. */
const toldPartitions: ToldPartition[] = []

function partitionsOf(count: number, epochsOf: EpochsOf): readonly ToldPartition[] {
  while (toldPartitions.length < count) toldPartitions.push(toldOfPartition(toldPartitions.length))
  const told = toldPartitions.slice(0, count)
  if (epochsOf === noEpochs) return told
  return told.map((partition, index) => {
    const leaderEpoch = leaderEpochOf(epochsOf(index))
    return leaderEpoch === 0 ? partition : { ...partition, leaderEpoch }
  })
}

function toldOfPartition(partitionIndex: number): ToldPartition {
  return {
    errorCode: kafkaErrors.NONE.code,
    partitionIndex,
    leaderId: NODE_ID,
    leaderEpoch: 0,
    replicaNodes: onlyNode,
    isrNodes: onlyNode,
    offlineReplicas: []
  }
}
