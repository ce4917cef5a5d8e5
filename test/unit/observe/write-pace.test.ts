/** The write speed that the page tells of: that of the last ten seconds, whoever asks and whenever. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { WritePace } from '../../../src/observe/write-pace.ts'

test('the speed is that since the oldest of three looks', t => {
  let nowMs = 0
  let bytes = 1000
  const pace = new WritePace(
    () => new Map([[0, bytes]]),
    () => nowMs
  )
  t.after(() => pace.stop())
  const go = (ms: number, more: number): void => {
    nowMs += ms
    bytes += more
  }
  assert.equal(pace.bytesPerSecond(0, bytes), 0, 'nothing is known yet')
  go(5000, 5000)
  pace.look()
  assert.equal(pace.bytesPerSecond(0, bytes), 1000)
  go(5000, 0)
  pace.look()
  assert.equal(pace.bytesPerSecond(0, bytes), 500)
  go(5000, 0)
  pace.look()
  assert.equal(pace.bytesPerSecond(0, bytes), 0, 'what was written before that does not count any more')
})

test('a shard that began anew, or that nobody knew, has no negative speed', t => {
  let nowMs = 0
  const pace = new WritePace(
    () => new Map([[0, 1000]]),
    () => nowMs
  )
  t.after(() => pace.stop())
  nowMs = 1000
  assert.equal(pace.bytesPerSecond(0, 10), 0)
  assert.equal(pace.bytesPerSecond(1, 10), 10)
})
