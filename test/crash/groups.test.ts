/**
 * What a broker knows of consumer groups when it starts again: after kill −9 all but the commits of the last second, after
 * SIGTERM every one; and always which groups there are.
 */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import { spawnBroker, waitFor, type SpawnedBroker, type Variant } from '../support/broker.ts'
import { isLong, seed } from '../support/crash-run.ts'
import { flipIn } from '../support/flip-bytes.ts'
import { HttpApi, parse } from '../support/http-api.ts'
import { diceOf, replayLine } from '../support/log-random.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

const FILE = 'test/crash/groups.test.ts'
const ROUNDS = isLong ? 40 : 3
const PARTITIONS = 5
const COMMITTERS = 6
/** What kill −9 may take (seed). */
const LOSS_MAX_MS = 1000

interface Commit {
  readonly offset: number
  /** When it was answered. */
  readonly ackedMs: number
}

/** Commits ever greater offsets, one after the other, until the broker is gone. */
class Committer {
  readonly group: string
  readonly partition: number
  readonly acked: Commit[] = []
  sent = 0
  /** The longest that an answer took: what the machine stalled. */
  longestMs = 0

  constructor(number: number) {
    this.group = `group-${number % 4}`
    this.partition = number % PARTITIONS
  }

  async run(api: HttpApi, isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      const offset = ++this.sent
      const startMs = performance.now()
      const body = { topic: 'orders', partition: this.partition, offset }
      const answer = await api.post(`/groups/${this.group}/commit`, body).catch(() => null)
      // It is gone, or going.
      if (answer === null || answer.status === 503) return
      assert.equal(answer.status, 204, answer.text)
      const ackedMs = performance.now()
      this.longestMs = Math.max(this.longestMs, ackedMs - startMs)
      this.acked.push({ offset, ackedMs })
    }
  }

  async found(api: HttpApi): Promise<number> {
    const { offsets } = parse<{ offsets: { orders?: Record<string, number> } }>(
      await api.get(`/groups/${this.group}/offsets`)
    )
    return offsets.orders?.[this.partition] ?? 0
  }
}

/** Commits for some time, ends the broker by a signal, starts it again. @returns it, and how old the oldest lost commit was. */
async function endAmidCommits(
  t: Parameters<typeof spawnBroker>[0],
  broker: SpawnedBroker,
  committers: readonly Committer[],
  { signal, ms, variant }: { signal: NodeJS.Signals; ms: number; variant: Variant }
): Promise<{ next: SpawnedBroker; lostMs: number; lost: number }> {
  let isOver = false
  for (const committer of committers) committer.longestMs = 0
  const running = committers.map(committer => committer.run(new HttpApi(broker.url), () => isOver))
  const endMs = performance.now() + ms
  await waitFor(
    'commits',
    () => performance.now() >= endMs && committers.every(({ acked }) => acked.length > 0),
    30_000
  )
  const killedMs = performance.now()
  const { code } = await broker.kill(signal)
  if (signal === 'SIGTERM') assert.equal(code, 0)
  isOver = true
  await Promise.all(running)
  const next = await spawnBroker(t, { dataDir: broker.dataDir, variant })
  const api = new HttpApi(next.url)
  let lostMs = 0
  let lost = 0
  for (const committer of committers) {
    const found = await committer.found(api)
    assert.ok(found <= committer.sent, `${found} was never committed`)
    const missing = committer.acked.filter(({ offset }) => offset > found)
    lost += missing.length
    for (const { ackedMs } of missing) lostMs = Math.max(lostMs, killedMs - ackedMs)
    // From here on it is what was committed.
    committer.acked.length = 0
    committer.sent = found
  }
  return { next, lostMs, lost }
}

