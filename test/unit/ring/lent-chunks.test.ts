import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { limits } from '../../../src/model/limits.ts'
import { ChunkKeeper, ChunkTaker, createLentChunks } from '../../../src/ring/lent-chunks.ts'

const { lentChunkBytes } = limits

describe('chunks that one thread fills and another uses', () => {
  it('are taken one by one until none is free, and given back by whoever has them', () => {
    const memory = createLentChunks(3)
    const taker = new ChunkTaker(memory)
    const keeper = new ChunkKeeper(memory)
    assert.deepEqual([taker.take(), taker.take(), taker.take(), taker.take()], [0, 1, 2, -1])
    assert.equal(keeper.takenBytes, 3 * lentChunkBytes)
    keeper.giveBack(1)
    assert.equal(taker.take(), 1)
    taker.giveBack(0)
    keeper.giveBack(2)
    assert.equal(keeper.takenBytes, lentChunkBytes)
    assert.deepEqual([taker.take(), taker.take(), taker.take()], [0, 2, -1])
  })

  it('are the same bytes at both ends, each apart from the others', () => {
    const memory = createLentChunks(3)
    const taker = new ChunkTaker(memory)
    const keeper = new ChunkKeeper(memory)
    for (const chunk of [0, 1, 2]) taker.view(chunk).fill(chunk + 1)
    for (const chunk of [0, 1, 2]) {
      assert.equal(keeper.view(chunk).length, lentChunkBytes)
      assert.ok(keeper.view(chunk).every(byte => byte === chunk + 1))
    }
    assert.equal(keeper.view(1), keeper.view(1), 'always the same buffer')
  })

  it('may not be given back twice, nor where there is none', () => {
    const taker = new ChunkTaker(createLentChunks(1))
    const chunk = taker.take()
    taker.giveBack(chunk)
    assert.throws(() => taker.giveBack(chunk), /given back twice/)
    assert.throws(() => taker.view(1), /a chunk that there is/)
  })

  it('may be none at all', () => {
    assert.equal(new ChunkTaker(createLentChunks(0)).take(), -1)
  })
})
