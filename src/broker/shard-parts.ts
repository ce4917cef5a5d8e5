/** Which shards the records of a request go to. Main thread; pure. */
import { handleOf } from '../model/handles.ts'
import { shardOf } from '../model/ids.ts'
import type { EngineAppend } from './engine.ts'

/** The shard of record i. */
export function shardOfRecord({ topic, partitions }: EngineAppend, i: number, shardCount: number): number {
  return shardOf(handleOf(topic, partitions[i] ?? 0), shardCount)
}

/** True if all records go to one shard. */
export function hasOneShard(append: EngineAppend, shardCount: number): boolean {
  if (shardCount === 1) return true
  const shard = shardOfRecord(append, 0, shardCount)
  for (let i = 1; i < append.records.count; i++) if (shardOfRecord(append, i, shardCount) !== shard) return false
  return true
}
