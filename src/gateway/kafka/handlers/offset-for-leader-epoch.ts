/** OffsetForLeaderEpoch: up to where a client that has read an epoch has read what the log has. Main thread. */
import { endOfEpoch } from '../../../model/leader-epochs.ts'
import { offsetForLeaderEpoch } from '../../../wire/kafka/apis/offset-for-leader-epoch.ts'
import { kafkaErrors } from '../../../wire/kafka/errors.ts'
import type { ReadOf, WriteOf } from '../../../wire/kafka/schema.ts'
import { longQuestionOf, type KafkaCall, type KafkaHandler } from '../handler.ts'
import { epochFault } from '../leader-epoch.ts'
import { toldOf } from '../refusals.ts'
import { mergedTopics } from '../repeated-names.ts'
import type { Pace } from '../request-turns.ts'

type Call = KafkaCall<typeof offsetForLeaderEpoch.request.fields, typeof offsetForLeaderEpoch.response.fields>
type Wanted = ReadOf<typeof offsetForLeaderEpoch.request.fields>['topics'][number]['partitions'][number]
type Told = WriteOf<typeof offsetForLeaderEpoch.response.fields>['topics'][number]['partitions'][number]

export const offsetForLeaderEpochHandler: KafkaHandler = longQuestionOf(offsetForLeaderEpoch, async call => {
  const wanted = mergedTopics(call.body.topics.map(({ topic, partitions }) => [topic, partitions]))
  const { pace } = call
  const topics = await pace.together([...wanted], async ([topic, partitions]) => {
    return { topic, partitions: await partitionsOf(call, pace, topic, partitions) }
  })
  await call.answerInTurns({ topics })
})

async function partitionsOf(
  { who, services: { broker } }: Call,
  pace: Pace,
  topic: string,
  partitions: readonly Wanted[]
): Promise<Told[]> {
  try {
    const offsets = await broker.offsetsAt(who, topic, null, null)
    await pace.after(offsets.length)
    const ends = new Map(offsets.map(({ partition, latest }) => [partition, latest]))
    const epochsOf = broker.leaderEpochs(who, topic)
    return partitions.map(({ partition, currentLeaderEpoch, leaderEpoch }) => {
      const logEnd = ends.get(partition)
      if (logEnd === undefined) return { partition, errorCode: kafkaErrors.UNKNOWN_TOPIC_OR_PARTITION.code }
      const epochs = epochsOf(partition)
      const errorCode = epochFault(epochs, currentLeaderEpoch)
      const end = errorCode === kafkaErrors.NONE.code ? endOfEpoch(epochs, leaderEpoch, logEnd) : null
      return end === null
        ? { partition, errorCode }
        : { partition, errorCode, leaderEpoch: end.epoch, endOffset: end.endOffset }
    })
  } catch (error) {
    const { errorCode } = toldOf(error)
    return partitions.map(({ partition }) => ({ partition, errorCode }))
  }
}
