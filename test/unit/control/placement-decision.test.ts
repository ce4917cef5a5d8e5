import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decidePlacement } from '../../../src/control/placement-decision.ts'
import type { Placement } from '../../../src/control/store-image.ts'

const of = (shardCount: number | null, nextShardCount: number | null = null): Placement => {
  return { shardCount, epoch: 1, nextShardCount, previousShardCount: null }
}

test('a new directory takes what was asked for, or what suits the machine', () => {
  assert.deepEqual(decidePlacement(of(null), 3, 7), { kind: 'choose', shardCount: 3 })
  assert.deepEqual(decidePlacement(of(null), null, 7), { kind: 'choose', shardCount: 7 })
})

test('the number stays when nobody asks for another, whatever the machine', () => {
  assert.deepEqual(decidePlacement(of(2), null, 7), { kind: 'keep', shardCount: 2 })
  assert.deepEqual(decidePlacement(of(2), 2, 7), { kind: 'keep', shardCount: 2 })
})

test('asking for another changes it, and a change that was not finished goes on', () => {
  const change = { kind: 'change', shardCount: 2, nextShardCount: 3 }
  assert.deepEqual(decidePlacement(of(2), 3, 7), change)
  assert.deepEqual(decidePlacement(of(2, 3), null, 7), change)
  assert.deepEqual(decidePlacement(of(2, 3), 3, 7), change)
  assert.deepEqual(decidePlacement(of(2, 5), 3, 7), change)
})

test('asking for the old number gives an unfinished change up', () => {
  assert.deepEqual(decidePlacement(of(2, 3), 2, 7), { kind: 'give-up', shardCount: 2 })
})
