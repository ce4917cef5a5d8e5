/** A topic that grows while its shards fail: what is committed is so. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BugError } from '../../../src/base/assert.ts'
import { anonymous } from '../../../src/model/principal.ts'
import { BrokerStage } from './broker-stage.ts'

test('partitions that are committed are there though a shard could not be told, and the topic can be changed again', async () => {
  const stage = new BrokerStage()
  stage.create('t', 1)
  stage.configuring = Promise.reject(new BugError('planted'))
  await assert.rejects(stage.broker.addPartitions(anonymous, { name: 't', partitions: 3 }), /planted/)
  assert.equal(stage.catalog.topicNamed('t')?.partitionCount, 3)
  stage.configuring = Promise.resolve()
  await stage.broker.addPartitions(anonymous, { name: 't', partitions: 4 })
  assert.equal(stage.catalog.topicNamed('t')?.partitionCount, 4)
})
