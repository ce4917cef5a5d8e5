/** The records of a batch, inflated: how long what came out of it stays. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BatchRecords } from '../../../../src/wire/batch/records.ts'
import { BatchView, batchStatus } from '../../../../src/wire/batch/view.ts'
import { clientBatch, gzip } from '../../../support/client-batches.ts'

test('what a batch was inflated to is let go when it is closed, its cost and its status stay, and it can be opened again', () => {
  const batch = clientBatch({ records: [{ value: Buffer.alloc(100_000) }, { value: 'v' }], ...gzip })
  const view = new BatchView()
  view.open(batch, 0, batch.length)
  const records = new BatchRecords()
  for (let round = 0; round < 2; round++) {
    records.open(batch, view)
    const { inflatedBytes, cursor } = records
    assert.ok(inflatedBytes > 100_000 && cursor.next() && cursor.valueLength === 100_000)
    records.close()
    assert.deepEqual([records.bytes.length, records.inflatedBytes], [0, inflatedBytes])
    assert.equal(cursor.status, batchStatus.ok)
    assert.ok(!cursor.next())
  }
})
