/** Consumer groups over HTTP, on both engines: commits, offsets, group reads, members and their partitions (spec 6, 7). */
import assert from 'node:assert/strict'
import { waitFor } from '../support/broker.ts'
import { assertRefused, type HttpApi, onBothEngines, parse, type HttpAnswer } from '../support/http-api.ts'

interface Joined {
  readonly member_id: string
  readonly generation: number
  readonly assignment: readonly { readonly topic: string; readonly partition: number }[]
}

const commit = (
  api: HttpApi,
  group: string,
  topic: string,
  partition: number,
  offset: number | bigint
): Promise<HttpAnswer> =>
  api.post(`/groups/${group}/commit`, `{"topic":"${topic}","partition":${partition},"offset":${offset}}`)

const offsetsOf = async (api: HttpApi, group: string): Promise<string> =>
  (await api.get(`/groups/${group}/offsets`)).text

const join = async (api: HttpApi, group: string, topics: readonly string[], member?: string | null): Promise<Joined> =>
  parse<Joined>(await api.post(`/groups/${group}/join`, { topics, member_id: member }))

const heartbeat = async (api: HttpApi, group: string, member: string, generation: number): Promise<string> => {
  const answer = await api.post(`/groups/${group}/heartbeat`, { member_id: member, generation })
  assert.equal(answer.status, 200, answer.text)
  return answer.text
}

const partitionsOf = ({ assignment }: Pick<Joined, 'assignment'>): string[] =>
  assignment.map(({ topic, partition }) => `${topic}/${partition}`)

onBothEngines('a commit is answered 204, shows at once, and may be any u64, digit for digit', async (t, api) => {
  await api.createTopic('orders', 2)
  await api.createTopic('billing')
  assert.equal(await offsetsOf(api, 'g'), '{"offsets":{}}', 'looking at an unknown group')
  const first = await commit(api, 'g', 'orders', 1, 7)
  assert.deepEqual([first.status, first.text], [204, ''])
  assert.equal(await offsetsOf(api, 'g'), '{"offsets":{"orders":{"1":7}}}')
  for (const offset of [3n, 2n ** 53n - 1n, 2n ** 53n + 1n, 2n ** 63n, 2n ** 64n - 1n, 0n]) {
    assert.equal((await commit(api, 'g', 'orders', 0, offset)).status, 204)
    assert.equal(await offsetsOf(api, 'g'), `{"offsets":{"orders":{"0":${offset},"1":7}}}`)
  }
  await commit(api, 'g', 'billing', 0, 5)
  assert.equal(await offsetsOf(api, 'g'), '{"offsets":{"billing":{"0":5},"orders":{"0":0,"1":7}}}')
  await t.test('refuses, in this order: topic, partition, name', async () => {
    assertRefused(await commit(api, 'b!d', 'nothing', 9, 0), 404, 'TOPIC_NOT_FOUND')
    assertRefused(await commit(api, 'b!d', 'orders', 2, 0), 400, 'PARTITION_RANGE')
    assertRefused(await commit(api, 'b!d', 'orders', 1, 0), 400, 'NAME_INVALID', ['group', 'b!d'])
    assertRefused(await commit(api, 'g'.repeat(201), 'orders', 1, 0), 400, 'NAME_INVALID', ['group'])
    assert.equal((await commit(api, 'g'.repeat(200), 'orders', 1, 0)).status, 204)
    for (const body of ['{}', '{"topic":"orders","partition":0}', '{"topic":"orders","partition":0,"offset":-1}'])
      assertRefused(await api.post('/groups/g/commit', body), 400, 'FIELD_INVALID')
    for (const offset of ['1.0', '1e3', '"1"', 'null', '18446744073709551616'])
      assertRefused(
        await api.post('/groups/g/commit', `{"topic":"orders","partition":0,"offset":${offset}}`),
        400,
        'FIELD_INVALID',
        ['offset']
      )
  })
  await t.test('is forgotten with the topic, also by a new one of that name', async () => {
    assert.equal((await api.call('DELETE', '/topics/orders')).status, 200)
    assert.equal(await offsetsOf(api, 'g'), '{"offsets":{"billing":{"0":5}}}')
    // Nothing of them counts towards the limits any more, of either group.
    assert.match((await api.get('/metrics')).text, /^millrace_consumer_group_offsets 1$/m)
    await api.createTopic('orders', 2)
    assert.equal(await offsetsOf(api, 'g'), '{"offsets":{"billing":{"0":5}}}')
  })
})

