import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { TestContext } from 'node:test'
import { DatabaseSync } from 'node:sqlite'
import { makeKey } from '../../../src/control/keys.ts'
import type { StoreChange } from '../../../src/control/store-image.ts'
import { toTopicId } from '../../../src/model/ids.ts'
import type { ScramVerifier, StoredKey } from '../../../src/model/keys.ts'
import type { Producer } from '../../../src/model/producer.ts'
import { StoreDatabase } from '../../../workers/store/database.ts'
import { FORMAT_VERSION, prepareTables } from '../../../workers/store/schema.ts'
import { topicOf } from '../control/topics.ts'
import { takeBackTo } from './older-formats.ts'

const created = (id: number, name: string): StoreChange => ({
  kind: 'topic-created',
  topic: topicOf({ id, name, firstHandle: id })
})

function openInMemory(t: TestContext): { connection: DatabaseSync; database: StoreDatabase } {
  const connection = new DatabaseSync(':memory:')
  prepareTables(connection, ':memory:')
  const database = new StoreDatabase(connection)
  t.after(() => database.close())
  return { connection, database }
}

describe('a store without room', () => {
  test('refuses commits as disk full, stores nothing of them, and goes on when there is room', t => {
    const { connection, database } = openInMemory(t)
    assert.deepEqual(database.commitGroup([[created(1, 'before')]]), [{ kind: 'committed' }])
    const before = database.readImage()
    const pages = connection.prepare('PRAGMA page_count').get()?.['page_count']
    connection.exec(`PRAGMA max_page_count = ${String(pages)}`)
    const many = Array.from({ length: 200 }, (_, i) => created(i + 2, `t${i}`.padEnd(200, 'x')))
    const kinds = database.commitGroup([many]).map(outcome => outcome.kind)
    assert.deepEqual(kinds, ['full'])
    assert.deepEqual(database.readImage(), before)
    connection.exec('PRAGMA max_page_count = 100000')
    assert.deepEqual(database.commitGroup([many]), [{ kind: 'committed' }])
    assert.equal(database.readImage().topics.length, 201)
  })
})

describe('a group of commits', () => {
  test('has one outcome per commit, in order, and keeps those that are sound', t => {
    const { database } = openInMemory(t)
    const outcomes = database.commitGroup([
      [created(1, 'a')],
      [created(2, 'b'), created(2, 'twice')],
      [created(3, 'c')]
    ])
    assert.deepEqual(
      outcomes.map(outcome => outcome.kind),
      ['committed', 'refused', 'committed']
    )
    const { topics, nextTopicId } = database.readImage()
    assert.deepEqual([topics.map(topic => topic.name), nextTopicId], [['a', 'c'], 4])
  })

  test('a value that no version of this code writes is reported as damage', t => {
    const { connection, database } = openInMemory(t)
    database.commitGroup([[created(1, 'a')]])
    connection.exec("UPDATE topics SET cleanup_policy = 'shred'")
    assert.throws(() => database.readImage(), { code: 'damaged', message: /shred.*cleanup_policy/ })
  })
})

