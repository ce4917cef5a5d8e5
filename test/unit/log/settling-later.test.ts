/** Settle jobs as the settler thread runs them: writes and syncs are under way while the job goes on. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { SimulatedDisk } from '../../../src/disk/simulated-disk.ts'
import { loadManifest } from '../../../src/log/manifest-file.ts'
import type { ShardLog } from '../../../src/log/shard-log.ts'
import { partitionOf, readBack, testDirectory } from '../../support/log-harness.ts'
import { diceOf } from '../../support/log-random.ts'
import { settleAll, settleAllLater, settleSteps } from '../../support/log-settle.ts'
import { appendTo, openSettled, settledSizes } from '../../support/log-settled-sample.ts'
import { takeTree } from '../../support/log-tree.ts'

describe('a settle job that writes off its thread', () => {
  /** The same records as any other log of the test, job after job. */
  async function settledIn(settleRound: (disk: SimulatedDisk, log: ShardLog) => unknown): Promise<SimulatedDisk> {
    const disk = new SimulatedDisk()
    const log = openSettled(disk)
    const sameDice = diceOf(11)
    for (let round = 0; round < 6; round++) {
      for (let i = 0; i < 30; i++) appendTo(log, i % 3, sameDice.bytes(50), sameDice.bytes(sameDice.below(6000)))
      log.sealOpenSlot()
      await settleRound(disk, log)
    }
    log.close()
    return disk
  }
  /** Tiny: all goes to logs. */
  const sizes = { ...settledSizes, ownBytesMin: 1 }

  const contentsOf = (log: ShardLog): unknown =>
    [0, 1, 2].map(partition => readBack(log, partitionOf(log, 1, partition), 0))

  it('leaves the same bytes as one that does not', async () => {
    const now = await settledIn((disk, log) => settleAll(disk, log, { sizes }))
    const later = await settledIn((disk, log) => settleAllLater(disk, log, { sizes }))
    const logs = (disk: SimulatedDisk): [string, Buffer][] =>
      [...takeTree(disk)].filter(([path]) => path.endsWith('.log')).sort()
    assert.ok(logs(now).length > 3)
    assert.deepEqual(logs(later), logs(now))
    assert.deepEqual(loadManifest(later, testDirectory, 0, 1), loadManifest(now, testDirectory, 0, 1))
  })

  it('leaves nothing of a job that was ended half way in the files of the next one', async () => {
    let round = 0
    const disk = await settledIn(async (disk, log) => {
      const steps = settleSteps({ disk, log, sizes, syncsLater: true })
      // Each round stops somewhere else, while writes are under way.
      for (let i = 0; i <= round; i++) steps.next()
      round++
      steps.return(undefined as never)
      await settleAllLater(disk, log, { sizes })
    })
    const log = openSettled(disk)
    const expected = openSettled(await settledIn((disk, log) => settleAll(disk, log, { sizes })))
    assert.deepEqual(contentsOf(log), contentsOf(expected))
  })
})
