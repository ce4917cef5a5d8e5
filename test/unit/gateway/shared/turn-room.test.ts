/** Memory that is given in turn: who gets it when, and that nobody waits for ever. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { TurnRoom, type Place } from '../../../../src/gateway/shared/turn-room.ts'
import { diceOf } from '../../../support/log-random.ts'

const unexpected = () => assert.fail('nobody waits here')

describe('memory that is given in turn', () => {
  test('gives the first more than all of it, and the next nothing before that is back', () => {
    const room = new TurnRoom(100, 50)
    const large = room.ask('a', 300, unexpected)
    let granted = 0
    const small = room.ask('b', 1, () => granted++)
    assert.deepEqual([large.isGranted, small.isGranted, room.isShort], [true, false, true])
    room.keep(large, 200)
    assert.equal(granted, 0)
    room.leave(large)
    assert.deepEqual([granted, small.isGranted, room.isShort, room.heldBytes], [1, true, false, 1])
    room.leave(small)
    assert.equal(room.heldBytes, 0)
  })

  test('passes over an address that has its share, and lets nobody overtake who waits for all of it', () => {
    const room = new TurnRoom(100, 50)
    const order: string[] = []
    const ask = (name: string, address: string, bytes: number) => room.ask(address, bytes, () => order.push(name))
    const first = ask('first', 'a', 40)
    ask('second', 'a', 40)
    const other = ask('other', 'b', 30)
    assert.deepEqual([other.isGranted, order], [true, []])
    ask('large', 'c', 90)
    ask('small', 'd', 1)
    room.leave(first)
    room.leave(other)
    assert.deepEqual(order, ['second'])
  })

  test('of who waits no more is not missed', () => {
    const room = new TurnRoom(100, 50)
    const first = room.ask('a', 100, unexpected)
    const gone = room.ask('b', 100, unexpected)
    const last = room.ask('c', 100, () => undefined)
    room.leave(gone)
    room.leave(first)
    assert.equal(last.isGranted, true)
  })

  test('comes to everybody in so many steps, whatever they ask for, while others keep asking', () => {
    for (let seed = 1; seed <= 300; seed++) {
      const dice = diceOf(seed)
      const limit = 1 + dice.below(1000)
      const room = new TurnRoom(limit, Math.max(1, limit >> 1))
      const addresses = 1 + dice.below(8)
      const waiting = new Set<Place>()
      const granted: Place[] = []
      const ask = (): Place => {
        let place: Place | null = null
        const bytes = 1 + dice.below(2 * limit)
        place = room.ask(`${dice.below(addresses)}`, bytes, () => {
          assert.ok(place !== null && waiting.delete(place), `seed ${seed}`)
          granted.push(place)
        })
        if (place.isGranted) granted.push(place)
        else waiting.add(place)
        return place
      }
      for (let i = 2 + dice.below(63); i > 0; i--) ask()
      const watched = ask()
      const before = waiting.size + granted.length
      // Each ends after a while; each is replaced. Who asked before, and one of each other address per turn, may go first.
      for (let steps = before * (addresses + 1); !watched.isGranted; steps--) {
        assert.ok(steps > 0, `seed ${seed}: ${waiting.size} wait for ever`)
        const [ended] = granted.splice(dice.below(granted.length), 1)
        assert.ok(ended !== undefined, `seed ${seed}: nobody has room, and ${waiting.size} wait`)
        if (dice.below(2) === 0) room.keep(ended, ended.bytes >> 1)
        room.leave(ended)
        ask()
      }
    }
  })
})
