/**
 * A broker killed, or refused by its disk, at each step of settling, compaction and removal: nothing acknowledged is lost
 * or doubled, and settling is tried again until it succeeds. Faults are armed in the settler thread of a child broker.
 * A normal run takes some of the steps, which its seed chooses; MILLRACE_LONG=1 takes all of them.
 */
import assert from 'node:assert/strict'
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { describe, it, type TestContext } from 'node:test'
import { spawnBroker, waitFor, type SpawnedBroker } from '../support/broker.ts'
import { sampleOf, seed } from '../support/crash-run.ts'
import { HttpApi } from '../support/http-api.ts'
import { replayLine } from '../support/log-random.ts'

const replay = replayLine(seed, 'test/crash/settle-faults.test.ts')

const oneShard = { engine: 'uws', shards: 1 } as const
const flags = {
  '--settle-idle': '50ms',
  '--settle-age': '50ms',
  '--segment-delete-grace': '10ms',
  '--log-level': 'debug'
}
const TINY_PARTITIONS = 8

interface Acked {
  readonly topic: string
  readonly partition: number
  readonly offset: number
  readonly value: string
}

/** Writes until the first slots are sealed, and on until `isOver`; what was acknowledged is noted. */
async function write(api: HttpApi, acked: Acked[], isOver: () => boolean): Promise<void> {
  for (let round = 0; round < 400 && !isOver(); round++) {
    const solo = Array.from({ length: 8 }, (_, i) => ({ value: `s${round}.${i}:`.padEnd(20_000, 'x'), partition: 0 }))
    const tiny = Array.from({ length: TINY_PARTITIONS }, (_, partition) => ({
      key: `k${round % 3}`,
      value: `t${round}.${partition}:`.padEnd(300, 'y'),
      partition
    }))
    for (const [topic, records] of [
      ['solo', solo],
      ['tiny', tiny]
    ] as const) {
      const results = await api.produce(topic, records).catch(() => null)
      if (results === null) return
      results.forEach(({ partition, offset }, i) =>
        acked.push({ topic, partition, offset, value: records[i]?.value ?? '' })
      )
    }
  }
}

async function readAll(api: HttpApi): Promise<Map<string, string>> {
  const found = new Map<string, string>()
  const read = async (topic: string, partition: number): Promise<void> => {
    const records = await api.consumeAll(topic, partition)
    records.forEach(({ offset, value }, i) => {
      assert.equal(offset, i, 'offsets follow each other')
      found.set(`${topic}/${partition}/${offset}`, value)
    })
  }
  await read('solo', 0)
  for (let partition = 0; partition < TINY_PARTITIONS; partition++) await read('tiny', partition)
  return found
}

async function assertWhole(broker: SpawnedBroker, acked: readonly Acked[]): Promise<void> {
  const found = await readAll(new HttpApi(broker.url))
  for (const { topic, partition, offset, value } of acked) {
    assert.equal(found.get(`${topic}/${partition}/${offset}`), value, `${topic}/${partition} offset ${offset}`)
  }
}

async function start(t: TestContext, faults: string | null, dataDir?: string): Promise<SpawnedBroker> {
  const env = faults === null ? {} : { MILLRACE_FAULTS: faults }
  return spawnBroker(t, { variant: oneShard, flags, env, ...(dataDir === undefined ? {} : { dataDir }) })
}

async function createTopics(api: HttpApi): Promise<void> {
  await api.createTopic('solo', 1, { segment_bytes: 600_000 })
  await api.createTopic('tiny', TINY_PARTITIONS)
}

function isSettled({ dataDir }: SpawnedBroker): boolean {
  return existsSync(`${dataDir}/journal/000/manifest`) && existsSync(`${dataDir}/topics`)
}

