/** While a commit is not adopted, files that it leaves unused stay. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Adoptions } from '../../../src/shards/adoptions.ts'

test('an adoption is open until every one of its shard has ended, also by a failure', async () => {
  const adoptions = new Adoptions()
  const first = Promise.withResolvers<void>()
  const second = Promise.withResolvers<void>()
  const ends = [adoptions.during(1, first.promise), adoptions.during(1, second.promise)]
  assert.deepEqual([adoptions.isOpen(0), adoptions.isOpen(1)], [false, true])
  first.resolve()
  await ends[0]
  assert.equal(adoptions.isOpen(1), true)
  second.reject(new Error('the shard died'))
  await assert.rejects(ends[1] ?? Promise.resolve(), /the shard died/)
  assert.equal(adoptions.isOpen(1), false)
})
