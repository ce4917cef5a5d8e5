/** The MessagePack answer of a produce, read by msgpackr. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Unpackr } from 'msgpackr/unpack'
import { RESULT_BYTES } from '../../../../src/model/requests.ts'
import { PackedResultsWriter } from '../../../../src/wire/produce/packed-results.ts'

/** Numbers beyond 2^53 as bigint, so that a rounded one is seen; 2^53 itself is exact. */
const unpackr = new Unpackr({ useRecords: false, int64AsType: 'auto' })

function resultsOf(rows: readonly (readonly [number, bigint, boolean])[]): Buffer {
  const source = Buffer.alloc(5 + rows.length * RESULT_BYTES)
  for (const [i, [partition, offset, isDuplicate]] of rows.entries()) {
    source.writeUInt32BE(partition, 5 + i * RESULT_BYTES)
    source.writeBigUInt64BE(offset, 9 + i * RESULT_BYTES)
    source[17 + i * RESULT_BYTES] = isDuplicate ? 1 : 0
  }
  return source
}

describe('the answer of a produce in MessagePack', () => {
  test('is exact at every change of the form of a number, with duplicate only where it is one', () => {
    const edges = [2n ** 7n, 2n ** 8n, 2n ** 16n, 2n ** 32n, 2n ** 53n, 2n ** 63n].flatMap(edge => [edge - 1n, edge])
    const offsets = [0n, 1n, ...edges, 2n ** 64n - 1n]
    const rows = offsets.map((offset, i) => [Number(offset & 0xffff_ffffn), offset, i % 3 === 0] as const)
    const source = resultsOf(rows)
    const answer = new PackedResultsWriter().write(source, 5, rows.length)
    const exact = (offset: bigint): number | bigint => (offset <= 2n ** 53n ? Number(offset) : offset)
    assert.deepEqual(unpackr.unpack(Buffer.from(answer)), {
      results: rows.map(([partition, offset, isDuplicate]) => ({
        partition,
        offset: exact(offset),
        ...(isDuplicate ? { duplicate: true } : {})
      }))
    })
  })

  test('of no record, and of the largest request at its longest, fits', () => {
    const writer = new PackedResultsWriter()
    assert.deepEqual(unpackr.unpack(Buffer.from(writer.write(resultsOf([]), 5, 0))), { results: [] })
    const count = 100_000
    const answer = writer.write(Buffer.alloc(count * RESULT_BYTES, 0xff), 0, count)
    const { results } = unpackr.unpack(Buffer.from(answer)) as { results: unknown[] }
    assert.equal(results.length, count)
    assert.deepEqual(results.at(-1), { partition: 4294967295, offset: 2n ** 64n - 1n, duplicate: true })
  })
})
