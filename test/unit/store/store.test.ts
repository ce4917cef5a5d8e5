import assert from 'node:assert/strict'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import type { Logger } from '../../../src/base/logger.ts'
import { Catalog } from '../../../src/control/catalog.ts'
import type { StoreChange } from '../../../src/control/store-image.ts'
import { decideConfigure, decideCreate, decideDelete, decideGrow } from '../../../src/control/topic-decisions.ts'
import type { TopicDecision } from '../../../src/control/topic-decisions.ts'
import { BrokerError } from '../../../src/model/errors.ts'
import { rangesOf } from '../../../src/model/handles.ts'
import { toTopicId } from '../../../src/model/ids.ts'
import type { Topic, TopicConfigPatch } from '../../../src/model/topic.ts'
import type { Store } from '../../../src/store/store.ts'
import { defaults, topicOf, emptyImage } from '../control/topics.ts'
import { freshDataDir, openForTest } from './store-tools.ts'

const created = (id: number, name: string, firstHandle = id): StoreChange => ({
  kind: 'topic-created',
  topic: topicOf({ id, name, firstHandle })
})
const deleted = (id: number): StoreChange => ({ kind: 'topic-deleted', id: toTopicId(id) })
const namesIn = (store: Store) => store.image.topics.map(topic => topic.name)

/** The way the broker goes: decide, reserve, commit, apply. */
async function carryOut(catalog: Catalog, store: Store, decision: TopicDecision): Promise<void> {
  catalog.reserve(decision.change)
  await store.commit([decision.change])
  catalog.apply(decision.change)
}

describe('a restart', () => {
  test('a new directory gets an identity that it keeps', async t => {
    const dataDir = freshDataDir(t)
    const first = await openForTest(t, dataDir)
    const { directoryId, ...rest } = first.image
    assert.match(directoryId, /^[0-9a-f]{32}$/)
    const { directoryId: _, ...fresh } = emptyImage
    assert.deepEqual(rest, fresh)
    await first.close()
    assert.deepEqual((await openForTest(t, dataDir)).image, first.image)
  })

  test('keeps topics and their configuration, 64-bit values digit for digit', async t => {
    const dataDir = freshDataDir(t)
    const store = await openForTest(t, dataDir)
    const catalog = new Catalog(store.image)
    const config: TopicConfigPatch = {
      retention_ms: 18_446_744_073_709_551_615n,
      retention_bytes: 9_007_199_254_740_993n,
      cleanup_policy: 'compact,delete',
      segment_bytes: 2 ** 40,
      tombstone_retention_ms: 0,
      validate_schema: false,
      partitioner: 'fnv1a'
    }
    await carryOut(catalog, store, decideCreate(catalog, { name: 'a', partitions: 3, config }, defaults))
    await carryOut(catalog, store, decideCreate(catalog, { name: 'b', partitions: 1, config: {} }, defaults))
    await carryOut(catalog, store, decideConfigure(catalog, 'b', { retention_ms: 9_007_199_254_740_991 }, defaults))
    await store.commit([{ kind: 'placement', shardCount: 3, epoch: 1 }])
    await store.close()
    const { image } = await openForTest(t, dataDir)
    assert.deepEqual(image.topics, catalog.topics)
    assert.equal(image.topics[0]?.config.retention_ms, 18_446_744_073_709_551_615n)
    assert.deepEqual([image.shardCount, image.placementEpoch], [3, 1])
  })

  test('a topic created again under the name of a deleted one has a new id and new handles', async t => {
    const dataDir = freshDataDir(t)
    const request = { name: 'a', partitions: 4, config: {} }
    const lives: (readonly [number, number])[] = []
    for (let life = 0; life < 3; life++) {
      const store = await openForTest(t, dataDir)
      const catalog = new Catalog(store.image)
      const decision = decideCreate(catalog, request, defaults)
      await carryOut(catalog, store, decision)
      lives.push([decision.topic.id, decision.topic.firstHandle])
      await carryOut(catalog, store, decideDelete(catalog, 'a'))
      await store.close()
    }
    assert.deepEqual(lives, [
      [1, 1],
      [2, 5],
      [3, 9]
    ])
    const { tombstones } = (await openForTest(t, dataDir)).image
    assert.deepEqual(
      tombstones.map(({ name, firstHandle, partitionCount }) => [name, firstHandle, partitionCount]),
      [
        ['a', 1, 4],
        ['a', 5, 4],
        ['a', 9, 4]
      ]
    )
  })
})

