/**
 * The promise of the log: what was acknowledged is there after any power cut, once, at its offset, with its content.
 * 200 lives of a shard in the normal run, 10,000 with --long or MILLRACE_LONG=1; MILLRACE_SEED replays one.
 */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { liveOnce, type LifeControls, type LifeCounts } from '../support/log-life.ts'

const FILE = 'test/crash/power-loss.test.ts'
const STEPS = 60
const isLong = process.env['MILLRACE_LONG'] === '1' || process.argv.includes('--long')
const lifeCount = isLong ? 10_000 : 200
const asked = process.env['MILLRACE_SEED']
const seeds = asked === undefined ? Array.from({ length: lifeCount }, (_, i) => 1 + i) : [Number(asked)]

/** Lives the lives of all seeds. @throws with the seed and how to replay it. */
function liveAll(controls: LifeControls = {}): LifeCounts {
  const sum = { ...noCounts }
  for (const seed of seeds) {
    try {
      const counts = liveOnce(seed, STEPS, controls)
      for (const [name, count] of Object.entries(counts)) sum[name] = (sum[name] ?? 0) + count
    } catch (error) {
      throw new Error(`seed ${seed}; replay: MILLRACE_SEED=${seed} node --test ${FILE}`, { cause: error })
    }
  }
  return sum
}
