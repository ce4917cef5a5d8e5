/** The APIs of consumer groups in every version that is advertised, as clients of their time use them. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { apis } from '../../src/wire/kafka/apis/index.ts'
import { kafkaErrors } from '../../src/wire/kafka/errors.ts'
import type { ReadOf } from '../../src/wire/kafka/schema.ts'
import { startBroker, waitFor } from '../support/broker.ts'
import { HttpApi, parse } from '../support/http-api.ts'
import { connectKafka, placeOf, type KafkaClient } from '../support/kafka-client.ts'

const { NONE, MEMBER_ID_REQUIRED, FENCED_INSTANCE_ID, UNKNOWN_MEMBER_ID } = kafkaErrors
const orders = 'orders'
const protocols = [{ name: 'range', metadata: Buffer.from([0, 0, 0, 0, 0, 1, 0, 6, ...Buffer.from(orders)]) }]

/** The version of an API that goes with one of JoinGroup: a client of that time has no newer one. */
function versionOf(
  api: { readonly versions: { readonly first: number; readonly last: number } },
  join: number
): number {
  const { first, last } = api.versions
  return Math.max(first, Math.min(last, join))
}

function join(client: KafkaClient, version: number, groupId: string, memberId = '', instance: string | null = null) {
  const timeouts = { sessionTimeoutMs: 10_000, ...(version >= 1 && { rebalanceTimeoutMs: 10_000 }) }
  const named = { ...(version >= 5 && { groupInstanceId: instance }) }
  const member = { groupId, memberId, protocolType: 'consumer', protocols, ...timeouts, ...named }
  return client.call(apis.joinGroup, version, member)
}

/** Becomes a member; since version 4 with an id that the broker gave out before. */
async function joined(client: KafkaClient, version: number, groupId: string) {
  const first = await join(client, version, groupId)
  if (version < 4) return first
  assert.equal(first.errorCode, MEMBER_ID_REQUIRED.code)
  return join(client, version, groupId, first.memberId)
}

for (const version of Array.from({ length: apis.joinGroup.versions.last + 1 }, (_, i) => i)) {
  test(`a member that speaks version ${version} of JoinGroup joins, syncs, beats, commits, reads what it committed, and leaves`, async t => {
    const broker = await startBroker(t)
    const api = new HttpApi(broker.url)
    await api.createTopic(orders, 2)
    const client = await connectKafka(t, broker.kafka)
    const member = await joined(client, version, 'g')
    assert.deepEqual([member.errorCode, member.generationId, member.protocolName], [NONE.code, 1, 'range'])
    assert.deepEqual([member.leader, member.members.length], [member.memberId, 1])
    assert.deepEqual(member.members[0]?.metadata, protocols[0]?.metadata)
    const identity = { groupId: 'g', generationId: 1, memberId: member.memberId }

    const assignments = [{ memberId: member.memberId, assignment: Buffer.from('all of it') }]
    const synced = await client.call(apis.syncGroup, versionOf(apis.syncGroup, version), { ...identity, assignments })
    assert.deepEqual([synced.errorCode, synced.assignment.toString()], [NONE.code, 'all of it'])
    const beat = await client.call(apis.heartbeat, versionOf(apis.heartbeat, version), identity)
    assert.equal(beat.errorCode, NONE.code)

    const { generationId: generationIdOrMemberEpoch, memberId } = identity
    const commitVersion = versionOf(apis.offsetCommit, version)
    const fetchVersion = versionOf(apis.offsetFetch, version)
    const epoch = commitVersion >= 6 ? { committedLeaderEpoch: 0 } : {}
    const partitions = [{ partitionIndex: 1, committedOffset: 5, committedMetadata: 'noted', ...epoch }]
    const topics = [{ name: orders, partitions }]
    const committed = await client.call(apis.offsetCommit, commitVersion, {
      ...{ groupId: 'g', generationIdOrMemberEpoch, memberId, topics }
    })
    assert.deepEqual(committed.topics, [{ name: orders, partitions: [{ partitionIndex: 1, errorCode: NONE.code }] }])
    const leaderEpoch = commitVersion >= 6 && fetchVersion >= 5 ? 0 : -1
    assert.deepEqual(await fetchedWithNotes(client, fetchVersion, 'g', [0, 1]), [
      [-1, -1, ''],
      [5, leaderEpoch, 'noted']
    ])
    const shown = parse<unknown>(await api.get('/groups/g/offsets'))
    assert.deepEqual(shown, { offsets: { [orders]: { 1: 5 } }, metadata: { [orders]: { 1: 'noted' } } })

    const described = await client.call(apis.describeGroups, versionOf(apis.describeGroups, version), { groups: ['g'] })
    assert.deepEqual(
      described.groups.map(group => [group.errorCode, group.groupState, group.protocolType, group.protocolData]),
      [[NONE.code, 'Stable', 'consumer', 'range']]
    )
    const [itself] = described.groups[0]?.members ?? []
    assert.deepEqual(
      [itself?.clientId, itself?.clientHost, itself?.memberAssignment.toString()],
      ['test', '127.0.0.1', 'all of it']
    )
    await leave(client, versionOf(apis.leaveGroup, version), memberId)
    const gone = await client.call(apis.heartbeat, versionOf(apis.heartbeat, version), identity)
    assert.equal(gone.errorCode, UNKNOWN_MEMBER_ID.code)
    await listAndDelete(client, version)
  })
}

