/** Which topics a request names more than once. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { repeatedNames } from '../../../../src/gateway/kafka/repeated-topics.ts'

test('a topic that a request names more than once is known, and no other', () => {
  const named = (...names: string[]) => [...repeatedNames(names.map(name => ({ name })))]
  assert.deepEqual(named(), [])
  assert.deepEqual(named('a', 'b', 'c'), [])
  assert.deepEqual(named('a', 'b', 'a', 'c', 'b', 'a'), ['a', 'b'])
})
