/** The producer ids in memory: their numbers, their limits, and which rows are out of date. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ProducerTable } from '../../../src/control/producer-table.ts'
import { limits } from '../../../src/model/limits.ts'
import { emptyImage } from './topics.ts'

describe('the table of producers', () => {
  test('never gives a number twice, also after removals and a restart', () => {
    const table = new ProducerTable({ ...emptyImage, nextProducerNumber: 41 })
    const first = table.add('a', 'key', 0)
    table.remove(first)
    assert.deepEqual([first.number, table.add('a', 'key', 0).number], [41, 42])
    assert.equal(table.withNumber(41), undefined)
    const stored = { number: 42, id: 'a', owner: 'key', isClaimed: true, lastUsedMs: 0 }
    assert.throws(() => new ProducerTable({ producers: [stored], nextProducerNumber: 42 }), /next producer number/)
  })

  test('counts the ids of each key, those that are not claimed too, and gives room when they go', () => {
    const table = new ProducerTable(emptyImage)
    const entries = Array.from({ length: limits.producersPerOwnerMax }, (_, i) => table.add(`p${i}`, 'key', 0))
    assert.throws(() => table.add('more', 'key', 0), {
      code: 'PRODUCERS_TOO_MANY',
      message: /10000 that a key may have/
    })
    table.add('more', 'another key', 0)
    const [first] = entries
    assert.ok(first !== undefined)
    table.remove(first)
    table.add('last', 'key', 0)
  })

  test('tells each row that is out of date once, and not those that are gone', () => {
    const table = new ProducerTable(emptyImage)
    const [a, b, c] = ['a', 'b', 'c'].map(id => table.add(id, 'key', 1000))
    assert.ok(a !== undefined && b !== undefined && c !== undefined)
    table.use(a, 999)
    assert.deepEqual(table.takeChanged(10), [], 'time does not go back')
    for (const entry of [a, b, c]) table.use(entry, 2000)
    table.remove(b)
    assert.deepEqual(table.takeChanged(1), [a])
    assert.deepEqual(table.takeChanged(10), [c])
    table.change(b)
    assert.deepEqual(table.takeChanged(10), [])
  })
})
