import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Catalog } from '../../../src/control/catalog.ts'
import { ChangeTurns } from '../../../src/control/change-turns.ts'
import { decideCreate } from '../../../src/control/topic-decisions.ts'
import { handleOf } from '../../../src/model/handles.ts'
import { toTopicId } from '../../../src/model/ids.ts'
import { create, defaults, emptyImage, grow, remove, topicOf } from './topics.ts'

describe('the catalog', () => {
  test('lists names sorted by code unit, whatever the order of creation', () => {
    const catalog = new Catalog(emptyImage)
    for (const name of ['b', 'a', 'B', '10', '9', 'a-b', 'aa']) create(catalog, name)
    remove(catalog, 'aa')
    assert.deepEqual(catalog.names(), ['10', '9', 'B', 'a', 'a-b', 'b'])
    assert.equal(catalog.topicCount, 6)
  })

  test('tells of every handle whether it is live, deleted or unknown', () => {
    const catalog = new Catalog(emptyImage)
    const a = create(catalog, 'a', 2)
    const b = create(catalog, 'b', 3)
    create(catalog, 'c', 1)
    remove(catalog, 'b')
    const tombstone = { id: b.id, name: 'b', firstHandle: 3, partitionCount: 3 }
    assert.deepEqual(catalog.meaningOf(2), { kind: 'live', topic: a, partition: 1 })
    assert.deepEqual(
      [3, 5].map(handle => catalog.meaningOf(handle)),
      [
        { kind: 'tombstone', tombstone },
        { kind: 'tombstone', tombstone }
      ]
    )
    assert.deepEqual(
      [0, 7, 0xffff_ffff].map(handle => catalog.meaningOf(handle).kind),
      Array(3).fill('unknown')
    )
    assert.deepEqual(catalog.meaningOf(6), { kind: 'live', topic: catalog.topicNamed('c'), partition: 0 })
  })

  test('handles of abandoned creations are unknown and stay so', () => {
    const catalog = new Catalog(emptyImage)
    const { change } = decideCreate(catalog, { name: 'a', partitions: 4, config: {} }, defaults)
    catalog.reserve(change)
    catalog.abandon(change)
    assert.equal(create(catalog, 'b').firstHandle, 5)
    assert.equal(catalog.meaningOf(4).kind, 'unknown')
  })

  test('starts from what the store held', () => {
    const catalog = new Catalog({
      ...emptyImage,
      shardCount: 3,
      placementEpoch: 2,
      topics: [topicOf({ id: 4, name: 'z', firstHandle: 10, partitionCount: 5 })],
      tombstones: [{ id: toTopicId(2), name: 'z', firstHandle: 3, partitionCount: 2 }],
      nextTopicId: 9,
      nextHandle: 100
    })
    assert.deepEqual(catalog.placement, { shardCount: 3, epoch: 2, nextShardCount: null, previousShardCount: null })
    assert.deepEqual([catalog.meaningOf(14).kind, catalog.meaningOf(4).kind], ['live', 'tombstone'])
    assert.deepEqual([create(catalog, 'new').id, catalog.next.handle], [9, 101])
  })

  test('a new placement counts from when it is applied', () => {
    const catalog = new Catalog(emptyImage)
    catalog.reserve({ kind: 'placement', shardCount: 2, epoch: 1 })
    assert.deepEqual([catalog.placement.shardCount, catalog.placement.epoch], [null, 0])
    catalog.apply({ kind: 'placement', shardCount: 2, epoch: 1 })
    assert.deepEqual([catalog.placement.shardCount, catalog.placement.epoch], [2, 1])
  })

  test('an image with overlapping handles is a bug, not a topic', () => {
    const topics = [
      topicOf({ id: 1, name: 'a', firstHandle: 1, partitionCount: 3 }),
      topicOf({ id: 2, name: 'b', firstHandle: 3 })
    ]
    assert.throws(() => new Catalog({ ...emptyImage, topics, nextTopicId: 3, nextHandle: 9 }), { name: 'BugError' })
  })

  test('agrees with a plain list after any series of changes', t => {
    const seed = Number(process.env['SEED'] ?? 20_260_101)
    t.diagnostic(`seed ${seed}: SEED=${seed} node --test test/unit/control/catalog.test.ts`)
    let state = seed
    const dice = (sides: number) => (state = (state * 48_271) % 2_147_483_647) % sides
    const catalog = new Catalog(emptyImage)
    const expected = new Map<string, number[]>()
    const seenHandles = new Set<number>()
    for (let step = 0; step < 2000; step++) {
      const name = `t${dice(40)}`
      const before = expected.get(name)
      if (before !== undefined && dice(2) === 0) {
        const topic = grow(catalog, name, before.length + 1 + dice(4))
        for (let partition = before.length; partition < topic.partitionCount; partition++) {
          const handle = handleOf(topic, partition)
          assert.ok(!seenHandles.has(handle), `seed ${seed}: a handle was given twice`)
          seenHandles.add(handle)
          before.push(handle)
        }
      } else if (before !== undefined) {
        remove(catalog, name)
        expected.delete(name)
      } else {
        const topic = create(catalog, name, 1 + dice(5))
        const handles = Array.from({ length: topic.partitionCount }, (_, i) => topic.firstHandle + i)
        assert.ok(
          handles.every(handle => !seenHandles.has(handle)),
          `seed ${seed}: a handle was given twice`
        )
        for (const handle of handles) seenHandles.add(handle)
        expected.set(name, handles)
      }
    }
    assert.deepEqual(catalog.names(), [...expected.keys()].sort())
    for (const [name, handles] of expected) {
      const topic = catalog.topicNamed(name)
      assert(topic !== undefined)
      assert.deepEqual(
        handles.map((_, partition) => handleOf(topic, partition)),
        handles
      )
      handles.forEach((handle, partition) =>
        assert.deepEqual(catalog.meaningOf(handle), { kind: 'live', topic, partition }, `seed ${seed}`)
      )
    }
    const live = new Set([...expected.values()].flat())
    for (const handle of seenHandles) {
      assert.equal(catalog.meaningOf(handle).kind, live.has(handle) ? 'live' : 'tombstone', `seed ${seed}`)
    }
    assert.equal(catalog.claimed.partitionCount, live.size)
  })
})

describe('turns of changes', () => {
  test('changes of one name run one after the other, those of another name do not wait', async () => {
    const turns = new ChangeTurns()
    const order: string[] = []
    const gate = Promise.withResolvers<void>()
    const first = turns.run('a', async () => {
      order.push('first starts')
      await gate.promise
      order.push('first ends')
    })
    const second = turns.run('a', async () => void order.push('second'))
    await turns.run('b', async () => void order.push('other'))
    gate.resolve()
    await Promise.all([first, second])
    assert.deepEqual(order, ['first starts', 'other', 'first ends', 'second'])
    assert.equal(turns.busyCount, 0)
  })

  test('a failed change fails its own caller only', async () => {
    const turns = new ChangeTurns()
    const first = turns.run('a', () => Promise.reject(new Error('refused')))
    const second = turns.run('a', () => Promise.resolve('done'))
    await assert.rejects(first, { message: 'refused' })
    assert.equal(await second, 'done')
  })
})
