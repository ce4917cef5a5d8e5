/** Consumer groups of real Kafka clients, and what they share with groups over HTTP. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Kafka } from 'kafkajs'
import { makeTestKey, startGuarded, type TestKey } from '../support/access.ts'
import { startBroker, waitFor } from '../support/broker.ts'
import { HttpApi, parse, parseError } from '../support/http-api.ts'
import { kafkaJs, readInGroup, sharedBy } from '../support/kafkajs.ts'

interface Described {
  readonly kind: string | null
  readonly state: string
  readonly members: readonly { readonly topics: readonly string[]; readonly partition_count: number }[]
}

const values = (from: number, count: number) =>
  Array.from({ length: count }, (_, i) => ({ value: `v${from + i}`, partition: i % 4 }))

test('two members of KafkaJS share a topic, one takes all when the other leaves, and no message is missed', async t => {
  const broker = await startBroker(t)
  const api = new HttpApi(broker.url)
  await api.createTopic('orders', 4)
  await api.produce('orders', values(0, 40))
  const kafka = kafkaJs(broker.kafka)
  const first = await readInGroup(t, kafka, 'g', 'orders')
  await sharedBy(4, [first])
  await waitFor('the first 40', () => first.messages.length === 40)
  const second = await readInGroup(t, kafka, 'g', 'orders')
  await sharedBy(4, [first, second])

  const { kind, state, members } = parse<Described>(await api.get('/groups/g'))
  assert.deepEqual([kind, state, members.length], ['kafka', 'Stable', 2])
  assert.deepEqual(
    members.map(({ topics, partition_count: count }) => [topics, count]),
    [
      [['orders'], 2],
      [['orders'], 2]
    ]
  )
  await api.produce('orders', values(40, 40))
  await waitFor('40 more', () => first.messages.length + second.messages.length >= 80)
  assert.ok(second.messages.length > 0)
  await first.stop()
  await sharedBy(4, [second])
  await api.produce('orders', values(80, 40))
  await waitFor('the last 40', () => new Set([...first.messages, ...second.messages]).size === 120)
  await second.stop()
  const left = parse<Described>(await api.get('/groups/g'))
  assert.deepEqual([left.kind, left.state, left.members.length], [null, 'Empty', 0])
  assert.equal(first.messages.length + second.messages.length, 120, 'what was committed is read once')
})

test('a group goes on where it was committed, whichever protocol committed', async t => {
  const broker = await startBroker(t)
  const api = new HttpApi(broker.url)
  await api.createTopic('orders', 1)
  await api.produce(
    'orders',
    Array.from({ length: 10 }, (_, i) => ({ value: `v${i}` }))
  )
  const kafka = kafkaJs(broker.kafka)
  const reader = await readInGroup(t, kafka, 'g', 'orders')
  await waitFor('all ten', () => reader.messages.length === 10)
  await reader.stop()
  const offsets = parse<unknown>(await api.get('/groups/g/offsets'))
  assert.deepEqual(offsets, { offsets: { orders: { 0: 10 } } })

  const back = await api.post('/groups/g/commit', { topic: 'orders', partition: 0, offset: 7 })
  assert.equal(back.status, 204)
  const again = await readInGroup(t, kafka, 'g', 'orders')
  await waitFor('the last three', () => again.messages.length === 3)
  assert.equal(again.messages[0], '0:7:v7')
  const refused = await api.post('/groups/g/join', { topics: ['orders'] })
  assert.equal(parseError(refused, 409).code, 'GROUP_KIND')
  await again.stop()
  const joined = await api.post('/groups/g/join', { topics: ['orders'], member_id: 'm' })
  assert.equal(joined.status, 200)
  await assert.rejects(
    kafka.admin().setOffsets({ groupId: 'g', topic: 'orders', partitions: [{ partition: 0, offset: '1' }] })
  )
})

test('KafkaJS describes, lists and deletes groups of both kinds, and sets offsets of those without members', async t => {
  const broker = await startBroker(t)
  const api = new HttpApi(broker.url)
  await api.createTopic('orders', 2)
  await api.post('/groups/http/join', { topics: ['orders'], member_id: 'm' })
  const kafka = kafkaJs(broker.kafka)
  const reader = await readInGroup(t, kafka, 'kafka', 'orders')
  await sharedBy(2, [reader])
  const admin = kafka.admin()
  await admin.connect()
  t.after(() => admin.disconnect())
  const { groups } = await admin.listGroups()
  assert.deepEqual(
    groups.map(({ groupId, protocolType }) => [groupId, protocolType]),
    [
      ['http', 'http'],
      ['kafka', 'consumer']
    ]
  )
  const described = await admin.describeGroups(['kafka', 'http', 'none'])
  assert.deepEqual(
    described.groups.map(({ state, protocol, members }) => [state, protocol, members.length]),
    [
      ['Stable', 'RoundRobinAssigner', 1],
      ['Stable', '', 0],
      ['Dead', '', 0]
    ]
  )
  await assert.rejects(admin.deleteGroups(['kafka']), /DeleteGroupsError|delet/i)
  await reader.stop()
  await admin.setOffsets({ groupId: 'kafka', topic: 'orders', partitions: [{ partition: 1, offset: '5' }] })
  const [offsets] = await admin.fetchOffsets({ groupId: 'kafka', topics: ['orders'] })
  assert.deepEqual(offsets?.partitions.map(({ partition, offset }) => [partition, offset]).sort(), [
    [0, '-1'],
    [1, '5']
  ])
  await admin.deleteGroups(['kafka'])
  assert.equal((await api.get('/groups/kafka')).status, 404)
})

test('a group belongs to the key of its first member: other keys are refused, and see nothing of it', async t => {
  const { broker, admin } = await startGuarded(t)
  await admin.api.createTopic('orders', 2)
  const [mine, theirs] = [await makeTestKey(admin.api, 'read:orders'), await makeTestKey(admin.api, 'read:orders')]
  const clientOf = ({ id: username, secret: password }: TestKey): Kafka =>
    kafkaJs(broker.kafka, { sasl: { mechanism: 'plain', username, password } })
  const reader = await readInGroup(t, clientOf(mine), 'g', 'orders')
  await sharedBy(2, [reader])
  const other = clientOf(theirs).admin()
  await other.connect()
  t.after(() => other.disconnect())
  assert.deepEqual((await other.listGroups()).groups, [])
  const refused = /Not authorized to access group/
  await assert.rejects(other.describeGroups(['g']), refused)
  await assert.rejects(other.fetchOffsets({ groupId: 'g', topics: ['orders'] }), refused)
  const intruder = clientOf(theirs).consumer({ groupId: 'g', retry: { retries: 0 } })
  t.after(() => intruder.disconnect())
  await intruder.connect()
  await intruder.subscribe({ topic: 'orders' })
  const crashed = new Promise<unknown>(resolve =>
    intruder.on('consumer.crash', ({ payload }) => resolve(payload.error))
  )
  void intruder.run({ eachMessage: () => Promise.resolve() })
  assert.match(String(await crashed), refused)
  assert.equal((await mine.api.get('/groups/g')).status, 200)
  assert.equal((await theirs.api.get('/groups/g')).status, 403)
})
