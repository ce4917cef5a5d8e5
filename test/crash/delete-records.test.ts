/** kill −9, or a disk that fails, at each step of deleting records: answered deletions hold, and nothing else is lost. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, it, type TestContext } from 'node:test'
import { spawnBroker, type SpawnedBroker } from '../support/broker.ts'
import { HttpApi, parse } from '../support/http-api.ts'

const flags = { '--shards': '1', '--segment-delete-grace': '10ms' }
const RECORDS = 40

interface Asked {
  readonly offset: number
  /** HTTP status; 0: no answer. */
  readonly status: number
}

/** Groups of the journal: 40 of records, then one for each deletion. */
async function deleteOneByOne(broker: SpawnedBroker): Promise<Asked[]> {
  const api = new HttpApi(broker.url)
  await api.createTopic('events', 1, { segment_bytes: 3000 })
  for (let i = 0; i < RECORDS; i++) await api.produce('events', [{ value: `${i}:`.padEnd(1000, 'x'), partition: 0 }])
  const asked: Asked[] = []
  for (let offset = 3; offset <= RECORDS; offset += 3) {
    const body = JSON.stringify({ partition: 0, offset })
    const status = await api.post('/topics/events/delete-records', body).then(
      answer => answer.status,
      () => 0
    )
    asked.push({ offset, status })
    if (status === 0) break
  }
  return asked
}

/** All that was answered holds; the one without an answer may, and no other. */
async function judge(t: TestContext, dataDir: string, asked: readonly Asked[]): Promise<void> {
  const next = await spawnBroker(t, { dataDir, flags })
  const api = new HttpApi(next.url)
  const start = (await api.describe('events')).partitions[0]?.start_offset ?? -1
  const done = asked.filter(({ status }) => status === 200).map(({ offset }) => offset)
  const doubtful = asked.filter(({ status }) => status === 0 || status === 503).map(({ offset }) => offset)
  const least = Math.max(0, ...done)
  assert.ok(start === least || (start > least && doubtful.includes(start)), `${start} of ${JSON.stringify(asked)}`)
  const records = await api.consumeAll('events', 0)
  assert.deepEqual(
    records.map(({ offset, value }) => `${offset} ${value.split(':')[0]}`),
    Array.from({ length: RECORDS - start }, (_, i) => `${start + i} ${start + i}`)
  )
  const answer = await api.post('/topics/events/delete-records', { partition: 0, offset: RECORDS - 1 })
  assert.deepEqual(parse<unknown>(answer), { partition: 0, start_offset: RECORDS - 1 })
  assert.equal((await next.kill('SIGTERM')).code, 0)
}

const kills = [
  'group.write:43=kill',
  'group.write:43=short-kill',
  'group.write:43=kill-after',
  'group.sync:43=kill',
  'group.sync:43=kill-after'
]

describe('a deletion of records that is killed', () => {
  for (const fault of kills) {
    it(`(${fault}) is done or not done, those before it are, and none is half done`, async t => {
      const broker = await spawnBroker(t, { flags, env: { MILLRACE_FAULTS: `0/${fault}` } })
      const ended = once(broker.child, 'exit')
      const asked = await deleteOneByOne(broker)
      await ended
      assert.deepEqual([broker.child.signalCode, asked.at(-1)?.status], ['SIGKILL', 0])
      await judge(t, broker.dataDir, asked)
    })
  }
})

describe('a deletion of records that the disk refuses', () => {
  for (const [fault, status] of [
    ['group.write:43=ENOSPC', 507],
    ['group.write:43=short-ENOSPC', 507],
    ['group.sync:43=EIO', 503]
  ] as const) {
    it(`(${fault}) is answered ${status}, and holds only if that leaves it open`, async t => {
      const broker = await spawnBroker(t, { flags, env: { MILLRACE_FAULTS: `0/${fault}` } })
      const asked = await deleteOneByOne(broker)
      assert.ok(asked.some(answer => answer.status === status) && asked[0]?.status === 200, JSON.stringify(asked))
      await broker.kill('SIGKILL')
      await judge(t, broker.dataDir, asked)
    })
  }
})
