/**
 * Kafka requests that name very many things hold nobody else: what is done of them is counted in each round of the event loop.
 */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { PARTITIONS_A_TURN } from '../../src/gateway/kafka/handlers/fetch-sizes.ts'
import { PARTS_A_TURN } from '../../src/gateway/kafka/handlers/produce.ts'
import { ENTRIES_A_TURN } from '../../src/gateway/kafka/request-turns.ts'
import { codeOf } from '../../src/gateway/kafka/group-codes.ts'
import { PLACES_AT_ONCE } from '../../src/model/classic-groups.ts'
import { noNote } from '../../src/model/groups.ts'
import { limits } from '../../src/model/limits.ts'
import { anonymous, type Principal } from '../../src/model/principal.ts'
import { apis } from '../../src/wire/kafka/apis/index.ts'
import { kafkaErrors } from '../../src/wire/kafka/errors.ts'
import { startBroker, waitFor, type TestBroker } from '../support/broker.ts'
import { atEnd } from '../support/clean-up.ts'
import { clientBatch } from '../support/client-batches.ts'
import { HttpApi } from '../support/http-api.ts'
import { fetchBody } from '../support/kafka-calls.ts'
import { connectKafka, decodeResponse } from '../support/kafka-client.ts'
import { heldBytes, untilWatching } from '../support/metrics-held.ts'

const NAMES = 2000
const unknown = kafkaErrors.UNKNOWN_TOPIC_OR_PARTITION.code

function names(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `none-${index}`)
}

type Method = (...given: never[]) => unknown

/** Counts the calls of a use case in each round of the event loop. */
function countCalls(t: TestContext, owner: object, name: string) {
  const methods = owner as Record<string, Method>
  const method = (methods[name] as Method).bind(owner)
  const counted = { calls: 0, mostInRound: 0 }
  let inRound = 0
  let isOver = false
  const nextRound = (): void => {
    inRound = 0
    if (!isOver) setImmediate(nextRound)
  }
  nextRound()
  atEnd(t, () => (isOver = true))
  methods[name] = (...given) => {
    counted.calls++
    counted.mostInRound = Math.max(counted.mostInRound, ++inRound)
    return method(...given)
  }
  return counted
}

const topics = (rest: object) => names(NAMES).map(name => ({ name, ...rest }))
const resources = names(NAMES).map(resourceName => ({ resourceType: 2, resourceName, configs: [] }))
const partitions = Array.from({ length: NAMES }, (_, partitionIndex) => ({ partitionIndex, offset: 0 }))

/** What each of the requests asks of the broker for each name. */
const long = [
  [apis.alterConfigs, 2, { resources, validateOnly: false }, 'topicConfig'],
  [apis.incrementalAlterConfigs, 1, { resources, validateOnly: false }, 'topicConfig'],
  [apis.describeConfigs, 4, { resources: resources.map(one => ({ ...one, configurationKeys: null })) }, 'topicConfig'],
  [
    apis.createTopics,
    7,
    {
      topics: topics({ numPartitions: 1, replicationFactor: 1, assignments: [], configs: [] }),
      timeoutMs: 1,
      validateOnly: true
    },
    'createTopic'
  ],
  [
    apis.createPartitions,
    3,
    { topics: topics({ count: 2, assignments: null }), timeoutMs: 1, validateOnly: false },
    'addPartitions'
  ],
  [apis.deleteTopics, 5, { topicNames: names(NAMES), timeoutMs: 1 }, 'deleteTopic'],
  [apis.deleteTopics, 6, { topics: topics({}), timeoutMs: 1 }, 'deleteTopic'],
  [apis.deleteRecords, 2, { topics: [{ name: 'none', partitions }], timeoutMs: 1 }, 'deleteRecords'],
  [apis.metadata, 12, { topics: topics({}) }, 'partitionCountOf'],
  [
    apis.listOffsets,
    7,
    { replicaId: -1, topics: topics({ partitions: [{ partitionIndex: 0, timestamp: -1 }] }) },
    'partitionCountOf'
  ],
  [
    apis.offsetForLeaderEpoch,
    4,
    {
      replicaId: -1,
      topics: names(NAMES).map(topic => ({
        topic,
        partitions: [{ partition: 0, currentLeaderEpoch: -1, leaderEpoch: 0 }]
      }))
    },
    'offsetsAt'
  ],
  [apis.deleteGroups, 2, { groupsNames: names(NAMES) }, 'groups.remove'],
  [apis.describeGroups, 5, { groups: names(NAMES) }, 'classicGroups.describe'],
  [apis.offsetFetch, 8, { groups: names(NAMES).map(groupId => ({ groupId, topics: null })) }, 'classicGroups.offsets']
] as const

