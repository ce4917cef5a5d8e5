/** Ids of events as a client sends them back, good ones and whatever else comes. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { BrokerError } from '../../../../../src/model/errors.ts'
import { fitCursor, readCursor, type Cursor } from '../../../../../src/gateway/http/streams/cursor.ts'

const field = 'Last-Event-ID'
const read = (id: string): readonly bigint[] => readCursor(id, field).offsets
const cursor = (...offsets: bigint[]): Cursor => ({ field, offsets })

function assertRefused(step: () => unknown, words: RegExp): void {
  assert.throws(step, error => {
    assert.ok(error instanceof BrokerError && error.code === 'FIELD_INVALID', String(error))
    assert.match(error.message, /^Last-Event-ID: /)
    assert.match(error.message, words)
    assert.ok(error.message.length < 300, 'what was sent is not sent back')
    return true
  })
}

test('an id is the offsets of partitions in order, up to 2^64 − 1', () => {
  assert.deepEqual(read('0'), [0n])
  assert.deepEqual(read('7,0,18446744073709551615'), [7n, 0n, 2n ** 64n - 1n])
  assert.equal(read(Array.from({ length: 256 }, () => '18446744073709551615').join(',')).length, 256)
})

test('what is no id is refused by its first wrong number, without sending it back', () => {
  for (const [id, number] of [
    ['', 1],
    ['a', 1],
    ['1,', 2],
    [',1', 1],
    ['1,,2', 2],
    ['1, 2', 2],
    ['-1', 1],
    ['1.5', 1],
    ['0x1', 1],
    ['1e3', 1],
    ['18446744073709551616', 1],
    ['000000000000000000001', 1],
    ['١', 1]
  ] as const) {
    assertRefused(() => read(id), new RegExp(`its number ${number} is not a whole number`))
  }
  assertRefused(() => read('1'.repeat(16_000)), /longer than the 5375 characters/)
  assertRefused(() => read(','.repeat(6_000)), /longer than/)
})

test('an id with fewer numbers than partitions leaves the rest at 0, and one with more is refused', () => {
  assert.deepEqual(fitCursor(cursor(5n), 3), [5n, 0n, 0n])
  assert.deepEqual(fitCursor(cursor(5n, 6n), 2), [5n, 6n])
  assertRefused(() => fitCursor(cursor(5n, 6n, 7n), 2), /has 3 numbers, and the stream has 2 partition/)
})

test('any text is an id that reads back as it was written, or refused', () => {
  const pieces = fc.array(fc.oneof(fc.bigInt(0n, 2n ** 64n - 1n).map(String), fc.string(), fc.constant('')), {
    maxLength: 300
  })
  fc.assert(
    fc.property(pieces, parts => {
      const id = parts.join(',')
      try {
        assert.equal(
          read(id).join(','),
          id
            .split(',')
            .map(part => BigInt(part))
            .join(',')
        )
      } catch (error) {
        if (!(error instanceof BrokerError)) throw error
        assert.equal(error.code, 'FIELD_INVALID')
      }
    })
  )
})

test('an id is refused by the name under which it was sent', () => {
  const refusalOf = (step: () => unknown): string => {
    try {
      step()
    } catch (error) {
      return String(error)
    }
    return assert.fail('it was taken')
  }
  for (const field of ['Last-Event-ID', 'last_event_id'] as const) {
    assert.ok(refusalOf(() => readCursor('x', field)).includes(`${field}: its number 1`))
    assert.ok(refusalOf(() => readCursor('1'.repeat(9000), field)).includes(`${field}: is longer`))
    assert.ok(refusalOf(() => fitCursor(readCursor('1,2', field), 1)).includes(`${field}: has 2 numbers`))
  }
})
