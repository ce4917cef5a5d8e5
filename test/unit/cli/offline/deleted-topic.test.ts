/**
 * A topic that was deleted after a part of it had been settled: what stood in the slots that are free again is gone, and
 * the slots behind still tell of it. Nothing of that is damage.
 */
import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { silentLogger } from '../../../../src/base/logger.ts'
import { SimulatedDisk } from '../../../../src/disk/simulated-disk.ts'
import { openStore } from '../../../../src/store/store-client.ts'
import { append, openLog, partitionOf, textRecord } from '../../../support/log-harness.ts'
import { settleAll } from '../../../support/log-settle.ts'
import { takeTree, type Tree } from '../../../support/settled-sample.ts'
import { run } from '../terminal.ts'
import { topicOf, writeTree } from './offline-directories.ts'

const topics = [topicOf(1, 'orders', 1, 1), topicOf(2, 'bench', 2, 2)]
const GAP = 'no readable group holds these offsets'

/** Slots as a broker leaves them that settled one while `bench` was being deleted, and wrote to `bench` before and after. */
function makeTree(): Tree {
  const disk = new SimulatedDisk()
  const log = openLog(disk)
  for (const { firstHandle, partitionCount } of topics) {
    log.table.open({ firstHandle, partitionCount, segmentBytes: 64 * 1024 })
  }
  const write = (): void => {
    append(log, { firstHandle: 1, records: [textRecord(0, null, 'order')] })
    append(log, { firstHandle: 2, records: [0, 1, 0, 1].map(partition => textRecord(partition, null, 'load')) })
  }
  write()
  write()
  log.sealOpenSlot()
  settleAll(disk, log, {
    placeOf: handle => (handle === 1 ? { kind: 'kept', directory: 'topics/orders~1/0' } : { kind: 'dropped' })
  })
  // Of partition 1 the first that is left is where it begins, which is below its next run.
  log.moveStarts([{ log: partitionOf(log, 2, 1), offset: 1 }])
  write()
  log.close()
  return takeTree(disk.killProcess())
}

const tree = makeTree()

async function directoryOf(t: TestContext, isDeleted: boolean): Promise<string> {
  const dataDir = await writeTree(t, tree, topics)
  const store = await openStore({ dataDir, logger: silentLogger })
  const [, bench] = topics
  if (isDeleted && bench !== undefined) await store.commit([{ kind: 'topic-deleted', id: bench.id }])
  await store.close()
  return dataDir
}

describe('what a deleted topic had in slots that are free again', () => {
  it('is no damage to verify, to quarantine list, and to dump --verify', async t => {
    const dataDir = await directoryOf(t, true)
    const verified = await run(['verify', '--json', '--data-dir', dataDir])
    assert.equal(verified.code, 0, verified.stdout + verified.stderr)
    const listed = await run(['quarantine', 'list', '--data-dir', dataDir])
    assert.deepEqual([listed.code, listed.stdout.includes(GAP)], [0, false], listed.stdout)
    const dumped = await run(['dump', '--verify', '--data-dir', dataDir, '--output', `${dataDir}.tar`])
    assert.equal(dumped.code, 0, dumped.stderr)
  })

  it('is damage if the topic is there: its records are missing', async t => {
    const dataDir = await directoryOf(t, false)
    const verified = await run(['verify', '--data-dir', dataDir])
    assert.equal(verified.code, 1)
    assert.match(verified.stdout, /^damage: .*\n  bench\/0, offsets 0 to 3\n  no readable group holds these offsets$/m)
    const listed = await run(['quarantine', 'list', '--data-dir', dataDir])
    assert.deepEqual([listed.code, listed.stdout.includes(GAP)], [1, true], listed.stdout)
  })
})
