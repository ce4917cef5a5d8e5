/** Batches of clients on their way to the engine: who may, what it costs, and whose producer id it is. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isOfBatches } from '../../../src/control/producer-table.ts'
import type { BatchSubmission } from '../../../src/model/batches.ts'
import { BrokerError } from '../../../src/model/errors.ts'
import { limits } from '../../../src/model/limits.ts'
import { anonymous, type Principal } from '../../../src/model/principal.ts'
import { submitOutcomes, type SubmitOutcome } from '../../../src/model/requests.ts'
import { clientBatch, gzip } from '../../support/client-batches.ts'
import { BrokerStage, keyWith, maxRecordBytes, recordOf } from './broker-stage.ts'

const records = [{ key: 'k', value: 'v' }, { value: 'w' }]
const plain = clientBatch({ records })
const turn = (): Promise<void> => new Promise(resolve => setImmediate(resolve))

class Stage extends BrokerStage {
  /** Submits a batch. @returns the outcome; what its caller hears is among told(). */
  async send(
    name: string,
    bytes: Buffer,
    who: Principal = anonymous,
    rest: Partial<BatchSubmission> = {}
  ): Promise<SubmitOutcome> {
    const batch = { topic: 't', partition: 0, bytes, start: 0, end: bytes.length, ...rest }
    const outcome = this.broker.batches.submitBatch(who, batch, {
      onBatchAppended: ({ baseOffset, isDuplicate }) =>
        void this.answers.push(`${name} at ${baseOffset}${isDuplicate ? ' again' : ''}`),
      onBatchFailed: error => void this.answers.push(`${name} ${error.code}`)
    })
    await turn()
    return outcome
  }

  /** Answers the first batch that the engine has. */
  append(baseOffset: number, isDuplicate = false): void {
    this.batches.shift()?.caller.onBatchAppended({ baseOffset, logStartOffset: 0, appendTimeMs: -1, isDuplicate })
  }
}

function stageWith(partitions = 2): Stage {
  const stage = new Stage()
  stage.create('t', partitions)
  return stage
}

describe('a batch that a client sends', () => {
  it('goes to the engine as it is, and is counted when it is written', async () => {
    const stage = stageWith()
    const padded = Buffer.concat([Buffer.alloc(5), plain, Buffer.alloc(3)])
    await stage.send('one', padded, anonymous, { start: 5, end: 5 + plain.length, partition: 1 })
    const [{ batch } = { batch: null }] = stage.batches
    assert.deepEqual([batch?.partition, batch?.start, batch?.producer], [1, 5, 0])
    stage.append(7)
    await stage.send('two', plain)
    stage.append(7, true)
    assert.deepEqual(stage.told(), ['one at 7', 'two at 7 again'])
    const { producedRecords, producedBytes } = stage.traffic.of(stage.catalog.topicNamed('t')?.id ?? (0 as never))
    assert.deepEqual([producedRecords, producedBytes], [2, plain.length])
  })

  it('is refused before it costs anything, for what it is and for where it should go', async () => {
    const stage = stageWith()
    const who = keyWith({ produceBytesPerSec: 1000, consumeBytesPerSec: null })
    const reader = { ...who, mayWrite: () => false }
    const cases: [string, Buffer, Principal, Partial<BatchSubmission>][] = [
      ['FORBIDDEN', plain, reader, {}],
      ['KEY_REVOKED', plain, { ...who, isRevoked: true }, {}],
      ['TOPIC_NOT_FOUND', plain, who, { topic: 'none' }],
      ['PARTITION_RANGE', plain, who, { partition: 2 }],
      ['PARTITION_RANGE', plain, who, { partition: -1 }],
      ['BATCH_TOO_LARGE', Buffer.alloc(maxRecordBytes + limits.batchSurplusBytes + 1), who, {}],
      ['BATCH_CORRUPT', plain, who, { end: plain.length - 1 }],
      ['BATCH_INVALID', clientBatch({ records, attributes: 0x20 }), who, {}],
      ['BATCH_TIMESTAMP', clientBatch({ records, attributes: 8 }), who, {}],
      ['BATCH_CODEC', clientBatch({ records, codec: 7 }), who, {}],
      ['PRODUCER_UNKNOWN', clientBatch({ records, producerId: 1 }), who, {}],
      ['PRODUCER_UNKNOWN', clientBatch({ records, producerId: 0 }), who, {}]
    ]
    for (const [code, bytes, caller, rest] of cases) {
      await stage.send(code, bytes, caller, rest)
      assert.deepEqual(stage.told(), [`${code} ${code}`])
    }
    assert.equal(stage.batches.length, 0)
    assert.equal(stage.quotas.takeProduce(who, 1000), null)
  })

  it('costs its stored bytes, which come back if nothing of it was written', async () => {
    const stage = stageWith()
    const who = keyWith({ produceBytesPerSec: plain.length + 10, consumeBytesPerSec: null })
    await stage.send('one', plain, who)
    await stage.send('two', plain, who)
    // The second goes into debt: who is in debt waits before its next one is sent.
    assert.ok(stage.broker.batches.produceWaitMs(who) > 0)
    assert.deepEqual([stage.told(), stage.batches.length], [[], 2])
    stage.batches.pop()?.caller.onBatchFailed(new BrokerError('BATCH_OUT_OF_ORDER'))
    stage.batches.shift()?.caller.onBatchFailed(new BrokerError('BATCH_OUT_OF_ORDER'))
    stage.isFull = true
    assert.equal(await stage.send('three', plain, who), submitOutcomes.full)
    stage.isFull = false
    await stage.send('four', plain, who)
    stage.append(0)
    assert.deepEqual(stage.told(), ['two BATCH_OUT_OF_ORDER', 'one BATCH_OUT_OF_ORDER', 'four at 0'])
  })

  it('costs nothing when it was retried and is stored already', async () => {
    const stage = stageWith()
    const who = keyWith({ produceBytesPerSec: plain.length, consumeBytesPerSec: null })
    await stage.send('one', plain, who)
    stage.append(0, true)
    assert.deepEqual(stage.told(), ['one at 0 again'])
    assert.equal(stage.quotas.takeProduce(who, plain.length), null)
    await stage.send('two', plain, who)
    stage.append(1)
    assert.notEqual(stage.quotas.takeProduce(who, plain.length), null)
  })

  it('is not taken for a topic whose records are to match a schema, nor while the disk is nearly full', async () => {
    const stage = stageWith()
    stage.create('checked', 1, { validate_schema: true })
    await stage.send('one', plain, anonymous, { topic: 'checked' })
    stage.isLow = true
    await stage.send('two', plain)
    const codes = stage.told().map(answer => answer.split(' ')[1])
    assert.deepEqual(codes, ['BATCH_NOT_VALIDATED', 'DISK_FULL'])
  })
})

