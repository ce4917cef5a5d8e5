/**
 * A disk that refuses: after a failed sync or a failing device nothing is acknowledged until the shard has come back
 * through recovery; a full disk refuses cleanly, is read meanwhile, and is written again by itself when there is room.
 * The faults are armed in a child broker by MILLRACE_FAULTS at the n-th call of a point.
 */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { describe, it, type TestContext } from 'node:test'
import { connectEs01, Es01Error, type Es01Client } from '../../src/client/es01/client.ts'
import type { ErrorCode } from '../../src/model/errors.ts'
import { spawnBroker, waitFor, type SpawnedBroker } from '../support/broker.ts'
import { CrashLoad, createTopics, postJson, readTopics, type LoadTopic } from '../support/crash-load.ts'
import { seed } from '../support/crash-run.ts'
import { HttpApi, parseError } from '../support/http-api.ts'
import { judge, makeValue, type PartitionContents } from '../support/history.ts'
import { replayLine } from '../support/log-random.ts'
import { failToStart, smallFlags } from '../support/start-failure.ts'

const FILE = 'test/crash/disk-faults.test.ts'
const oneShard = { engine: 'uws', shards: 1 } as const
const topics: readonly LoadTopic[] = [{ name: 'alpha', partitions: 3 }]

/** Loads until the fault has struck and records are acknowledged again; judges before and after a kill −9. */
async function loadThrough(
  t: TestContext,
  faults: string,
  hasStruck: (load: CrashLoad, broker: SpawnedBroker) => boolean
): Promise<CrashLoad> {
  t.diagnostic(replayLine(seed, FILE))
  const broker = await spawnBroker(t, { variant: oneShard, env: { MILLRACE_FAULTS: faults } })
  await createTopics(broker, topics)
  const load = await CrashLoad.start(broker, {
    seed,
    label: 'f',
    topics,
    es01Producers: 2,
    inFlight: 4,
    httpProducers: 2,
    hasReaders: true,
    scattered: 0.3
  })
  await waitFor('the fault', () => hasStruck(load, broker), 20_000)
  const before = load.acks.length
  await waitFor('acknowledgements after the fault', () => load.acks.length > before + 50, 20_000)
  await load.stop()
  const running = await readTopics(broker, topics)
  assert.deepEqual(judge(load.sent, running, load.read).anomalies, [])
  await broker.kill('SIGKILL')
  const next = await spawnBroker(t, { dataDir: broker.dataDir, variant: oneShard })
  const verdict = judge(
    load.sent,
    await readTopics(next, topics),
    running.flatMap((part: PartitionContents) => part.records)
  )
  assert.deepEqual(verdict.anomalies, [])
  t.diagnostic(
    `${verdict.acked} records acked, 0 lost; ${verdict.unknown} unknown, ${verdict.unknownFound} of them in the log; ${verdict.refused} refused`
  )
  return load
}

describe('a device that fails under load', () => {
  // The first slot is of 1 MiB: its end, and the second slot, come soon.
  const failures = [
    'group.sync:100=EIO',
    'group.sync:100=ENOSPC',
    'group.write:100=EIO',
    'group.write:100=short-EIO',
    'slot.footer-sync:1=EIO',
    'slot.header-sync:2=EIO',
    'journal.directory-sync:5+=EIO'
  ]
  for (const fault of failures) {
    it(`(${fault}) stops the acks until the shard has recovered; nothing acknowledged is lost`, async t => {
      const load = await loadThrough(t, `0/${fault}`, (_, broker) =>
        broker.logs.some(line => line['msg'] === 'shard ended')
      )
      const failed = load.refusals.filter(
        ({ text }) => text === 'WRITE_FAILED' || /^internal error \(id [0-9a-f]{8}\) \(written: unknown\)$/.test(text)
      )
      assert.ok(failed.length > 0, 'the requests of the failed group were told so')
      assert.ok(
        failed.every(({ told }) => told === 'unknown'),
        'and that their outcome is unknown'
      )
      for (const { protocol, status } of failed) assert.equal(status, protocol === 'http' ? 500 : 0)
    })
  }
})

