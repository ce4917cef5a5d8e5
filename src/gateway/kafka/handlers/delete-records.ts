/** DeleteRecords: what lies below an offset of a partition; −1 is its high watermark. Main thread. */
import { BrokerError } from '../../../model/errors.ts'
import { deleteRecords } from '../../../wire/kafka/apis/delete-records.ts'
import { kafkaErrors } from '../../../wire/kafka/errors.ts'
import type { ReadOf, WriteOf } from '../../../wire/kafka/schema.ts'
import { longChangeOf, type KafkaCall, type KafkaHandler } from '../handler.ts'
import { toldOf } from '../refusals.ts'

type Call = KafkaCall<typeof deleteRecords.request.fields, typeof deleteRecords.response.fields>
type Wanted = ReadOf<typeof deleteRecords.request.fields>['topics'][number]['partitions'][number]
type Told = WriteOf<typeof deleteRecords.response.fields>['topics'][number]['partitions'][number]

const HIGH_WATERMARK = -1

export const deleteRecordsHandler: KafkaHandler = longChangeOf(deleteRecords, async call => {
  const { pace } = call
  const topics = await pace.inOrder(call.body.topics, async ({ name, partitions }) => {
    return { name, partitions: await pace.inOrder(partitions, wanted => deleteBelow(call, name, wanted)) }
  })
  await call.answerInTurns({ topics })
})

async function deleteBelow(call: Call, topic: string, { partitionIndex, offset }: Wanted): Promise<Told> {
  const refused = (errorCode: number): Told => ({ partitionIndex, lowWatermark: -1, errorCode })
  if (partitionIndex < 0) return refused(kafkaErrors.UNKNOWN_TOPIC_OR_PARTITION.code)
  if (offset < HIGH_WATERMARK) return refused(kafkaErrors.OFFSET_OUT_OF_RANGE.code)
  try {
    const { broker } = call.services
    const below = offset === HIGH_WATERMARK ? await endOf(call, topic, partitionIndex) : offset
    const lowWatermark = await broker.deleteRecords(call.who, topic, partitionIndex, BigInt(below))
    return { partitionIndex, lowWatermark, errorCode: kafkaErrors.NONE.code }
  } catch (error) {
    const isBeyond = error instanceof BrokerError && error.code === 'FIELD_RANGE'
    return refused(isBeyond ? kafkaErrors.OFFSET_OUT_OF_RANGE.code : toldOf(error).errorCode)
  }
}

async function endOf({ who, services: { broker } }: Call, topic: string, partition: number): Promise<number> {
  const [offsets] = await broker.offsetsAt(who, topic, partition, null)
  return offsets?.latest ?? 0
}
