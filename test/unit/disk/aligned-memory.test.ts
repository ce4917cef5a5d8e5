import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { DIRECT_BLOCK_BYTES, alignedBuffer, isAligned } from '../../../src/disk/aligned-memory.ts'

describe('aligned memory', () => {
  test('has the length that was asked for, is zeroed, and is a buffer of its own', () => {
    for (const bytes of [1, 4096, 65_536, 65_537, 1024 * 1024]) {
      const [one, other] = [alignedBuffer(bytes), alignedBuffer(bytes)]
      assert.ok(one.equals(Buffer.alloc(bytes)))
      one.fill(7)
      assert.ok(other.equals(Buffer.alloc(bytes)))
    }
  })

  test('is known to be aligned at whole blocks, and nowhere else', () => {
    const memory = alignedBuffer(4 * DIRECT_BLOCK_BYTES)
    const aligned = [0, 1, 512, DIRECT_BLOCK_BYTES].map(start => isAligned(memory, start))
    assert.deepEqual(aligned, [true, false, false, true])
    assert.equal(isAligned(memory.subarray(1024), DIRECT_BLOCK_BYTES - 1024), true)
    assert.equal(isAligned(memory.subarray(1024), 0), false)
  })

  test('is not what ordinary buffers are', () => {
    assert.equal(isAligned(Buffer.alloc(2 * DIRECT_BLOCK_BYTES), 0), false)
    assert.equal(isAligned(new Uint8Array(DIRECT_BLOCK_BYTES), 0), false)
  })

  test('an aligned buffer of no bytes is a bug', () => {
    assert.throws(() => alignedBuffer(0), { name: 'BugError' })
  })
})
