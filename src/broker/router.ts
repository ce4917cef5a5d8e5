/**
 * Where records go: the partition a record names, else the hash of its key, else the next in turn (spec 3.1).
 * Main thread. Owns the turn of each topic, which starts at 0 with the process.
 */
import { keyHashes } from '../model/key-hashes.ts'
import { limits } from '../model/limits.ts'
import type { RecordSource } from '../model/requests.ts'
import type { Topic } from '../model/topic.ts'
import { noSuchPartition } from './partition-range.ts'

export class Router {
  readonly #nextTurn = new Map<number, number>()
  /** Partitions of the request routed last; used again by the next. */
  #partitions = new Uint32Array(1024)
  #turn = 0

  /**
   * Resolves the partition of every record. Nothing is decided until accept(): a request that is refused before it
   * reaches the engine, or must wait, moves no turn.
   * @returns partitions[0, count), valid until the next call. @throws BrokerError PARTITION_RANGE
   */
  route(topic: Topic, records: RecordSource): Uint32Array {
    const { count } = records
    if (count > this.#partitions.length) {
      this.#partitions = new Uint32Array(
        Math.min(limits.requestRecordsMax, Math.max(count, this.#partitions.length * 2))
      )
    }
    const partitions = this.#partitions
    const hash = keyHashes[topic.config.partitioner]
    this.#turn = this.#nextTurn.get(topic.id) ?? 0
    for (let i = 0; i < count; i++) {
      let partition = records.partitionOf(i)
      if (partition < 0) {
        partition = records.hashKeyOf(i, topic.partitionCount, hash)
        if (partition < 0) {
          partition = this.#turn
          this.#turn = partition + 1 === topic.partitionCount ? 0 : partition + 1
        }
      } else if (partition >= topic.partitionCount) {
        throw noSuchPartition(topic, partition)
      }
      partitions[i] = partition
    }
    return partitions
  }

  /** The request routed last was taken. */
  accept(topic: Topic): void {
    this.#nextTurn.set(topic.id, this.#turn)
  }

  /** A deleted topic's turn. */
  forget(topic: Topic): void {
    this.#nextTurn.delete(topic.id)
  }
}