const killPoints = [
  'segment.directory:1=kill',
  'segment.create:1=kill',
  'segment.create:1=kill-after',
  'segment.write:1=short-kill',
  'segment.truncate:1=kill',
  'segment.sync:1=kill',
  'segment.sync:3=kill-after',
  'pack.create:1=kill',
  'pack.write:1=short-kill',
  'pack.sync:1=kill',
  'segment.directory-sync:1=kill',
  'manifest.write:2=short-kill',
  'manifest.sync:1=kill',
  'manifest.rename:1=kill',
  'manifest.rename:1=kill-after',
  'manifest.directory-sync:1=kill',
  'manifest.directory-sync:1=kill-after'
]

describe('a broker killed in the middle of settling', () => {
  for (const fault of sampleOf(killPoints, 6)) {
    it(`(${fault}) has everything that was acknowledged, and settles it at the next start`, async t => {
      t.diagnostic(replay)
      const broker = await start(t, `settler/${fault}`)
      const api = new HttpApi(broker.url)
      await createTopics(api)
      const acked: Acked[] = []
      const { child } = broker
      const isDead = (): boolean => child.exitCode !== null || child.signalCode !== null
      await write(api, acked, isDead)
      await waitFor('the kill', isDead, 20_000)
      assert.equal(child.signalCode, 'SIGKILL')
      assert.ok(acked.length > 0)
      const next = await start(t, null, broker.dataDir)
      await assertWhole(next, acked)
      await waitFor('settling at the next start', () => isSettled(next), 20_000)
      await assertWhole(next, acked)
      assert.equal((await next.kill('SIGTERM')).code, 0)
    })
  }
})

const refusals = [
  // Of the first records: a footer that cannot be read is made up for by the groups.
  'slot.read:3=EIO',
  'segment.create:1=EMFILE',
  'segment.create:1=EINVAL',
  'segment.write:1=ENOSPC',
  'segment.write:1=short-EIO',
  'segment.sync:1=EIO',
  'segment.directory-sync:1=EIO',
  'pack.write:1=short-ENOSPC',
  'pack.sync:1=EIO',
  'manifest.write:1=ENOSPC',
  'manifest.sync:1=EIO',
  'manifest.rename:1=EACCES',
  'manifest.directory-sync:1=EIO'
]