describe('a disk that is full for a while under load', () => {
  for (const fault of [
    'group.write:100-120=ENOSPC',
    'group.write:100-105=short-ENOSPC',
    'slot.create:2-20=ENOSPC',
    'slot.header-write:2-9=ENOSPC'
  ]) {
    it(`(${fault}) refuses what it cannot take, keeps the rest, and goes on by itself`, async t => {
      const isFull = ({ text }: { text: string }): boolean =>
        text === 'DISK_FULL' || /^unavailable: the disk .* is full/.test(text)
      const load = await loadThrough(t, `0/${fault}`, ({ refusals }) => refusals.some(isFull))
      assert.deepEqual(
        load.refusals.filter(refusal => !isFull(refusal)),
        [],
        'nothing else was refused: the shard stayed up'
      )
      for (const { protocol, status, told } of load.refusals) {
        if (protocol === 'http') assert.deepEqual([status, told], [507, 'refused'])
      }
    })
  }
})

/** One record over HTTP; what the caller sees. */
async function produceHttp(broker: SpawnedBroker, id: string): Promise<readonly unknown[]> {
  const body = JSON.stringify({ records: [{ value: makeValue(id, 40), partition: 0 }] })
  const answer = await postJson(`${broker.url}/topics/alpha/produce`, body)
  const { code, written, results } = answer.body as { code?: string; written?: string; results?: { offset: number }[] }
  return answer.status === 200 ? [200, results?.[0]?.offset] : [answer.status, code, written]
}

/** One record over ES01: its offset, or the text of the error frame. */
async function produceEs01(client: Es01Client, id: string): Promise<number | string> {
  try {
    const [result] = await client.produce('alpha', [{ value: makeValue(id, 40), partition: 0 }])
    return result?.offset ?? -1
  } catch (error) {
    if (error instanceof Es01Error && error.kind === 'refused') return error.message
    throw error
  }
}

describe('a full disk, one request after the other', () => {
  it('answers 507 DISK_FULL and an error frame, written no; serves reads; takes the next record when there is room', async t => {
    // A request makes one group each, so calls of group.write are requests.
    const broker = await spawnBroker(t, { variant: oneShard, env: { MILLRACE_FAULTS: '0/group.write:3-5=ENOSPC' } })
    await createTopics(broker, topics)
    const client = await connectEs01(broker.es01)
    t.after(() => client.destroy())
    const full = 'unavailable: the disk of the data directory is full; produce works again when there is room'
    assert.deepEqual(await produceHttp(broker, 'a'), [200, 0])
    assert.equal(await produceEs01(client, 'b'), 1)
    assert.deepEqual(await produceHttp(broker, 'c'), [507, 'DISK_FULL', 'no'])
    assert.equal(await produceEs01(client, 'd'), full)
    const [read] = await readTopics(broker, [{ name: 'alpha', partitions: 1 }])
    assert.deepEqual(
      read?.records.map(record => record.value),
      [makeValue('a', 40), makeValue('b', 40)]
    )
    assert.equal(
      (await fetch(`${broker.url}/readyz`)).status,
      200,
      'a full disk is no reason to send readers elsewhere'
    )
    assert.deepEqual(await produceHttp(broker, 'e'), [507, 'DISK_FULL', 'no'])
    assert.equal(await produceEs01(client, 'f'), 2)
    assert.deepEqual(await produceHttp(broker, 'g'), [200, 3])
    await client.close()

    assert.deepEqual(await broker.kill('SIGTERM'), { code: 0, signal: null })
    const next = await spawnBroker(t, { dataDir: broker.dataDir, variant: oneShard })
    const [after] = await readTopics(next, [{ name: 'alpha', partitions: 1 }])
    assert.deepEqual(
      after?.records.map(record => record.value),
      ['a', 'b', 'f', 'g'].map(id => makeValue(id, 40))
    )
  })
})

