/** The UUIDs of topics: computed, and computed back. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TopicIds } from '../../../../src/gateway/kafka/topic-ids.ts'
import { toTopicId } from '../../../../src/model/ids.ts'
import { ZERO_UUID } from '../../../../src/wire/kafka/schema.ts'

test('a topic has the same id for ever, no other has it, and none is zero or begins like an option', () => {
  const seen = new Set<string>()
  for (let directory = 0; directory < 200; directory++) {
    const ids = new TopicIds(`directory ${directory}`)
    for (const number of [1, 2, 255, 256, 2 ** 32, Number.MAX_SAFE_INTEGER]) {
      const uuid = ids.uuidOf(toTopicId(number))
      assert.equal(uuid.length, 22)
      assert.notEqual(uuid, ZERO_UUID)
      assert.notEqual(uuid[0], '-')
      assert.equal(ids.idOf(uuid), number)
      assert.ok(!seen.has(uuid))
      seen.add(uuid)
    }
  }
})

test('ids of other data directories, zero, and what is no id stand for no topic', () => {
  const ids = new TopicIds('here')
  const other = new TopicIds('there').uuidOf(toTopicId(1))
  const zero = Buffer.from(ids.uuidOf(toTopicId(1)), 'base64url')
    .fill(0, 8)
    .toString('base64url')
  const beyond = Buffer.from(ids.uuidOf(toTopicId(1)), 'base64url')
    .fill(0xff, 8)
    .toString('base64url')
  for (const uuid of [other, ZERO_UUID, zero, beyond, '', 'short']) assert.equal(ids.idOf(uuid), null, uuid)
})
