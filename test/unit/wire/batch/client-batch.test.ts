/** What the header of a client's batch is refused for, before anything is copied. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { clientBatchFault } from '../../../../src/wire/batch/client-batch.ts'
import { BatchView } from '../../../../src/wire/batch/view.ts'
import { clientBatch, codecs, gzip, type ClientBatch } from '../../../support/client-batches.ts'
import { chosenSeed, diceOf, replayLine } from '../../../support/log-random.ts'

const records = [{ key: 'k', value: 'v' }, { value: null }]

function faultOf(bytes: Buffer, start = 0, end = bytes.length): string | null {
  const fault = clientBatchFault(new BatchView(), bytes, start, end)
  return fault === null ? null : `${fault.code} ${Object.values(fault.details).join()}`
}

function faultOfBatch(batch: ClientBatch): string | null {
  return faultOf(clientBatch({ records, ...batch }))
}

describe('the header of a batch that a client sends', () => {
  it('is in order as every client makes it', () => {
    assert.equal(faultOfBatch({}), null)
    assert.equal(faultOfBatch(gzip), null)
    assert.equal(faultOfBatch({ producerId: 7, epoch: 3, sequence: 2 ** 31 - 1 }), null)
    // Some clients set the base offset, and some have no time.
    assert.equal(faultOfBatch({ baseOffset: 12, baseTimestamp: -1, maxTimestamp: -1 }), null)
  })

  it('is refused with what is wrong', () => {
    const whole = clientBatch({ records })
    assert.match(faultOf(whole.subarray(0, 60)) ?? '', /^BATCH_CORRUPT 60 bytes are less than a header/)
    assert.match(faultOf(whole.subarray(0, -1)) ?? '', /^BATCH_CORRUPT its length is beyond its data/)
    assert.match(faultOf(Buffer.concat([whole, whole])) ?? '', /^BATCH_INVALID it is not alone: \d+ bytes/)
    assert.match(faultOf(Buffer.alloc(0)) ?? '', /^BATCH_INVALID there is none/)
    const short = Buffer.from(whole)
    short.writeInt32BE(48, 8)
    assert.match(faultOf(short) ?? '', /^BATCH_CORRUPT its length is below/)
    assert.match(faultOfBatch({ magic: 1 }) ?? '', /^BATCH_INVALID it is not of version 2/)
    for (const attributes of [0x10, 0x20, 0x30])
      assert.match(faultOfBatch({ attributes }) ?? '', /^BATCH_INVALID it is part of a transaction/)
    assert.match(faultOfBatch({ attributes: 8 }) ?? '', /^BATCH_TIMESTAMP says that the broker/)
    for (const codec of [5, 6, 7]) assert.equal(faultOfBatch({ codec }), `BATCH_CODEC ${codec}`)
    for (const baseTimestamp of [2n ** 53n, -(2n ** 63n)])
      assert.match(faultOfBatch({ baseTimestamp, maxTimestamp: 0 }) ?? '', /^BATCH_TIMESTAMP has a timestamp beyond/)
  })

  it('may not take more offsets than it can have records', () => {
    assert.match(faultOfBatch({ count: 0, lastOffsetDelta: 0 }) ?? '', /^BATCH_INVALID 0 records take 1/)
    assert.match(faultOfBatch({ count: 0, lastOffsetDelta: -1 }) ?? '', /^BATCH_INVALID/)
    assert.match(faultOfBatch({ count: 2, lastOffsetDelta: 2 }) ?? '', /^BATCH_INVALID 2 records take 3/)
    assert.match(faultOfBatch({ count: 1000 }) ?? '', /^BATCH_INVALID 1000 records do not fit/)
    assert.match(faultOfBatch({ ...gzip, count: 2 ** 31 - 1 }) ?? '', /^BATCH_INVALID \d+ records do not fit/)
    assert.equal(faultOfBatch({ codec: codecs.zstd, count: 1000 }), null)
  })

  it('has an epoch and a sequence with a producer id', () => {
    assert.match(faultOfBatch({ producerId: 7, sequence: -1 }) ?? '', /^BATCH_INVALID it has a producer id/)
    assert.match(faultOfBatch({ producerId: 7, epoch: -1 }) ?? '', /^BATCH_INVALID it has a producer id/)
    for (const producerId of [-2, 2n ** 60n])
      assert.match(faultOfBatch({ producerId, epoch: 0, sequence: 0 }) ?? '', /^BATCH_INVALID its producer id/)
  })

  it('may be any bytes: they are judged, and nothing is thrown', t => {
    const seed = chosenSeed()
    t.diagnostic(replayLine(seed, 'test/unit/wire/batch/client-batch.test.ts'))
    const dice = diceOf(seed)
    const whole = clientBatch({ records })
    for (let round = 0; round < 20_000; round++) {
      const bytes = Buffer.from(whole)
      for (let i = 0; i < 1 + dice.below(4); i++) bytes[dice.below(bytes.length)] = dice.below(256)
      const end = dice.chance(0.2) ? dice.below(bytes.length + 1) : bytes.length
      assert.ok(['object', 'string'].includes(typeof faultOf(bytes, 0, end)))
    }
  })
})