onBothEngines(
  'a commit of a member is taken as of the last assignment alone, and else refused with nothing noted',
  async (_, api) => {
    await api.createTopic('orders', 2)
    const commitAs = (member_id: unknown, generation: unknown, offset = 5, group = 'g'): Promise<HttpAnswer> =>
      api.post(`/groups/${group}/commit`, { topic: 'orders', partition: 0, offset, member_id, generation })
    assertRefused(await commitAs('a', 1), 404, 'MEMBER_NOT_FOUND')
    assert.equal((await api.get('/groups/g')).status, 404, 'no group is made')
    const a = await join(api, 'g', ['orders'], 'a')
    assert.equal((await commitAs('a', a.generation)).status, 204)
    for (const generation of [0, 2, 2n ** 64n - 1n])
      assertRefused(
        await api.post(
          '/groups/g/commit',
          `{"topic":"orders","partition":0,"offset":9,"member_id":"a","generation":${generation}}`
        ),
        409,
        'GENERATION_STALE',
        [`generation ${generation}`, 'has 1']
      )
    const b = await join(api, 'g', ['orders'], 'b')
    assertRefused(await commitAs('a', a.generation, 9), 409, 'GENERATION_STALE')
    assert.equal((await commitAs('a', b.generation, 6)).status, 204)
    await api.post('/groups/g/leave', { member_id: 'a' })
    assertRefused(await commitAs('a', b.generation, 9), 404, 'MEMBER_NOT_FOUND')
    assert.equal(await offsetsOf(api, 'g'), '{"offsets":{"orders":{"0":6}}}')
    for (const [member, generation] of [
      ['a', null],
      [null, 1],
      [5, 1],
      ['a', -1],
      ['a', '1']
    ])
      assertRefused(await commitAs(member, generation), 400, 'FIELD_INVALID')
    assert.equal((await commitAs(null, null, 7)).status, 204, 'who names no member may commit')
    assertRefused(await commitAs('a', 1, 1, 'b!d'), 400, 'NAME_INVALID')
  }
)

onBothEngines('a group reads from where it committed, and reading commits nothing', async (_, api) => {
  await api.createTopic('orders', 2)
  await api.produce(
    'orders',
    ['a', 'b', 'c'].map(value => ({ value, partition: 1 }))
  )
  const read = async (query: string): Promise<HttpAnswer> => api.get(`/groups/g/consume?topic=orders&${query}`)
  const valuesOf = async (query: string): Promise<string[]> =>
    parse<{ records: { value: string }[] }>(await read(query)).records.map(({ value }) => value)
  assert.deepEqual(await valuesOf('partition=1'), ['a', 'b', 'c'], 'of a group that nobody knows: from the start')
  assert.equal((await api.get('/groups/g')).status, 404, 'reading made no group')
  await commit(api, 'g', 'orders', 1, 1)
  assert.deepEqual(await valuesOf('partition=1'), ['b', 'c'])
  assert.deepEqual(await valuesOf('partition=1&max_records=1'), ['b'])
  assert.deepEqual(await valuesOf('partition=1&encoding=base64'), ['Yg==', 'Yw=='])
  assert.equal(await offsetsOf(api, 'g'), '{"offsets":{"orders":{"1":1}}}')
  await commit(api, 'g', 'orders', 1, 2n ** 64n - 1n)
  const { text } = await read('partition=1')
  assert.equal(text, `{"records":[],"next_offset":${2n ** 64n - 1n},"high_watermark":3}`)
  assertRefused(await api.get('/groups/g/consume?topic=nothing&partition=0&encoding=x'), 400, 'FIELD_INVALID')
  assertRefused(await api.get('/groups/g/consume?topic=nothing&partition=0'), 404, 'TOPIC_NOT_FOUND')
  assertRefused(await read('partition=2'), 400, 'PARTITION_RANGE')
  assertRefused(await api.get('/groups/g/consume?partition=0'), 400, 'FIELD_INVALID', ['topic'])
  assertRefused(await read('offset=1'), 400, 'FIELD_INVALID', ['partition'])
})

