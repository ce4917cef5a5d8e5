/** Receive buffers as a socket drives them: what arrives comes out in order, and memory follows the bytes that came. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ByteBudget } from '../../../../src/base/byte-budget.ts'
import { BufferPool } from '../../../../src/gateway/shared/buffer-pool.ts'
import { FrameMemory } from '../../../../src/gateway/shared/frame-memory.ts'
import { createReceiveShared, ReceiveBuffer } from '../../../../src/gateway/shared/receive-buffer.ts'
import type { ReceiveMemory, ReceiveShared } from '../../../../src/gateway/shared/receive-buffer.ts'
import { diceOf } from '../../../support/log-random.ts'

const KIB = 1024
const READ_BYTES = 64 * KIB - 8

/** A listener and one client address. */
class Stage {
  readonly shared: ReceiveShared = createReceiveShared(new BufferPool(8 * KIB * KIB))
  readonly budget: ByteBudget
  readonly #memory: ReceiveMemory

  constructor(limitBytes = 64 * KIB * KIB) {
    this.budget = new ByteBudget(limitBytes)
    this.#memory = new FrameMemory(this.budget).memoryOf('a', 0)
  }

  buffer(onRoom: () => void = () => undefined): ReceiveBuffer {
    return new ReceiveBuffer(this.shared, this.#memory, onRoom)
  }
}

/** The socket's side: reads the next bytes of a stream into the buffer's tail, as the kernel would. */
function arrive(buffer: ReceiveBuffer, stream: Buffer, at: number, bytesMax: number): number {
  const tail = buffer.nextTail(false)
  const bytes = Math.min(tail.length, bytesMax, stream.length - at)
  tail.set(stream.subarray(at, at + bytes))
  buffer.landed(bytes)
  return at + bytes
}

/** A large frame arrives, but for its last read. @returns where that begins. */
function arriveButLast(buffer: ReceiveBuffer, frame: Buffer): number {
  let at = 0
  while (at < frame.length - READ_BYTES) {
    at = arrive(buffer, frame, at, READ_BYTES)
    buffer.expectedBytes = frame.length
    buffer.settle()
    assert.equal(buffer.tryRoom(false), true)
  }
  return at
}

describe('a receive buffer', () => {
  test('owns nothing while frames arrive whole', () => {
    const buffer = new Stage().buffer()
    const stream = Buffer.alloc(1000, 1)
    arrive(buffer, stream, 0, 1000)
    assert.equal(buffer.pendingBytes, 1000)
    assert.ok(buffer.start > 0, 'there is a lead-in')
    buffer.start = buffer.end
    buffer.settle()
    assert.equal(buffer.ownBytes, 0)
  })

  test('takes no memory for an announced length, only for bytes that came', () => {
    const stage = new Stage()
    const buffer = stage.buffer()
    arrive(buffer, Buffer.alloc(9), 0, 9)
    buffer.expectedBytes = 16 * KIB * KIB
    buffer.settle()
    assert.equal(buffer.tryRoom(false), true)
    assert.ok(buffer.ownBytes <= 64 * KIB)
    assert.equal(stage.budget.usedBytes, 0)
  })

  test('grows with what came up to the announced frame, and gives all of it back', () => {
    const stage = new Stage()
    const buffer = stage.buffer()
    const stream = Buffer.from(Array.from({ length: 5 * KIB * KIB }, (_, i) => i % 251))
    let at = 0
    while (at < stream.length) {
      at = arrive(buffer, stream, at, 200 * KIB)
      buffer.expectedBytes = stream.length
      buffer.settle()
      if (at < stream.length) assert.equal(buffer.tryRoom(false), true)
      assert.ok(buffer.ownBytes <= Math.max(64 * KIB, 16 * at), `${buffer.ownBytes} bytes for ${at}`)
      assert.ok(
        stage.budget.usedBytes >= buffer.ownBytes - 64 * KIB && stage.budget.usedBytes <= stream.length + 64 * KIB
      )
    }
    assert.ok(buffer.bytes.subarray(buffer.start, buffer.end).equals(stream))
    assert.ok(stage.shared.movedBytes < 2 * stream.length, 'growing moves less than the frame again')
    buffer.taken()
    buffer.settle()
    assert.equal(buffer.ownBytes, 0)
    assert.equal(stage.budget.usedBytes, 0)
  })

  test('reads no further than the head of a large frame before memory for all of it is set aside', () => {
    const stage = new Stage(4 * KIB * KIB)
    assert.ok(stage.budget.tryReserve(3 * KIB * KIB))
    let granted = 0
    const buffer = stage.buffer(() => granted++)
    const stream = Buffer.alloc(1500 * KIB, 7)
    let at = arrive(buffer, stream, 0, READ_BYTES)
    buffer.expectedBytes = stream.length
    buffer.settle()
    assert.equal(buffer.tryRoom(false), false)
    assert.deepEqual([buffer.heldBytes, buffer.ownBytes], [0, 64 * KIB])
    buffer.nextTail(true)
    stage.budget.release(3 * KIB * KIB)
    assert.equal(granted, 1)
    assert.ok(buffer.heldBytes >= stream.length - 64 * KIB)
    assert.equal(buffer.tryRoom(true), true)
    buffer.landed(8 * KIB)
    at += 8 * KIB
    assert.equal(buffer.pendingBytes, at)
    buffer.discard()
    assert.equal(stage.budget.usedBytes, 0)
  })

  test('gives up what was set aside with the frame, also where bytes of the next one came with its end', () => {
    const stage = new Stage()
    const buffer = stage.buffer()
    const frame = Buffer.alloc(2 * KIB * KIB, 1)
    const at = arriveButLast(buffer, frame)
    // As a socket of TLS brings them.
    const last = Buffer.concat([frame.subarray(at), Buffer.alloc(9, 2)])
    buffer.arrived(last, 0, last.length)
    buffer.taken()
    buffer.expectedBytes = 3 * KIB * KIB
    buffer.settle()
    assert.deepEqual([buffer.heldBytes, stage.budget.usedBytes, buffer.pendingBytes], [0, 0, 9])
    assert.ok(buffer.ownBytes <= 64 * KIB)
    assert.deepEqual(buffer.bytes.subarray(buffer.start, buffer.end), Buffer.alloc(9, 2))
    buffer.discard()
  })

  test('leaves what is lent where it is, also where the frame before it is to give up what was set aside', () => {
    const stage = new Stage()
    const buffer = stage.buffer()
    const frame = Buffer.alloc(2 * KIB * KIB, 1)
    const at = arriveButLast(buffer, frame)
    const next = Buffer.alloc(9, 2)
    const last = Buffer.concat([frame.subarray(at), next])
    buffer.arrived(last, 0, last.length)
    buffer.taken()
    buffer.expectedBytes = next.length
    buffer.lend(buffer.start, buffer.end)
    const { bytes, start, end } = buffer
    buffer.settle()
    assert.equal(buffer.bytes, bytes)
    assert.deepEqual(bytes.subarray(start, end), next)
    buffer.endLoan()
    buffer.settle()
    assert.deepEqual([buffer.heldBytes, stage.budget.usedBytes, buffer.pendingBytes], [0, 0, 9])
    buffer.discard()
  })

  test('gives out what arrived, in order, under any mix of reads, pauses, frames and waits, and nobody waits for ever', t => {
    const seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 31))
    t.diagnostic(`seed ${seed}; replay: SEED=${seed} node --test test/unit/gateway/shared/receive-buffer.test.ts`)
    const dice = diceOf(seed)
    const stage = new Stage(600 * KIB)
    const stream = Buffer.from(Array.from({ length: 3 * KIB * KIB }, () => dice.below(256)))
    const frameBytes = (): number => 1 + dice.below(dice.chance(0.5) ? 200 * KIB : 20 * KIB)
    const all = Array.from({ length: 4 }, () => {
      const state = { sent: 0, used: 0, frame: frameBytes(), isPaused: false, isWoken: false }
      const buffer = stage.buffer(() => (state.isWoken = true))
      return Object.assign(state, { buffer, isDirect: dice.chance(0.5) })
    })
    const tails = all.map(({ buffer }) => buffer.nextTail(false))
    for (let step = 0; all.some(one => one.sent < stream.length); step++) {
      assert.ok(step < 100_000, 'somebody waits for ever')
      const i = dice.below(all.length)
      const one = all[i]
      assert.ok(one !== undefined)
      const { buffer } = one
      if (one.sent === stream.length || (one.isPaused && !one.isWoken)) continue
      if (!one.isPaused) {
        const tail = tails[i] as Uint8Array
        const readBytes = one.isDirect ? tail.length : READ_BYTES
        const bytes = Math.min(readBytes, 1 + dice.below(100 * KIB), stream.length - one.sent)
        if (one.isDirect) tail.set(stream.subarray(one.sent, one.sent + bytes))
        if (one.isDirect) buffer.landed(bytes)
        else buffer.arrived(Buffer.from(stream.subarray(one.sent, one.sent + bytes)), 0, bytes)
        one.sent += bytes
      }
      const wasPaused = one.isPaused
      one.isWoken = false
      assert.equal(buffer.pendingBytes, one.sent - one.used)
      assert.ok(buffer.bytes.subarray(buffer.start, buffer.end).equals(stream.subarray(one.used, one.sent)))
      let isStalled = false
      buffer.expectedBytes = one.frame
      while (buffer.pendingBytes >= one.frame && !(isStalled = dice.chance(0.2))) {
        buffer.taken()
        one.used += one.frame
        one.frame = buffer.expectedBytes = frameBytes()
      }
      buffer.settle()
      one.isPaused = isStalled || !buffer.tryRoom(wasPaused)
      // What a whole frame waits for comes sooner or later.
      one.isWoken = isStalled
      if (one.sent === stream.length) buffer.discard()
      // The first read after a pause lands where it was told to before.
      if (!wasPaused) tails[i] = buffer.nextTail(one.isPaused)
      assert.ok(stage.budget.usedBytes <= 600 * KIB)
    }
    assert.equal(stage.budget.usedBytes, 0)
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
