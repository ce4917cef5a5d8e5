/** Whether the records of a batch have keys, told from bytes that nobody vouches for. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { keyVerdictOn } from '../../../../src/wire/batch/batch-keys.ts'
import {
  clientBatch,
  gzip,
  withCrc,
  zstd,
  type ClientBatch,
  type ClientRecord
} from '../../../support/client-batches.ts'

const keyed: readonly ClientRecord[] = [
  { key: 'k', value: 'v' },
  { key: '', value: null },
  { key: Buffer.from([0xff]), value: '' }
]
const keyless: readonly ClientRecord[] = [...keyed, { key: null, value: 'v' }, { key: 'k', value: 'v' }]

function verdictOn(batch: ClientBatch | Buffer, inflatedMax?: number) {
  const bytes = Buffer.isBuffer(batch) ? batch : clientBatch(batch)
  const padded = Buffer.concat([Buffer.alloc(3), bytes, Buffer.alloc(2)])
  return keyVerdictOn(padded, 3, 3 + bytes.length, inflatedMax)
}

describe('a batch', () => {
  for (const [name, compressed] of Object.entries({ none: {}, gzip, zstd })) {
    it(`is keyed when each record has a key, an empty one too, and else says which has none: ${name}`, () => {
      assert.deepEqual(verdictOn({ records: keyed, ...compressed }), { kind: 'keyed' })
      assert.deepEqual(verdictOn({ records: keyless, ...compressed }), { kind: 'keyless', index: 3 })
    })
  }

  for (const codec of ['none', 'gzip', 'snappy', 'lz4', 'zstd']) {
    it(`of Kafka's own client is looked into: ${codec}`, () => {
      const path = new URL(`../../../fixtures/client-batches/${codec}.batch`, import.meta.url)
      assert.equal(verdictOn(readFileSync(path)).kind, 'keyless')
    })
  }

  it('is undecodable where records end too early, go on too long, or do not inflate', () => {
    const plain = clientBatch({ records: keyed })
    const bodies: readonly ClientBatch[] = [
      { body: plain.subarray(61, plain.length - 1), count: 3 },
      { body: Buffer.concat([plain.subarray(61), Buffer.alloc(1)]), count: 3 },
      { body: Buffer.from('no gzip'), codec: 1, count: 3 },
      { body: Buffer.from('no snappy'), codec: 2, count: 3 },
      { body: Buffer.from('no lz4'), codec: 3, count: 3 },
      { body: Buffer.from('no zstd'), codec: 4, count: 3 }
    ]
    for (const batch of bodies) assert.deepEqual(verdictOn(batch), { kind: 'undecodable' })
  })

  it('is undecodable where its records would be more than the limit', () => {
    const records = [{ key: 'k', value: Buffer.alloc(5000) }]
    assert.deepEqual(verdictOn({ records, ...gzip }, 6000), { kind: 'keyed' })
    assert.deepEqual(verdictOn({ records, ...gzip }, 5000), { kind: 'undecodable' })
  })

  it('is damaged, whatever is wrong with its records, where its checksum is', () => {
    const batch = clientBatch({ records: keyless })
    const wrong = Buffer.from(batch)
    wrong.writeUInt32BE((batch.readUInt32BE(17) ^ 1) >>> 0, 17)
    assert.deepEqual(verdictOn(wrong), { kind: 'damaged' })
    assert.deepEqual(verdictOn(withCrc(wrong)), { kind: 'keyless', index: 3 })
  })
})