onBothEngines('members join, share, move, and leave as the seed says', async (t, api) => {
  await api.createTopic('orders', 4)
  await api.createTopic('billing', 2)
  const first = await join(api, 'g', ['orders', 'billing', 'orders'], null)
  assert.match(first.member_id, /^m_[0-9a-f]{24}$/)
  assert.equal(first.generation, 1)
  const all = ['billing/0', 'billing/1', 'orders/0', 'orders/1', 'orders/2', 'orders/3']
  assert.deepEqual(partitionsOf(first), all, 'sorted by topic, then partition')
  const a = first.member_id
  assert.equal(await heartbeat(api, 'g', a, 1), '{"status":"ok","generation":1}')
  assert.equal(await heartbeat(api, 'g', a, 7), '{"status":"rebalance_required","current_generation":1}')
  assert.equal(await heartbeat(api, 'g', 'm_unknown', 1), '{"status":"unknown_member","current_generation":1}')
  assert.equal(await heartbeat(api, 'nobody', a, 1), '{"status":"unknown_member","current_generation":0}')

  const again = await api.post('/groups/g/join', { topics: ['billing', 'orders'], member_id: a })
  assert.deepEqual(parse<Joined>(again), first, 'joining again with the same topics changes nothing')

  const b = await join(api, 'g', ['orders', 'billing'], 'b')
  assert.deepEqual([b.member_id, b.generation, b.assignment.length], ['b', 2, 3])
  assert.equal(await heartbeat(api, 'g', a, 1), '{"status":"rebalance_required","current_generation":2}')
  const assignmentOf = async (member: string): Promise<Omit<Joined, 'member_id'>> =>
    parse(await api.get(`/groups/g/assignment?member_id=${member}`))
  const afterB = await assignmentOf(a)
  assert.equal(afterB.generation, 2)
  assert.deepEqual([...partitionsOf(afterB), ...partitionsOf(b)].sort(), all)
  assert.equal(await heartbeat(api, 'g', a, 2), '{"status":"ok","generation":2}')

  await t.test('other topics of a member rebalance the group', async () => {
    const changed = await join(api, 'g', ['billing'], 'b')
    assert.deepEqual([changed.generation, partitionsOf(changed)], [3, ['billing/0', 'billing/1']])
    assert.deepEqual(partitionsOf(await assignmentOf(a)), all.slice(2))
  })
  await t.test('a leave rebalances, once', async () => {
    for (const expected of [4, 4]) {
      const left = await api.post('/groups/g/leave', { member_id: 'b' })
      assert.deepEqual([left.status, left.text], [204, ''])
      const { generation } = await assignmentOf(a)
      assert.equal(generation, expected)
    }
    assert.equal((await api.post('/groups/nobody/leave', { member_id: 'b' })).status, 204)
    assert.deepEqual(partitionsOf(await assignmentOf(a)), all)
  })
  await t.test('what cannot be is refused, in this order', async () => {
    const refused = async (body: object, ...expected: [number, string]): Promise<void> => {
      assertRefused(await api.post('/groups/g/join', body), ...expected)
    }
    assertRefused(await api.post('/groups/b!d/join', { topics: ['nothing'] }), 400, 'NAME_INVALID', ['group'])
    await refused({ topics: ['nothing'], member_id: 'b!d' }, 400, 'NAME_INVALID')
    await refused({ topics: [] }, 400, 'FIELD_RANGE')
    await refused({ topics: Array.from({ length: 101 }, (_, i) => `t${i}`) }, 400, 'FIELD_RANGE')
    await refused({ topics: ['nothing', 'orders'] }, 404, 'TOPIC_NOT_FOUND')
    for (const body of [
      {},
      { topics: 'orders' },
      { topics: [1] },
      { topics: ['orders'], member_id: 7 },
      { topics: null }
    ])
      await refused(body, 400, 'FIELD_INVALID')
    assertRefused(await api.get('/groups/g/assignment?member_id=nobody'), 404, 'MEMBER_NOT_FOUND')
    assertRefused(await api.get('/groups/nobody/assignment?member_id=nobody'), 404, 'GROUP_NOT_FOUND')
    assertRefused(await api.get('/groups/g/assignment'), 400, 'FIELD_INVALID', ['member_id'])
    for (const body of [
      {},
      { member_id: 'x' },
      { member_id: 'x', generation: -1 },
      { member_id: 'x', generation: 1.5 }
    ])
      assertRefused(await api.post('/groups/g/heartbeat', body), 400, 'FIELD_INVALID')
    assertRefused(await api.post('/groups/g/leave', {}), 400, 'FIELD_INVALID')
  })
  await t.test('an empty member id is as good as none', async () => {
    assert.match((await join(api, 'other', ['orders'], '')).member_id, /^m_/)
    assert.match((await join(api, 'other', ['orders'])).member_id, /^m_/)
  })
  await t.test('a deleted topic stays assigned until the next change of the group', async () => {
    await api.call('DELETE', '/topics/billing')
    assert.deepEqual(partitionsOf(await assignmentOf(a)), all)
    await join(api, 'g', ['orders'], 'c')
    const both = [...partitionsOf(await assignmentOf(a)), ...partitionsOf(await assignmentOf('c'))]
    assert.deepEqual(both.sort(), all.slice(2))
  })
})

