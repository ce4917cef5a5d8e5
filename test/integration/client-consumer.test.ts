/** The consumer of the client library: loops over partitions, and members of a group that come, go and are given up. */
import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import { Consumer, PipelinedClient, type ConsumerOptions, type ReceivedRecord } from '../../src/client/binary/index.ts'
import { startBroker, waitFor, type TestBroker } from '../support/broker.ts'
import { atEnd } from '../support/clean-up.ts'
import { HttpApi } from '../support/http-api.ts'

const TOPIC = 'orders'

interface Stage {
  readonly broker: TestBroker
  readonly api: HttpApi
}

async function stage(t: TestContext, partitions = 3): Promise<Stage> {
  const broker = await startBroker(t)
  const api = new HttpApi(broker.url)
  await api.createTopic(TOPIC, partitions)
  return { broker, api }
}

/** Writes value-0 … to the partitions in turn. */
async function fill({ broker }: Stage, count: number, first = 0): Promise<void> {
  const client = new PipelinedClient({ ...broker.es01, lingerMs: 0 })
  for (let i = first; i < first + count; i++) {
    client.send(TOPIC, { key: `k${i}`, value: `value-${i}` }).catch(() => undefined)
  }
  await client.close()
}

function consumerOf(t: TestContext, { broker }: Stage, options: object): Consumer {
  const consumer = new Consumer({ ...broker.es01, heartbeatIntervalMs: 20, ...options } as ConsumerOptions)
  atEnd(t, () => consumer.close())
  return consumer
}

function groupOf(t: TestContext, at: Stage, options: object = {}): Consumer {
  return consumerOf(t, at, { group: 'readers', topics: [TOPIC], http: at.broker.url, ...options })
}

function valueOf(record: ReceivedRecord): string {
  return record.value.toString()
}

/** Handles records until there are so many, then leaves the loop. */
async function take(consumer: Consumer, count: number): Promise<ReceivedRecord[]> {
  const records: ReceivedRecord[] = []
  for await (const record of consumer) {
    records.push(record)
    if (records.length === count) break
  }
  return records
}

async function committed({ api }: Stage): Promise<Readonly<Record<string, number>>> {
  const { text } = await api.get('/groups/readers/offsets')
  return (JSON.parse(text) as { offsets: Record<string, Record<string, number>> }).offsets[TOPIC] ?? {}
}

/** Sum of what is committed: records that the group has behind it, as all partitions begin at 0. */
async function committedCount(at: Stage): Promise<number> {
  return Object.values(await committed(at)).reduce((sum, offset) => sum + offset, 0)
}

async function memberCount({ api }: Stage): Promise<number> {
  const { text } = await api.get('/groups/readers')
  return ((JSON.parse(text) as { members?: unknown[] }).members ?? []).length
}