async function leave(client: KafkaClient, version: number, memberId: string): Promise<void> {
  if (version < 3) {
    const { errorCode } = await client.call(apis.leaveGroup, version, { groupId: 'g', memberId, members: [] })
    return assert.equal(errorCode, NONE.code)
  }
  const members = [{ memberId }, { memberId: 'nobody' }]
  const left = await client.call(apis.leaveGroup, version, { groupId: 'g', members })
  assert.equal(left.errorCode, NONE.code)
  assert.deepEqual(
    left.members.map(({ errorCode }) => errorCode),
    [NONE.code, UNKNOWN_MEMBER_ID.code]
  )
}

async function listAndDelete(client: KafkaClient, version: number): Promise<void> {
  const list = versionOf(apis.listGroups, version)
  const filters = { statesFilter: list >= 4 ? ['empty'] : [], typesFilter: list >= 5 ? ['Classic'] : [] }
  const listed = await client.call(apis.listGroups, list, filters)
  assert.deepEqual(
    listed.groups.map(({ groupId }) => groupId),
    ['g']
  )
  if (list >= 4) {
    const none = await client.call(apis.listGroups, list, { statesFilter: ['Stable'], typesFilter: [] })
    assert.deepEqual(none.groups, [])
  }
  const groupsNames = ['g', 'none']
  const { results } = await client.call(apis.deleteGroups, versionOf(apis.deleteGroups, version), { groupsNames })
  const codes = results.map(({ errorCode }) => errorCode)
  assert.deepEqual(codes, [NONE.code, kafkaErrors.GROUP_ID_NOT_FOUND.code])
}

/** What is committed in partitions of the topic. */
async function fetched(client: KafkaClient, version: number, groupId: string, partitionIndexes: number[]) {
  return (await fetchedWithNotes(client, version, groupId, partitionIndexes)).map(([offset]) => offset)
}

/** The same, with the leader epochs and the metadata. */
async function fetchedWithNotes(client: KafkaClient, version: number, groupId: string, partitionIndexes: number[]) {
  const topics = [{ name: orders, partitionIndexes }]
  const body = version < 8 ? { groupId, topics, groups: [] } : { groups: [{ groupId, topics }] }
  const answer = await client.call(apis.offsetFetch, version, body)
  const told = version < 8 ? answer.topics : (answer.groups[0]?.topics ?? [])
  return told.flatMap(({ partitions }) => partitions).map(noteOf)
}

type Fetched = ReadOf<typeof apis.offsetFetch.response.fields>['topics'][number]['partitions'][number]

function noteOf({ committedOffset, committedLeaderEpoch, metadata }: Fetched): [number, number, string | null] {
  return [committedOffset, committedLeaderEpoch, metadata]
}

/** Commits offsets 0, 1, 2 … of a topic's partitions without a membership. @returns the codes. */
async function commitNoted(client: KafkaClient, groupId: string, metadata: readonly (string | null)[]) {
  const partitions = metadata.map((committedMetadata, index) => {
    return { partitionIndex: index, committedOffset: index, committedLeaderEpoch: 0, committedMetadata }
  })
  const answer = await client.call(apis.offsetCommit, 8, { groupId, topics: [{ name: orders, partitions }] })
  return answer.topics.flatMap(told => told.partitions.map(({ errorCode }) => errorCode))
}

