/**
 * OffsetFetch: what a group has committed, since version 8 what many have. Where nothing is committed the offset is −1, and
 * that is no error. There are no transactions, so every offset is stable. Main thread.
 *
 * What stands beside an offset may be a thousand times larger than what asks for it. So an answer has each offset's once: a
 * partition that is asked for again has its offset alone, and a group that is named again is refused.
 */
import type { ClassicOffset } from '../../../model/classic-groups.ts'
import { noNote } from '../../../model/groups.ts'
import { offsetFetch } from '../../../wire/kafka/apis/offset-fetch.ts'
import { kafkaErrors } from '../../../wire/kafka/errors.ts'
import { codeOf } from '../group-codes.ts'
import { longQuestionOf, type KafkaCall, type KafkaHandler } from '../handler.ts'

type Call = KafkaCall<typeof offsetFetch.request.fields, typeof offsetFetch.response.fields>
/** null: all that it has. */
type Wanted = readonly { readonly name: string; readonly partitionIndexes: readonly number[] }[] | null
type Offset = Pick<ClassicOffset, 'offset' | 'note'>
type Offsets = ReadonlyMap<string, Map<number, Offset>>

interface ToldPartition {
  readonly partitionIndex: number
  readonly committedOffset: number
  readonly committedLeaderEpoch: number
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
const nothing: Offset = { offset: -1, note: noNote }

export const offsetFetchHandler: KafkaHandler = longQuestionOf(offsetFetch, async call => {
  const { body, version, pace } = call
  if (version < MANY_SINCE) {
    if (body.topics === null) await pace.next()
    const { errorCode, topics } = toldOf(call, body.groupId, body.topics)
    return call.answerInTurns({ errorCode, topics, groups: [] })
  }
  const told = new Set<string>()
  const groups = await pace.inOrder(body.groups, async ({ groupId, topics }) => {
    if (told.has(groupId)) return { groupId, errorCode: kafkaErrors.INVALID_REQUEST.code, topics: [] }
    told.add(groupId)
    // A group may have a hundred thousand offsets, and all of them are looked through.
    await pace.next()
    return { groupId, ...toldOf(call, groupId, topics) }
  })
  await call.answerInTurns({ topics: [], groups })
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
      const partitions = partitionIndexes.map(index => {
        const offset = known?.get(index)
        if (offset === undefined) return told(index, nothing, kafkaErrors.NONE.code)
        known?.set(index, { offset: offset.offset, note: noNote })
        return told(index, offset, kafkaErrors.NONE.code)
      })
      return { name, partitions }
    })
  }
}

/** @throws BrokerError GROUP_OWNED, KEY_REVOKED */
function offsetsOf({ services, who }: Call, group: string): Offsets {
  const byTopic = new Map<string, Map<number, Offset>>()
  for (const { topic, partition, offset, note } of services.broker.classicGroups.offsets(who, group)) {
    const known = byTopic.get(topic) ?? new Map<number, Offset>()
    byTopic.set(topic, known.set(partition, { offset, note }))
  }
  return byTopic
}

function told(partitionIndex: number, { offset, note }: Offset, errorCode: number): ToldPartition {
  // Over HTTP larger ones than any log reaches may be committed.
  const committedOffset = Number(offset > Number.MAX_SAFE_INTEGER ? Number.MAX_SAFE_INTEGER : offset)
  const { leaderEpoch: committedLeaderEpoch, metadata } = note
  return { partitionIndex, committedOffset, committedLeaderEpoch, metadata, errorCode }
}

function refused(wanted: Wanted, errorCode: number): ToldGroup['topics'] {
  return (wanted ?? []).map(({ name, partitionIndexes }) => refusedTopic(name, partitionIndexes, errorCode))
}

function refusedTopic(name: string, partitions: readonly number[], errorCode: number): ToldGroup['topics'][number] {
  return { name, partitions: partitions.map(index => told(index, nothing, errorCode)) }
}
