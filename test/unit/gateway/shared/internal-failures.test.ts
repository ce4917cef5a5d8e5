/** What a caller is told of a failure inside, and under which id. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toldOf } from '../../../../src/gateway/shared/internal-failures.ts'
import { BrokerError } from '../../../../src/model/errors.ts'

test('a failure that the log has under an id is told under that id', () => {
  const error = new BrokerError('INTERNAL', { id: '0123abcd' }, { cause: new Error('secret') })
  assert.deepEqual(toldOf(error), { requestId: '0123abcd', text: 'internal error (id 0123abcd)' })
})

test('one that the log does not have yet gets an id, and its detail is not told', () => {
  const { requestId, text } = toldOf(new BrokerError('WRITE_FAILED', { shard: 7 }, { cause: new Error('secret') }))
  assert.match(requestId, /^[0-9a-f]{8}$/)
  assert.equal(text, `internal error (id ${requestId})`)
})

test('what a caller caused is told as it is', () => {
  const error = new BrokerError('TOPIC_NOT_FOUND', { topic: 't', id: '0123abcd' })
  const { requestId, text } = toldOf(error)
  assert.deepEqual([text, requestId === '0123abcd'], ["no topic named 't'", false])
})