describe('a disk that refuses a read', () => {
  it('fails that read with READ_FAILED, is read again by the next, and stops nobody', async t => {
    const first = await spawnBroker(t, { variant: oneShard })
    await createTopics(first, topics)
    // Larger than a piece, so that reading one and then another asks the disk each time.
    const large = JSON.stringify({ records: [{ value: 'x'.repeat(300_000), partition: 0 }] })
    for (let i = 0; i < 3; i++) {
      assert.equal((await postJson(`${first.url}/topics/alpha/produce`, large)).status, 200)
    }
    await first.kill('SIGTERM')
    // After a restart nothing is in memory; the first calls of the point are those of the start.
    const broker = await spawnBroker(t, {
      dataDir: first.dataDir,
      variant: oneShard,
      env: { MILLRACE_FAULTS: '0/slot.read:6-7=EIO' }
    })
    const read = async (): Promise<string> => {
      const answer = await fetch(`${broker.url}/topics/alpha/consume?partition=0&offset=0&max_records=1`)
      const body = (await answer.json()) as { code?: string; records?: unknown[] }
      return answer.status === 200 ? `${body.records?.length} record` : `${answer.status} ${body.code}`
    }
    const refused: ErrorCode = 'READ_FAILED'
    const seen: string[] = []
    await waitFor('a read that fails and one that succeeds after it', async () => {
      seen.push(await read())
      await fetch(`${broker.url}/topics/alpha/consume?partition=0&offset=2&max_records=1`)
      return seen.includes(`503 ${refused}`) && seen.at(-1) === '1 record'
    })
    assert.deepEqual([...new Set(seen)].sort(), ['1 record', `503 ${refused}`])
    assert.deepEqual(await produceHttp(broker, 'after'), [200, 3])
    assert.equal(
      broker.logs.some(line => line['msg'] === 'shard ended'),
      false
    )
  })
})

describe('a journal that is to be settled while the disk refuses', () => {
  it('is answered with 507 where sealing its open slot finds no room; the shard goes on, and settles when there is', async t => {
    const faults = '0/slot.footer-write:1-2=ENOSPC'
    const broker = await spawnBroker(t, { variant: oneShard, env: { MILLRACE_FAULTS: faults } })
    const api = new HttpApi(broker.url)
    await api.createTopic('alpha', 1, { cleanup_policy: 'compact' })
    await api.produce('alpha', [{ key: 'k', value: 'a' }])
    for (const value of ['b', 'c']) {
      const refused = await api.post('/admin/run-compaction', {})
      assert.deepEqual([refused.status, parseError(refused, 507).code], [507, 'DISK_FULL'])
      await api.produce('alpha', [{ key: 'k', value }])
    }
    assert.equal((await api.post('/admin/run-compaction', {})).status, 204)
    await broker.kill('SIGKILL')
    assert.equal(
      broker.logs.some(line => line['msg'] === 'shard ended'),
      false
    )
    const next = await spawnBroker(t, { dataDir: broker.dataDir, variant: oneShard })
    assert.equal((await new HttpApi(next.url).consumeAll('alpha', 0)).at(-1)?.value, 'c')
  })

  it('keeps its shard though a file that is not needed any more cannot be removed, and removes it later', async t => {
    // The first slot is smaller than the others: it is not used again.
    const faults = '0/slot.remove:1-2=EACCES'
    const broker = await spawnBroker(t, { variant: oneShard, env: { MILLRACE_FAULTS: faults } })
    const api = new HttpApi(broker.url)
    const first = `${broker.dataDir}/journal/000/0001.slot`
    await api.createTopic('alpha', 1, { cleanup_policy: 'compact' })
    const seen: boolean[] = []
    for (let i = 0; i < 3; i++) {
      await api.produce('alpha', [{ key: `k${i}`, value: 'v' }])
      assert.equal((await api.post('/admin/run-compaction', {})).status, 204)
      seen.push(existsSync(first))
    }
    assert.deepEqual(seen, [true, true, false])
    const said = broker.logs.filter(line => /holds nothing any more could not be removed/.test(String(line['msg'])))
    assert.equal(said.length, 2)
    assert.equal(
      broker.logs.some(line => line['msg'] === 'shard ended'),
      false
    )
    assert.equal((await api.consumeAll('alpha', 0)).length, 3)
  })
})

