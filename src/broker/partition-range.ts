/** Which partitions a topic has, and why another one is refused. Pure. */
import { BrokerError } from '../model/errors.ts'
import type { Topic } from '../model/topic.ts'

/** Kafka's clients can name one below 0. */
export function hasPartition(topic: Topic, partition: number): boolean {
  return partition >= 0 && partition < topic.partitionCount
}

/** It says how keys are put into partitions, too: clients that do that themselves learn it from here (client/binary/refusals.ts). */
export function noSuchPartition(topic: Topic, partition: number): BrokerError {
  const { name, partitionCount: count, config } = topic
  return new BrokerError('PARTITION_RANGE', { partition, topic: name, count, partitioner: config.partitioner })
}
