/** Versions that clients look for, pick, and stumble over: kafka-reports-rows.ts says where that was reported. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { apis } from '../../src/wire/kafka/apis/index.ts'
import { kafkaErrors } from '../../src/wire/kafka/errors.ts'
import { requestFrame } from '../../src/wire/kafka/headers.ts'
import { makeTestKey, startGuarded } from '../support/access.ts'
import { connectKafka, decodeResponse, type KafkaClient } from '../support/kafka-client.ts'
import { loginPlain } from '../support/kafka-login.ts'
import { advertisedBy, kafkaStage, TOPIC } from './kafka-stage.ts'

type ApiName = keyof typeof apis
type Picked = Partial<Record<ApiName, readonly number[]>>

/** What Sarama 1.50 sends by default: it may go lower only if the broker says so, and never higher. */
const sarama: Picked = {
  ...{ produce: [9], fetch: [12], listOffsets: [6], metadata: [11], offsetCommit: [8], offsetFetch: [8] },
  ...{ findCoordinator: [3], joinGroup: [7], heartbeat: [4], leaveGroup: [4], syncGroup: [5], describeGroups: [5] },
  ...{ listGroups: [5], saslHandshake: [1], apiVersions: [3], createTopics: [7], deleteTopics: [6] },
  ...{ describeConfigs: [4], incrementalAlterConfigs: [1], saslAuthenticate: [1], createPartitions: [3] }
}

/** What KafkaJS 2.2.4 speaks at most: nothing flexible. */
const kafkaJs: Picked = {
  ...{ produce: [7], fetch: [11], listOffsets: [3], metadata: [6], offsetCommit: [5], offsetFetch: [4] },
  ...{ findCoordinator: [2], joinGroup: [5], heartbeat: [3], leaveGroup: [3], syncGroup: [3], describeGroups: [2] },
  ...{ listGroups: [2], saslHandshake: [1], apiVersions: [2], createTopics: [3], deleteTopics: [1] },
  ...{ describeConfigs: [2], saslAuthenticate: [1], createPartitions: [1], deleteGroups: [1], deleteRecords: [1] }
}

/** What @platformatic/kafka 2.12 has alone, or at least. */
const platformatic: Picked = {
  ...{ apiVersions: [3], metadata: [9, 12], saslAuthenticate: [2], findCoordinator: [4], leaveGroup: [4] },
  ...{ heartbeat: [4], describeGroups: [5], createTopics: [7], deleteTopics: [6], produce: [7, 11], fetch: [12, 17] },
  ...{ listOffsets: [5, 9], offsetCommit: [8, 9], offsetFetch: [8, 9], joinGroup: [6, 9], syncGroup: [4, 5] },
  ...{ initProducerId: [3], deleteGroups: [2], deleteRecords: [2], listGroups: [4] }
}

/** The least that a Java client 4 goes down to: a broker whose last version is below is refused. */
const java: Picked = {
  ...{ produce: [3], fetch: [4, 12], listOffsets: [1], metadata: [0], offsetCommit: [2], offsetFetch: [1] },
  ...{ initProducerId: [0], findCoordinator: [0], joinGroup: [0], syncGroup: [0], heartbeat: [0], leaveGroup: [0] },
  ...{ createTopics: [2], deleteTopics: [1], describeConfigs: [1], offsetForLeaderEpoch: [2], saslAuthenticate: [0] }
}

/** Versions that librdkafka 2.0.2 (kcat of Debian) looks for, each before it uses a feature. */
const librdkafkaGates: Readonly<Record<string, Picked>> = {
  'records of format 2': { produce: [3], fetch: [4] },
  zstd: { produce: [7], fetch: [10] },
  'gzip and snappy': { produce: [0] },
  lz4: { findCoordinator: [0] },
  groups: {
    ...{ findCoordinator: [0], offsetCommit: [2], offsetFetch: [1], joinGroup: [0], syncGroup: [0] },
    ...{ heartbeat: [0], leaveGroup: [0] }
  },
  'offsets by time': { listOffsets: [1] },
  idempotence: { initProducerId: [0] },
  'SASL with bare tokens': { saslHandshake: [0] },
  SASL: { saslHandshake: [1], saslAuthenticate: [0] },
  'epochs of leaders': { offsetForLeaderEpoch: [2] }
}