describe('commits of consumer groups', () => {
  for (const variant of [
    { engine: 'uws', shards: 3 },
    { engine: 'node', shards: 1 }
  ] satisfies Variant[]) {
    it(`lose at most the last second to kill −9, and nothing to SIGTERM (${variant.engine}, ${variant.shards} shard(s))`, async t => {
      t.diagnostic(replayLine(seed, FILE))
      const dice = diceOf(seed + variant.shards)
      const dataDir = temporaryDirectory(t)
      let broker = await spawnBroker(t, { dataDir, variant })
      const api = new HttpApi(broker.url)
      await api.createTopic('orders', PARTITIONS)
      parse(await api.post('/groups/only-joined/join', { topics: ['orders'] }))
      const committers = Array.from({ length: COMMITTERS }, (_, number) => new Committer(number))
      for (let round = 0; round < ROUNDS; round++) {
        const stage = { signal: 'SIGKILL', ms: 900 + dice.below(1500), variant } as const
        const { next, lostMs, lost } = await endAmidCommits(t, broker, committers, stage)
        const stallMs = Math.max(...committers.map(({ longestMs }) => longestMs))
        t.diagnostic(
          `kill −9: ${lost} commits lost, the oldest ${lostMs.toFixed(0)} ms old; longest answer ${stallMs.toFixed(0)} ms`
        )
        assert.ok(lostMs <= LOSS_MAX_MS + stallMs, `a commit of ${lostMs} ms before the kill is lost`)
        broker = next
      }
      const { groups } = parse<{ groups: { group: string; owner: string; generation: number }[] }>(
        await new HttpApi(broker.url).get('/groups')
      )
      assert.deepEqual(
        groups.map(({ group, owner, generation }) => [group, owner, generation]).sort(),
        ['group-0', 'group-1', 'group-2', 'group-3', 'only-joined'].map(group => [group, 'anonymous', 0]),
        'groups are known, also one that was only joined; members are not'
      )
      const { next, lost } = await endAmidCommits(t, broker, committers, { signal: 'SIGTERM', ms: 300, variant })
      assert.equal(lost, 0, 'SIGTERM took commits')
      await next.kill('SIGTERM')
    })
  }

  it('leave a group to the key that made it although kill −9 came right after', async t => {
    const broker = await spawnBroker(t)
    const api = new HttpApi(broker.url)
    await api.createTopic('orders')
    const names = Array.from({ length: 20 }, (_, i) => `g${i}`)
    await Promise.all(
      names.map(async name => {
        assert.equal(
          (await api.post(`/groups/${name}/commit`, { topic: 'orders', partition: 0, offset: 1 })).status,
          204
        )
      })
    )
    await broker.kill('SIGKILL')
    const next = await spawnBroker(t, { dataDir: broker.dataDir })
    const { groups } = parse<{ groups: { group: string }[] }>(await new HttpApi(next.url).get('/groups'))
    assert.deepEqual(groups.map(({ group }) => group).sort(), names.sort())
  })

  it('go back to the end of a log that a start had to cut, with a line in the log', async t => {
    const variant = { engine: 'uws', shards: 1 } as const
    const broker = await spawnBroker(t, { variant })
    const api = new HttpApi(broker.url)
    await api.createTopic('orders', 2)
    for (const value of ['first', 'second', 'to be torn']) await api.produce('orders', [{ value, partition: 1 }])
    for (const [group, offset] of [
      ['done', 3],
      ['behind', 1]
    ] as const)
      assert.equal((await api.post(`/groups/${group}/commit`, { topic: 'orders', partition: 1, offset })).status, 204)
    await waitFor('the commits are stored', () => storedOffsets(broker.dataDir) === 2)
    await broker.kill('SIGKILL')
    // As if the last write had not reached the disk whole: nothing behind it says that it was synced.
    flipIn(join(broker.dataDir, 'journal', '000'), 'to be torn')

    const next = await spawnBroker(t, { dataDir: broker.dataDir, variant })
    const after = new HttpApi(next.url)
    assert.deepEqual(await after.ends('orders'), [0, 2])
    assert.equal((await after.get('/groups/done/offsets')).text, '{"offsets":{"orders":{"1":2}}}')
    assert.equal((await after.get('/groups/behind/offsets')).text, '{"offsets":{"orders":{"1":1}}}')
    const line = await next.waitForLog(({ msg }) => String(msg).startsWith('a committed offset was beyond the end'))
    const { group, topic, partition, committed, latest } = line
    assert.deepEqual([group, topic, partition, committed, latest], ['done', 'orders', 1, '3', 2])
    await after.produce('orders', [{ value: 'in its place', partition: 1 }])
    const read = parse<{ records: { value: string }[] }>(
      await after.get('/groups/done/consume?topic=orders&partition=1')
    )
    assert.deepEqual(
      read.records.map(({ value }) => value),
      ['in its place']
    )
  })
})

/** Rows of committed offsets that a running broker has stored by now. */
function storedOffsets(dataDir: string): number {
  const store = new DatabaseSync(join(dataDir, 'store.db'), { readOnly: true })
  try {
    return Number(store.prepare('SELECT count(*) AS count FROM group_offsets').get()?.['count'])
  } finally {
    store.close()
  }
}
