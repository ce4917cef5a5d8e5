/** Topics that a request names more than once: which they are, and what is asked of them in all. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mergedTopics, repeatedNames } from '../../../../src/gateway/kafka/repeated-names.ts'

test('a topic that a request names more than once is known, and no other', () => {
  const named = (...names: string[]) => [...repeatedNames(names.map(name => ({ name })))]
  assert.deepEqual(named(), [])
  assert.deepEqual(named('a', 'b', 'c'), [])
  assert.deepEqual(named('a', 'b', 'a', 'c', 'b', 'a'), ['a', 'b'])
})

test('a topic that a question has several entries of is asked about once, with the partitions of all', () => {
  const merged = mergedTopics([
    ['a', [0, 1]],
    ['b', [0]],
    ['a', [1, 2]]
  ])
  assert.deepEqual(
    [...merged],
    [
      ['a', [0, 1, 1, 2]],
      ['b', [0]]
    ]
  )
})
