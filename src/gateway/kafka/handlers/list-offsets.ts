/**
 * ListOffsets: where partitions begin and end, and the first record from a time on. Main thread.
 *
 *   −1 latest: the high watermark · −2 earliest · −3 the record with the largest time · −4 earliest on this disk: as −2
 *
 * As in Kafka, a partition that is asked for more than once is INVALID_REQUEST.
 */
import { epochAt, type EpochsOf } from '../../../model/leader-epochs.ts'
import type { PartitionOffsets } from '../../../model/topic.ts'
import { listOffsets } from '../../../wire/kafka/apis/list-offsets.ts'
import { kafkaErrors } from '../../../wire/kafka/errors.ts'
import type { ReadOf, WriteOf } from '../../../wire/kafka/schema.ts'
import { longQuestionOf, type KafkaCall, type KafkaHandler } from '../handler.ts'
import { epochFault } from '../leader-epoch.ts'
import { toldOf } from '../refusals.ts'
import { mergedTopics } from '../repeated-names.ts'
import type { Pace } from '../request-turns.ts'

type Call = KafkaCall<typeof listOffsets.request.fields, typeof listOffsets.response.fields>
type WantedPartition = ReadOf<typeof listOffsets.request.fields>['topics'][number]['partitions'][number]
type ToldPartition = WriteOf<typeof listOffsets.response.fields>['topics'][number]['partitions'][number]

const LATEST = -1
const EARLIEST = -2
const LARGEST_TIME = -3
const EARLIEST_LOCAL = -4
/** Fewer than one in so many partitions of a topic are asked about one by one. */
const FEW = 16
/** The first version that tells of the leader's epoch. */
const EPOCHS_SINCE = 4

export const listOffsetsHandler: KafkaHandler = longQuestionOf(listOffsets, async call => {
  const wanted = mergedTopics(call.body.topics.map(({ name, partitions }) => [name, partitions]))
  const { pace } = call
  const topics = await pace.together([...wanted], async ([name, partitions]) => {
    return { name, partitions: await partitionsOf({ call, pace, topic: name }, partitions) }
  })
  await call.answerInTurns({ topics })
})

/** The topic that is asked about. */
interface Asked {
  readonly call: Call
  readonly pace: Pace
  readonly topic: string
}

/** A topic that there is. */
interface Known extends Asked {
  readonly epochsOf: EpochsOf
}

/** What is wanted of partitions of a topic is looked up time by time: there may be an answer about all partitions to each. */
async function partitionsOf(asked: Asked, partitions: readonly WantedPartition[]): Promise<ToldPartition[]> {
  const told = new Map<number, ToldPartition>()
  const once = new Map<number, WantedPartition>()
  for (const wanted of partitions) {
    const { partitionIndex } = wanted
    if (once.has(partitionIndex)) {
      told.set(partitionIndex, { partitionIndex, errorCode: kafkaErrors.INVALID_REQUEST.code })
    }
    once.set(partitionIndex, wanted)
  }
  const byTime = new Map<number, WantedPartition[]>()
  for (const wanted of once.values()) {
    if (told.has(wanted.partitionIndex)) continue
    const same = byTime.get(wanted.timestamp)
    if (same === undefined) byTime.set(wanted.timestamp, [wanted])
    else same.push(wanted)
  }
  for (const [time, wanted] of byTime) {
    for (const answer of await answersTo(asked, time, wanted)) told.set(answer.partitionIndex, answer)
  }
  return [...told.values()]
}

/**
 * Many partitions of which the same is wanted are one question, about all. Where they are few each is one: else as many times
 * as a topic has partitions would make it a search for each time in each partition.
 */
async function answersTo(asked: Asked, time: number, wanted: readonly WantedPartition[]): Promise<ToldPartition[]> {
  const { call, pace, topic } = asked
  const { broker } = call.services
  const timestampMs = time >= 0 ? BigInt(time) : null
  try {
    const count = broker.partitionCountOf(call.who, topic)
    const known = { ...asked, epochsOf: broker.leaderEpochs(call.who, topic) }
    if (wanted.length === 1 || wanted.length * FEW < count) {
      return await pace.together(wanted, one => answerAlone(known, timestampMs, one, count))
    }
    const found = await broker.offsetsAt(call.who, topic, null, timestampMs)
    await pace.after(found.length)
    const byPartition = new Map(found.map(offsets => [offsets.partition, offsets]))
    return await pace.together(wanted, one => answerTo(known, one, byPartition.get(one.partitionIndex)))
  } catch (error) {
    const { errorCode } = toldOf(error)
    return wanted.map(({ partitionIndex }) => ({ partitionIndex, errorCode }))
  }
}

async function answerAlone(
  asked: Known,
  timestampMs: bigint | null,
  wanted: WantedPartition,
  count: number
): Promise<ToldPartition> {
  const { call, topic } = asked
  const { partitionIndex } = wanted
  try {
    const isThere = partitionIndex >= 0 && partitionIndex < count
    const found = isThere ? await call.services.broker.offsetsAt(call.who, topic, partitionIndex, timestampMs) : []
    return await answerTo(asked, wanted, found[0])
  } catch (error) {
    return { partitionIndex, errorCode: toldOf(error).errorCode }
  }
}

async function answerTo(
  asked: Known,
  { partitionIndex, currentLeaderEpoch, timestamp }: WantedPartition,
  offsets: PartitionOffsets | undefined
): Promise<ToldPartition> {
  if (offsets === undefined) return { partitionIndex, errorCode: kafkaErrors.UNKNOWN_TOPIC_OR_PARTITION.code }
  const epochs = asked.epochsOf(partitionIndex)
  const fault = epochFault(epochs, currentLeaderEpoch)
  if (fault !== kafkaErrors.NONE.code) return { partitionIndex, errorCode: fault }
  const at = (offset: number, timestampMs = -1): ToldPartition => ({
    partitionIndex,
    errorCode: kafkaErrors.NONE.code,
    timestamp: timestampMs,
    offset,
    ...(asked.call.version >= EPOCHS_SINCE && offset >= 0 && { leaderEpoch: epochAt(epochs, offset) })
  })
  if (timestamp === LATEST) return at(offsets.latest)
  if (timestamp === EARLIEST || timestamp === EARLIEST_LOCAL) return at(offsets.earliest)
  if (timestamp < LARGEST_TIME) return { partitionIndex, errorCode: kafkaErrors.UNSUPPORTED_VERSION.code }
  const found = timestamp === LARGEST_TIME ? await largestTime(asked, partitionIndex) : offsets.found
  return found === null ? at(-1) : at(found.offset, found.timestampMs)
}

/**
 * The first record with the largest time: what is asked for by halves, as there is no index of it.
 * @cost some fifty searches by time: for administrators, not for consumers.
 */
async function largestTime({ call: { services, who }, pace, topic }: Asked, partition: number) {
  const firstFrom = async (timeMs: number): Promise<PartitionOffsets['found']> =>
    (await services.broker.offsetsAt(who, topic, partition, BigInt(timeMs)))[0]?.found ?? null
  let found = await firstFrom(0)
  if (found === null) return null
  let beyondMs = Number.MAX_SAFE_INTEGER
  while (found.timestampMs + 1 < beyondMs) {
    const middleMs: number = found.timestampMs + 1 + Math.floor((beyondMs - found.timestampMs - 1) / 2)
    const later = await firstFrom(middleMs)
    if (later === null) beyondMs = middleMs
    else found = later
    await pace.after()
  }
  return found
}
