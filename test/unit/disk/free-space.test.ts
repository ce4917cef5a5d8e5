/** When produce stops for lack of room, and that it goes on by itself. */
import assert from 'node:assert/strict'
import { tmpdir } from 'node:os'
import { describe, it } from 'node:test'
import { silentLogger } from '../../../src/base/logger.ts'
import { FreeSpace } from '../../../src/disk/free-space.ts'
import { waitFor } from '../../support/broker.ts'

function watch(reserveBytes: number, freeBytesOf?: () => Promise<number>): FreeSpace {
  const options = { directory: tmpdir(), reserveBytes, logger: silentLogger }
  return new FreeSpace(freeBytesOf === undefined ? options : { ...options, freeBytesOf })
}

describe('the watch over free space', () => {
  it('is low below the reserve, and not any more when there is room', async () => {
    let free = 1000
    const space = watch(1000, () => Promise.resolve(free))
    const seen: boolean[] = []
    for (free of [1000, 999, 0, 1000]) {
      await space.look()
      seen.push(space.isLow)
    }
    assert.deepEqual(seen, [false, true, true, false])
  })

  it('asks the file system itself', async () => {
    const space = watch(1)
    await space.look()
    assert.ok(space.freeBytes > 0 && space.freeBytes < Infinity)
    const full = watch(Number.MAX_SAFE_INTEGER)
    await full.start()
    full.stop()
    assert.equal(full.isLow, true)
  })

  it('asks one question at a time', async () => {
    let asked = 0
    const { promise, resolve } = Promise.withResolvers<number>()
    const space = watch(1, () => {
      asked++
      return promise
    })
    const first = space.look()
    await space.look()
    assert.equal(asked, 1)
    resolve(7)
    await first
    assert.equal(space.freeBytes, 7)
  })

  it('goes on looking without a reserve, for compaction', async () => {
    let free = 1
    const space = watch(0, () => Promise.resolve(free))
    await space.start()
    free = 2
    await waitFor('the next look', () => space.freeBytes === 2, 10_000)
    space.stop()
  })

  it('never refuses on a reserve of 0, or where the file system says nothing', async () => {
    const none = watch(0, () => Promise.resolve(0))
    await none.start()
    none.stop()
    assert.equal(none.isLow, false)
    const silent = watch(1000, () => Promise.reject(new Error('ENOSYS')))
    await silent.look()
    assert.equal(silent.isLow, false)
  })
})
