import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { limits } from '../../../../src/model/limits.ts'
import { ChunkKeeper, ChunkTaker, createLentChunks } from '../../../../src/ring/lent-chunks.ts'
import { STORED_BATCHES_AT, storedBatchesHead } from '../../../../src/wire/batch/stored-batches.ts'
import { LENT_ENTRY_BYTES } from '../../../../src/wire/shard/messages.ts'
import { BatchAnswer } from '../../../../workers/shard/batch-answer.ts'

const CHUNK = limits.lentChunkBytes

class Stage {
  readonly keeper: ChunkKeeper
  readonly taker: ChunkTaker
  readonly answer: BatchAnswer
  #next = 0

  constructor(chunks: number) {
    const memory = createLentChunks(chunks)
    this.keeper = new ChunkKeeper(memory)
    this.taker = new ChunkTaker(memory)
    this.answer = new BatchAnswer(this.taker)
    this.answer.begin()
  }

  /** Bytes like no others, with something before and behind them. */
  batch(length: number): { bytes: Buffer; add: () => boolean } {
    const whole = Buffer.alloc(length + 14)
    for (let i = 0; i < length; i++) whole[7 + i] = this.#next++ % 251
    return { bytes: whole.subarray(7, 7 + length), add: () => this.answer.add(whole, 7, 7 + length) }
  }

  get takenChunks(): number {
    return this.keeper.takenBytes / CHUNK
  }

  /** The batches of the answer, put together from where it says that they are; what is lent is given back. */
  sent(): Buffer {
    const { answer, keeper } = this
    answer.finish(3, 2 ** 40, 9)
    const { length } = answer
    const target = Buffer.alloc(answer.isLent ? answer.lentBytes + 5 : length)
    if (!answer.isLent) answer.whole().copy(target, 0, 0, length)
    else answer.lend(target, 5)
    const isLent = target.length !== length
    assert.deepEqual(storedBatchesHead(target, isLent ? 5 : 0), {
      logStartOffset: 3,
      highWatermark: 2 ** 40,
      nextOffset: 9
    })
    if (!isLent) return target.subarray(STORED_BATCHES_AT)
    const parts: Buffer[] = []
    for (let at = 5 + STORED_BATCHES_AT; at < target.length; at += LENT_ENTRY_BYTES) {
      const chunk = target.readUInt32BE(at)
      parts.push(Buffer.from(keeper.view(chunk).subarray(0, target.readUInt32BE(at + 4))))
      keeper.giveBack(chunk)
    }
    const batches = Buffer.concat(parts)
    assert.equal(STORED_BATCHES_AT + batches.length, length)
    return batches
  }
}

describe('an answer of whole batches', () => {
  it('is lent in chunks where it is large, whatever the sizes of its batches', () => {
    const s = new Stage(8)
    const batches = [10_000, CHUNK, CHUNK - 10_000, 1, 2 * CHUNK + 5, 70_000].map(length => s.batch(length))
    for (const { add } of batches) assert.ok(add())
    assert.ok(s.answer.isLent)
    assert.deepEqual(s.sent(), Buffer.concat(batches.map(({ bytes }) => bytes)))
    assert.equal(s.takenChunks, 0)
    s.answer.begin()
    assert.equal(s.takenChunks, 0, 'what was sent is not given back again')
  })

  it('goes through the ring where it is small or empty, and holds no chunk then', () => {
    const s = new Stage(8)
    assert.equal(s.sent().length, 0)
    s.answer.begin()
    const batches = [200, 30_000].map(length => s.batch(length))
    for (const { add } of batches) assert.ok(add())
    assert.equal(s.answer.isLent, false)
    assert.deepEqual(s.sent(), Buffer.concat(batches.map(({ bytes }) => bytes)))
    assert.equal(s.takenChunks, 0)
  })

  it('goes through the ring whole where no chunk is free, or its first batch needs more than there are', () => {
    const s = new Stage(2)
    const large = s.batch(2 * CHUNK + 1)
    assert.ok(large.add())
    assert.equal(s.takenChunks, 0)
    const behind = s.batch(100)
    assert.ok(behind.add())
    assert.equal(s.answer.isLent, false)
    assert.deepEqual(s.sent(), Buffer.concat([large.bytes, behind.bytes]))
    while (s.taker.take() >= 0);
    s.answer.begin()
    const other = s.batch(CHUNK)
    assert.ok(other.add())
    assert.deepEqual(s.sent(), other.bytes)
  })

  it('ends before a batch for which no chunk is left', () => {
    const s = new Stage(3)
    const held = s.taker.take()
    const first = s.batch(CHUNK + 1)
    assert.ok(first.add())
    const fits = s.batch(CHUNK - 1)
    assert.ok(fits.add())
    assert.equal(s.batch(1).add(), false)
    assert.deepEqual(s.sent(), Buffer.concat([first.bytes, fits.bytes]))
    assert.equal(s.takenChunks, 1)
    s.taker.giveBack(held)
  })

  it('leaves all chunks free when it is given up, and takes none for a batch that needs one too many', () => {
    const s = new Stage(3)
    assert.ok(s.batch(2 * CHUNK).add())
    assert.equal(s.batch(CHUNK + 1).add(), false)
    assert.equal(s.takenChunks, 2)
    s.answer.begin()
    assert.equal(s.takenChunks, 0)
  })
})
