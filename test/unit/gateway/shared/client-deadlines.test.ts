/** When a client has taken too long, for what. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ClientDeadlines, type Awaited } from '../../../../src/gateway/shared/client-deadlines.ts'

const timeouts = { bodyMs: 100, idleMs: 1000, writeMs: 500, stalledMs: 50, lingerMs: 10 }
const receive = { heldBytes: 1, pendingBytes: 1, expectedBytes: 2 }
const awaited: Awaited = { receive, isShort: false, isOwed: false }

function begin(): { readonly deadlines: ClientDeadlines; readonly at: (nowMs: number) => number } {
  let nowMs = 0
  const deadlines = new ClientDeadlines({ nowMs: () => 0, monotonicMs: () => nowMs }, timeouts)
  return { deadlines, at: ms => (nowMs = ms) }
}

test('a silence is too long, unless the client is owed an answer', () => {
  const { deadlines } = begin()
  assert.equal(deadlines.lateFrame(1000, awaited), null)
  assert.equal(deadlines.lateFrame(1001, awaited), 'idleTimeout')
  assert.equal(deadlines.lateFrame(1001, { ...awaited, isOwed: true }), null)
})

test('a frame counts from its length on, however often it is looked at, and the next silence from its end', () => {
  const { deadlines, at } = begin()
  at(900)
  deadlines.noteFrame()
  at(950)
  deadlines.noteFrame()
  // What is taken of answers meanwhile gives it no more time.
  deadlines.writeTaken()
  assert.equal(deadlines.lateFrame(1000, awaited), null)
  assert.equal(deadlines.lateFrame(1001, awaited), 'bodyTimeout')
  at(1001)
  deadlines.frameTaken()
  assert.equal(deadlines.lateFrame(2001, awaited), null)
  at(1500)
  deadlines.writeTaken()
  assert.equal(deadlines.lateFrame(2500, awaited), null)
  assert.equal(deadlines.lateFrame(2501, awaited), 'idleTimeout')
})

/** A frame of which so much more is there at each look of a sweep. @returns when it is given up; Infinity: it is not. */
function feed(seen: Awaited, bytesALook: number, looks: readonly number[]): number {
  const { deadlines } = begin()
  deadlines.noteFrame()
  for (const [look, nowMs] of looks.entries()) {
    const awaited = { ...seen, receive: { ...seen.receive, pendingBytes: 1 + look * bytesALook } }
    if (deadlines.lateFrame(nowMs, awaited) === 'memory') return nowMs
  }
  return Infinity
}

const sweeps = [0, 12, 24, 36, 48, 60, 72]
const isShort = { ...awaited, isShort: true }

test('a frame that comes on too slowly is given up only while memory is short, and if some is set aside for it', () => {
  assert.equal(feed(isShort, 0, sweeps), 60)
  assert.equal(feed(awaited, 0, sweeps), Infinity)
  assert.equal(feed({ ...isShort, receive: { ...receive, heldBytes: 0 } }, 0, sweeps), Infinity)
})

test('a frame must come as fast as it must to be whole in time, and at 16 KiB a second at least', () => {
  // 12 ms at 16 KiB a second are 197 bytes; and a thousandth of the frame a millisecond would be in time ten times over.
  assert.deepEqual([feed(isShort, 197, sweeps), feed(isShort, 196, sweeps)], [Infinity, 60])
  const large = { ...isShort, receive: { ...receive, expectedBytes: 1_000_000 } }
  assert.deepEqual([feed(large, 120_000, sweeps), feed(large, 119_999, sweeps)], [Infinity, 60])
})

test('while nobody was read no frame is given up for it, and none for the time in which it waited', () => {
  assert.equal(feed(isShort, 0, [0, 12, 5000]), Infinity)
  const { deadlines, at } = begin()
  deadlines.noteFrame()
  assert.equal(deadlines.lateFrame(0, isShort), null)
  assert.equal(deadlines.lateFrame(25, isShort), null)
  at(90)
  deadlines.restart()
  for (const nowMs of [90, 110, 130]) assert.equal(deadlines.lateFrame(nowMs, isShort), null)
})

test('a write has less time while others wait for its memory, and a client that should close has little', () => {
  const { deadlines } = begin()
  assert.deepEqual([deadlines.isWriteLate(510, 10, false), deadlines.isWriteLate(511, 10, false)], [false, true])
  assert.deepEqual([deadlines.isWriteLate(60, 10, true), deadlines.isWriteLate(61, 10, true)], [false, true])
  assert.equal(deadlines.isWriteLate(10_000, -1, true), false)
  assert.deepEqual([deadlines.isLingerOver(10), deadlines.isLingerOver(11)], [false, true])
})