function useCase({ server: { broker } }: TestBroker, path: string): readonly [owner: object, name: string] {
  const [part = '', name] = path.split('.')
  return name === undefined ? [broker, part] : [(broker as unknown as Record<string, object>)[part] as object, name]
}

for (const [api, version, body, path] of long) {
  test(`${api.name} ${version} of very many gives the others their turn, and answers all of them`, async t => {
    const broker = await startBroker(t)
    const counted = countCalls(t, ...useCase(broker, path))
    const client = await connectKafka(t, broker.kafka)
    const answer: object = await client.call(api as never, version, body)
    assert.equal(counted.calls, NAMES)
    // Twice: entries that wait for a shard together are carried on beyond the share that they began in.
    assert.ok(counted.mostInRound <= 2 * ENTRIES_A_TURN, `${counted.mostInRound} in one round`)
    const lists = Object.values(answer).filter(list => Array.isArray(list)) as object[][]
    const told = lists.sort((one, other) => other.length - one.length)[0]
    const [first] = told ?? []
    const count = api === apis.deleteRecords ? (first as { partitions: object[] }).partitions.length : told?.length
    assert.equal(count, NAMES)
  })
}

const tooMany = names(limits.topicsMax + 1)
/** Requests that name more topics than there can be, and what they call that. */
const refused = [
  [
    'topics',
    apis.createTopics,
    7,
    {
      topics: tooMany.map(name => ({ name, numPartitions: 1, replicationFactor: 1, assignments: [], configs: [] })),
      timeoutMs: 1,
      validateOnly: false
    },
    'createTopic'
  ],
  [
    'topics',
    apis.createPartitions,
    3,
    { topics: tooMany.map(name => ({ name, count: 2, assignments: null })), timeoutMs: 1, validateOnly: false },
    'addPartitions'
  ],
  ['topic_names', apis.deleteTopics, 5, { topicNames: tooMany, timeoutMs: 1 }, 'deleteTopic'],
  ['topics', apis.deleteTopics, 6, { topics: tooMany.map(name => ({ name })), timeoutMs: 1 }, 'deleteTopic'],
  [
    'resources',
    apis.alterConfigs,
    2,
    { resources: tooMany.map(resourceName => ({ resourceType: 2, resourceName, configs: [] })), validateOnly: false },
    'changeTopicConfig'
  ],
  [
    'resources',
    apis.incrementalAlterConfigs,
    1,
    { resources: tooMany.map(resourceName => ({ resourceType: 2, resourceName, configs: [] })), validateOnly: false },
    'changeTopicConfig'
  ]
] as const

for (const [field, api, version, body, path] of refused) {
  test(`${api.name} ${version} that names more topics than there can be is refused whole, and says so`, async t => {
    const broker = await startBroker(t)
    const counted = countCalls(t, ...useCase(broker, path))
    const client = await connectKafka(t, broker.kafka)
    const answer: object = await client.call(api as never, version, body)
    const told = Object.values(answer).find(list => Array.isArray(list)) as {
      errorCode: number
      errorMessage: string
    }[]
    assert.equal(told.length, tooMany.length)
    const expected = `${field} has 20001 entries: the limit is 20000, so nothing of this request was done`
    for (const { errorCode, errorMessage } of told) {
      assert.equal(errorCode, kafkaErrors.INVALID_REQUEST.code)
      assert.equal(errorMessage, expected)
    }
    assert.equal(counted.calls, 0)
  })
}

test('ListOffsets of a time of its own for each partition asks about each partition once, and answers as ever', async t => {
  const broker = await startBroker(t)
  const count = 100
  await new HttpApi(broker.url).createTopic('t', count)
  const { server } = broker
  const offsetsAt = server.broker.offsetsAt.bind(server.broker)
  const asked: (number | null)[] = []
  server.broker.offsetsAt = (who, topic, partition, timeMs) => {
    asked.push(partition)
    return offsetsAt(who, topic, partition, timeMs)
  }
  const client = await connectKafka(t, broker.kafka)
  const list = (wanted: { partitionIndex: number; timestamp: number; currentLeaderEpoch?: number }[]) =>
    client.call(apis.listOffsets, 7, { replicaId: -1, topics: [{ name: 't', partitions: wanted }] })
  const told = ({ topics }: Awaited<ReturnType<typeof list>>) => topics[0]?.partitions

  const indexes = Array.from({ length: count }, (_, index) => index)
  const ofOwnTimes = await list(indexes.map(index => ({ partitionIndex: index, timestamp: 1000 + index })))
  assert.deepEqual(asked, indexes)
  const ofOneTime = await list(indexes.map(index => ({ partitionIndex: index, timestamp: 1000 })))
  assert.deepEqual(asked.slice(count), [null])
  assert.deepEqual(told(ofOwnTimes), told(ofOneTime))

  // What is no partition is said to be none, alone and among others.
  const none = [-1, count].map(partitionIndex => ({ partitionIndex, timestamp: -1 }))
  const unknown = kafkaErrors.UNKNOWN_TOPIC_OR_PARTITION.code
  for (const wanted of [...none.map(one => [one]), none]) {
    const codes = told(await list(wanted))?.map(({ errorCode }) => errorCode)
    assert.deepEqual(
      codes,
      wanted.map(() => unknown)
    )
  }
})

