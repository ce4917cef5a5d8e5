/** Streams of members of groups, on real brokers with both HTTP engines: where they begin, how they move, what ends them. */
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { waitFor } from '../support/broker.ts'
import { atEnd } from '../support/clean-up.ts'
import { openStream, type EventStream, type StreamedRecord } from '../support/event-stream.ts'
import { assertRefused, HttpApi, onBothEngines, parse } from '../support/http-api.ts'

interface Assigned {
  readonly generation: number
  readonly assignment: readonly { readonly topic: string; readonly partition: number }[]
}

const placeOf = ({ topic, partition, offset }: StreamedRecord): string => `${topic}/${partition}/${offset}`
const partitionsOf = ({ assignment }: Assigned): string[] =>
  assignment.map(({ topic, partition }) => `${topic}/${partition}`)

async function join(api: HttpApi, member: string, ...topics: string[]): Promise<Assigned> {
  return parse<Assigned>(await api.post('/groups/g/join', { topics, member_id: member }))
}

async function commit(api: HttpApi, topic: string, partition: number, offset: number): Promise<void> {
  assert.equal((await api.post('/groups/g/commit', { topic, partition, offset })).status, 204)
}

/** The newest assignment that the stream told. */
function assignedOf(stream: EventStream): Assigned {
  return JSON.parse(stream.ofType('assignment').at(-1)?.data ?? '{"generation":0,"assignment":[]}') as Assigned
}

async function membersOf(api: HttpApi): Promise<string[]> {
  const { members } = parse<{ members: { member_id: string }[] }>(await api.get('/groups/g'))
  return members.map(member => member.member_id)
}

