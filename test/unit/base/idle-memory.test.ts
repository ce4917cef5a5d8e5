/** When an idle thread gives memory back, and when it must not. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { IdleMemory, openHeap, type HeapDoor } from '../../../src/base/idle-memory.ts'

const MIB = 1024 * 1024
const QUIET_MS = 5000

class CountedHeap implements HeapDoor {
  bytes = 20 * MIB
  collections = 0

  totalBytes(): number {
    return this.bytes
  }

  collect(): void {
    this.collections++
    this.bytes = 21 * MIB
  }
}

describe('an idle thread', () => {
  it('collects once its quiet time is over, and not again before there was more work', () => {
    const heap = new CountedHeap()
    const memory = new IdleMemory(heap, 0)
    memory.noteWork(1000)
    heap.bytes = 80 * MIB
    assert.equal(memory.dueMs, 1000 + QUIET_MS)
    memory.turn(999 + QUIET_MS)
    assert.equal(heap.collections, 0)
    memory.turn(1000 + QUIET_MS)
    assert.equal(heap.collections, 1)
    assert.equal(memory.dueMs, Infinity)
    heap.bytes = 80 * MIB
    memory.turn(1_000_000)
    assert.equal(heap.collections, 1)
    memory.noteWork(1_000_000)
    memory.turn(1_000_000 + QUIET_MS)
    assert.equal(heap.collections, 2)
  })

  it('does not collect while work goes on', () => {
    const heap = new CountedHeap()
    const memory = new IdleMemory(heap, 0)
    heap.bytes = 500 * MIB
    for (let nowMs = 0; nowMs < 60_000; nowMs += 100) {
      memory.noteWork(nowMs)
      memory.turn(nowMs)
    }
    assert.equal(heap.collections, 0)
  })

  it('does not collect for the little that a rare request leaves', () => {
    const heap = new CountedHeap()
    const memory = new IdleMemory(heap, 0)
    for (let nowMs = 0; nowMs < 100_000; nowMs += 2 * QUIET_MS) {
      heap.bytes += 100_000
      memory.noteWork(nowMs)
      memory.turn(nowMs + QUIET_MS)
    }
    assert.equal(heap.collections, 0)
  })
})

describe('the heap of a thread', () => {
  it('is smaller after a collection than with the garbage in it', () => {
    const heap = openHeap()
    let garbage: unknown[] = Array.from({ length: 400_000 }, (_, i) => ({ i, text: `entry ${i}` }))
    const full = heap.totalBytes()
    assert.equal(garbage.length, 400_000)
    garbage = []
    heap.collect()
    assert.ok(heap.totalBytes() < full - 10 * MIB, `${full} before, ${heap.totalBytes()} after`)
    assert.equal(garbage.length, 0)
  })
})