test('rows of partitions whose handles follow on are read as one range, of deleted topics too', async t => {
  const dataDir = freshDataDir(t)
  const store = await openForTest(t, dataDir)
  const catalog = new Catalog(store.image)
  for (const name of ['a', 'b']) {
    await carryOut(catalog, store, decideCreate(catalog, { name, partitions: 2, config: {} }, defaults))
    for (const count of [3, 5, 9]) await carryOut(catalog, store, decideGrow(catalog, name, count))
  }
  await carryOut(catalog, store, decideGrow(catalog, 'a', 10))
  await carryOut(catalog, store, decideDelete(catalog, 'b'))
  await store.close()
  const { topics, tombstones } = (await openForTest(t, dataDir)).image
  assert.deepEqual(rangesOf(topics[0] as Topic), [
    { firstPartition: 0, firstHandle: 1, partitionCount: 9 },
    { firstPartition: 9, firstHandle: 19, partitionCount: 1 }
  ])
  assert.deepEqual([topics, tombstones], [catalog.topics, catalog.tombstones])
  assert.deepEqual([tombstones[0]?.partitionCount, tombstones[0]?.added], [9, undefined])
})

test('partitions that were added are there after a restart, and after their topic until it is forgotten', async t => {
  const dataDir = freshDataDir(t)
  const store = await openForTest(t, dataDir)
  const catalog = new Catalog(store.image)
  await carryOut(catalog, store, decideCreate(catalog, { name: 'a', partitions: 2, config: {} }, defaults))
  await carryOut(catalog, store, decideCreate(catalog, { name: 'b', partitions: 1, config: {} }, defaults))
  await carryOut(catalog, store, decideGrow(catalog, 'a', 5))
  await carryOut(catalog, store, decideGrow(catalog, 'b', 2))
  await carryOut(catalog, store, decideGrow(catalog, 'a', 6))
  await store.close()
  const next = await openForTest(t, dataDir)
  const { topics, nextHandle } = next.image
  assert.deepEqual(topics, catalog.topics)
  assert.deepEqual(
    [rangesOf(topics[0] as Topic).map(({ firstHandle }) => firstHandle), topics[0]?.partitionCount, nextHandle],
    [[1, 4, 8], 6, 9]
  )
  const again = new Catalog(next.image)
  await carryOut(again, next, decideDelete(again, 'a'))
  await next.close()
  const last = await openForTest(t, dataDir)
  const final = new Catalog(last.image)
  assert.deepEqual(final.tombstones, again.tombstones)
  for (const handle of [1, 2, 4, 5, 6, 8]) assert.equal(final.meaningOf(handle).kind, 'tombstone', String(handle))
  const forgotten = { kind: 'tombstones-forgotten', ids: final.tombstones.map(({ id }) => id) } as const
  await last.commit([forgotten])
  final.apply(forgotten)
  for (const handle of [1, 4, 8]) assert.equal(final.meaningOf(handle).kind, 'unknown')
  assert.equal(final.meaningOf(7).kind, 'live')
  await last.close()
  const { image } = await openForTest(t, dataDir)
  assert.deepEqual([image.tombstones, image.topics.length], [[], 1])
})

