/**
 * OffsetFetch: what a group has committed, since version 8 what many have. Where nothing is committed the offset is −1, and
 * that is no error. There are no transactions, so every offset is stable. Main thread.
 */
import type { GroupOffset } from '../../../model/groups.ts'
import { offsetFetch } from '../../../wire/kafka/apis/offset-fetch.ts'
import { kafkaErrors } from '../../../wire/kafka/errors.ts'
import { codeOf } from '../group-codes.ts'
import { handlerOf, type KafkaCall, type KafkaHandler } from '../handler.ts'

type Call = KafkaCall<typeof offsetFetch.request.fields, typeof offsetFetch.response.fields>
/** null: all that it has. */
type Wanted = readonly { readonly name: string; readonly partitionIndexes: readonly number[] }[] | null
type Offsets = ReadonlyMap<string, ReadonlyMap<number, GroupOffset>>

interface ToldPartition {
  readonly partitionIndex: number
  readonly committedOffset: number
  readonly metadata: string
  readonly errorCode: number
}

interface ToldGroup {
  readonly errorCode: number
  readonly topics: { readonly name: string; readonly partitions: ToldPartition[] }[]
}

const MANY_SINCE = 8
/** The first version with a code for the whole group. */
const GROUP_CODE_SINCE = 2
const NOTHING = -1

export const offsetFetchHandler: KafkaHandler = handlerOf(offsetFetch, call => {
  const { body, version } = call
  if (version < MANY_SINCE) {
    const { errorCode, topics } = toldOf(call, body.groupId, body.topics)
    return call.answer({ errorCode, topics, groups: [] })
  }
  call.answer({
    topics: [],
    groups: body.groups.map(({ groupId, topics }) => ({ groupId, ...toldOf(call, groupId, topics) }))
  })
})

function toldOf(call: Call, group: string, wanted: Wanted): ToldGroup {
  let offsets: Offsets
  try {
    offsets = offsetsOf(call, group)
  } catch (error) {
    const errorCode = codeOf(error)
    const topics = call.version < GROUP_CODE_SINCE ? refused(wanted, errorCode) : []
    return { errorCode, topics }
  }
  const asked = wanted ?? [...offsets].map(([name, known]) => ({ name, partitionIndexes: [...known.keys()] }))
  return {
    errorCode: kafkaErrors.NONE.code,
    topics: asked.map(({ name, partitionIndexes }) => {
      if (!call.who.mayRead(name))
        return refusedTopic(name, partitionIndexes, kafkaErrors.TOPIC_AUTHORIZATION_FAILED.code)
      const known = offsets.get(name)
      const partitions = partitionIndexes.map(index => told(index, known?.get(index) ?? NOTHING, kafkaErrors.NONE.code))
      return { name, partitions }
    })
  }
}

/** @throws BrokerError GROUP_OWNED, KEY_REVOKED */
function offsetsOf({ services, who }: Call, group: string): Offsets {
  const byTopic = new Map<string, Map<number, GroupOffset>>()
  for (const { topic, partition, offset } of services.broker.classicGroups.offsets(who, group)) {
    const known = byTopic.get(topic) ?? new Map<number, GroupOffset>()
    byTopic.set(topic, known.set(partition, offset))
  }
  return byTopic
}

function told(partitionIndex: number, offset: GroupOffset, errorCode: number): ToldPartition {
  // Over HTTP larger ones than any log reaches may be committed.
  const committedOffset = Number(offset > Number.MAX_SAFE_INTEGER ? Number.MAX_SAFE_INTEGER : offset)
  return { partitionIndex, committedOffset, metadata: '', errorCode }
}

function refused(wanted: Wanted, errorCode: number): ToldGroup['topics'] {
  return (wanted ?? []).map(({ name, partitionIndexes }) => refusedTopic(name, partitionIndexes, errorCode))
}

function refusedTopic(name: string, partitions: readonly number[], errorCode: number): ToldGroup['topics'][number] {
  return { name, partitions: partitions.map(index => told(index, NOTHING, errorCode)) }
}
