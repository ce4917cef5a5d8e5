/** Shards start at the same moment on one directory. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { startBroker } from '../support/broker.ts'

it('many shards that start together on a new directory do not trip over each other', async t => {
  for (let round = 0; round < 5; round++) {
    const broker = await startBroker(t, { flags: { '--shards': '8' } })
    assert.equal(broker.server.shards, 8)
    await broker.stop()
  }
})
