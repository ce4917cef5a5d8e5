/** When a client has taken too long, for what. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ClientDeadlines, type Awaited } from '../../../../src/gateway/shared/client-deadlines.ts'

const timeouts = { bodyMs: 100, idleMs: 1000, writeMs: 500, stalledMs: 50, lingerMs: 10 }
const receive = { ownBytes: 1, pendingBytes: 1 }
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

test('a frame that comes on too slowly is given up only while memory is short, and if it holds any', () => {
  const isShort = { ...awaited, isShort: true }
  const dribble = (nowMs: number, seen: Awaited): string | null => {
    const { deadlines } = begin()
    deadlines.noteFrame()
    deadlines.lateFrame(0, seen)
    return deadlines.lateFrame(nowMs, seen)
  }
  assert.equal(dribble(50, isShort), null)
  assert.equal(dribble(51, isShort), 'memory')
  assert.equal(dribble(51, awaited), null)
  assert.equal(dribble(51, { ...isShort, receive: { ownBytes: 0, pendingBytes: 1 } }), null)
})

test('a write has less time while others wait for its memory, and a client that should close has little', () => {
  const { deadlines } = begin()
  assert.deepEqual([deadlines.isWriteLate(510, 10, false), deadlines.isWriteLate(511, 10, false)], [false, true])
  assert.deepEqual([deadlines.isWriteLate(60, 10, true), deadlines.isWriteLate(61, 10, true)], [false, true])
  assert.equal(deadlines.isWriteLate(10_000, -1, true), false)
  assert.deepEqual([deadlines.isLingerOver(10), deadlines.isLingerOver(11)], [false, true])
})
