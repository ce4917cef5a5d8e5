/** Which clients are late with their answers. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { AnswerPace } from '../../../../../src/gateway/http/engines/answer-pace.ts'
import type { Lateness } from '../../../../../src/gateway/http/engines/answer-pace.ts'
import { limits } from '../../../../../src/model/limits.ts'

const KIB = 1024
const timeouts = { writeMs: 10_000, stalledMs: 2_000 }
const WINDOW_BYTES = 2 * limits.shortAnswerBytesPerSecond

interface Taking {
  readonly waitingBytes: number
  /** In each half second. */
  readonly bytes: number
  readonly isShort?: boolean
  readonly isOwnShort?: boolean
  /** Looks that come too late, by number. */
  readonly busyLooks?: readonly number[]
  readonly looks?: number
}

/** A client that takes so much every half second, looked at as often. @returns when it was late, and how. */
function watch(taking: Taking): { readonly atMs: number; readonly lateness: Lateness } | null {
  const { bytes, isShort = true, isOwnShort = false, busyLooks = [], looks = 60 } = taking
  const pace = new AnswerPace()
  let waitingBytes = taking.waitingBytes
  pace.begin(0, waitingBytes)
  for (let look = 1; look <= looks && waitingBytes > 0; look++) {
    const nowMs = look * 500
    const takenBytes = Math.min(bytes, waitingBytes)
    waitingBytes -= takenBytes
    if (takenBytes > 0) pace.took(nowMs - 1, takenBytes)
    if (waitingBytes === 0) pace.end()
    const parts = { nowMs, timeouts, isShort, wasBusy: busyLooks.includes(look) }
    const lateness = pace.look(parts, isOwnShort, waitingBytes)
    if (lateness !== null) return { atMs: nowMs, lateness }
  }
  return null
}

describe('a client that takes its answer', () => {
  test('not at all is late after the time for that, and earlier while reply memory is short', () => {
    const nothing = { waitingBytes: 8_000 * KIB, bytes: 0 }
    assert.deepEqual(watch({ ...nothing, isShort: false }), { atMs: 10_500, lateness: 'stalled' })
    assert.equal(watch({ ...nothing })?.atMs, 2_000)
    assert.equal(watch({ ...nothing, isShort: false, isOwnShort: true })?.atMs, 2_000)
  })

  test('in drops is late while reply memory is short, for anyone or for its party, and not otherwise', () => {
    const drops = { waitingBytes: 8_000 * KIB, bytes: 100 }
    assert.deepEqual(watch(drops), { atMs: 2_000, lateness: 'slow' })
    assert.deepEqual(watch({ ...drops, isShort: false, isOwnShort: true }), { atMs: 2_000, lateness: 'slow' })
    assert.equal(watch({ ...drops, isShort: false }), null)
  })

  test('at the least rate is never late, just below it is', () => {
    const eachLook = WINDOW_BYTES / 4
    assert.equal(watch({ waitingBytes: 8_000 * KIB, bytes: eachLook }), null)
    assert.equal(watch({ waitingBytes: 8_000 * KIB, bytes: eachLook - 1 })?.lateness, 'slow')
  })

  test('that is smaller than what the window asks for is not late for that', () => {
    const waitingBytes = WINDOW_BYTES / 4
    assert.equal(watch({ waitingBytes, bytes: waitingBytes / 4 }), null)
    assert.deepEqual(watch({ waitingBytes, bytes: waitingBytes / 8 }), { atMs: 2_000, lateness: 'slow' })
  })

  test('is not judged over a time in which this broker was busy itself', () => {
    const drops = { waitingBytes: 8_000 * KIB, bytes: 100 }
    assert.equal(watch({ ...drops, busyLooks: [3, 6, 9, 12], looks: 12 }), null)
    assert.equal(watch({ ...drops, busyLooks: [3] })?.atMs, 3_500)
  })

  test('begins anew with each part that waits, and nothing is late that does not wait', () => {
    const pace = new AnswerPace()
    const look = (nowMs: number): Lateness | null =>
      pace.look({ nowMs, timeouts, isShort: true, wasBusy: false }, false, 1_000)
    assert.equal(look(60_000), null)
    pace.begin(60_000, 1_000)
    pace.took(60_100, 1_000)
    pace.end()
    assert.equal(look(90_000), null)
    pace.begin(90_000, 1_000)
    assert.equal(look(91_900), null)
    assert.notEqual(look(92_001), null)
  })
})
