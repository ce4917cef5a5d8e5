/** The partitioner of a topic while it is changed: what is on its way, what comes meanwhile, and what a failure leaves. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { murmur2Modulo } from '../../../src/base/hash.ts'
import { BrokerError } from '../../../src/model/errors.ts'
import { anonymous } from '../../../src/model/principal.ts'
import { submitOutcomes } from '../../../src/model/requests.ts'
import type { PartitionDescription } from '../../../src/model/topic.ts'
import { clientBatch } from '../../support/client-batches.ts'
import { BrokerStage, turn } from './broker-stage.ts'

const partition = (id: number, end: number): PartitionDescription => {
  return { id, start_offset: end, end_offset: end, segment_count: 1, size_bytes: 0 }
}
const empty = [partition(0, 0), partition(1, 0), partition(2, 0)]
const batch = clientBatch({ records: [{ key: 'k', value: 'v' }] })
const record = { key: 'k', value: 'v' }

class Stage extends BrokerStage {
  constructor() {
    super()
    this.create('t', 3)
    this.descriptions = Promise.resolve(empty)
  }

  change(): Promise<unknown> {
    return this.broker.changeTopicConfig(anonymous, 't', { partitioner: 'murmur2' })
  }

  submitBatch(): number {
    const place = { topic: 't', partition: 0 }
    return this.broker.batches.submitBatch(
      anonymous,
      { ...place, bytes: batch, start: 0, end: batch.length },
      {
        onBatchAppended: () => void this.answers.push('batch appended'),
        onBatchFailed: error => void this.answers.push(`batch ${error.code}`)
      }
    )
  }

  get partitioner(): string | undefined {
    return this.catalog.topicNamed('t')?.config.partitioner
  }
}

const refusal = (reason: RegExp) => (error: unknown) => {
  assert.ok(error instanceof BrokerError && error.code === 'FIELD_INVALID')
  assert.match(error.message, /^partitioner: of topic 't' stays fnv1a: .*; nothing was changed$/)
  assert.match(error.message, reason)
  return true
}

describe('the partitioner of a topic', () => {
  it('changes while the topic is empty, and records that come meanwhile wait and go by the new one', async () => {
    const stage = new Stage()
    let tell = (): void => undefined
    stage.descriptions = new Promise(resolve => (tell = () => resolve(empty)))
    const changed = stage.change()
    await turn()
    assert.equal(await stage.produce('early', anonymous, [record]), submitOutcomes.full)
    assert.equal(stage.submitBatch(), submitOutcomes.full)
    assert.deepEqual([stage.appends.length, stage.batches.length], [0, 0])
    tell()
    await changed
    assert.equal(await stage.produce('late', anonymous, [record]), submitOutcomes.taken)
    const [append] = stage.appends
    assert.equal(append?.append.partitions[0], murmur2Modulo(Buffer.from('k'), 0, 1, 3))
    assert.equal(stage.submitBatch(), submitOutcomes.taken)
    assert.equal(stage.partitioner, 'murmur2')
  })

  it('stays while records are on their way, over any protocol, until their answer', async () => {
    const stage = new Stage()
    await stage.produce('one', anonymous, [record])
    await assert.rejects(stage.change(), refusal(/records are on their way/))
    stage.appends.shift()?.caller.onProduceFailed(new BrokerError('DISK_FULL', {}, { written: 'no' }))
    stage.submitBatch()
    await assert.rejects(stage.change(), refusal(/records are on their way/))
    stage.batches.shift()?.caller.onBatchFailed(new BrokerError('DISK_FULL', {}, { written: 'no' }))
    await stage.change()
    assert.equal(stage.partitioner, 'murmur2')
  })

  it('stays while records wait for their producer id, which were routed before', async () => {
    const stage = new Stage()
    assert.equal(
      await stage.produce('held', anonymous, [{ ...record, sequence: 0n }], { producerId: 'p' }),
      submitOutcomes.held
    )
    await assert.rejects(stage.change(), refusal(/records are on their way/))
  })

  it('stays where a record was ever written, also if none is left, and the topic takes records again', async () => {
    const stage = new Stage()
    stage.descriptions = Promise.resolve([partition(0, 0), partition(1, 7), partition(2, 0)])
    await assert.rejects(stage.change(), refusal(/partition 1 ends at offset 7/))
    assert.equal(stage.partitioner, 'fnv1a')
    assert.equal(await stage.produce('one', anonymous, [record]), submitOutcomes.taken)
  })

  it('stays where the shards or the store fail, and the topic takes records again', async () => {
    const stage = new Stage()
    stage.descriptions = Promise.reject(new BrokerError('SHARD_DOWN'))
    await assert.rejects(stage.change(), { code: 'SHARD_DOWN' })
    stage.descriptions = Promise.resolve(empty)
    stage.storeFailure = new BrokerError('DISK_FULL', {}, { written: 'no' })
    await assert.rejects(stage.change(), { code: 'DISK_FULL' })
    assert.equal(stage.partitioner, 'fnv1a')
    assert.equal(await stage.produce('one', anonymous, [record]), submitOutcomes.taken)
  })

  it('may be named again as it is, whatever the topic holds', async () => {
    const stage = new Stage()
    stage.descriptions = Promise.resolve([partition(0, 9)])
    await stage.broker.changeTopicConfig(anonymous, 't', { partitioner: 'fnv1a', retention_ms: 5 })
    assert.equal(stage.catalog.topicNamed('t')?.config.retention_ms, 5)
  })
})