describe('producers in the store', () => {
  const producer = (number: number, id: string): Producer => ({
    number,
    id,
    owner: 'key',
    isClaimed: false,
    lastUsedMs: 1000
  })
  const added = (number: number, id: string): StoreChange => ({
    kind: 'producer-added',
    producer: producer(number, id)
  })

  test('are read back as they are, and their numbers only rise', t => {
    const { database } = openInMemory(t)
    database.commitGroup([
      [added(1, 'a'), added(2, 'b'), added(3, 'c')],
      [{ kind: 'producer-used', producer: { number: 2, isClaimed: true, lastUsedMs: 2 ** 50 } }],
      [{ kind: 'producer-forgotten', number: 3 }]
    ])
    const outcomes = database.commitGroup([
      [added(3, 'd')],
      [{ kind: 'producer-used', producer: { number: 3, isClaimed: true, lastUsedMs: 0 } }]
    ])
    assert.deepEqual(
      outcomes.map(outcome => outcome.kind),
      ['refused', 'committed']
    )
    const { producers, nextProducerNumber } = database.readImage()
    const used = { ...producer(2, 'b'), isClaimed: true, lastUsedMs: 2 ** 50 }
    assert.deepEqual([producers, nextProducerNumber], [[producer(1, 'a'), used], 4])
  })

  test('that could not be removed give way to the same id under its new number', t => {
    const { database } = openInMemory(t)
    database.commitGroup([[added(1, 'a')], [added(2, 'a')]])
    assert.deepEqual(database.readImage().producers, [producer(2, 'a')])
  })

  test('have their place in a store of format 1, which keeps what it had', t => {
    const { connection, database } = openInMemory(t)
    database.commitGroup([[created(1, 'topic')]])
    takeBackTo(connection, 1)
    prepareTables(connection, ':memory:')
    const migrated = new StoreDatabase(connection)
    migrated.commitGroup([[added(1, 'a')]])
    const { topics, producers, nextProducerNumber } = migrated.readImage()
    assert.deepEqual([topics.length, producers, nextProducerNumber], [1, [producer(1, 'a')], 2])
    assert.equal(connection.prepare('PRAGMA user_version').get()?.['user_version'], FORMAT_VERSION)
  })
})

test('topics of a store of format 6 are not validated, and can be', t => {
  const { connection, database } = openInMemory(t)
  database.commitGroup([[created(1, 'topic')]])
  takeBackTo(connection, 6)
  prepareTables(connection, ':memory:')
  const migrated = new StoreDatabase(connection)
  const [topic] = migrated.readImage().topics
  assert.equal(topic?.config.validate_schema, false)
  const config = { ...topicOf({ id: 1, name: 'topic', firstHandle: 1 }).config, validate_schema: true }
  migrated.commitGroup([[{ kind: 'topic-configured', id: toTopicId(1), config }]])
  assert.deepEqual(migrated.readImage().topics[0]?.config, config)
})

test('topics of a store of format 7 take times, sizes and ages of segments as they did, and can have their own', t => {
  const { connection, database } = openInMemory(t)
  database.commitGroup([[created(1, 'topic')]])
  takeBackTo(connection, 7)
  prepareTables(connection, ':memory:')
  const migrated = new StoreDatabase(connection)
  const plainConfig = topicOf({ id: 1, name: 'topic', firstHandle: 1 }).config
  assert.deepEqual(migrated.readImage().topics[0]?.config, plainConfig)
  const own = { message_timestamp_type: 'LogAppendTime', max_message_bytes: 1000, segment_ms: 2n ** 64n - 1n } as const
  const config = { ...plainConfig, ...own }
  migrated.commitGroup([[{ kind: 'topic-configured', id: toTopicId(1), config }]])
  assert.deepEqual(migrated.readImage().topics[0]?.config, config)
})

describe('the placement of shards in the store', () => {
  const slot: StoreChange = { kind: 'slot-opened', shard: 1, sequence: 7 }

  test('keeps the newest slots while the epoch lasts, and forgets them with it, in one commit', t => {
    const { database } = openInMemory(t)
    database.commitGroup([[{ kind: 'placement', shardCount: 2, epoch: 1 }, slot]])
    database.commitGroup([[{ kind: 'placement', shardCount: 2, epoch: 1, nextShardCount: 3 }]])
    const draining = database.readImage()
    assert.deepEqual([draining.shardCount, draining.nextShardCount, draining.placementEpoch], [2, 3, 1])
    assert.deepEqual(draining.newestSlots, [{ shard: 1, sequence: 7 }])
    database.commitGroup([[{ kind: 'placement', shardCount: 3, epoch: 2, previousShardCount: 2 }]])
    const clearing = database.readImage()
    assert.deepEqual(
      [clearing.shardCount, clearing.nextShardCount, clearing.previousShardCount, clearing.placementEpoch],
      [3, null, 2, 2]
    )
    assert.deepEqual(clearing.newestSlots, [])
  })

  test('never goes back to an earlier epoch', t => {
    const { database } = openInMemory(t)
    database.commitGroup([[{ kind: 'placement', shardCount: 2, epoch: 2 }, slot]])
    const [outcome] = database.commitGroup([[{ kind: 'placement', shardCount: 2, epoch: 1 }]])
    assert.equal(outcome?.kind, 'refused')
    assert.deepEqual(database.readImage().newestSlots, [{ shard: 1, sequence: 7 }])
  })

  test('has its columns in a store of format 2, which keeps what it had', t => {
    const { connection, database } = openInMemory(t)
    database.commitGroup([[{ kind: 'placement', shardCount: 5, epoch: 1 }, created(1, 'a')]])
    takeBackTo(connection, 2)
    prepareTables(connection, ':memory:')
    const { shardCount, nextShardCount, previousShardCount, topics } = new StoreDatabase(connection).readImage()
    assert.deepEqual([shardCount, nextShardCount, previousShardCount, topics.length], [5, null, null, 1])
  })
})