async function assertServed(client: KafkaClient, who: string, picked: Picked): Promise<void> {
  const ranges = await advertisedBy(client)
  for (const [name, versions] of Object.entries(picked) as [ApiName, readonly number[]][]) {
    const [first, last] = ranges.get(apis[name].key) ?? [1, 0]
    for (const version of versions)
      assert.ok(version >= first && version <= last, `${who}: ${name} ${version} is not in ${first}–${last}`)
  }
}

/** Asks for the versions in one of later days. */
function sendAs(client: KafkaClient, version: number): void {
  const header = { apiVersion: 4, correlationId: 7, clientId: 'new' }
  const [frame] = requestFrame(apis.apiVersions, header, { clientSoftwareName: 'new', clientSoftwareVersion: '9' })
  assert.ok(frame !== undefined)
  frame.writeInt16BE(version, 6)
  client.socket.write(frame)
}

test('redpanda#17581: what the clients of today pick by default is within the ranges, so nobody is cut off', async t => {
  const { client } = await kafkaStage(t)
  for (const [who, picked] of Object.entries({ sarama, kafkaJs, platformatic, java }))
    await assertServed(client, who, picked)
})

test('kroxylicious#2844: every version that librdkafka 2.0.2 looks for before it uses a feature is in its range', async t => {
  const { client } = await kafkaStage(t)
  for (const [feature, gates] of Object.entries(librdkafkaGates)) await assertServed(client, feature, gates)
})

test('kafka#18727: Produce is advertised from 0, and JoinGroup from 0, as Kafka 4 does again', async t => {
  const { client } = await kafkaStage(t)
  const ranges = await advertisedBy(client)
  assert.equal(ranges.get(apis.produce.key)?.[0], 0)
  assert.equal(ranges.get(apis.joinGroup.key)?.[0], 0)
})

test('redpanda#17622: Metadata is answered in each version from 0 to 12', async t => {
  const { client } = await kafkaStage(t, { partitions: 2 })
  for (let version = 0; version <= 12; version++) {
    const { brokers, topics } = await client.call(apis.metadata, version, { topics: [{ name: TOPIC }] })
    const [topic] = topics
    assert.deepEqual([brokers.length, topic?.errorCode, topic?.name, topic?.partitions.length], [1, 0, TOPIC, 2])
    assert.ok(topic?.partitions.every(({ errorCode, leaderId }) => errorCode === 0 && leaderId === brokers[0]?.nodeId))
  }
})

test('redpanda#29223: what is not there is not advertised', async t => {
  const { client } = await kafkaStage(t)
  const ranges = await advertisedBy(client)
  const transactions = [24, 25, 26, 28]
  const [consumerGroups, shareGroups, telemetry] = [
    [68, 69],
    [76, 77, 78, 79],
    [71, 72]
  ] as const
  const betweenBrokers = [4, 5, 6, 7, 27]
  for (const key of [...transactions, ...consumerGroups, ...shareGroups, ...telemetry, ...betweenBrokers])
    assert.ok(!ranges.has(key), `API ${key}`)
  // The Java client and franz-go behave otherwise where a feature is advertised, whatever versions there are.
  const told = await client.call(apis.apiVersions, 4, { clientSoftwareName: 'a', clientSoftwareVersion: '1' })
  assert.deepEqual([told.supportedFeatures, told.finalizedFeatures], [[], []])
})

test('kop#166: ApiVersions 3 is answered under the header of version 0, to a client that gives its name', async t => {
  const { client } = await kafkaStage(t)
  const id = client.send(apis.apiVersions, 3, { clientSoftwareName: 'librdkafka', clientSoftwareVersion: '1.4.2' })
  const answer = await client.next()
  assert.ok(answer !== null)
  // No tagged fields behind the correlation id: the error code comes at once, then the count of keys and 1.
  const { bytes } = answer
  const count = Object.keys(apis).length
  assert.deepEqual([bytes.readInt32BE(0), bytes.readInt16BE(4), bytes.readUInt8(6)], [id, 0, count + 1])
})

