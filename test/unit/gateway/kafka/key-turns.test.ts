/** Turns by key. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { KeyTurns } from '../../../../src/gateway/kafka/key-turns.ts'

test('one has its turn at a time by key, in order, and other keys do not wait for it', () => {
  const turns = new KeyTurns()
  const begun: string[] = []
  const ends: (() => void)[] = []
  const take = (keyId: string, name: string): void =>
    turns.take(keyId, end => {
      begun.push(name)
      ends.push(end)
    })
  take('a', 'a1')
  take('a', 'a2')
  take('b', 'b1')
  take('a', 'a3')
  assert.deepEqual(begun, ['a1', 'b1'])
  ends[0]?.()
  assert.deepEqual(begun, ['a1', 'b1', 'a2'])
  ends[2]?.()
  ends[3]?.()
  take('a', 'a4')
  assert.deepEqual(begun, ['a1', 'b1', 'a2', 'a3', 'a4'])
})

test('a long line whose turns end at once is no deep stack', () => {
  const turns = new KeyTurns()
  let endFirst: (() => void) | undefined
  turns.take('a', end => void (endFirst = end))
  let count = 0
  for (let i = 0; i < 100_000; i++)
    turns.take('a', end => {
      count++
      end()
    })
  endFirst?.()
  assert.equal(count, 100_000)
})
