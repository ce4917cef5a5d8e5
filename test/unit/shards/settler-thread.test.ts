/** What the settler thread does, and what it is not given, while a shard that died starts again (S2). Real threads. */
import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { describe, it, type TestContext } from 'node:test'
import { silentLogger } from '../../../src/base/logger.ts'
import { SettlerThread } from '../../../src/shards/settler-thread.ts'
import { createCounters } from '../../../src/wire/shard/counters.ts'
import { atEnd } from '../../support/clean-up.ts'
import { temporaryDirectory } from '../../support/temporary-directory.ts'

const GIB = 1024 * 1024 * 1024
const ranges = [{ firstHandle: 1, partitionCount: 1, dirtyShareMin: 0 }]

interface Stage {
  readonly settler: SettlerThread
  readonly journal: string
  /** Names of the files that were filled. */
  readonly filled: string[]
}

function stage(t: TestContext): Stage {
  const dataDirectory = temporaryDirectory(t)
  const journal = `${dataDirectory}/journal`
  mkdirSync(journal)
  const filled: string[] = []
  const settler = new SettlerThread({
    logger: silentLogger,
    listener: {
      onFilled: (_shard, { name }) => filled.push(name),
      onFillFailed: () => undefined,
      onSettledPart: () => undefined,
      onSettled: () => Promise.resolve(),
      onFilesUnused: () => Promise.resolve(),
      onSettleFailed: () => undefined
    },
    placeOf: shard => ({ shard, placementEpoch: 1, journalDirectory: journal, dataDirectory }),
    topicPlaces: () => [],
    graceMs: 0,
    faults: null
  })
  atEnd(t, () => settler.stop())
  return { settler, journal, filled }
}

describe('the settler thread, when a shard starts again', () => {
  it('does not keep it waiting for slots that are filled for other shards', async t => {
    const { settler, journal, filled } = stage(t)
    settler.fill({ shard: 1, directory: journal, counters: createCounters() }, [{ name: '0001.slot', bytes: GIB }])
    await settler.cancel(0)
    assert.deepEqual(filled, [])
  })

  it('takes no job for it before it has read its directory', async t => {
    const { settler } = stage(t)
    assert.deepEqual(await settler.findCompactable(0, ranges), [])
    const cancelled = settler.cancel(0)
    await assert.rejects(settler.findCompactable(0, ranges), /the shard or the settler ended/)
    await cancelled
    assert.equal(await settler.replace(0, Buffer.alloc(0)), null)
    assert.deepEqual(await settler.findCompactable(1, ranges), [], 'others go on')
    settler.admit(0)
    assert.deepEqual(await settler.findCompactable(0, ranges), [])
  })
})