describe('a consumer of partitions', () => {
  test('hands out every record once, those of a partition in order, and those that come later', async t => {
    const at = await stage(t)
    await fill(at, 500)
    const consumer = consumerOf(t, at, { topic: TOPIC, maxRecords: 7 })
    const next = new Map<number, number>()
    const seen = new Set<string>()
    for await (const record of consumer) {
      assert.equal(record.offset, next.get(record.partition) ?? 0)
      assert.equal(record.topic, TOPIC)
      next.set(record.partition, record.offset + 1)
      seen.add(valueOf(record))
      if (seen.size === 500) await fill(at, 100, 500)
      if (seen.size === 600) break
    }
    assert.equal(next.size, 3)
  })

  test('begins at an offset, and reads only the partitions that it names', async t => {
    const at = await stage(t)
    await fill(at, 300)
    const records = await take(consumerOf(t, at, { topic: TOPIC, partitions: [1], from: 40 }), 10)
    assert.deepEqual(
      records.map(({ partition, offset }) => [partition, offset]),
      Array.from({ length: 10 }, (_, i) => [1, 40 + i])
    )
  })

  test('begins behind what is there, if asked for the latest', async t => {
    const at = await stage(t, 1)
    await fill(at, 50)
    const first = take(consumerOf(t, at, { topic: TOPIC, from: 'latest' }), 1)
    let isThere = false
    const seen = first.then(() => (isThere = true))
    // Until it has found the end, what is written is not new to it.
    for (let i = 50; !isThere; i += 1) await fill(at, 1, i)
    await seen
    const [record] = await first
    assert.ok((record?.offset ?? 0) >= 50, `offset ${record?.offset}`)
  })

  for (const from of ['earliest', 'latest', 0] as const) {
    test(`reads partitions that are added from their first record on, where it began with ${from}`, async t => {
      const at = await stage(t, 1)
      // Long enough for the records to be there when the partitions are learnt of.
      const consumer = consumerOf(t, at, { topic: TOPIC, from, metadataMaxAgeMs: 300 })
      const added: string[] = []
      let hasBegun = false
      const loop = (async () => {
        for await (const { partition, offset } of consumer) {
          if (partition === 0) hasBegun = true
          else added.push(`${partition}:${offset}`)
        }
      })()
      for (let i = 0; !hasBegun; i++) await fill(at, 1, i)
      await at.api.post(`/topics/${TOPIC}/partitions`, { partitions: 3 })
      const records = [1, 2].flatMap(partition => ['a', 'b'].map(value => ({ value, partition })))
      await at.api.produce(TOPIC, records)
      await waitFor('what was added to be read', () => added.length >= 4)
      await consumer.close()
      await loop
      assert.deepEqual(added.sort(), ['1:0', '1:1', '2:0', '2:1'])
    })
  }

  test('goes on after its broker was restarted', async t => {
    const at = await stage(t, 1)
    await fill(at, 10)
    const port = `127.0.0.1:${at.broker.es01.port}`
    const consumer = consumerOf(t, at, { topic: TOPIC, reconnect: { initialMs: 5, maxMs: 50 } })
    const values: string[] = []
    for await (const record of consumer) {
      values.push(valueOf(record))
      if (values.length === 10) {
        await at.broker.stop()
        const again = await startBroker(t, { dataDir: at.broker.dataDir, flags: { '--bind-binary': port } })
        await fill({ broker: again, api: at.api }, 5, 10)
      }
      if (values.length === 15) break
    }
    assert.deepEqual(
      values,
      Array.from({ length: 15 }, (_, i) => `value-${i}`)
    )
  })

  test('ends the loop with the error where going on is of no use', async t => {
    const at = await stage(t)
    await assert.rejects(take(consumerOf(t, at, { topic: 'nobody' }), 1), { kind: 'refused' })
    await assert.rejects(take(consumerOf(t, at, { topic: TOPIC, partitions: [9] }), 1), { kind: 'refused' })
  })

  test('ends without an error when it is closed, also before anything came, and is for one loop', async t => {
    const at = await stage(t)
    const consumer = consumerOf(t, at, { topic: TOPIC })
    const loop = take(consumer, 1)
    await consumer.close()
    assert.deepEqual(await loop, [])
    assert.throws(() => consumer[Symbol.asyncIterator](), { kind: 'invalid' })
  })
})

