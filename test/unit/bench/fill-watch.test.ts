/** When the slots of a fresh broker count as filled. */
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { allocatedBytes, watchFill } from '../../../native-free-bench/fill-watch.ts'

const nothing = (): number => 0

test("the broker's own word counts at once", async () => {
  let looks = 0
  const reportedBytes = (): number => ++looks * 10
  assert.equal(await watchFill({ wantedBytes: 30, timeoutMs: 10_000, reportedBytes, allocatedBytes: nothing }), 30)
})

test('without its word the directory must have reached the size and stopped to grow', async () => {
  let size = 0
  let looks = 0
  const growing = (): number => (++looks <= 4 ? (size += 20) : size)
  assert.equal(
    await watchFill({ wantedBytes: 30, timeoutMs: 10_000, reportedBytes: nothing, allocatedBytes: growing }),
    80
  )
  assert.ok(looks > 4)
})

test('after the time is over it says how much there is', async () => {
  assert.equal(await watchFill({ wantedBytes: 30, timeoutMs: 60, reportedBytes: nothing, allocatedBytes: () => 7 }), 7)
})

test('a filler that ended below the wanted size is not waited for until the end', async () => {
  const startedMs = performance.now()
  const watch = { wantedBytes: 30, timeoutMs: 600_000, reportedBytes: nothing, allocatedBytes: () => 20 }
  assert.equal(await watchFill(watch), 20)
  assert.ok(performance.now() - startedMs < 60_000)
})

test('blocks on disk are counted in all folders, holes are not', t => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-fill-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  mkdirSync(join(folder, 'a'))
  writeFileSync(join(folder, 'a', 'full'), Buffer.alloc(1024 * 1024, 1), { flush: true })
  writeFileSync(join(folder, 'hole'), '')
  truncateSync(join(folder, 'hole'), 64 * 1024 * 1024)
  const bytes = allocatedBytes(folder)
  assert.ok(bytes >= 1024 * 1024 && bytes < 2 * 1024 * 1024, String(bytes))
})
