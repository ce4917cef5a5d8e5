/** What main knows of one shard, over all of its incarnations. Main thread only; owned by the shard set. */
import type { ShardLink } from './shard-link.ts'

/** Waits between restarts of a shard that keeps dying; after the last one it counts as down. */
const RESTART_WAITS_MS = [0, 100, 400, 1600, 6400]
/** A shard that ran this long has earned a fresh start of the count. */
const RESTART_FORGIVEN_MS = 60_000

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

/** Counts a death. @returns ms to wait before the next start; undefined: it counts as down. */
export function noteDeath(state: ShardState): number | undefined {
  if (performance.now() - state.startedAtMs > RESTART_FORGIVEN_MS) state.deaths = 0
  return RESTART_WAITS_MS[state.deaths++]
}