onBothEngines(
  'a member that is silent is removed, and the group rebalances; one that sends heartbeats stays',
  async (_, api) => {
    await api.createTopic('orders', 4)
    await join(api, 'g', ['orders'], 'silent')
    const kept = await join(api, 'g', ['orders'], 'kept')
    assert.equal(kept.assignment.length, 2)
    const startMs = performance.now()
    await waitFor('the eviction', async () => {
      const answer = await heartbeat(api, 'g', 'kept', kept.generation)
      if (answer.includes('"ok"')) return undefined
      assert.equal(answer, '{"status":"rebalance_required","current_generation":3}')
      return true
    })
    const ms = performance.now() - startMs
    // After the time-out, at the next look, which is every 2 s.
    assert.ok(ms > 350 && ms < 5000, `after ${ms} ms`)
    const { assignment } = parse<Joined>(await api.get('/groups/g/assignment?member_id=kept'))
    assert.equal(assignment.length, 4)
    assert.equal(await heartbeat(api, 'g', 'silent', 2), '{"status":"unknown_member","current_generation":3}')
  },
  { flags: { '--coord-member-timeout': '500ms' } }
)

interface Described {
  readonly group: string
  readonly owner: string
  readonly kind: string | null
  readonly generation: number
  readonly members: readonly {
    readonly member_id: string
    readonly topics: string[]
    readonly partition_count: number
  }[]
  readonly lag_records: number | null
  readonly lag_seconds: number | null
}

onBothEngines('groups are listed with members, generation and lag', async (_, api) => {
  assert.equal((await api.get('/groups')).text, '{"groups":[]}')
  assertRefused(await api.get('/groups/g'), 404, 'GROUP_NOT_FOUND')
  await api.createTopic('orders', 3)
  const producedMs = Date.now()
  await api.produce(
    'orders',
    Array.from({ length: 9 }, (_, i) => ({ value: 'v', partition: i % 3 }))
  )
  await join(api, 'g', ['orders'], 'm')
  for (const partition of [0, 1, 2]) await commit(api, 'g', 'orders', partition, partition + 1)
  await commit(api, 'idle', 'orders', 0, 3)
  await commit(api, 'ahead', 'orders', 0, 2n ** 64n - 1n)
  const { groups } = parse<{ groups: Described[] }>(await api.get('/groups'))
  const agedSeconds = (Date.now() - producedMs) / 1000
  const none = {
    kind: null,
    state: 'Empty',
    generation: 0,
    members: [],
    lag_records: 0,
    lag_seconds: 0,
    owner: 'anonymous'
  }
  const member = { member_id: 'm', topics: ['orders'], partition_count: 3 }
  const [g] = groups
  assert.deepEqual(groups, [
    {
      group: 'g',
      owner: 'anonymous',
      kind: 'http',
      state: 'Stable',
      generation: 1,
      members: [member],
      lag_records: 3,
      lag_seconds: g?.lag_seconds
    },
    { ...none, group: 'idle' },
    { ...none, group: 'ahead' }
  ])
  const { lag_seconds: seconds = null } = g ?? {}
  assert.ok(seconds !== null && seconds >= 0 && seconds <= agedSeconds + 0.01, `${seconds} of ${agedSeconds} s`)
  const one = parse<Described>(await api.get('/groups/g'))
  assert.deepEqual({ ...one, lag_seconds: null }, { ...g, lag_seconds: null })
  await commit(api, 'g', 'orders', 0, 3)
  await commit(api, 'g', 'orders', 1, 3)
  const done = parse<Described>(await api.get('/groups/g'))
  assert.deepEqual([done.lag_records, done.lag_seconds], [0, 0])
})

