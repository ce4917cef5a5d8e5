/** When a deleted topic may be forgotten for good. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { silentLogger } from '../../../src/base/logger.ts'
import { TombstoneKeeper } from '../../../src/broker/tombstones.ts'
import { Catalog } from '../../../src/control/catalog.ts'
import type { StoreChange, Tombstone } from '../../../src/control/store-image.ts'
import { toTopicId } from '../../../src/model/ids.ts'
import { emptyImage } from '../control/topics.ts'

const tombstone = (id: number): Tombstone => ({
  id: toTopicId(id),
  name: `t${id}`,
  firstHandle: id * 10,
  partitionCount: 2
})

function stage(tombstones: readonly Tombstone[]) {
  const image = { ...emptyImage, shardCount: 2, placementEpoch: 1, tombstones, nextTopicId: 1000, nextHandle: 100_000 }
  const catalog = new Catalog(image)
  const commits: StoreChange[] = []
  const newest = [5, 7]
  const jobs = [0, 3]
  let settles = 0
  const keeper = new TombstoneKeeper({
    catalog,
    store: {
      commit: changes => {
        commits.push(...changes)
        return Promise.resolve()
      }
    },
    shards: {
      shardCount: 2,
      newestSlot: shard => newest[shard] ?? 0,
      settler: { settleJobs: shard => jobs[shard] ?? 0 },
      settleAll: () => {
        settles++
        return Promise.resolve()
      }
    },
    logger: silentLogger,
    monotonicMs: () => 0
  })
  return { catalog, commits, keeper, jobs, settleCount: () => settles }
}

describe('a deleted topic', () => {
  it('waits for no further job of a shard whose job was through before the last shard had dropped it', async () => {
    const { catalog, commits, keeper } = stage([tombstone(1)])
    const isDropped = keeper.begin(tombstone(1))
    keeper.settled(1, 4, 7)
    isDropped()
    assert.deepEqual(commits, [], 'nothing of shard 0 is settled')
    keeper.settled(0, 1, 5)
    assert.deepEqual(commits, [{ kind: 'tombstones-forgotten', ids: [toTopicId(1)] }])
    await Promise.resolve()
    assert.deepEqual(catalog.tombstones, [])
  })

  it('goes at once when all shards had a job that late, and stays when a slot was opened after it', () => {
    const { commits, keeper } = stage([tombstone(1), tombstone(2)])
    const first = keeper.begin(tombstone(1))
    keeper.settled(0, 1, 4)
    keeper.settled(1, 4, 7)
    first()
    assert.deepEqual(commits, [], 'slot 5 of shard 0 may hold something of it')
    const second = keeper.begin(tombstone(2))
    keeper.settled(0, 2, 5)
    assert.equal(commits.length, 1)
    second()
    assert.equal(commits.length, 2)
  })

  it('is forgotten when a job sent after its deletion has settled every slot of that time, on every shard', async () => {
    const { catalog, commits, keeper } = stage([tombstone(1)])
    keeper.start()
    keeper.settled(0, 1, 4)
    keeper.settled(1, 4, 7)
    assert.deepEqual(commits, [], 'a slot of shard 0 is open still')
    keeper.settled(0, 2, 5)
    assert.deepEqual(commits, [{ kind: 'tombstones-forgotten', ids: [toTopicId(1)] }])
    await Promise.resolve()
    assert.deepEqual(catalog.tombstones, [])
    assert.equal(catalog.meaningOf(10).kind, 'unknown')
  })

  it('is not forgotten by a job that was under way when it was deleted: that one may have settled its data', () => {
    const { commits, keeper, jobs } = stage([])
    const onDropped = keeper.begin(tombstone(2))
    jobs[0] = 1
    onDropped()
    keeper.settled(0, 0, 9)
    keeper.settled(0, 1, 9)
    keeper.settled(1, 3, 9)
    assert.deepEqual(commits, [])
    keeper.settled(1, 4, 9)
    assert.equal(commits.length, 1)
  })

  it('makes room by itself when many wait, and not more often than that', () => {
    const { keeper, settleCount } = stage([])
    for (let id = 1; id <= 600; id++) keeper.begin(tombstone(id))()
    assert.equal(settleCount(), 1)
  })
})
