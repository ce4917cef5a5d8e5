/** Whose a group and its members are, with real keys, over a restart (spec 6, 7). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makeTestKey, startGuarded } from '../support/access.ts'
import { startBroker } from '../support/broker.ts'
import { assertRefused, HttpApi, parse } from '../support/http-api.ts'

test('groups and members belong to their keys', async t => {
  const { broker, admin } = await startGuarded(t)
  await admin.api.createTopic('orders', 2)
  const [mine, theirs] = [await makeTestKey(admin.api, 'read:orders'), await makeTestKey(admin.api, 'read:orders')]
  const commit = { topic: 'orders', partition: 0, offset: 5 }
  const join = (member: string) => ({ topics: ['orders'], member_id: member })
  const statusOf = async (api: HttpApi, path: string, body: object): Promise<number> =>
    (await api.post(path, body)).status

  await t.test('a member is bound to the key that made it, and admin may act for it', async () => {
    assert.equal(await statusOf(mine.api, '/groups/committed/commit', commit), 204)
    assert.equal(await statusOf(mine.api, '/groups/joined/join', join('mine')), 200)
    assert.equal(await statusOf(admin.api, '/groups/joined/join', join('made-by-admin')), 200)
    const owned = { member_id: 'made-by-admin', generation: 2 }
    for (const [path, body] of [
      ['join', join('made-by-admin')],
      ['heartbeat', owned],
      ['leave', owned]
    ] as const)
      assertRefused(await mine.api.post(`/groups/joined/${path}`, body), 403, 'MEMBER_OWNED', ['made-by-admin'])
    assertRefused(await mine.api.get('/groups/joined/assignment?member_id=made-by-admin'), 403, 'MEMBER_OWNED')
    assert.equal(await statusOf(admin.api, '/groups/joined/heartbeat', { member_id: 'mine', generation: 2 }), 200)
  })

  await broker.stop()
  const again = await startBroker(t, { dataDir: broker.dataDir, flags: { '--auth': 'required' } })
  const [my, their, all] = [mine, theirs, admin].map(({ secret }) => new HttpApi(again.url, secret))
  assert.ok(my !== undefined && their !== undefined && all !== undefined)

  await t.test('a group stays with the key that committed or joined first, also over a restart', async () => {
    for (const group of ['committed', 'joined']) {
      assertRefused(await their.post(`/groups/${group}/commit`, commit), 403, 'GROUP_OWNED', [group])
      assertRefused(await their.post(`/groups/${group}/join`, join('x')), 403, 'GROUP_OWNED')
      assert.equal((await all.get(`/groups/${group}/offsets`)).status, 200)
    }
    assert.equal((await my.get('/groups/committed/offsets')).text, '{"offsets":{"orders":{"0":5}}}')
    assert.equal(await statusOf(my, '/groups/joined/commit', commit), 204)
    const { groups } = parse<{ groups: { group: string; owner: string }[] }>(await my.get('/groups'))
    assert.deepEqual(
      groups.map(({ group, owner }) => [group, owner]),
      ['committed', 'joined'].map(group => [group, mine.id])
    )
  })

  await t.test('members and generations end with the broker: all join again, and begin with 1', async () => {
    const heartbeat = await my.post('/groups/joined/heartbeat', { member_id: 'mine', generation: 2 })
    assert.equal(heartbeat.text, '{"status":"unknown_member","current_generation":0}')
    const { generation } = parse<{ generation: number }>(await my.post('/groups/joined/join', join('mine')))
    assert.equal(generation, 1)
  })
})
