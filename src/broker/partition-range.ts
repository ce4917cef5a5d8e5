/** Why a partition is refused that a topic does not have. Pure. */
import { BrokerError } from '../model/errors.ts'
import type { Topic } from '../model/topic.ts'

/** It says how keys are put into partitions, too: clients that do that themselves learn it from here (client/binary/refusals.ts). */
export function noSuchPartition(topic: Topic, partition: number): BrokerError {
  const { name, partitionCount: count, config } = topic
  return new BrokerError('PARTITION_RANGE', { partition, topic: name, count, partitioner: config.partitioner })
}
