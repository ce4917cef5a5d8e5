/** Turns by key. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { KeyTurns } from '../../../../src/gateway/kafka/key-turns.ts'

/** For a turn that is waited for patiently. */
function takeTurn(turns: KeyTurns, keyId: string, onTurn: (end: () => void) => void): void {
  turns.take(keyId, 60_000, { onTurn, onLate: () => assert.fail('it came') })
}

test('one has its turn at a time by key, in order, and other keys do not wait for it', () => {
  const turns = new KeyTurns()
  const begun: string[] = []
  const ends: (() => void)[] = []
  const take = (keyId: string, name: string): void => {
    takeTurn(turns, keyId, end => {
      begun.push(name)
      ends.push(end)
    })
  }
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
  takeTurn(turns, 'a', end => void (endFirst = end))
  let count = 0
  for (let i = 0; i < 100_000; i++)
    takeTurn(turns, 'a', end => {
      count++
      end()
    })
  endFirst?.()
  assert.equal(count, 100_000)
})

test('who waits longer than it would hears so, and leaves its place to those after it', t => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const turns = new KeyTurns()
  const told: string[] = []
  let endFirst: (() => void) | undefined
  takeTurn(turns, 'a', end => void (endFirst = end))
  const take = (name: string, waitMs: number): (() => void) =>
    turns.take('a', waitMs, {
      onTurn: end => {
        told.push(`${name} in turn`)
        end()
      },
      onLate: () => void told.push(`${name} late`)
    })
  take('short', 10)
  const giveUpPatient = take('patient', 1000)
  const giveUpOther = take('other', 1000)
  t.mock.timers.tick(10)
  assert.deepEqual(told, ['short late'])
  giveUpOther()
  endFirst?.()
  assert.deepEqual(told, ['short late', 'other late', 'patient in turn'])
  // What is over stays so.
  giveUpPatient()
  giveUpOther()
  t.mock.timers.tick(1000)
  assert.equal(told.length, 3)
  const giveUpFree = take('last', 10)
  giveUpFree()
  assert.deepEqual(told.slice(3), ['last in turn'])
})
