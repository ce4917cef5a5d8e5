/** Where the first batch of zstd stands, in whatever pieces the batches come. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ZstdFence } from '../../../../src/wire/batch/zstd-fence.ts'
import { clientBatch, gzip, zstd } from '../../../support/client-batches.ts'
import { chosenSeed, diceOf, replayLine } from '../../../support/log-random.ts'

describe('the first batch of zstd', () => {
  it('is found, and what stands before it is known, however the bytes are cut', t => {
    const seed = chosenSeed()
    t.diagnostic(replayLine(seed, 'test/unit/wire/batch/zstd-fence.test.ts'))
    const dice = diceOf(seed)
    for (let round = 0; round < 500; round++) {
      const before = Array.from({ length: dice.below(4) }, () =>
        clientBatch({
          records: Array.from({ length: 1 + dice.below(3) }, () => ({ value: 'x'.repeat(dice.below(90)) })),
          ...(dice.chance(0.5) && gzip)
        })
      )
      const hasZstd = dice.chance(0.7)
      const rest = hasZstd ? [clientBatch({ records: [{ value: 'v' }], ...zstd }), ...before] : []
      const bytes = Buffer.concat([...before, ...rest])
      const fence = new ZstdFence()
      for (let at = 0; at < bytes.length;) {
        const end = Math.min(bytes.length, at + 1 + dice.below(60))
        fence.take(bytes, at, end)
        at = end
      }
      assert.equal(fence.isFound, hasZstd)
      assert.equal(fence.clearBytes, Buffer.concat(before).length)
      const records = before.reduce((sum, batch) => sum + batch.readInt32BE(57), 0)
      assert.equal(fence.clearRecords, records)
    }
  })
})
