/** The one way in which record bytes are copied. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { copied, copyBytes } from '../../../src/base/copy.ts'

const makers = {
  private: (length: number) => Buffer.alloc(length),
  shared: (length: number) => Buffer.from(new SharedArrayBuffer(length))
}

for (const [from, makeSource] of Object.entries(makers))
  for (const [to, makeTarget] of Object.entries(makers))
    it(`copies from ${from} to ${to} memory every byte of a part and of a whole, counts them, and touches no other`, () => {
      for (const length of [0, 1, 47, 48, 49, 1000, 70_000])
        for (const leadIn of [0, 3]) {
          const source = makeSource(leadIn + length)
          for (let i = 0; i < source.length; i++) source[i] = 1 + (i % 251)
          const target = makeTarget(length + 10)
          const before = copied.bytes
          assert.equal(copyBytes(source, leadIn, leadIn + length, target, 5), 5 + length)
          assert.equal(copied.bytes - before, length)
          assert.deepEqual([...target.subarray(5, 5 + length)], [...source.subarray(leadIn)])
          assert.ok([...target.subarray(0, 5), ...target.subarray(5 + length)].every(byte => byte === 0))
        }
    })
