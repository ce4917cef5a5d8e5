import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { StoreImage } from '../../../src/control/store-image.ts'
import { freshDataDir, openForTest, StoreChild } from './store-tools.ts'

const ackedOf = (lines: readonly string[]) =>
  lines.filter(line => line.startsWith('acked ')).map(line => Number(line.slice('acked '.length)))

/** Which pairs of store-child.ts are stored whole. @throws if one is stored in half. */
function wholePairs(image: StoreImage): Set<number> {
  const names = new Set(image.topics.map(topic => topic.name))
  const numbersOf = (side: string) =>
    [...names].filter(name => name.startsWith(`${side}-`)).map(name => Number(name.slice(side.length + 1)))
  assert.deepEqual(numbersOf('left'), numbersOf('right'), 'a commit was stored in half')
  return new Set(numbersOf('left'))
}

describe('a kill -9 in a storm of commits', () => {
  for (const ackedBeforeKill of [1, 10, 40, 100]) {
    test(`after ${ackedBeforeKill} acks keeps every acknowledged commit, and no commit in half`, async t => {
      const dataDir = freshDataDir(t)
      const child = new StoreChild(t, 'storm', dataDir)
      await child.waitFor(lines => ackedOf(lines).length >= ackedBeforeKill)
      await child.kill()
      const { image } = await openForTest(t, dataDir)
      const pairs = wholePairs(image)
      const lost = ackedOf(child.lines).filter(pair => !pairs.has(pair))
      assert.deepEqual(lost, [])
      assert.equal(image.nextTopicId, Math.max(...image.topics.map(topic => topic.id)) + 1)
    })
  }
})

describe('a disk that fails under the store', () => {
  test('fails the commit as internal, refuses every later one, and loses no acknowledged one', async t => {
    const dataDir = freshDataDir(t)
    // The write-ahead log outgrows 256 KiB after some commits; the kernel then refuses the write (EFBIG).
    const child = new StoreChild(t, 'limited', dataDir, 512)
    await child.waitFor(lines => lines.includes('closed'))
    const failures = child.lines.filter(line => line.startsWith('failed '))
    assert.deepEqual(failures, ['failed INTERNAL unknown', 'failed INTERNAL no'])
    const acked = ackedOf(child.lines)
    assert.ok(acked.length > 5, 'commits before the limit must succeed')
    const pairs = wholePairs((await openForTest(t, dataDir)).image)
    assert.deepEqual(
      acked.filter(pair => !pairs.has(pair)),
      []
    )
  })
})
