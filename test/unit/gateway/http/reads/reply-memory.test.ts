/** What an answer holds, from its reservation to its last byte. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ByteBudget } from '../../../../../src/base/byte-budget.ts'
import { answerBytesOf, grantOf, ReplyMemory } from '../../../../../src/gateway/http/reads/reply-memory.ts'
import { limits } from '../../../../../src/model/limits.ts'

const KIB = 1024
const MIB = 1024 * KIB
const LEAST_BYTES = answerBytesOf(limits.shortReadBytesMin)

describe('the reply memory of a read', () => {
  test('is what it asks for while there is room, then a part of what is free, then at least a chunk, else none', () => {
    assert.equal(grantOf(8 * MIB, Infinity), 8 * MIB)
    assert.equal(grantOf(8 * MIB, 8 * MIB), 8 * MIB)
    assert.equal(grantOf(8 * MIB, 8 * MIB - 1), 2 * MIB - 1)
    assert.equal(grantOf(8 * MIB, MIB), LEAST_BYTES)
    assert.equal(grantOf(8 * MIB, LEAST_BYTES), LEAST_BYTES)
    assert.equal(grantOf(8 * MIB, LEAST_BYTES - 1), 0)
    assert.equal(grantOf(100, 99), 0)
  })

  test('is the length of the answer once that is known, and shrinks as the socket takes it', () => {
    const budget = new ByteBudget(64 * MIB)
    const memory = new ReplyMemory(budget)
    const holding = memory.open('a')
    assert.equal(holding.reserve(MIB), 'held')
    assert.equal(budget.usedBytes, answerBytesOf(MIB))
    holding.settle(300 * KIB)
    assert.equal(budget.usedBytes, 300 * KIB)
    let wakeCount = 0
    budget.whenReleased(() => wakeCount++)
    for (let i = 0; i < 63; i++) holding.take(KIB)
    assert.deepEqual([budget.usedBytes, wakeCount], [300 * KIB, 0], 'in steps, not for every few bytes')
    holding.take(KIB)
    assert.deepEqual([budget.usedBytes, wakeCount], [236 * KIB, 1])
    holding.take(200 * KIB)
    assert.equal(budget.usedBytes, 36 * KIB)
    holding.close()
    holding.close()
    holding.take(36 * KIB)
    assert.deepEqual([budget.usedBytes, memory.partyCount], [0, 0])
  })

  test('of what is kept besides is all of it or nothing', () => {
    const budget = new ByteBudget(16 * MIB)
    const memory = new ReplyMemory(budget)
    const [first, second] = [memory.open('a'), memory.open('a')]
    assert.equal(first.tryKeep(3 * MIB), true)
    assert.equal(second.tryKeep(3 * MIB), false, 'a share has four')
    assert.deepEqual([budget.usedBytes, second.heldBytes], [3 * MIB, 0])
    first.keep(MIB)
    assert.equal(second.tryKeep(3 * MIB), true)
    first.keep(2 * MIB)
    assert.equal(budget.usedBytes, 5 * MIB, 'what is here is counted')
    for (const holding of [first, second]) holding.close()
    assert.deepEqual([budget.usedBytes, memory.partyCount], [0, 0])
  })

  test('of a single read is a part of the share where it asks for more than that', () => {
    const memory = new ReplyMemory(new ByteBudget(16 * MIB))
    const [first, second] = [memory.open('a'), memory.open('a')]
    assert.equal(first.reserve(8 * MIB), 'held')
    assert.equal(first.heldBytes, MIB)
    assert.equal(second.reserve(500 * KIB), 'held')
    assert.equal(second.readBytesMax, 500 * KIB)
    assert.ok(!first.isShort, 'half of the share is free')
  })

  test('counts a record larger than what was reserved, also beyond the limit, and then nobody gets more', () => {
    const budget = new ByteBudget(MIB)
    const memory = new ReplyMemory(budget)
    const holding = memory.open('a')
    assert.equal(holding.reserve(1), 'held')
    holding.settle(3 * MIB)
    assert.deepEqual([budget.usedBytes, budget.roomBytes], [3 * MIB, 0])
    assert.equal(memory.open('b').reserve(1), 'bytes-full')
    holding.close()
    assert.equal(budget.usedBytes, 0)
  })

  test('is short for a party as long as what it holds is what a read of its own wants', () => {
    const budget = new ByteBudget(64 * MIB)
    const memory = new ReplyMemory(budget)
    const [first, second, third] = [memory.open('a'), memory.open('a'), memory.open('a')]
    const other = memory.open('b')
    first.reserve(8 * MIB)
    assert.ok(!first.isShort, 'nobody wanted more')
    assert.equal(second.reserve(8 * MIB), 'held')
    assert.ok(second.readBytesMax < 8 * MIB)
    assert.ok(first.isShort)
    assert.equal(other.reserve(8 * MIB), 'held')
    assert.ok(!other.isShort)
    first.close()
    assert.ok(!second.isShort)
    assert.equal(third.reserve(8 * MIB), 'held')
    assert.equal(third.readBytesMax, 8 * MIB)
  })
})