describe('a commit', () => {
  test('is all or nothing, and one that fails takes no other with it', async t => {
    const dataDir = freshDataDir(t)
    const store = await openForTest(t, dataDir)
    const results = await Promise.allSettled([
      store.commit([created(1, 'a')]),
      store.commit([created(2, 'b'), deleted(77)]),
      store.commit([created(3, 'c'), created(4, 'a')]),
      store.commit([created(5, 'd'), deleted(1)])
    ])
    assert.deepEqual(
      results.map(result => result.status),
      ['fulfilled', 'rejected', 'rejected', 'fulfilled']
    )
    await store.close()
    const reopened = await openForTest(t, dataDir)
    assert.deepEqual(namesIn(reopened), ['d'])
    assert.equal(reopened.image.nextTopicId, 6)
  })

  test('that would give an id or a handle a second time is refused', async t => {
    const store = await openForTest(t, freshDataDir(t))
    await store.commit([created(5, 'a', 50)])
    await store.commit([deleted(5)])
    for (const [id, handle] of [
      [5, 51],
      [6, 50],
      [4, 60]
    ] as const) {
      await assert.rejects(store.commit([created(id, 'b', handle)]), { code: 'INTERNAL', written: 'no' })
    }
    await store.commit([created(6, 'b', 51)])
  })

  test('that is refused tells its caller an id, and the log the reason under that id', async t => {
    const logged: { fields: object; message: string }[] = []
    const push = (fields: object, message: string) => void logged.push({ fields, message })
    const logger: Logger = { debug: push, info: push, warn: push, error: push }
    const store = await openForTest(t, freshDataDir(t), logger)
    const error = await store.commit([deleted(1)]).catch((reason: unknown) => reason)
    assert.ok(error instanceof BrokerError)
    assert.match(error.message, /^internal error \(id [0-9a-f]{8}\)$/)
    assert.equal(logged.length, 1)
    const fields = JSON.stringify(logged[0]?.fields)
    assert.ok(fields.includes(String(error.details['id'])) && fields.includes('must exist'), fields)
  })

  test('shares its sync with the commits that wait with it', async t => {
    const dataDir = freshDataDir(t)
    const store = await openForTest(t, dataDir)
    const before = committedTransactions(dataDir)
    await Promise.all(Array.from({ length: 200 }, (_, i) => store.commit([created(i + 1, `t${i}`)])))
    const grouped = committedTransactions(dataDir) - before
    assert.ok(grouped >= 1 && grouped <= 50, `200 commits at once took ${grouped} transactions`)
    for (let i = 200; i < 210; i++) await store.commit([created(i + 1, `t${i}`)])
    assert.equal(committedTransactions(dataDir) - before - grouped, 10)
  })
})

describe('closing', () => {
  test('finishes what was asked before it and refuses what comes after', async t => {
    const dataDir = freshDataDir(t)
    const store = await openForTest(t, dataDir)
    const asked = Promise.all([1, 2, 3].map(id => store.commit([created(id, `t${id}`)])))
    const closing = store.close()
    await assert.rejects(store.commit([created(4, 't4')]), { code: 'STOPPING' })
    await Promise.all([asked, closing, store.close()])
    assert.deepEqual(namesIn(await openForTest(t, dataDir)), ['t1', 't2', 't3'])
  })

  test('files of the store can be read by their owner alone', async t => {
    const dataDir = freshDataDir(t)
    const store = await openForTest(t, dataDir)
    await store.commit([created(1, 'a')])
    assert.equal(statSync(dataDir).mode & 0o777, 0o700)
    for (const name of ['lock.db', 'lock.pid', 'store.db', 'store.db-wal']) {
      assert.equal(statSync(join(dataDir, name)).mode & 0o777, 0o600, name)
    }
  })
})

/**
 * Counts the commit frames of the write-ahead log. A frame header of 24 bytes holds, at byte 4, the database size in
 * pages if the frame ends a transaction, else 0 (https://www.sqlite.org/fileformat2.html#walformat).
 */
function committedTransactions(dataDir: string): number {
  const log = readFileSync(join(dataDir, 'store.db-wal'))
  const pageBytes = log.readUInt32BE(8)
  let count = 0
  for (let at = 32; at + 24 + pageBytes <= log.length; at += 24 + pageBytes) {
    if (log.readUInt32BE(at + 4) !== 0) count++
  }
  return count
}
