/** How late the event loop is, as the page tells it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LoopDelay } from '../../../src/observe/loop-delay.ts'
import { waitFor } from '../../support/broker.ts'

test('a loop that was held shows it in its worst, less the period of the monitor at most', async t => {
  const delay = new LoopDelay()
  t.after(() => delay.stop())
  await waitFor('a first measurement', () => delay.read().length > 0)
  const before = performance.now()
  while (performance.now() - before < 120);
  const worst = await waitFor('the stall', () => {
    const seconds = delay.read().find(({ quantile }) => quantile === 1)?.seconds ?? 0
    return seconds >= 0.1 && seconds
  })
  assert.ok(worst < 60, String(worst))
  const [half, most] = delay.read()
  assert.ok(half !== undefined && most !== undefined && half.seconds <= most.seconds)
})
