/** CreatePartitions: topics come to have as many as are asked for, each for itself, one after the other. Main thread. */
import { createPartitions } from '../../../wire/kafka/apis/create-partitions.ts'
import { kafkaErrors } from '../../../wire/kafka/errors.ts'
import type { ReadOf } from '../../../wire/kafka/schema.ts'
import { longChangeOf, type KafkaCall, type KafkaHandler } from '../handler.ts'
import { refusalOfMany } from '../named-topics.ts'
import { isHereAlone, NODE_ID } from '../node.ts'
import { toldOfConfig, type Told } from '../refusals.ts'
import { repeatedNames, repeatedTopic } from '../repeated-names.ts'

type Call = KafkaCall<typeof createPartitions.request.fields, typeof createPartitions.response.fields>
type Wanted = ReadOf<typeof createPartitions.request.fields>['topics'][number]

const done = { errorCode: kafkaErrors.NONE.code, errorMessage: null }

export const createPartitionsHandler: KafkaHandler = longChangeOf(createPartitions, async call => {
  const { topics } = call.body
  const refusal = refusalOfMany('topics', topics.length)
  const repeated = repeatedNames(topics)
  const results = await call.pace.inOrder(topics, async wanted => {
    const { name } = wanted
    return { name, ...(refusal ?? (repeated.has(name) ? repeatedTopic : await addTo(call, wanted))) }
  })
  await call.answerInTurns({ results })
})

async function addTo({ who, body, services: { broker } }: Call, wanted: Wanted): Promise<Told | typeof done> {
  const { name, count: partitions } = wanted
  try {
    // Looks first, so that what is wrong with the topic is said before what is wrong with where its copies are to be.
    await broker.addPartitions(who, { name, partitions, isDryRun: true })
    const fault = placementFault(wanted, partitions - broker.partitionCountOf(who, name))
    if (fault !== null) return fault
    if (!body.validateOnly) await broker.addPartitions(who, { name, partitions })
    return done
  } catch (error) {
    return toldOfConfig(error, 'count')
  }
}

/** What is wrong with where the copies of so many new partitions are to be. */
function placementFault({ assignments }: Wanted, count: number): Told | null {
  if (assignments === null) return null
  const isHere = assignments.every(({ brokerIds }) => isHereAlone(brokerIds))
  if (assignments.length === count && isHere) return null
  const errorMessage = `assignments must be one for each of ${count} new partition(s), with broker ${NODE_ID} alone`
  return { errorCode: kafkaErrors.INVALID_REPLICA_ASSIGNMENT.code, errorMessage }
}
