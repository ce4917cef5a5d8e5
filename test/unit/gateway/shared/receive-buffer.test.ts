/** Receive buffers as a socket drives them: what arrives comes out in order, and memory follows the bytes that came. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ByteBudget } from '../../../../src/base/byte-budget.ts'
import { BufferPool } from '../../../../src/gateway/shared/buffer-pool.ts'
import { createReceiveShared, ReceiveBuffer } from '../../../../src/gateway/shared/receive-buffer.ts'
import type { ReceiveShared } from '../../../../src/gateway/shared/receive-buffer.ts'

const KIB = 1024
const READ_BYTES = 64 * KIB - 8

function shared(limitBytes = 64 * KIB * KIB): ReceiveShared {
  return createReceiveShared(new BufferPool(8 * KIB * KIB), new ByteBudget(limitBytes))
}

/** The socket's side: reads the next bytes of a stream into the buffer's tail, as the kernel would. */
function arrive(buffer: ReceiveBuffer, stream: Buffer, at: number, bytesMax: number): number {
  const tail = buffer.nextTail(false)
  const bytes = Math.min(tail.length, bytesMax, stream.length - at)
  tail.set(stream.subarray(at, at + bytes))
  buffer.landed(bytes)
  return at + bytes
}

describe('a receive buffer', () => {
  test('owns nothing while frames arrive whole', () => {
    const buffer = new ReceiveBuffer(shared())
    const stream = Buffer.alloc(1000, 1)
    arrive(buffer, stream, 0, 1000)
    assert.equal(buffer.pendingBytes, 1000)
    assert.ok(buffer.start > 0, 'there is a lead-in')
    buffer.start = buffer.end
    buffer.settle()
    assert.equal(buffer.ownBytes, 0)
  })

  test('takes no memory for an announced length, only for bytes that came', () => {
    const common = shared()
    const buffer = new ReceiveBuffer(common)
    arrive(buffer, Buffer.alloc(9), 0, 9)
    buffer.expectedBytes = 16 * KIB * KIB
    buffer.settle()
    assert.equal(buffer.tryRoom(false), true)
    assert.ok(buffer.ownBytes <= 64 * KIB)
    assert.equal(common.budget.usedBytes, 0)
  })

  test('grows with what came up to the announced frame, and gives all of it back', () => {
    const common = shared()
    const buffer = new ReceiveBuffer(common)
    const stream = Buffer.from(Array.from({ length: 5 * KIB * KIB }, (_, i) => i % 251))
    let at = 0
    while (at < stream.length) {
      at = arrive(buffer, stream, at, 200 * KIB)
      buffer.expectedBytes = stream.length
      buffer.settle()
      if (at < stream.length) assert.equal(buffer.tryRoom(false), true)
      assert.ok(buffer.ownBytes <= Math.max(64 * KIB, 16 * at), `${buffer.ownBytes} bytes for ${at}`)
      assert.equal(common.budget.usedBytes, Math.max(0, buffer.ownBytes - 64 * KIB))
    }
    assert.ok(buffer.bytes.subarray(buffer.start, buffer.end).equals(stream))
    assert.ok(common.movedBytes < 2 * stream.length, 'growing moves less than the frame again')
    buffer.start = buffer.end
    buffer.settle()
    assert.equal(buffer.ownBytes, 0)
    assert.equal(common.budget.usedBytes, 0)
  })

  test('refuses to read on when the budget is used up, and can after a release', () => {
    const common = shared(256 * KIB)
    assert.ok(common.budget.tryReserve(200 * KIB))
    const buffer = new ReceiveBuffer(common)
    const stream = Buffer.alloc(300 * KIB, 7)
    let at = arrive(buffer, stream, 0, READ_BYTES)
    buffer.expectedBytes = stream.length
    buffer.settle()
    assert.equal(buffer.tryRoom(false), false)
    buffer.nextTail(true)
    common.budget.release(200 * KIB)
    assert.equal(buffer.tryRoom(true), true)
    buffer.landed(8 * KIB)
    at += 8 * KIB
    assert.equal(buffer.pendingBytes, at)
    buffer.discard()
    assert.equal(common.budget.usedBytes, 0)
  })

  test('gives out what arrived, in order, under any mix of reads, pauses, frames and refusals', t => {
    const seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 31))
    t.diagnostic(`seed ${seed}; replay: SEED=${seed} node --test test/unit/gateway/shared/receive-buffer.test.ts`)
    let state = seed >>> 0
    const random = (below: number): number => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0
      return Math.floor((state / 2 ** 32) * below)
    }
    const common = shared(600 * KIB)
    const stream = Buffer.from(Array.from({ length: 3 * KIB * KIB }, () => random(256)))
    const buffers = Array.from({ length: 3 }, () => ({
      buffer: new ReceiveBuffer(common),
      sent: 0,
      used: 0,
      isPaused: false
    }))
    const tails = buffers.map(({ buffer }) => buffer.nextTail(false))
    let frame = 1
    for (let step = 0; step < 4000 && buffers.some(one => one.used < stream.length); step++) {
      const i = random(3)
      const one = buffers[i]
      assert.ok(one !== undefined)
      const { buffer } = one
      if (one.isPaused) {
        // The socket may read only once there is room; meanwhile the waiting frames may be used.
        buffer.start += Math.min(buffer.pendingBytes, random(2) * frame)
        buffer.settle()
        if (!buffer.tryRoom(true)) {
          // The bounded budget must not stop the test for ever: someone gives up what is pending.
          one.used += buffer.pendingBytes
          buffer.discard()
        }
        one.used = one.sent - buffer.pendingBytes
        one.isPaused = false
      }
      const tail = tails[i] as Uint8Array
      const bytes = Math.min(tail.length, 1 + random(100 * KIB), stream.length - one.sent)
      if (bytes === 0) continue
      tail.set(stream.subarray(one.sent, one.sent + bytes))
      one.sent += bytes
      buffer.landed(bytes)
      assert.equal(buffer.pendingBytes, one.sent - one.used)
      assert.ok(buffer.bytes.subarray(buffer.start, buffer.end).equals(stream.subarray(one.used, one.sent)))
      frame = 1 + random(200 * KIB)
      while (buffer.pendingBytes >= frame && random(4) > 0) buffer.start += frame
      buffer.expectedBytes = frame
      one.used = one.sent - buffer.pendingBytes
      buffer.settle()
      one.isPaused = !buffer.tryRoom(false) || random(5) === 0
      tails[i] = buffer.nextTail(one.isPaused)
    }
    assert.ok(
      buffers.every(one => one.used > 0 && one.sent === stream.length),
      'the streams went through'
    )
    for (const { buffer } of buffers) buffer.discard()
    assert.equal(common.budget.usedBytes, 0)
  })
})

describe('the buffer pool', () => {
  test('gives a returned buffer to the next borrower and keeps no more than its share', () => {
    const pool = new BufferPool(100 * KIB)
    const first = pool.take(10 * KIB)
    const second = pool.take(60 * KIB)
    assert.deepEqual([first.length, second.length], [64 * KIB, 64 * KIB])
    pool.give(first)
    pool.give(second)
    assert.equal(pool.idleBytes, 64 * KIB)
    assert.equal(pool.take(64 * KIB), first)
    const large = pool.take(3 * KIB * KIB + 1)
    assert.ok(large.length > 3 * KIB * KIB)
    pool.give(large)
    assert.equal(pool.idleBytes, 0)
  })

  test('notices a buffer that is returned twice', () => {
    const pool = new BufferPool(1024 * KIB)
    const buffer = pool.take(1)
    pool.give(buffer)
    assert.throws(() => pool.give(buffer), /twice/)
  })
})