test('franz-go#1025: ApiVersions of any version is answered, and the connection lives on', async t => {
  const { client } = await kafkaStage(t)
  const { first, last } = apis.apiVersions.versions
  for (let version = first; version <= last; version++) {
    const body = version >= 3 ? { clientSoftwareName: 'franz-go', clientSoftwareVersion: 'v1.2.3' } : {}
    const told = await client.call(apis.apiVersions, version, body)
    assert.deepEqual([told.errorCode, told.apiKeys.length], [0, Object.keys(apis).length])
  }
  for (const version of [last + 1, 0x7fff]) {
    sendAs(client, version)
    const answer = await client.next()
    assert.ok(answer !== null, `ApiVersions ${version} was answered by a close`)
    const told = decodeResponse(apis.apiVersions, 0, answer)
    assert.equal(told.errorCode, kafkaErrors.UNSUPPORTED_VERSION.code)
    const own = told.apiKeys.find(({ apiKey }) => apiKey === apis.apiVersions.key)
    assert.deepEqual([own?.minVersion, own?.maxVersion], [first, last], 'what to try next')
  }
  assert.equal((await client.call(apis.metadata, 0, { topics: [] })).topics.length, 1)
})

test('azure-event-hubs#209: who asks for a transaction is refused with words, and is not cut off', async t => {
  const { client } = await kafkaStage(t)
  for (let version = 0; version <= apis.initProducerId.versions.last; version++) {
    const body = { transactionalId: 'x', transactionTimeoutMs: 60_000 }
    const { errorCode, producerId } = await client.call(apis.initProducerId, version, body)
    assert.deepEqual([errorCode, producerId], [kafkaErrors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED.code, -1n])
  }
  const found = await client.call(apis.findCoordinator, 2, { key: 'x', keyType: 1 })
  assert.equal(found.errorCode, kafkaErrors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED.code)
  assert.ok((found.errorMessage ?? '').length > 0)
})

test('kafka-go#1360: a member that speaks JoinGroup 0 or 1 gets its group', async t => {
  const { client } = await kafkaStage(t)
  for (const version of [0, 1]) {
    const groupId = `g${version}`
    const protocols = [{ name: 'range', metadata: Buffer.alloc(0) }]
    const timeouts = { sessionTimeoutMs: 10_000, ...(version === 1 && { rebalanceTimeoutMs: 10_000 }) }
    const member = { groupId, memberId: '', protocolType: 'consumer', protocols, ...timeouts }
    const joined = await client.call(apis.joinGroup, version, member)
    assert.deepEqual([joined.errorCode, joined.generationId, joined.leader], [0, 1, joined.memberId])
    const assignments = [{ memberId: joined.memberId, assignment: Buffer.from('all') }]
    const identity = { groupId, generationId: 1, memberId: joined.memberId }
    const synced = await client.call(apis.syncGroup, version, { ...identity, assignments })
    assert.deepEqual([synced.errorCode, synced.assignment.toString()], [0, 'all'])
  }
})

test('a client that authenticates before it asks for versions is served, as @platformatic/kafka does', async t => {
  const { broker, admin } = await startGuarded(t)
  await admin.api.createTopic(TOPIC)
  const { id, secret } = await makeTestKey(admin.api, `read:${TOPIC}`)
  const client = await connectKafka(t, broker.kafka)
  assert.equal(await loginPlain(client, id, secret), 0)
  assert.equal((await client.call(apis.metadata, 12, { topics: null })).topics.length, 1)
})

test('the type of its protocol comes back to a member, where the Java client compares it', async t => {
  const { client } = await kafkaStage(t)
  for (const version of [7, 9]) {
    const protocols = [{ name: 'range', metadata: Buffer.alloc(0) }]
    const timeouts = { sessionTimeoutMs: 10_000, rebalanceTimeoutMs: 10_000 }
    const member = { groupId: `g${version}`, protocolType: 'consumer', protocols, ...timeouts }
    const { memberId } = await client.call(apis.joinGroup, version, { ...member, memberId: '' })
    const joined = await client.call(apis.joinGroup, version, { ...member, memberId })
    assert.deepEqual([joined.errorCode, joined.protocolType, joined.protocolName], [0, 'consumer', 'range'])
    const identity = { groupId: `g${version}`, generationId: joined.generationId, memberId }
    const named = { protocolType: 'consumer', protocolName: 'range' }
    const synced = await client.call(apis.syncGroup, 5, { ...identity, ...named, assignments: [] })
    assert.deepEqual([synced.protocolType, synced.protocolName], ['consumer', 'range'])
    const other = { ...identity, protocolType: 'connect', protocolName: 'range', assignments: [] }
    const refused = await client.call(apis.syncGroup, 5, other)
    assert.equal(refused.errorCode, kafkaErrors.INCONSISTENT_GROUP_PROTOCOL.code)
  }
})
