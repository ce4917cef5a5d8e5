/** Batches for compacted topics on their way to the engine: which are looked into where, in which order, and what is refused. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { BrokerError } from '../../../src/model/errors.ts'
import { limits } from '../../../src/model/limits.ts'
import { anonymous, type Principal } from '../../../src/model/principal.ts'
import { submitOutcomes, type SubmitOutcome } from '../../../src/model/requests.ts'
import { keyVerdictOn, type KeyVerdict } from '../../../src/wire/batch/batch-keys.ts'
import { clientBatch, gzip, type ClientRecord } from '../../support/client-batches.ts'
import { configure, remove } from '../control/topics.ts'
import { BrokerStage, maxRecordBytes, turn } from './broker-stage.ts'

const keyed = clientBatch({ records: [{ key: 'k', value: 'v' }] })
const keyless = clientBatch({ records: [{ key: 'k', value: 'v' }, { value: 'v' }] })
/** More than is looked into at once. */
const many: readonly ClientRecord[] = [{ key: 'k', value: Buffer.alloc(limits.inflatedAtOnceBytesMax) }]
const large = clientBatch({ records: many })

class Stage extends BrokerStage {
  constructor() {
    super()
    this.create('t', 2, { cleanup_policy: 'compact' })
  }

  async send(name: string, bytes: Buffer, partition = 0, who: Principal = anonymous): Promise<SubmitOutcome> {
    const given = Buffer.from(bytes)
    const outcome = this.broker.batches.submitBatch(
      who,
      { topic: 't', partition, bytes: given, start: 0, end: given.length },
      {
        onBatchAppended: ({ baseOffset }) => void this.answers.push(`${name} at ${baseOffset}`),
        onBatchFailed: error => {
          this.failures.push(error)
          this.answers.push(`${name} ${error.code} ${error.details['index'] ?? ''}`.trimEnd())
        }
      }
    )
    // It was lent for the call alone.
    given.fill(0)
    await turn()
    return outcome
  }

  /** Sizes of what the engine has. */
  get sizes(): number[] {
    return this.batches.map(({ batch }) => batch.end - batch.start)
  }

  /** Answers the batch that another thread has. @param answer left out: as that thread does. */
  async answer(answer?: KeyVerdict | BrokerError): Promise<void> {
    const check = this.keyChecks.shift()
    assert.ok(check !== undefined, 'a batch is looked into')
    const bytes = Buffer.from(check.batch)
    if (answer instanceof BrokerError) check.reject(answer)
    else {
      const verdict = answer ?? keyVerdictOn(bytes, 0, bytes.length)
      check.resolve({ verdict, batch: check.batch.transfer() })
    }
    await turn()
  }
}

describe('a batch for a compacted topic', () => {
  it('goes on at once where it is small and keyed, and is refused with its record where it is not', async () => {
    const stage = new Stage()
    await stage.send('keyed', keyed)
    await stage.send('keyless', keyless)
    await stage.send('inflated', clientBatch({ records: [{ value: 'v' }], ...gzip }))
    assert.deepEqual([stage.sizes, stage.keyChecks.length], [[keyed.length], 0])
    assert.deepEqual(stage.told(), ['keyless RECORD_WITHOUT_KEY 1', 'inflated RECORD_WITHOUT_KEY 0'])
    for (const { code, written } of stage.failures) assert.deepEqual([code, written], ['RECORD_WITHOUT_KEY', 'no'])
  })

  it('is looked into by another thread where it is large, or inflates to more than is inflated here', async () => {
    const stage = new Stage()
    await stage.send('large', large)
    await stage.send('inflated', clientBatch({ records: many, ...gzip }), 1)
    assert.deepEqual([stage.sizes.length, stage.keyChecks.length], [0, 2])
    await stage.answer()
    await stage.answer()
    assert.equal(stage.sizes[0], large.length)
    assert.equal(stage.sizes.length, 2)
    assert.equal(stage.keyed.usedBytes, 0)
  })

  it('does not overtake one before it in its partition, and others do not wait', async () => {
    const stage = new Stage()
    await stage.send('large', large)
    await stage.send('small', keyed)
    await stage.send('elsewhere', keyed, 1)
    assert.deepEqual(stage.sizes, [keyed.length])
    // What comes behind them does not overtake them either, when the topic is not compacted any more.
    configure(stage.catalog, 't', { cleanup_policy: 'delete' })
    await stage.send('behind', keyed)
    await stage.answer()
    assert.deepEqual(stage.sizes, [keyed.length, large.length])
    await stage.answer()
    await stage.answer()
    assert.deepEqual(stage.sizes, [keyed.length, large.length, keyed.length, keyed.length])
    await stage.send('unlooked', keyless)
    assert.equal(stage.sizes.length, 5)
  })

  it('is refused for what the other thread finds, or fails with, and what is behind it goes on', async () => {
    const stage = new Stage()
    for (const name of ['keyless', 'undecodable', 'failed', 'fine']) await stage.send(name, large)
    await stage.answer({ kind: 'keyless', index: 7 })
    await stage.answer({ kind: 'undecodable' })
    await stage.answer(new BrokerError('INTERNAL', {}, { written: 'no' }))
    await stage.answer()
    assert.deepEqual(stage.told(), ['keyless RECORD_WITHOUT_KEY 7', 'undecodable BATCH_INVALID', 'failed INTERNAL'])
    assert.deepEqual([stage.sizes, stage.keyed.usedBytes], [[large.length], 0])
  })

  it('that is damaged is left to the shard, which says so', async () => {
    const stage = new Stage()
    const damaged = Buffer.from(keyless)
    damaged[17] = (damaged[17] as number) ^ 1
    await stage.send('damaged', damaged)
    assert.deepEqual(stage.sizes, [damaged.length])
  })

  it('is not written where its key or its topic has gone meanwhile', async () => {
    const stage = new Stage()
    const who = { ...anonymous, isRevoked: false }
    await stage.send('revoked', large, 0, who)
    who.isRevoked = true
    await stage.answer()
    await stage.send('gone', large)
    remove(stage.catalog, 't')
    stage.create('t', 2)
    await stage.answer()
    assert.deepEqual(stage.told(), ['revoked KEY_REVOKED', 'gone TOPIC_NOT_FOUND'])
    assert.deepEqual(stage.sizes, [])
  })

  it('waits where the memory for copies is short, or its line is long, or the rings are full', async () => {
    const stage = new Stage()
    assert.ok(large.length * 16 > stage.keyed.limitBytes && large.length < maxRecordBytes + limits.batchSurplusBytes)
    let sent = 0
    while ((await stage.send(`${sent}`, large)) !== submitOutcomes.full) sent++
    assert.equal(sent, Math.floor(stage.keyed.limitBytes / large.length))
    stage.isFull = true
    await stage.answer()
    assert.deepEqual([stage.sizes.length, stage.keyChecks.length], [0, 0])
    stage.isFull = false
    for (const waiter of stage.roomWaiters.splice(0)) waiter()
    await turn()
    assert.deepEqual([stage.sizes.length, stage.keyChecks.length], [1, 1])
    assert.equal(await stage.send('again', large), submitOutcomes.taken)
    assert.equal(stage.gates.of(stage.catalog.topicNamed('t')?.id ?? (0 as never)).openCount, sent + 1)
  })
})
