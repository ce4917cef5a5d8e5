/** Followers that wait for a time. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { BrokerError } from '../../../../../src/model/errors.ts'
import { waitFor } from '../http-harness.ts'
import { StreamStage } from './stream-stage.ts'

it('a stream is tried again when its own time is over, whoever else waits longer', async t => {
  const stage = new StreamStage(t, { retryMs: 2 })
  await stage.create(2)
  const { reply } = stage.open(2)
  stage.broker.readFailure = new BrokerError('RATE_LIMITED', { problem: 'p', seconds: '600', retryAfterSeconds: 600 })
  stage.append(0, 'a')
  await waitFor(() => stage.broker.watches.standing.size === 0, 'the first to wait')
  stage.broker.readFailure = null
  const { reply: other } = stage.open()
  stage.broker.watches.answer(new BrokerError('SHARD_DIED', { shard: 0 }))
  await waitFor(() => stage.broker.watches.standing.size === 1, 'the second to watch again')
  stage.broker.watches.answer()
  await waitFor(() => other.offsets.length === 1, 'its record')
  assert.deepEqual(reply.offsets, [])
})