onBothEngines('a group is deleted once it has no members', async (_, api) => {
  await api.createTopic('orders', 2)
  await join(api, 'g', ['orders'], 'm')
  await commit(api, 'g', 'orders', 0, 5)
  assertRefused(await api.call('DELETE', '/groups/g'), 409, 'GROUP_NOT_EMPTY', [
    '1 member(s)',
    '--coord-member-timeout'
  ])
  await api.post('/groups/g/leave', { member_id: 'm' })
  const deleted = await api.call('DELETE', '/groups/g')
  assert.deepEqual([deleted.status, deleted.text], [204, ''])
  assertRefused(await api.call('DELETE', '/groups/g'), 404, 'GROUP_NOT_FOUND')
  assert.equal(await offsetsOf(api, 'g'), '{"offsets":{}}')
  assert.equal(await heartbeat(api, 'g', 'm', 1), '{"status":"unknown_member","current_generation":0}')
  assert.equal((await join(api, 'g', ['orders'], 'm')).generation, 1, 'a group of that name begins anew')
})

onBothEngines('a group is reset to the beginning, the end, or a time', async (_, api) => {
  await api.createTopic('orders', 2)
  await api.produce(
    'orders',
    ['a', 'b'].map(value => ({ value, partition: 1 }))
  )
  const reset = async (body: object): Promise<string> => {
    const answer = await api.post('/groups/g/reset', body)
    assert.equal(answer.status, 200, answer.text)
    return answer.text
  }
  assert.equal(await reset({ topic: 'orders', to: 'latest' }), '{"offsets":{"orders":{"0":0,"1":2}}}')
  assert.equal(await reset({ topic: 'orders', partition: 1, to: 'earliest' }), '{"offsets":{"orders":{"0":0,"1":0}}}')
  const { records } = await api.consume('orders', 1, 'offset=0')
  const atMs = records[0]?.timestamp_ms ?? 0
  assert.equal(
    await reset({ topic: 'orders', to: { timestamp_ms: atMs + 60_000 } }),
    '{"offsets":{"orders":{"0":0,"1":2}}}'
  )
  assert.equal(await reset({ topic: 'orders', to: { timestamp_ms: atMs } }), '{"offsets":{"orders":{"0":0,"1":0}}}')
  assert.equal(
    (await api.post('/groups/g/reset', '{"topic":"orders","to":{"timestamp_ms":18446744073709551615}}')).text,
    '{"offsets":{"orders":{"0":0,"1":2}}}'
  )
  for (const to of [undefined, null, 'first', 7, {}, { timestamp_ms: 1.5 }, { timestamp_ms: '1' }, ['latest']])
    assertRefused(await api.post('/groups/g/reset', { topic: 'orders', to }), 400, 'FIELD_INVALID', ['to'])
  assertRefused(await api.post('/groups/g/reset', { topic: 'nothing', to: 'latest' }), 404, 'TOPIC_NOT_FOUND')
  assertRefused(
    await api.post('/groups/g/reset', { topic: 'orders', partition: 2, to: 'latest' }),
    400,
    'PARTITION_RANGE'
  )
  assertRefused(await api.post('/groups/b!d/reset', { topic: 'orders', to: 'latest' }), 400, 'NAME_INVALID')
})

onBothEngines('reset-offsets moves what groups have of a topic to its beginning, and makes nothing', async (_, api) => {
  await api.createTopic('orders', 3)
  await api.createTopic('billing')
  await commit(api, 'a', 'orders', 0, 5)
  await commit(api, 'a', 'orders', 2, 6)
  await commit(api, 'a', 'billing', 0, 7)
  await commit(api, 'b', 'orders', 1, 8)
  await api.produce(
    'orders',
    ['a', 'b', 'c'].map(value => ({ value, partition: 2 }))
  )
  assert.equal((await api.post('/topics/orders/delete-records', { partition: 2, offset: 2 })).status, 200)
  const reset = await api.post('/admin/reset-offsets', { topic: 'orders' })
  assert.deepEqual([reset.status, reset.text], [200, '{"groups_affected":2,"entries_reset":3}'])
  assert.equal(await offsetsOf(api, 'a'), '{"offsets":{"billing":{"0":7},"orders":{"0":0,"2":2}}}')
  assert.equal(await offsetsOf(api, 'b'), '{"offsets":{"orders":{"1":0}}}')
  assertRefused(await api.post('/admin/reset-offsets', { topic: 'nothing' }), 404, 'TOPIC_NOT_FOUND')
  assertRefused(await api.post('/admin/reset-offsets', {}), 400, 'FIELD_INVALID', ['topic'])
})