describe('a disk that refuses a step of settling', { concurrency: 2 }, () => {
  // First, and beside the others: it mostly waits for the next try.
  it('for ever costs the records in that place, which are named, and nothing else: all around it is settled', async t => {
    // The job reads tail and footer of one slot, then all records at once; the one that gives up reads them alone.
    const faults = ['slot.read:3=EIO', 'slot.read:6=EIO', 'slot.read:9=EIO', 'slot.read:12-15=EIO']
    const broker = await spawnBroker(t, {
      variant: oneShard,
      // Asking each second what to compact keeps the thread, and with it the faults.
      flags: { ...flags, '--settle-idle': '1h', '--settle-age': '1h', '--compaction-check-interval': '1s' },
      env: { MILLRACE_FAULTS: `settler/${faults.join(',')}` }
    })
    const api = new HttpApi(broker.url)
    await api.createTopic('keyed', 2, { cleanup_policy: 'compact' })
    for (let i = 0; i < 4; i++)
      await api.produce(
        'keyed',
        [0, 1].map(n => ({ key: `k${i}.${n}`, value: `v${i}.${n}`, partition: 1 }))
      )
    assert.equal((await api.post('/admin/run-compaction', {})).status, 503)
    // It waits 1, 5 and 30 s between its tries.
    const said = await broker.waitForLog(line => /could not be read while settling/.test(String(line['msg'])), 60_000)
    const { level, topic, partition, first, last } = said
    assert.deepEqual([level, topic, partition, first, last], ['error', 'keyed', 1, 0, 1])
    const failed = broker.logs.filter(line => /could not be settled/.test(String(line['msg'])))
    assert.equal(failed.length, 3)
    assert.match((await api.get('/healthz')).text, /"troubles":\["shard 0 put 1 damaged or unreadable range/)
    const assertLost = async (reader: HttpApi): Promise<void> => {
      const answer = await reader.consume('keyed', 1, 'offset=0')
      assert.deepEqual(answer.skipped, { requested: 0, earliest: 2, latest: 8 })
      assert.deepEqual(
        answer.records.map(({ value }) => value),
        ['v1.0', 'v1.1', 'v2.0', 'v2.1', 'v3.0', 'v3.1']
      )
    }
    await assertLost(api)
    await broker.kill('SIGKILL')
    const next = await start(t, null, broker.dataDir)
    await assertLost(new HttpApi(next.url))
    assert.equal((await next.kill('SIGTERM')).code, 0)
  })

  for (const fault of sampleOf(refusals, 5)) {
    it(`(${fault}) costs no record: produce goes on, and settling is tried again until it succeeds`, async t => {
      t.diagnostic(replay)
      const broker = await start(t, `settler/${fault}`)
      const api = new HttpApi(broker.url)
      await createTopics(api)
      const acked: Acked[] = []
      await write(api, acked, () => isSettled(broker))
      // EINVAL only says that files cannot bypass the page cache.
      if (!fault.endsWith('EINVAL'))
        await broker.waitForLog(line => /could not be settled/.test(String(line['msg'])), 20_000)
      await waitFor('settling after the refusal', () => isSettled(broker), 20_000)
      await assertWhole(broker, acked)
      await broker.kill('SIGKILL')
      const next = await start(t, null, broker.dataDir)
      await assertWhole(next, acked)
      // What the start itself settles is unfinished for a moment.
      const hasUnfinished = (): boolean => readdirSync(`${next.dataDir}/journal/000`).includes('manifest.new')
      await waitFor('nothing unfinished to be left', () => !hasUnfinished(), 20_000)
    })
  }
})

describe('a compaction that is committed without the shard being told', () => {
  // The settler reads the manifest, commits what was in slots, then the compaction: the third sync.
  for (const fault of ['EIO', 'bug']) {
    it(`(the commit ends with ${fault}) is told by the next settler, before the files of before it go`, async t => {
      const broker = await spawnBroker(t, {
        variant: oneShard,
        flags: { ...flags, '--settle-idle': '1h', '--settle-age': '1h', '--compaction-check-interval': '1h' },
        env: { MILLRACE_FAULTS: `settler/manifest.directory-sync:3=${fault}` }
      })
      const api = new HttpApi(broker.url)
      const value = (i: number): string => `${i}:`.padEnd(5000, 'x')
      await api.createTopic('keyed', 1, { cleanup_policy: 'compact', segment_bytes: 200_000 })
      await api.createTopic('other')
      for (let i = 0; i < 100; i++) await api.produce('keyed', [{ key: `k${i % 3}`, value: value(i) }])
      const refused = await api.post('/admin/run-compaction', {})
      assert.equal(refused.status, 503, refused.text)
      // The thread that knows ends by itself when it has nothing to do.
      await waitFor('the end of the settler', () => !threadsOf(broker.child.pid ?? 0).includes('settler'), 20_000)
      await api.produce('other', [{ value: 'v' }])
      assert.equal((await api.post('/admin/run-compaction', {})).status, 204)
      const old = `${broker.dataDir}/topics/keyed~1/0/00000000000000000000.log`
      await waitFor('the removal of what was compacted', () => !existsSync(old), 20_000)
      const records = await api.consumeAll('keyed', 0)
      assert.ok(records.length < 50, `${records.length} records: the compaction counts`)
      for (const record of records) assert.equal(record.value, value(record.offset))
      assert.equal(records.at(-1)?.offset, 99)
      assert.equal((await broker.kill('SIGTERM')).code, 0)
    })
  }
})

/** Names of the threads of a process. */
function threadsOf(pid: number): string[] {
  const directory = `/proc/${pid}/task`
  return readdirSync(directory).map(thread => {
    try {
      return readFileSync(`${directory}/${thread}/comm`, 'utf8').trim()
    } catch {
      // It ended meanwhile.
      return ''
    }
  })
}
