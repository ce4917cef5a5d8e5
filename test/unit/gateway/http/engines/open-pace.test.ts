/** Which clients of open answers are late. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Lateness } from '../../../../../src/gateway/http/engines/answer-pace.ts'
import { OpenPace } from '../../../../../src/gateway/http/engines/open-pace.ts'
import { limits } from '../../../../../src/model/limits.ts'

const timeouts = { writeMs: 10_000, stalledMs: 2_000 }

interface Look {
  readonly isShort?: boolean
  readonly isOwnShort?: boolean
  readonly wasBusy?: boolean
}

/** A look at that time. */
function lookAt(pace: OpenPace, nowMs: number, { isShort = false, isOwnShort = false, wasBusy = false }: Look = {}) {
  return pace.look({ nowMs, timeouts, isShort, wasBusy }, isOwnShort)
}

/** A client that takes a little every second of so many bytes. @returns when it was late. */
function drip(bytes: number, look: Look): { readonly atMs: number; readonly lateness: Lateness } | null {
  const pace = new OpenPace()
  pace.block(0, bytes)
  for (let atMs = 1000; atMs <= 60_000; atMs += 1000) {
    pace.took(atMs)
    const lateness = lookAt(pace, atMs, look)
    if (lateness !== null) return { atMs, lateness }
  }
  return null
}

describe('the client of an open answer', () => {
  test('is never late while nothing waits for it, however long', () => {
    const pace = new OpenPace()
    assert.equal(lookAt(pace, 1e9, { isShort: true }), null)
    pace.block(1e9, 100)
    pace.free()
    assert.equal(lookAt(pace, 2e9, { isShort: true }), null)
  })

  test('that takes nothing is stalled after its time, and sooner while memory is short for all or its own party', () => {
    const pace = new OpenPace()
    pace.block(0, 1000)
    assert.deepEqual([lookAt(pace, 10_000), lookAt(pace, 10_001)], [null, 'stalled'])
    for (const look of [{ isShort: true }, { isOwnShort: true }]) {
      assert.deepEqual([lookAt(pace, 2_000, look), lookAt(pace, 2_001, look)], [null, 'stalled'])
    }
    pace.took(9_000)
    assert.equal(lookAt(pace, 19_000), null)
    pace.block(18_000, 1000)
    assert.equal(lookAt(pace, 19_001), 'stalled', 'more that waits is nothing taken')
  })

  test('that takes a little now and then is slow only while memory is short, by what waits for it', () => {
    assert.equal(drip(256 * 1024, {}), null)
    assert.equal(drip(256 * 1024, { isShort: true, wasBusy: true }), null)
    assert.deepEqual(drip(256 * 1024, { isShort: true }), {
      atMs: (256 * 1024 * 1000) / limits.shortAnswerBytesPerSecond + 1000,
      lateness: 'slow'
    })
    assert.deepEqual(drip(100, { isOwnShort: true }), { atMs: 3000, lateness: 'slow' })
  })

  test('begins anew each time that it has taken all', () => {
    const pace = new OpenPace()
    for (let atMs = 0; atMs < 60_000; atMs += 1500) {
      pace.block(atMs, 1000)
      assert.equal(lookAt(pace, atMs + 1499, { isShort: true }), null)
      pace.free()
    }
  })
})