/** Everybody's key, which counts how often it is asked in each round of the event loop. */
function countingKey(t: TestContext) {
  const who: Principal = { ...anonymous }
  return { who, looked: countCalls(t, who, 'mayRead') }
}

const places = names(NAMES).map(topic => ({ topic, partition: 0, offset: 5, note: noNote }))

test('a commit of very many offsets gives the others their turn, and answers all of them', async t => {
  const { server, url } = await startBroker(t)
  await new HttpApi(url).createTopic('t')
  const { who, looked } = countingKey(t)
  const nobody = { memberId: '', instanceId: null, generation: -1 }
  const { classicGroups } = server.broker
  const outcomes = await classicGroups.commit(who, 'g', nobody, [...places, { ...places[0], topic: 't' } as never])
  assert.deepEqual(outcomes.map(codeOf), [...places.map(() => kafkaErrors.UNKNOWN_TOPIC_OR_PARTITION.code), 0])
  assert.equal(looked.mostInRound, PLACES_AT_ONCE)

  const ofDeletion = countingKey(t)
  const deleted = await classicGroups.deleteOffsets(ofDeletion.who, 'g', [...places, { topic: 't', partition: 0 }])
  assert.deepEqual(deleted.map(codeOf), outcomes.map(codeOf))
  assert.equal(ofDeletion.looked.mostInRound, PLACES_AT_ONCE)
  assert.deepEqual(classicGroups.offsets(who, 'g'), [])
})

test('what comes right behind a commit of very many offsets does not overtake it', async t => {
  const broker = await startBroker(t)
  await new HttpApi(broker.url).createTopic('t')
  const client = await connectKafka(t, broker.kafka)
  const commit = (count: number, committedOffset: number) => {
    const partitions = [{ partitionIndex: 0, committedOffset, committedMetadata: '' }]
    const named = [...names(count), 't'].map(name => ({ name, partitions }))
    client.send(apis.offsetCommit, 8, { groupId: 'g', memberId: '', topics: named })
  }
  commit(NAMES, 1)
  commit(0, 2)
  for (let answers = 0; answers < 2; answers++) assert.ok((await client.next()) !== null)
  const group = { groupId: 'g', topics: null }
  const { groups } = await client.call(apis.offsetFetch, 8, { groups: [group] })
  assert.equal(groups[0]?.topics[0]?.partitions[0]?.committedOffset, 2)
})

/** Names of topics that are not there, of which Metadata has asked so far. */
function askedNames({ server }: TestBroker): string[] {
  const asked: string[] = []
  const count = server.broker.partitionCountOf.bind(server.broker)
  server.broker.partitionCountOf = (who, name) => {
    asked.push(name)
    return count(who, name)
  }
  return asked
}

test('of long requests on one connection the next is taken when the one before it is answered', async t => {
  const broker = await startBroker(t)
  const asked = askedNames(broker)
  const client = await connectKafka(t, broker.kafka)
  const requests = ['first', 'second', 'third'].map(request => names(NAMES).map(name => `${request}-${name}`))
  for (const named of requests) client.send(apis.metadata, 12, { topics: named.map(name => ({ name })) })
  for (const [index, named] of requests.entries()) {
    const answer = await client.next()
    assert.equal(answer?.correlationId, index + 1)
    assert.equal(asked.slice(index * NAMES).filter(name => named.includes(name)).length, NAMES)
  }
  assert.deepEqual(asked, requests.flat())
})

test('a short request before a long one, and one behind it, are answered in their order', async t => {
  const broker = await startBroker(t)
  const client = await connectKafka(t, broker.kafka)
  client.send(apis.apiVersions, 0, {})
  client.send(apis.metadata, 12, { topics: topics({}) })
  client.send(apis.apiVersions, 0, {})
  for (const id of [1, 2, 3]) assert.equal((await client.next())?.correlationId, id)
})

