/** Asks the owner of a partition to delete the records below an offset. Main thread. */
import { assert } from '../base/assert.ts'
import { BrokerError } from '../model/errors.ts'
import { handleOf } from '../model/handles.ts'
import { shardOf } from '../model/ids.ts'
import type { Topic } from '../model/topic.ts'
import type { ShardSet } from '../shards/shard-set.ts'

/**
 * @param offset a safe integer from 0.
 * @returns where the partition starts now.
 * @fails FIELD_RANGE, TOPIC_NOT_FOUND, SHARD_DOWN; SHARD_DIED when the shard ended after it was asked: it may have moved.
 */
export async function deleteRecords(
  shards: ShardSet,
  topic: Topic,
  partition: number,
  offset: number
): Promise<number> {
  const handle = handleOf(topic, partition)
  const link = shards.linkOf(handle)
  if (link === null) throw shards.refusal(shardOf(handle, shards.shardCount))
  const start = await link
    .control(id => ({ kind: 'delete-records', id, handle, offset }))
    .catch((error: unknown) => {
      throw refusalOf(error, topic)
    })
  assert(typeof start === 'number', 'a deletion of records is answered by the start of its partition')
  return start
}

function refusalOf(error: unknown, topic: Topic): unknown {
  if (!(error instanceof BrokerError)) return error
  // A shard knows handles, not names.
  if (error.code === 'TOPIC_NOT_FOUND') return new BrokerError('TOPIC_NOT_FOUND', { topic: topic.name })
  // A control message leaves no trace of whether the shard that died had taken it.
  if (error.code === 'SHARD_DOWN') return new BrokerError('SHARD_DIED', error.details)
  return error
}
