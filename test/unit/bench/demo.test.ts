/** The demo's bookkeeping: it must see loss, doubles, wrong order and changed bytes, or its verdict is worth nothing. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Ledger } from '../../../native-free-bench/demo/ledger.ts'
import { partitionOfKey, readDataSets } from '../../../native-free-bench/demo/records.ts'
import { Mismatch, contentHash, verifyPartition } from '../../../native-free-bench/demo/verify.ts'

const sent = ['a', 'b', 'c', 'd', 'e'].map((value, i) => ({ key: `k${i % 2}`, value }))
const read = sent.map((record, offset) => ({ ...record, offset }))
const renumber = (records: typeof read): typeof read => records.map((record, offset) => ({ ...record, offset }))

describe('a partition read back', () => {
  test('passes when it is what was sent', () => {
    assert.equal(verifyPartition('p', sent, read), contentHash(sent))
    assert.equal(verifyPartition('p', [], []), contentHash([]))
  })

  const faults: readonly (readonly [string, typeof read, RegExp])[] = [
    ['lost at the end', read.slice(0, 4), /1 of 5 records are missing from offset 4/],
    ['lost in the middle', renumber(read.toSpliced(2, 1)), /offset 2 lacks the record/],
    ['lost with a hole in the offsets', read.toSpliced(2, 1), /offset 3 stands where 2 belongs/],
    ['doubled', renumber(read.toSpliced(3, 0, ...read.slice(2, 3))), /offset 3 repeats a record/],
    ['doubled at the end', renumber([...read, ...read.slice(4)]), /offset 5 repeats a record/],
    [
      'swapped',
      renumber([0, 2, 1, 3, 4].flatMap(i => read.slice(i, i + 1))),
      /offset 1 holds the record that belongs at 2/
    ],
    [
      'changed in a value',
      read.map(one => (one.offset === 1 ? { ...one, value: 'B' } : one)),
      /offset 1 holds a record that was never sent/
    ],
    [
      'changed in a key',
      read.map(one => (one.offset === 4 ? { ...one, key: 'x' } : one)),
      /offset 4 holds a record that was never sent/
    ]
  ]
  for (const [name, records, message] of faults) {
    test(`fails when a record is ${name}`, () => {
      assert.throws(
        () => verifyPartition('p', sent, records),
        error => error instanceof Mismatch && message.test(error.message)
      )
    })
  }

  test('has a hash that tells apart what concatenation would not', () => {
    assert.notEqual(contentHash([{ key: 'ab', value: 'c' }]), contentHash([{ key: 'a', value: 'bc' }]))
    assert.notEqual(contentHash(sent), contentHash(sent.toReversed()))
  })
})

describe('the ledger of a replay', () => {
  const records = Array.from({ length: 60 }, (_, i) => ({ key: `key-${i % 7}`, value: `value-${i}` }))

  /** Where a correct broker puts the records of a batch, given what is in the log already. */
  function answer(ledger: Ledger, batch: readonly number[], ends: number[]) {
    return batch.map(index => {
      const partition = partitionOfKey(ledger.records[index]?.key ?? '', ledger.partitions)
      const offset = ends[partition] ?? 0
      ends[partition] = offset + 1
      return { partition, offset }
    })
  }

  function halfSent() {
    const ledger = new Ledger(records, 3)
    const batches = [0, 1].flatMap(lane => ledger.batches(lane, 2, 8))
    const ends = [0, 0, 0]
    const [first, second] = batches
    assert.ok(first !== undefined && second !== undefined)
    ledger.send(first)
    ledger.acknowledge(first, answer(ledger, first, ends))
    ledger.send(second)
    return { ledger, first, second, ends }
  }

  function tail(ledger: Ledger, partition: number, from: number, count: number) {
    return ledger
      .expected(partition)
      .slice(from, from + count)
      .map((record, i) => ({ ...record, offset: from + i }))
  }

  test('lanes share the records out, each partition whole to one of them and in order', () => {
    const ledger = new Ledger(records, 3)
    const lanes = [0, 1].map(lane => ledger.batches(lane, 2, 8).flat())
    assert.deepEqual(
      lanes.flat().toSorted((a, b) => a - b),
      records.map((_, index) => index)
    )
    for (const lane of lanes)
      assert.deepEqual(
        lane,
        lane.toSorted((a, b) => a - b)
      )
    const partitionsOf = lanes.map(lane => new Set(lane.map(index => partitionOfKey(records[index]?.key ?? '', 3))))
    assert.deepEqual(
      [...(partitionsOf[0] ?? [])].filter(partition => partitionsOf[1]?.has(partition)),
      []
    )
  })

  test('after a kill nothing found is sent again and nothing lost is left out, whatever part was written', () => {
    for (const share of [0, 0.5, 1]) {
      const { ledger, first, second } = halfSent()
      assert.equal(ledger.doubtfulCount, second.length)
      let found = 0
      for (let partition = 0; partition < 3; partition++) {
        const from = ledger.doubtfulFrom(partition)
        const doubtful = second.filter(index => partitionOfKey(records[index]?.key ?? '', 3) === partition).length
        const written = Math.floor(doubtful * share)
        found += ledger.settle(partition, tail(ledger, partition, from, written), from + written)
      }
      assert.equal(ledger.settledCount, first.length + found)
      assert.equal(ledger.doubtfulCount, 0)
      const rest = [0, 1].flatMap(lane => ledger.batches(lane, 2, 8)).flat()
      assert.equal(rest.length, records.length - first.length - found)
    }
  })

  test('an acknowledgement at another offset or partition is a mismatch', () => {
    const { ledger, second, ends } = halfSent()
    const right = answer(ledger, second, [...ends])
    for (const wrong of [{ offset: 1000 }, { partition: 99 }]) {
      const results = right.map((one, i) => (i === 3 ? { ...one, ...wrong } : one))
      assert.throws(() => ledger.acknowledge(second, results), Mismatch)
    }
    assert.throws(() => ledger.acknowledge(second, right.slice(1)), Mismatch)
  })

  test('a log that lost acknowledged records, doubled some, or holds others is a mismatch', () => {
    const { ledger, first } = halfSent()
    const partition = partitionOfKey(records[first[0] ?? 0]?.key ?? '', 3)
    const from = ledger.doubtfulFrom(partition)
    assert.ok(from > 0)
    assert.throws(() => ledger.settle(partition, [], from - 1), /were acknowledged/)
    assert.throws(() => ledger.settle(partition, tail(ledger, partition, from, 60), from + 60), Mismatch)
    const all = tail(ledger, partition, from, 100)
    assert.throws(() => ledger.settle(partition, all, from + all.length), /only \d+ were sent/)
    assert.throws(() => ledger.settle(partition, [], from + 1), /but ends at/)
  })

  test('a doubtful record that was written with other content is a mismatch', () => {
    const { ledger, second } = halfSent()
    const partition = partitionOfKey(records[second[0] ?? 0]?.key ?? '', 3)
    const from = ledger.doubtfulFrom(partition)
    const found = tail(ledger, partition, from, 1).map(one => ({ ...one, value: 'other' }))
    assert.throws(() => ledger.settle(partition, found, from + 1), /holds another record/)
  })
})

describe('the real data', () => {
  test('has as many records as the demo promises, each with its key and its JSON as value', () => {
    const [flights, earthquakes] = readDataSets()
    assert.equal(flights?.records.length, 231_083)
    assert.equal(earthquakes?.records.length, 1707)
    assert.deepEqual(flights?.records[0], {
      key: '405',
      value: '{"delay":14,"distance":405,"time":0.016666666666666666}'
    })
    assert.equal(earthquakes?.records[0]?.key, 'ci')
  })

  test('keys go to the partitions of the specification', () => {
    const keys = ['user-1', 'user-2', 'k1', 'alice', 'bob', '']
    assert.deepEqual(
      keys.map(key => partitionOfKey(key, 3)),
      [2, 2, 2, 2, 0, 2]
    )
    assert.deepEqual(
      keys.map(key => partitionOfKey(key, 8)),
      [4, 5, 1, 7, 4, 5]
    )
  })
})