test('long requests have room together, and what is beyond it waits and is answered', async t => {
  const broker = await startBroker(t)
  const asked = askedNames(broker)
  // Each is as large as half of the room.
  const long = 'n'.repeat(190)
  const count = Math.ceil(limits.kafkaLongRequestsBytes / 2 / (long.length + 12))
  const clients = await Promise.all([0, 1, 2, 3, 4].map(() => connectKafka(t, broker.kafka)))
  for (const [index, client] of clients.entries()) {
    const named = names(count).map(name => ({ name: `${index}-${name}-${long}`.slice(0, long.length) }))
    client.send(apis.metadata, 12, { topics: named })
  }
  const open = new Set<string>()
  let most = 0
  const left = new Map<string, number>()
  const answered = await Promise.all(clients.map(client => client.next()))
  for (const name of asked) {
    const request = name.slice(0, 1)
    open.add(request)
    most = Math.max(most, open.size)
    left.set(request, (left.get(request) ?? count) - 1)
    if (left.get(request) === 0) open.delete(request)
  }
  assert.ok(most <= 2, `${most} were in progress`)
  assert.ok(answered.every(answer => answer !== null))
})

test('a produce to very many partitions gives the others their turn, and all of its batches are written', async t => {
  const broker = await startBroker(t)
  await new HttpApi(broker.url).createTopic('t', NAMES)
  const counted = countCalls(t, broker.server.broker.batches, 'submitBatch')
  const client = await connectKafka(t, broker.kafka)
  const produce = (records: Buffer | null) => {
    const partitionData = Array.from({ length: NAMES + 1 }, (_, index) => ({ index, records }))
    client.send(apis.produce, 7, { acks: -1, timeoutMs: 1000, topicData: [{ name: 't', partitionData }] })
  }
  produce(clientBatch({ records: [{ value: 'first' }] }))
  // Right behind: it does not overtake.
  produce(clientBatch({ records: [{ value: 'second' }] }))
  for (const baseOffset of [0, 1]) {
    const answer = await client.next()
    assert.ok(answer !== null)
    const told = [...(decodeResponse(apis.produce, 7, answer).responses[0]?.partitionResponses ?? [])]
    assert.equal(told.length, NAMES + 1)
    assert.equal(told.pop()?.errorCode, kafkaErrors.UNKNOWN_TOPIC_OR_PARTITION.code)
    for (const partition of told) assert.deepEqual([partition.errorCode, partition.baseOffset], [0, baseOffset])
  }
  assert.ok(counted.mostInRound <= 2 * PARTS_A_TURN, `${counted.mostInRound} in one round`)
})

for (const sessionEpoch of [-1, 0]) {
  test(`a fetch of very many partitions ${sessionEpoch === 0 ? 'in a session' : 'alone'} gives the others their turn, and brings all`, async t => {
    const broker = await startBroker(t)
    await new HttpApi(broker.url).createTopic('t', NAMES)
    const client = await connectKafka(t, broker.kafka)
    const batch = clientBatch({ records: [{ value: 'v' }] })
    const partitionData = Array.from({ length: NAMES }, (_, index) => ({ index, records: batch }))
    await client.call(apis.produce, 7, { acks: -1, timeoutMs: 1000, topicData: [{ name: 't', partitionData }] })
    const counted = countCalls(t, broker.server.broker, 'submitRead')
    const offsets = Object.fromEntries(Array.from({ length: NAMES }, (_, partition) => [partition, 0]))
    const body = fetchBody('t', offsets, { sessionEpoch })
    const none = fetchBody('none', offsets).topics
    const answer = await client.call(apis.fetch, 11, { ...body, topics: [...body.topics, ...none] })
    assert.equal(answer.sessionId > 0, sessionEpoch === 0)
    assert.deepEqual(
      answer.responses.map(({ topic, partitions }) => [topic, partitions.length]),
      [
        ['t', NAMES],
        ['none', NAMES]
      ]
    )
    for (const { records } of answer.responses[0]?.partitions ?? []) assert.equal(records?.length, batch.length)
    for (const { errorCode } of answer.responses[1]?.partitions ?? []) assert.equal(errorCode, unknown)
    assert.equal(counted.calls, 2 * NAMES)
    assert.ok(counted.mostInRound <= 2 * PARTITIONS_A_TURN, `${counted.mostInRound} in one round`)
  })
}

test('a client that leaves while its fetch of very many partitions is taken leaves nothing behind', async t => {
  const broker = await startBroker(t)
  const api = new HttpApi(broker.url)
  await api.createTopic('t', NAMES)
  const client = await connectKafka(t, broker.kafka)
  const counted = countCalls(t, broker.server.broker, 'submitRead')
  const offsets = Object.fromEntries(Array.from({ length: NAMES }, (_, partition) => [partition, 0]))
  client.send(apis.fetch, 11, fetchBody('t', offsets, { sessionEpoch: 0, maxWaitMs: 60_000 }))
  await waitFor('it to be begun', () => counted.calls > 0)
  client.socket.destroy()
  await waitFor(
    'it to be over',
    async () => (await heldBytes(api)).replies === 0 && broker.server.kafka?.connectionCount === 0
  )
  await untilWatching({ api }, 0)
})