onBothEngines('the stream of a member begins where the group has committed, and never commits', async (t, api) => {
  await api.createTopic('a', 2)
  await api.createTopic('b', 1)
  for (const [topic, partition] of [
    ['a', 0],
    ['a', 1],
    ['b', 0]
  ] as const)
    await api.produce(topic, [
      { value: 'first', partition },
      { value: 'second', partition }
    ])
  await commit(api, 'a', 1, 1)
  const { generation } = await join(api, 'm', 'a', 'b')
  const committed = (await api.get('/groups/g/offsets')).text
  // The id of another stream says nothing here.
  const headers = { 'last-event-id': '7,7,7' }
  const stream = await openStream(t, `${api.url}/groups/g/stream?member_id=m`, { headers })
  const records = await stream.untilRecords(5)
  assert.deepEqual(records.map(placeOf).toSorted(), ['a/0/0', 'a/0/1', 'a/1/1', 'b/0/0', 'b/0/1'])
  assert.equal(stream.events[0]?.type, 'assignment')
  assert.deepEqual(assignedOf(stream), {
    generation,
    assignment: [
      { topic: 'a', partition: 0 },
      { topic: 'a', partition: 1 },
      { topic: 'b', partition: 0 }
    ]
  })
  assert.match(stream.ofType('message')[0]?.data ?? '', /^\{"topic":"[ab]","partition":/)
  assert.ok(!stream.text.includes('id:'))
  assert.equal((await api.get('/groups/g/offsets')).text, committed)
  await api.produce('b', [{ value: 'third' }])
  assert.equal((await stream.untilRecords(6)).at(-1)?.value, 'third')
  // Whoever comes again begins at what is committed by then.
  await commit(api, 'a', 0, 2)
  const again = await openStream(t, `${api.url}/groups/g/stream?member_id=m`)
  assert.deepEqual((await again.untilRecords(4)).map(placeOf).toSorted(), ['a/1/1', 'b/0/0', 'b/0/1', 'b/0/2'])
})

onBothEngines('streams move with rebalances: what stays goes on, what comes begins at its commit', async (t, api) => {
  await api.createTopic('a', 2)
  const produce = async (value: string): Promise<void> => {
    await api.produce('a', [
      { value, partition: 0 },
      { value, partition: 1 }
    ])
  }
  await produce('0')
  await join(api, 'm', 'a')
  const first = await openStream(t, `${api.url}/groups/g/stream?member_id=m`)
  await first.untilRecords(2)
  await commit(api, 'a', 0, 1)
  await commit(api, 'a', 1, 1)

  await join(api, 'n', 'a')
  await first.untilType('assignment', 2)
  const second = await openStream(t, `${api.url}/groups/g/stream?member_id=n`)
  await second.untilType('assignment')
  assert.deepEqual([...partitionsOf(assignedOf(first)), ...partitionsOf(assignedOf(second))].toSorted(), ['a/0', 'a/1'])
  await produce('1')
  await first.untilRecords(3)
  await second.untilRecords(1)
  const [kept] = assignedOf(first).assignment
  const [moved] = assignedOf(second).assignment
  assert.deepEqual(
    [first.records.slice(2).map(placeOf), second.records.map(placeOf)],
    [[`a/${kept?.partition}/1`], [`a/${moved?.partition}/1`]]
  )

  // n goes, with a record that nobody committed.
  assert.equal((await api.post('/groups/g/leave', { member_id: 'n' })).status, 204)
  const end = await second.untilType('end')
  assert.equal((JSON.parse(end.data) as { code: string }).code, 'MEMBER_NOT_FOUND')
  await second.untilClosed()
  await first.untilType('assignment', 3)
  await produce('2')
  await first.untilRecords(6)
  assert.deepEqual(
    first.records.slice(3).map(placeOf).toSorted(),
    [`a/${kept?.partition}/2`, `a/${moved?.partition}/1`, `a/${moved?.partition}/2`].toSorted()
  )
  assert.equal(second.records.length, 1)
})

onBothEngines(
  'a member whose stream is taken needs no heartbeats, and is removed once nobody takes it',
  async (t, api) => {
    await api.createTopic('a', 2)
    await join(api, 'silent', 'a')
    await join(api, 'taking', 'a')
    await join(api, 'hung', 'a')
    const stream = await openStream(t, `${api.url}/groups/g/stream?member_id=taking`)
    const socket = connect(Number(new URL(api.url).port), '127.0.0.1')
    atEnd(t, () => void socket.destroy())
    socket.on('error', () => undefined)
    socket.pause()
    socket.write('GET /groups/g/stream?member_id=hung HTTP/1.1\r\nHost: localhost\r\n\r\n')
    // More than the system buffers for it, in every partition.
    const value = 'v'.repeat(500_000)
    const untilRemoved = waitFor(
      'those that are silent to be removed',
      async () => {
        for (const partition of [0, 1]) await api.produce('a', [{ value, partition }])
        return (await membersOf(api)).join() === 'taking'
      },
      20_000
    )
    await untilRemoved
    await waitFor('the other partition', () => partitionsOf(assignedOf(stream)).length === 2)
    assert.deepEqual(await membersOf(api), ['taking'])
    stream.close()
    await waitFor('it to be removed', async () => (await membersOf(api)).length === 0, 20_000)
  },
  { flags: { '--coord-member-timeout': '100ms' } }
)

onBothEngines('the stream of a member ends when a topic of it is deleted', async (t, api) => {
  await api.createTopic('a', 1)
  await api.createTopic('b', 1)
  await join(api, 'm', 'a', 'b')
  const stream = await openStream(t, `${api.url}/groups/g/stream?member_id=m`)
  await stream.untilType('assignment')
  await api.call('DELETE', '/topics/b')
  const end = await stream.untilType('end')
  assert.deepEqual(JSON.parse(end.data), { code: 'TOPIC_NOT_FOUND', error: "no topic named 'b'" })
  await stream.untilClosed()
  assertRefused(await api.get('/groups/g/stream?member_id=m'), 404, 'TOPIC_NOT_FOUND')
  await join(api, 'm', 'a')
  const again = await openStream(t, `${api.url}/groups/g/stream?member_id=m`)
  await again.untilType('assignment')
  assert.deepEqual(partitionsOf(assignedOf(again)), ['a/0'])
})

onBothEngines('a stream takes no more partitions than it may, of a topic or of a member', async (t, api) => {
  await api.createTopic('wide', 257)
  assertRefused(await api.get('/topics/wide/stream'), 400, 'FIELD_INVALID', ['partition', '257', '256'])
  await join(api, 'm', 'wide')
  assertRefused(await api.get('/groups/g/stream?member_id=m'), 400, 'FIELD_INVALID', ['member_id', '257', '256'])
  await join(api, 'n', 'wide')
  const stream = await openStream(t, `${api.url}/groups/g/stream?member_id=m`)
  await stream.untilType('assignment')
  await api.post('/groups/g/leave', { member_id: 'n' })
  assert.equal((JSON.parse((await stream.untilType('end')).data) as { code: string }).code, 'FIELD_INVALID')
})

onBothEngines('the stream of a member that is none is refused', async (_, api) => {
  await api.createTopic('a', 1)
  assertRefused(await api.get('/groups/g/stream?member_id=m'), 404, 'GROUP_NOT_FOUND')
  await join(api, 'm', 'a')
  assertRefused(await api.get('/groups/g/stream?member_id=x'), 404, 'MEMBER_NOT_FOUND')
  assertRefused(await api.get('/groups/g/stream'), 400, 'FIELD_INVALID', ['member_id'])
  assertRefused(await api.get('/groups/g/stream?member_id=m&encoding=hex'), 400, 'FIELD_INVALID', ['encoding'])
})
