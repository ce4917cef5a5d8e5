/** Request memory for frames on their way: set aside whole, in turn, and never all of it for one kind or one address. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ByteBudget } from '../../../../src/base/byte-budget.ts'
import { FrameMemory } from '../../../../src/gateway/shared/frame-memory.ts'

const MIB = 1024 * 1024
const LARGEST = 16 * MIB

function begin(limitBytes = 256 * MIB) {
  const budget = new ByteBudget(limitBytes)
  const frames = new FrameMemory(budget)
  const order: string[] = []
  const memoryOf = (address: string) => {
    const memory = frames.memoryOf(address, LARGEST)
    return { ...memory, ask: (name: string, bytes: number) => memory.ask(bytes, () => order.push(name)) }
  }
  return { budget, frames, order, memoryOf }
}

test('large frames of one address wait in the order in which they came, and small ones do not wait for them', () => {
  const { frames, order, memoryOf } = begin()
  const memory = memoryOf('a')
  const places = Array.from({ length: 40 }, (_, i) => memory.ask(`${i}`, 12 * MIB))
  const granted = places.filter(({ isGranted }) => isGranted)
  assert.deepEqual([granted.length, granted], [5, places.slice(0, 5)])
  assert.equal(memory.ask('small', MIB / 2).isGranted, true)
  assert.deepEqual([frames.isShortFor('a'), frames.isShortFor('b')], [true, false])
  for (const place of places) memory.leave(place)
  assert.deepEqual(
    order,
    Array.from({ length: 35 }, (_, i) => `${i + 5}`)
  )
})

test('another address has its turn before all that the first one has waiting', () => {
  const { frames, order, memoryOf } = begin()
  const [a, b, c] = [memoryOf('a'), memoryOf('b'), memoryOf('c')]
  const held = [...Array.from({ length: 9 }, (_, i) => a.ask(`a${i}`, 12 * MIB)), b.ask('b0', 60 * MIB)]
  assert.equal(held.filter(({ isGranted }) => isGranted).length, 6)
  assert.equal(c.ask('c0', 16 * MIB).isGranted, false)
  // Whoever holds some of what all lack has to hurry.
  assert.ok(frames.isShortFor('b'))
  for (const place of held.slice(0, 2)) a.leave(place)
  assert.deepEqual(order, ['a5', 'c0'])
})

test('what others hold of the request memory is waited for, and whose turn it is gets what they give back', () => {
  const { budget, order, memoryOf } = begin(64 * MIB)
  const [a, b] = [memoryOf('a'), memoryOf('b')]
  assert.ok(budget.tryReserve(56 * MIB))
  const large = a.ask('large', 14 * MIB)
  const next = b.ask('next', 2 * MIB)
  assert.deepEqual([large.isGranted, next.isGranted], [false, false])
  budget.release(2 * MIB)
  assert.deepEqual(order, [])
  budget.release(20 * MIB)
  assert.deepEqual(order, ['large', 'next'])
  a.leave(large)
  b.leave(next)
  budget.release(34 * MIB)
  assert.equal(budget.usedBytes, 0)
})

test('who is gone before its turn is not missed', () => {
  const { budget, order, memoryOf } = begin(32 * MIB)
  const memory = memoryOf('a')
  const [first, gone, last] = ['first', 'gone', 'last'].map(name => memory.ask(name, 16 * MIB))
  assert.ok(first !== undefined && gone !== undefined && last !== undefined)
  memory.leave(gone)
  memory.leave(first)
  assert.deepEqual([order, last.isGranted], [['last'], true])
  memory.leave(last)
  assert.equal(budget.usedBytes, 0)
})

test('memory is to spare only while half of it and the largest frame stay free, and an address gets an eighth', () => {
  const { budget, memoryOf } = begin()
  const [a, b] = [memoryOf('a'), memoryOf('b')]
  assert.equal(a.trySpare(32 * MIB), true)
  assert.equal(a.trySpare(1), false)
  assert.ok(budget.tryReserve(95 * MIB))
  assert.deepEqual([b.trySpare(2 * MIB), b.trySpare(MIB)], [false, true])
  const narrow = begin(LARGEST + MIB)
  assert.deepEqual([narrow.memoryOf('a').trySpare(2 * MIB), narrow.memoryOf('a').trySpare(MIB)], [false, true])
})
