/** Files of a data directory that are gone: named at start, never passed over in silence. */
import assert from 'node:assert/strict'
import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { runMillrace, startBroker, waitFor, type TestBroker } from '../support/broker.ts'
import { HttpApi } from '../support/http-api.ts'

/** A stopped broker's directory: 20 records, each in a slot file of its own start. */
async function writtenDirectory(t: TestContext, shards: number): Promise<string> {
  let broker: TestBroker | null = null
  for (let round = 0; round < 3; round++) {
    const options = broker === null ? { flags: { '--shards': String(shards) } } : { dataDir: broker.dataDir }
    broker = await startBroker(t, options)
    const api = new HttpApi(broker.url)
    if (round === 0) await api.createTopic('kept', 2 * shards)
    for (let partition = 0; partition < 2 * shards; partition++) await api.produce('kept', [{ value: 'v', partition }])
    await broker.stop()
  }
  assert.ok(broker !== null)
  return broker.dataDir
}

const slotsOf = (dataDir: string, shard: number): string[] => {
  const directory = join(dataDir, 'journal', String(shard).padStart(3, '0'))
  return readdirSync(directory)
    .filter(name => name.endsWith('.slot'))
    .sort()
    .map(name => join(directory, name))
}

describe('a start', () => {
  it('whose newest journal slot is gone is refused with its number, not answered with fewer records', async t => {
    const dataDir = await writtenDirectory(t, 1)
    const newest = slotsOf(dataDir, 0).at(-1)
    assert.ok(newest !== undefined)
    rmSync(newest)
    await assert.rejects(startBroker(t, { dataDir }), /ends with slot 2, but slot 3 was written: its file is missing/)
  })

  it('whose journal is gone is refused', async t => {
    const dataDir = await writtenDirectory(t, 1)
    rmSync(join(dataDir, 'journal'), { recursive: true })
    await assert.rejects(startBroker(t, { dataDir }), /ends with slot 0, but slot 3 was written/)
  })

  it('whose store is gone is refused while the journal is there', async t => {
    const dataDir = await writtenDirectory(t, 1)
    for (const name of readdirSync(dataDir)) if (name.startsWith('store.db')) rmSync(join(dataDir, name))
    await assert.rejects(startBroker(t, { dataDir }), /has a journal but its store\.db is new/)
  })

  it('whose manifest is gone is refused by its name, and no slot is offered to be given up', async t => {
    const first = await startBroker(t, { flags: { '--shards': '1' } })
    const api = new HttpApi(first.url)
    await api.createTopic('kept', 1, { cleanup_policy: 'compact' })
    await api.produce('kept', [{ key: 'k', value: 'v' }])
    assert.equal((await api.post('/admin/run-compaction', {})).status, 204)
    await api.produce('kept', [{ key: 'k', value: 'w' }])
    await first.stop()
    const { dataDir } = first
    rmSync(join(dataDir, 'journal', '000', 'manifest'))
    await assert.rejects(startBroker(t, { dataDir }), /the manifest .*journal\/000\/manifest is missing/)
    const { code, stdout, stderr } = await runMillrace(['quarantine', 'list', '--data-dir', dataDir])
    assert.equal(code, 1, stdout + stderr)
    assert.match(stderr, /the manifest journal\/000\/manifest is missing.*bring the file back/)
    assert.doesNotMatch(stdout, /quarantine skip 0\/slot-1/)
    const verified = await runMillrace(['verify', '--data-dir', dataDir])
    assert.equal(verified.code, 1)
    assert.match(verified.stdout, /the manifest journal\/000\/manifest is missing/)
  })

  it('with one damaged shard of two serves the other, and says which is down and why', async t => {
    const dataDir = await writtenDirectory(t, 2)
    const first = slotsOf(dataDir, 0)[0]
    assert.ok(first !== undefined)
    rmSync(first)
    const broker = await startBroker(t, { dataDir })
    const api = new HttpApi(broker.url)
    const ready = await waitFor('the state of the shards', async () => {
      const answer = await api.get('/readyz')
      return answer.status === 503 && answer
    })
    assert.match(ready.text, /shard 0 is down: .*journal\/000 has slot 2 .* where slot 1 is expected/)
    const answers = await Promise.all(
      [0, 1, 2, 3].map(
        async partition => (await api.get(`/topics/kept/consume?partition=${partition}&offset=0`)).status
      )
    )
    assert.deepEqual([...new Set(answers)].sort(), [200, 503])
    assert.equal(answers.filter(status => status === 200).length, 2)
  })
})