describe('a broker that is killed on a full disk', () => {
  // Nothing is filled ahead but what is kept for the next start.
  const flags = { '--journal-fill-ahead-bytes': '1', '--journal-first-slot-bytes': '1MiB' }
  const full = { MILLRACE_FAULTS: '0/slot.create:1+=ENOSPC' }

  it('starts again by the slot kept for that; without one it says how much room it needs, and where', async t => {
    const broker = await spawnBroker(t, { variant: oneShard, flags })
    const api = new HttpApi(broker.url)
    await api.createTopic('alpha')
    await api.produce('alpha', [{ value: 'a' }])
    await broker.waitForLog(line => line['msg'] === 'slots filled')
    await broker.kill('SIGKILL')
    const { dataDir } = broker
    // Nothing is kept by this one: it has taken what there was, and no more is filled.
    const again = await spawnBroker(t, { dataDir, variant: oneShard, env: full })
    const reader = new HttpApi(again.url)
    assert.deepEqual(
      (await reader.consumeAll('alpha', 0)).map(({ value }) => value),
      ['a']
    )
    await reader.produce('alpha', [{ value: 'b' }])
    await again.kill('SIGKILL')
    const line = await failToStart(t, smallFlags(dataDir, { '--shards': '1' }), { env: full })
    assert.match(line, /the disk is full, .*: make \d{7} bytes free for .*\/journal\/000, and start again/)
    const last = await spawnBroker(t, { dataDir, variant: oneShard })
    assert.deepEqual(
      (await new HttpApi(last.url).consumeAll('alpha', 0)).map(({ value }) => value),
      ['a', 'b']
    )
  })
})

describe('deferred syncs on a full disk', () => {
  it('leave the shard asleep between requests', async t => {
    const broker = await spawnBroker(t, {
      variant: oneShard,
      flags: { '--flush-every-records': '1000', '--flush-interval': '20ms' },
      env: { MILLRACE_FAULTS: '0/group.write:3+=ENOSPC' }
    })
    await createTopics(broker, topics)
    assert.equal((await produceHttp(broker, 'd0'))[0], 200)
    assert.equal((await produceHttp(broker, 'd1'))[0], 200)
    assert.equal((await produceHttp(broker, 'd2'))[0], 507)
    // Turns are counted: a shard that spins makes millions of them while a hundred answers are given.
    for (let i = 0; i < 100; i++) await fetch(`${broker.url}/healthz`)
    await broker.kill('SIGTERM')
    const stopped = await broker.waitForLog(line => line['msg'] === 'stopped')
    assert.ok(Number(stopped['loopTurns']) < 10_000, `${String(stopped['loopTurns'])} turns`)
  })
})

describe('a process without a free file handle', () => {
  it('refuses what needs a new slot with OVERLOADED, written no, and takes it when there is one', async t => {
    const broker = await spawnBroker(t, { variant: oneShard, env: { MILLRACE_FAULTS: '0/slot.create:2-3=EMFILE' } })
    await createTopics(broker, topics)
    const large = JSON.stringify({ records: [{ value: 'x'.repeat(300_000), partition: 0 }] })
    const seen: string[] = []
    for (let i = 0; i < 8; i++) {
      const { status, body } = await postJson(`${broker.url}/topics/alpha/produce`, large)
      const { code, written } = body as { code?: string; written?: string }
      seen.push(status === 200 ? 'taken' : `${status} ${code} ${written}`)
    }
    const firstRefused = seen.indexOf('503 OVERLOADED no')
    assert.ok(firstRefused > 0, seen.join(', '))
    assert.deepEqual(seen.slice(firstRefused, firstRefused + 2), ['503 OVERLOADED no', '503 OVERLOADED no'])
    assert.ok(seen.slice(firstRefused + 2).every(outcome => outcome === 'taken'))
    const logged = broker.logs.filter(line => String(line['msg']).startsWith('produce is'))
    assert.deepEqual(
      logged.map(line => line['msg']),
      ['produce is refused until the disk takes it again', 'produce is taken again']
    )
  })
})