describe('a producer id of batches', () => {
  const of = (producerId: number): Buffer => clientBatch({ records, producerId, ...gzip })

  it('is a fresh number of the key that asks, and no other may use it', async () => {
    const stage = stageWith()
    const [first, second] = [keyWith({}, 'key_1'), keyWith({}, 'key_2')]
    const id = await stage.broker.batches.allocateProducer(first)
    assert.notEqual(await stage.broker.batches.allocateProducer(first), id)
    await stage.send('mine', of(id), first)
    await stage.send('theirs', of(id), second)
    assert.deepEqual([stage.told(), stage.batches[0]?.batch.producer], [['theirs PRODUCER_OWNED'], id])
  })

  it('is none of HTTP, and theirs are none of batches', async () => {
    const stage = stageWith()
    const id = await stage.broker.batches.allocateProducer(anonymous)
    const [entry] = stage.producers.entries()
    assert.ok(entry !== undefined && isOfBatches(entry))
    await stage.produce('http', anonymous, [recordOf(1, { sequence: 0n })], { producerId: entry.id })
    assert.deepEqual(stage.told(), ['http NAME_INVALID'])
    await stage.produce('http', anonymous, [recordOf(1, { sequence: 0n })], { producerId: 'p' })
    const other = stage.producers.withId('p')
    assert.ok(other !== undefined && other.number !== id)
    await stage.send('batch', of(other.number))
    assert.deepEqual(stage.told(), ['batch PRODUCER_UNKNOWN'])
  })

  it('is not given out if it could not be stored, nor beyond what a key may have', async () => {
    const stage = stageWith()
    stage.storeFailure = new BrokerError('DISK_FULL')
    await assert.rejects(stage.broker.batches.allocateProducer(anonymous), { code: 'DISK_FULL' })
    assert.equal(stage.producers.count, 0)
    stage.storeFailure = null
    for (let i = 0; i < limits.producersPerOwnerMax; i++) stage.producers.addOfBatches('anonymous', 0)
    await assert.rejects(stage.broker.batches.allocateProducer(anonymous), { code: 'PRODUCERS_TOO_MANY' })
    const revoked = { ...anonymous, isRevoked: true }
    await assert.rejects(stage.broker.batches.allocateProducer(revoked), { code: 'KEY_REVOKED' })
  })

  it('is forgotten when an operator says so, after the batches that are on their way', async () => {
    const stage = stageWith()
    const id = await stage.broker.batches.allocateProducer(anonymous)
    await stage.send('one', of(id))
    const forgotten = stage.broker.forgetProducer(anonymous, `kafka#${id}`)
    await stage.send('two', of(id))
    assert.deepEqual(stage.told(), ['two PRODUCER_UNKNOWN'])
    stage.append(0)
    await forgotten
    await stage.send('three', of(id))
    assert.deepEqual(stage.told(), ['one at 0', 'three PRODUCER_UNKNOWN'])
  })
})
