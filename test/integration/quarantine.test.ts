/** What a broker refuses to start over, an operator can give up; readers are told exactly what is gone. */
import assert from 'node:assert/strict'
import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { runMillrace, startBroker } from '../support/broker.ts'
import { HttpApi } from '../support/http-api.ts'

test('a broker without one of its slots starts after quarantine skip, and reads say that what was in it is skipped', async t => {
  let broker = await startBroker(t, { flags: { '--shards': '1' } })
  const { dataDir } = broker
  for (const value of ['first', 'second', 'third']) {
    const api = new HttpApi(broker.url)
    if (value === 'first') await api.createTopic('orders', 1)
    await api.produce('orders', [{ value, partition: 0 }])
    await broker.stop()
    if (value !== 'third') broker = await startBroker(t, { dataDir })
  }
  const journal = join(dataDir, 'journal', '000')
  const second = readdirSync(journal)
    .filter(name => name.endsWith('.slot'))
    .sort()[1]
  assert.ok(second !== undefined)
  rmSync(join(journal, second))
  await assert.rejects(
    startBroker(t, { dataDir }),
    /where slot 2 is expected; an operator must decide: 'millrace quarantine list' shows what/
  )

  const listed = await runMillrace(['quarantine', 'list', '--data-dir', dataDir])
  assert.equal(listed.code, 1)
  assert.match(listed.stdout, /\ndamaged: \S+\n {2}orders\/0, offsets 1 to 1; next readable offset 2\n/)
  const [, id = ''] = /millrace quarantine skip (\S+)/.exec(listed.stdout) ?? []
  const asked = await runMillrace(['quarantine', 'skip', id, '--data-dir', dataDir])
  assert.equal(asked.code, 1)
  assert.match(
    asked.stdout,
    /^to give up: .*\n {2}slot 2 is missing\n {2}missing from the shard: orders\/0, offsets 1 to 1;/
  )
  assert.equal((await runMillrace(['quarantine', 'skip', id, '--yes', '--data-dir', dataDir])).code, 0)

  const api = new HttpApi((await startBroker(t, { dataDir })).url)
  const lost = await api.consume('orders', 0, 'offset=1')
  assert.deepEqual(lost.skipped, { requested: 1, earliest: 2, latest: 3 })
  assert.deepEqual(
    lost.records.map(record => record.value),
    ['third']
  )
  for (const [offset, value] of [
    [0, 'first'],
    [2, 'third']
  ] as const) {
    const read = await api.get(`/topics/orders/consume?partition=0&offset=${offset}`)
    assert.equal(read.status, 200, read.text)
    assert.ok(read.text.includes(`"value":"${value}"`), read.text)
  }
})
