/** What main knows of one shard, over all of its incarnations. Main thread only; owned by the shard set. */
import type { ShardLink } from './shard-link.ts'

export interface ShardState {
  link: ShardLink | null
  isRecovered: boolean
  /** Recovered and all topics opened. */
  isReady: boolean
  startCount: number
  deaths: number
  startedAtMs: number
  /** Down for good: why. */
  red: string | null
  restartTimer: NodeJS.Timeout | null
}

/** Of a shard that was never started. */
export function newShardState(): ShardState {
  return {
    link: null,
    isRecovered: false,
    isReady: false,
    startCount: 0,
    deaths: 0,
    startedAtMs: 0,
    red: null,
    restartTimer: null
  }
}
