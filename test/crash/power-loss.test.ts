/**
 * The promise of the log: what was acknowledged is there after any power cut, once, at its offset, with its content,
 * whether it lies in slots or is settled, and whatever became of a settle job.
 * 200 lives of a shard in the normal run, 10,000 with --long or MILLRACE_LONG=1; MILLRACE_SEED replays one.
 */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { FaultPoint } from '../../src/disk/faults.ts'
import type { LifeControls, LifeCounts } from '../support/log-life-counts.ts'
import { liveOnce } from '../support/log-life.ts'
import { replayLine } from '../support/log-random.ts'

const FILE = 'test/crash/power-loss.test.ts'
const STEPS = 80
const isLong = process.env['MILLRACE_LONG'] === '1' || process.argv.includes('--long')
const asked = process.env['MILLRACE_SEED']
const seeds = asked === undefined ? Array.from({ length: isLong ? 10_000 : 200 }, (_, i) => 1 + i) : [Number(asked)]
/** Enough for each kind of trouble to have struck; a single replayed life need not have had them all. */
const isWholeRun = seeds.length >= 200

function live(seed: number, controls: LifeControls = {}): LifeCounts {
  try {
    return liveOnce(seed, STEPS, controls)
  } catch (error) {
    throw new Error(replayLine(seed, FILE), { cause: error })
  }
}

/** Lives of which the judge said that acknowledged records were lost. Other ways to notice (the start refuses) do not count. */
function livesThatLost(controls: LifeControls, enough: number): number {
  let lost = 0
  for (const seed of seeds) {
    try {
      liveOnce(seed, STEPS, controls)
    } catch (error) {
      if (error instanceof assert.AssertionError && error.message.includes('acked records lost')) lost++
    }
    if (lost >= enough) break
  }
  return lost
}

describe('a log whose process is killed and whose power is cut at any moment', () => {
  it('serves every acknowledged record once at its offset, and no offset ever has two values', t => {
    const sum: Record<string, number> = {}
    for (const seed of seeds) {
      for (const [name, count] of Object.entries(live(seed))) sum[name] = (sum[name] ?? 0) + count
    }
    t.diagnostic(`${seeds.length} lives: ${JSON.stringify(sum)}`)
    if (isWholeRun) for (const [name, count] of Object.entries(sum)) assert.ok(count > 0, `no life had any ${name}`)
  })

  it('is seen to lose records if files are not synced, so that the test above can fail', { skip: !isWholeRun }, () => {
    assert.ok(livesThatLost({ ignoreSync: true }, 5) >= 5)
  })

  it('is seen to lose records if directories are not synced', { skip: !isWholeRun }, () => {
    assert.ok(livesThatLost({ ignoreDirectorySync: true }, 5) >= 5)
  })

  const settleSyncs: readonly FaultPoint[] = [
    'segment.sync',
    'pack.sync',
    'segment.directory-sync',
    'manifest.sync',
    'manifest.directory-sync'
  ]
  for (const point of settleSyncs) {
    it(`is seen to break if a settle job leaves out ${point}`, { skip: !isWholeRun }, () => {
      const broken = seeds.some(seed => {
        try {
          liveOnce(seed, STEPS, { ignoredSyncs: [point] })
          return false
        } catch {
          // Lost records, a start that refuses, a file that is not there: each is a reason to sync.
          return true
        }
      })
      assert.ok(broken)
    })
  }
})
