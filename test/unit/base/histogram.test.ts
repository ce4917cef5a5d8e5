/** Counts by size, as Prometheus wants them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Histogram, histogramSlots } from '../../../src/base/histogram.ts'

test('an observation counts in the first bucket whose bound is not below it', () => {
  const histogram = new Histogram([1, 10])
  for (const value of [0, 1, 1.5, 10, 11, 1e9]) histogram.observe(value)
  assert.deepEqual(histogram.read(), { bounds: [1, 10], counts: [2, 2, 2], sum: 1e9 + 23.5 })
})

test('a histogram in shared memory is read where it was not written', () => {
  const shared = new SharedArrayBuffer(8 * histogramSlots(2))
  const written = new Histogram([1, 2], new Float64Array(shared))
  written.observe(1.5)
  assert.deepEqual(new Histogram([1, 2], new Float64Array(shared)).read(), {
    bounds: [1, 2],
    counts: [0, 1, 0],
    sum: 1.5
  })
})

test('memory of another size is refused', () => {
  assert.throws(() => new Histogram([1, 2], new Float64Array(3)))
})