describe('what is noted beside an offset', () => {
  test('has 4,096 bytes at most: what is longer is refused for itself, and its offset is not noted', async t => {
    const broker = await startBroker(t)
    await new HttpApi(broker.url).createTopic(orders, 4)
    const client = await connectKafka(t, broker.kafka)
    const codes = await commitNoted(client, 'g', ['x'.repeat(4096), 'x'.repeat(4097), 'ä'.repeat(2049), null])
    const { code } = kafkaErrors.OFFSET_METADATA_TOO_LARGE
    assert.deepEqual(codes, [NONE.code, code, code, NONE.code])
    assert.deepEqual(await fetchedWithNotes(client, 8, 'g', [0, 1, 2, 3]), [
      [0, 0, 'x'.repeat(4096)],
      [-1, -1, ''],
      [-1, -1, ''],
      [3, 0, '']
    ])
  })

  test('comes back after a restart, and goes with a commit that has nothing to note', async t => {
    const first = await startBroker(t)
    await new HttpApi(first.url).createTopic(orders, 2)
    await commitNoted(await connectKafka(t, first.kafka), 'g', ['one', 'two "ä" \u0000'])
    await first.stop()
    const broker = await startBroker(t, { dataDir: first.dataDir })
    const client = await connectKafka(t, broker.kafka)
    assert.deepEqual(await fetchedWithNotes(client, 8, 'g', [0, 1]), [
      [0, 0, 'one'],
      [1, 0, 'two "ä" \u0000']
    ])
    const api = new HttpApi(broker.url)
    await api.post('/groups/g/commit', { topic: orders, partition: 0, offset: 7 })
    assert.deepEqual(parse<unknown>(await api.get('/groups/g/offsets')), {
      offsets: { [orders]: { 0: 7, 1: 1 } },
      metadata: { [orders]: { 1: 'two "ä" \u0000' } }
    })
    assert.deepEqual(await fetchedWithNotes(client, 8, 'g', [0]), [[7, -1, '']])
  })

  test('is told once an answer, whatever a client asks twice: a small request has no huge answer', async t => {
    const broker = await startBroker(t)
    await new HttpApi(broker.url).createTopic(orders, 1)
    const client = await connectKafka(t, broker.kafka)
    await commitNoted(client, 'g', ['noted'])
    assert.deepEqual(await fetchedWithNotes(client, 8, 'g', [0, 0, 0]), [
      [0, 0, 'noted'],
      [0, -1, ''],
      [0, -1, '']
    ])
    const { groups } = await client.call(apis.offsetFetch, 8, {
      groups: [
        { groupId: 'g', topics: null },
        { groupId: 'g', topics: null }
      ]
    })
    assert.deepEqual(
      groups.map(({ errorCode, topics }) => [errorCode, topics.length]),
      [
        [NONE.code, 1],
        [kafkaErrors.INVALID_REQUEST.code, 0]
      ]
    )
  })
})

describe('the coordinator of a group', () => {
  test('is this broker, in every version; there is none of a transaction', async t => {
    const broker = await startBroker(t)
    const client = await connectKafka(t, broker.kafka)
    const place = placeOf(broker.kafka)
    for (let version = 0; version <= apis.findCoordinator.versions.last; version++) {
      const ask = version < 4 ? { key: 'g' } : { coordinatorKeys: ['g', 'h'] }
      const answer = await client.call(apis.findCoordinator, version, ask)
      const found = version < 4 ? [answer] : answer.coordinators
      assert.equal(found.length, version < 4 ? 1 : 2)
      for (const { errorCode, host, port } of found)
        assert.deepEqual({ errorCode, host, port }, { errorCode: 0, ...place })
    }
    const { errorCode } = await client.call(apis.findCoordinator, 2, { key: 'tx', keyType: 1 })
    assert.equal(errorCode, kafkaErrors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED.code)
  })
})

describe('OffsetFetch', () => {
  test('of null topics tells all that is committed, of many groups each, and of an unknown group nothing, without an error', async t => {
    const broker = await startBroker(t)
    const api = new HttpApi(broker.url)
    await api.createTopic(orders, 2)
    await api.post('/groups/g/commit', { topic: orders, partition: 1, offset: 9 })
    const client = await connectKafka(t, broker.kafka)
    const all = await client.call(apis.offsetFetch, 7, { groupId: 'g', topics: null, groups: [], requireStable: true })
    assert.deepEqual(
      all.topics.map(({ name, partitions }) => [name, partitions.map(({ committedOffset }) => committedOffset)]),
      [[orders, [9]]]
    )
    const many = await client.call(apis.offsetFetch, 9, {
      groups: [
        { groupId: 'g', topics: null },
        { groupId: 'none', topics: null },
        { groupId: 'other', topics: [{ name: orders, partitionIndexes: [0] }] }
      ]
    })
    assert.deepEqual(
      many.groups.map(({ errorCode, topics }) => [errorCode, topics.flatMap(({ partitions }) => partitions).length]),
      [
        [NONE.code, 1],
        [NONE.code, 0],
        [NONE.code, 1]
      ]
    )
  })
})

