/** Multiples are those of decimals, as people write them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isMultiple } from '../../../../src/schemas/json-schema/multiple.ts'

const cases: readonly (readonly [number, number, boolean])[] = [
  [6, 3, true],
  [7, 3, false],
  [-6, 3, true],
  [0, 0.1, true],
  [-0, 3, true],
  [4.35, 0.01, true],
  [0.3, 0.1, true],
  [0.35, 0.1, false],
  [1e21, 7e20, false],
  [1.4e21, 7e20, true],
  [1e308, 5e-324, true],
  [5e-324, 1e308, false],
  [1234567890123.456, 0.01, false],
  [1234567890123.45, 0.01, true],
  [2 ** 53 + 2, 3, false],
  [Infinity, 2, false],
  [2, Infinity, false]
]

test('a number is a multiple of another if that is so of what the two are in decimal', () => {
  for (const [value, of, expected] of cases) assert.equal(isMultiple(value, of), expected, `${value} of ${of}`)
})