describe('a consumer in a group', () => {
  test('goes on where the group has committed: what the loop has finished with, not the record in hand', async t => {
    const at = await stage(t, 1)
    await fill(at, 20)
    const first = await take(groupOf(t, at), 8)
    assert.deepEqual(first.map(valueOf).at(-1), 'value-7')
    assert.deepEqual(await committed(at), { 0: 7 })
    const second = await take(groupOf(t, at), 3)
    assert.deepEqual(second.map(valueOf), ['value-7', 'value-8', 'value-9'])
    assert.equal(await memberCount(at), 0, 'leaving the loop leaves the group')
  })

  test('commits the record in hand when it is told to', async t => {
    const at = await stage(t, 1)
    await fill(at, 20)
    const consumer = groupOf(t, at, { commitIntervalMs: 0 })
    for await (const record of consumer) {
      if (record.offset !== 4) continue
      await consumer.commit()
      assert.deepEqual(await committed(at), { 0: 4 })
      await consumer.commit(record)
      assert.deepEqual(await committed(at), { 0: 5 })
      break
    }
    assert.deepEqual(await committed(at), { 0: 5 })
  })

  test('commits at intervals while the loop waits for records', async t => {
    const at = await stage(t)
    await fill(at, 30)
    const consumer = groupOf(t, at, { commitIntervalMs: 5 })
    const loop = take(consumer, Infinity)
    await waitFor('all that was handled to be committed', async () => (await committedCount(at)) === 30)
    await consumer.close()
    assert.equal((await loop).length, 30)
  })

  test('gives partitions to members that come, takes those of members that leave, and loses no record', async t => {
    const at = await stage(t, 6)
    await fill(at, 300)
    const seen = new Set<string>()
    const note = async (consumer: Consumer): Promise<void> => {
      for await (const record of consumer) {
        seen.add(valueOf(record))
        await consumer.commit(record)
      }
    }
    const first = groupOf(t, at)
    const second = groupOf(t, at)
    const loops = [note(first), note(second)]
    await waitFor('both to be members', async () => (await memberCount(at)) === 2)
    await waitFor('all records', () => seen.size === 300)
    await fill(at, 300, 300)
    await waitFor('all later records', () => seen.size === 600)
    await first.close()
    await fill(at, 100, 600)
    await waitFor('what the one that is left reads', () => seen.size === 700)
    await second.close()
    await Promise.all(loops)
    assert.equal(await committedCount(at), 700)
  })

  test('reads partitions that are added, each by one of its members, and loses no record', async t => {
    const at = await stage(t, 2)
    const seen: string[] = []
    const partitions = new Map<Consumer, Set<number>>()
    const note = async (consumer: Consumer): Promise<void> => {
      const own = new Set<number>()
      partitions.set(consumer, own)
      for await (const record of consumer) {
        seen.push(valueOf(record))
        own.add(record.partition)
        await consumer.commit(record)
      }
    }
    const members = [groupOf(t, at), groupOf(t, at)]
    const loops = members.map(note)
    await waitFor('both to be members', async () => (await memberCount(at)) === 2)
    await at.api.post(`/topics/${TOPIC}/partitions`, { partitions: 6 })
    // A new producer: it knows all of them.
    await fill(at, 300)
    await waitFor('all records', () => new Set(seen).size === 300)
    await Promise.all(members.map(member => member.close()))
    await Promise.all(loops)
    assert.deepEqual([...new Set([...partitions.values()].flatMap(own => [...own]))].sort(), [0, 1, 2, 3, 4, 5])
    for (const own of partitions.values()) assert.ok([...own].some(partition => partition >= 2))
    assert.equal(await committedCount(at), 300)
  })

  test('joins again when the broker has given it up, and goes on where the group has committed', async t => {
    const at = await stage(t, 2)
    await fill(at, 40)
    const seen: string[] = []
    const consumer = groupOf(t, at)
    const loop = (async () => {
      for await (const record of consumer) {
        seen.push(valueOf(record))
        await consumer.commit(record)
      }
    })()
    await waitFor('the first records', async () => (await committedCount(at)) === 40)
    const { text } = await at.api.get('/groups/readers')
    const [member] = (JSON.parse(text) as { members: { member_id: string }[] }).members
    await at.api.post('/groups/readers/leave', { member_id: member?.member_id })
    await waitFor('the member to be back', async () => (await memberCount(at)) === 1)
    await fill(at, 40, 40)
    await waitFor('the later records', () => new Set(seen).size === 80)
    await consumer.close()
    await loop
    assert.equal(seen.length, 80, 'all was committed, so none came twice')
  })

  test('is never taken back by a record of a member that the broker had given up', async t => {
    const at = await stage(t, 1)
    await fill(at, 40)
    const consumer = groupOf(t, at, { commitIntervalMs: 0 })
    let held: ReceivedRecord | null = null
    for await (const record of consumer) {
      if (record.offset === 4) {
        held = record
        const { text } = await at.api.get('/groups/readers')
        const [member] = (JSON.parse(text) as { members: { member_id: string }[] }).members
        await at.api.post('/groups/readers/leave', { member_id: member?.member_id })
        await at.api.post('/groups/readers/commit', { topic: TOPIC, partition: 0, offset: 30 })
        await waitFor('the member to be back', async () => (await memberCount(at)) === 1)
      } else if (held !== null) {
        assert.equal(record.offset, 30, 'it goes on where the group is')
        await consumer.commit(held)
        assert.deepEqual(await committed(at), { 0: 30 })
        await consumer.commit(record)
        assert.deepEqual(await committed(at), { 0: 31 })
        break
      }
    }
    assert.deepEqual(await committed(at), { 0: 31 })
  })

  test('is not set back by a member that hears only at its end that it was given up', async t => {
    const at = await stage(t, 1)
    await fill(at, 40)
    const consumer = groupOf(t, at, { commitIntervalMs: 0, heartbeatIntervalMs: 60_000 })
    for await (const record of consumer) {
      if (record.offset < 4) continue
      const { text } = await at.api.get('/groups/readers')
      const [member] = (JSON.parse(text) as { members: { member_id: string }[] }).members
      await at.api.post('/groups/readers/leave', { member_id: member?.member_id })
      await at.api.post('/groups/readers/commit', { topic: TOPIC, partition: 0, offset: 30 })
      break
    }
    assert.deepEqual(await committed(at), { 0: 30 })
  })

  test('begins behind what is there, if asked to, only where nothing is committed', async t => {
    const at = await stage(t, 1)
    await fill(at, 10)
    await at.api.post('/groups/readers/commit', { topic: TOPIC, partition: 0, offset: 6 })
    const [record] = await take(groupOf(t, at, { from: 'latest' }), 1)
    assert.equal(record?.offset, 6)
  })

  test('says so where its group may not be used, or the topic is not there', async t => {
    const at = await stage(t)
    await assert.rejects(take(groupOf(t, at, { topics: ['nobody'] }), 1), { kind: 'refused' })
    assert.throws(() => groupOf(t, at, { http: 'localhost' }), { kind: 'invalid' })
  })
})