describe('OffsetDelete', () => {
  test('forgets an offset, and says which group is not there', async t => {
    const broker = await startBroker(t)
    const api = new HttpApi(broker.url)
    await api.createTopic(orders, 2)
    await api.post('/groups/g/commit', { topic: orders, partition: 0, offset: 9 })
    const client = await connectKafka(t, broker.kafka)
    const topics = [{ name: orders, partitions: [{ partitionIndex: 0 }] }]
    const { errorCode } = await client.call(apis.offsetDelete, 0, { groupId: 'none', topics })
    assert.equal(errorCode, kafkaErrors.GROUP_ID_NOT_FOUND.code)
    const deleted = await client.call(apis.offsetDelete, 0, { groupId: 'g', topics })
    assert.deepEqual(deleted.topics[0]?.partitions, [{ partitionIndex: 0, errorCode: NONE.code }])
    assert.deepEqual(await fetched(client, 1, 'g', [0]), [-1])
  })
})

describe('a member of a group', () => {
  test('that is static and started again over another connection fences the former one', async t => {
    const broker = await startBroker(t)
    await new HttpApi(broker.url).createTopic(orders, 2)
    const former = await connectKafka(t, broker.kafka)
    const first = await join(former, 9, 'g', '', 'one')
    const identity = { groupId: 'g', generationId: 1, memberId: first.memberId, groupInstanceId: 'one' }
    const assignments = [{ memberId: first.memberId, assignment: Buffer.from('mine') }]
    await former.call(apis.syncGroup, 5, { ...identity, assignments })
    const client = await connectKafka(t, broker.kafka)
    const back = await join(client, 9, 'g', '', 'one')
    assert.deepEqual([back.errorCode, back.generationId, back.skipAssignment], [NONE.code, 1, true])
    const again = { ...identity, memberId: back.memberId, assignments: [] }
    assert.equal((await client.call(apis.syncGroup, 5, again)).assignment.toString(), 'mine')
    assert.equal((await former.call(apis.heartbeat, 4, identity)).errorCode, FENCED_INSTANCE_ID.code)
  })

  test('whose connection ends while it waits is waited for by nobody', async t => {
    const broker = await startBroker(t)
    const api = new HttpApi(broker.url)
    await api.createTopic(orders, 2)
    const client = await connectKafka(t, broker.kafka)
    const leader = await joined(client, 5, 'g')
    const ending = await connectKafka(t, broker.kafka)
    ending.send(apis.joinGroup, 0, {
      groupId: 'g',
      sessionTimeoutMs: 10_000,
      memberId: '',
      protocolType: 'consumer',
      protocols
    })
    const countIs = (count: number) => async (): Promise<boolean> => {
      const { members } = parse<{ members: unknown[] }>(await api.get('/groups/g'))
      return members.length === count
    }
    await waitFor('two members', countIs(2))
    ending.socket.destroy()
    await waitFor('one member', countIs(1))
    const again = await join(client, 5, 'g', leader.memberId)
    assert.deepEqual([again.errorCode, again.members.length], [NONE.code, 1])
  })

  test('is refused by the name of its group, by the kind of those that are there, and by its session timeout', async t => {
    const broker = await startBroker(t)
    const client = await connectKafka(t, broker.kafka)
    const invalid = await join(client, 5, 'no name')
    assert.equal(invalid.errorCode, kafkaErrors.INVALID_GROUP_ID.code)
    const api = new HttpApi(broker.url)
    await api.createTopic(orders, 2)
    await api.post('/groups/http/join', { topics: [orders], member_id: 'm' })
    const other = await join(client, 5, 'http')
    assert.equal(other.errorCode, kafkaErrors.INCONSISTENT_GROUP_PROTOCOL.code)
    const short = { groupId: 'g', memberId: '', protocolType: 'consumer', protocols, sessionTimeoutMs: 1 }
    assert.equal((await client.call(apis.joinGroup, 0, short)).errorCode, kafkaErrors.INVALID_SESSION_TIMEOUT.code)
  })
})