describe('keys in the store', () => {
  test('are read back as they are, in the order in which they were made', async t => {
    const { database } = openInMemory(t)
    const [first, second] = [await madeKey('first', 9), await madeKey('second', 3)]
    database.commitGroup([[{ kind: 'key-created', key: first }], [{ kind: 'key-created', key: second }]])
    assert.deepEqual(plain(database.readImage().keys), plain([first, second]))
    database.commitGroup([[{ kind: 'key-revoked', keyId: first.keyId }]])
    assert.deepEqual(plain(database.readImage().keys), plain([{ ...first, isDisabled: true }, second]))
  })

  test('are forgotten only when they are revoked', async t => {
    const { database } = openInMemory(t)
    const key = await madeKey('key', 1)
    const forgotten: StoreChange = { kind: 'key-forgotten', keyId: key.keyId }
    database.commitGroup([[{ kind: 'key-created', key }, forgotten]])
    assert.equal(database.readImage().keys.length, 1)
    database.commitGroup([[{ kind: 'key-revoked', keyId: key.keyId }, forgotten]])
    assert.equal(database.readImage().keys.length, 0)
  })

  test('have their place in a store of format 3, which keeps what it had', async t => {
    const { connection, database } = openInMemory(t)
    database.commitGroup([[created(1, 'a')]])
    takeBackTo(connection, 3)
    prepareTables(connection, ':memory:')
    const migrated = new StoreDatabase(connection)
    const key = await madeKey('key', 1)
    migrated.commitGroup([[{ kind: 'key-created', key }]])
    const { topics, keys } = migrated.readImage()
    assert.deepEqual([topics.length, plain(keys)], [1, plain([key])])
  })

  test('whose rules no version of this code writes are reported as damage', async t => {
    const { connection, database } = openInMemory(t)
    database.commitGroup([[{ kind: 'key-created', key: await madeKey('key', 1) }]])
    for (const rules of ['[["own","*"]]', '[["read"]]', '{}', 'no JSON']) {
      connection.prepare('UPDATE keys SET rules = ?').run(rules)
      assert.throws(() => database.readImage(), { code: 'damaged', message: /column rules/ })
    }
  })
})

async function madeKey(name: string, createdAtMs: number): Promise<StoredKey> {
  const rules = [{ action: 'write', topicPrefix: 'orders.' }] as const
  const { key } = await makeKey(
    { name, rules, produceBytesPerSec: 4_294_967_295, consumeBytesPerSec: null },
    () => false,
    createdAtMs
  )
  return key
}

/** With bytes as text: SQLite gives another kind of array than crypto. */
function plain(keys: readonly StoredKey[]): unknown {
  const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex')
  const verifier = ({ salt, iterations, storedKey, serverKey }: ScramVerifier): unknown => {
    return [hex(salt), iterations, hex(storedKey), hex(serverKey)]
  }
  return keys.map(({ traces, ...rest }) => {
    const { sha256, scramSha256, scramSha512 } = traces
    return { ...rest, traces: [hex(sha256), verifier(scramSha256), verifier(scramSha512)] }
  })
}
