/** The bare loop of write and sync: it writes what it says, where it says. */
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { fillFile, runLimit } from '../../../native-free-bench/limit-worker.ts'
import { measureLimit, prepareLimit } from '../../../native-free-bench/limit.ts'

function temporaryFile(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-limit-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return join(folder, 'limit.bin')
}

test('the file is filled to its size before the loop and never grows in it', t => {
  const path = temporaryFile(t)
  fillFile(path, 100_000)
  assert.ok(readFileSync(path).every(byte => byte === 0x5a))
  const task = { path, fileBytes: 100_000, writeBytes: 4096, warmUpMs: 0, windowMs: 30, fill: false }
  const sums = runLimit(task)
  assert.equal(statSync(path).size, 100_000)
  assert.equal(sums.bytes, sums.requests * 4096)
  assert.equal(sums.latency.count, sums.requests)
  // A difference of two readings of the clock, which may be a hair short of the window.
  assert.ok(sums.seconds > 0.0299)
})

test('the bytes of every write are in the file afterwards, whole pieces side by side', t => {
  const path = temporaryFile(t)
  const fileBytes = 3 * 4096 + 100
  fillFile(path, fileBytes)
  // 3 places: after 30 ms all of them were written many times over.
  const sums = runLimit({ path, fileBytes, writeBytes: 4096, warmUpMs: 0, windowMs: 30, fill: false })
  assert.ok(sums.requests >= 3)
  const bytes = readFileSync(path)
  for (let i = 0; i < 3 * 4096; i++) assert.equal(bytes[i], ((i % 4096) * 31 + 7) & 0xff)
  assert.ok(bytes.subarray(3 * 4096).every(byte => byte === 0x5a))
})

test('in a thread of its own the loop gives the same kind of figures', async t => {
  const path = temporaryFile(t)
  await prepareLimit(path, 1024 * 1024)
  const sums = await measureLimit(path, 65_536, { warmUpMs: 5, windowMs: 30 }, 1024 * 1024)
  assert.ok(sums.requests > 0 && sums.bytes === sums.requests * 65_536)
})

test('a file that is not there is an error, not a figure', async t => {
  await assert.rejects(measureLimit(temporaryFile(t), 4096, { warmUpMs: 0, windowMs: 10 }), /ENOENT/)
})
