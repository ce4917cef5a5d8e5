/** What the texts of errors repeat of a request. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BrokerError } from '../../../src/model/errors.ts'

test('the text of an error repeats what a caller named, and cuts what is longer than any name', () => {
  assert.equal(new BrokerError('TOPIC_NOT_FOUND', { topic: 'orders' }).message, "no topic named 'orders'")
  const { message } = new BrokerError('TOPIC_NOT_FOUND', { topic: 'x'.repeat(64 * 1024) })
  assert.equal(message, `no topic named '${'x'.repeat(1000)}…'`)
})

test('a detail that is missing shows as a question mark', () => {
  assert.equal(new BrokerError('TOPIC_NOT_FOUND').message, "no topic named '?'")
})
