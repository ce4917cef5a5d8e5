/** What `cleaning` asks for, and what the long cases look for on the disk. */
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { CompactedTopic, cleanedTopicConfig, storedBytes } from '../../../native-free-bench/cleaning.ts'
import { HttpJson } from '../../../native-free-bench/http-json.ts'
import { Faults } from '../../../native-free-bench/load/connections.ts'
import { runWindow } from '../../../native-free-bench/load/window.ts'
import { hasSettledFiles } from '../../../native-free-bench/settled-files.ts'
import { startFakeBroker } from './fake-broker.ts'

const MIB = 1024 * 1024

test('a cleaned topic keeps one budget over all partitions, in several segments each', () => {
  const config = cleanedTopicConfig(1200 * MIB, 12)
  assert.deepEqual(config, { cleanup_policy: 'delete', retention_bytes: 100 * MIB, segment_bytes: 25 * MIB })
})

test('over many partitions a segment stays large enough to be one', () => {
  assert.equal(cleanedTopicConfig(512 * MIB, 10_000)['segment_bytes'], MIB)
})

test('the compacted topic is written beside at its rate, with far more keys than one request holds', async t => {
  const broker = await startFakeBroker(t, { partitions: 4 })
  const addresses = { http: broker.http, es01: broker.es01 }
  const http = new HttpJson(broker.http, 1)
  t.after(() => http.close())
  const topic = new CompactedTopic('es01', addresses)
  const load = await topic.open(new Faults())
  t.after(() => load.close())
  const { sums, extras } = await runWindow(load, { warmUpMs: 100, windowMs: 400, bytesMax: Infinity, brokerPid: null })
  assert.ok(sums.records > 4000 && sums.records < 14_000, String(sums.records))
  assert.ok((extras['compactedRecordsPerSecond'] ?? 0) > 10_000)
  const keys = new Set([...broker.logs.values()].flat().map(one => one.key))
  assert.ok(keys.size > 4000, String(keys.size))
})

test('the bytes of a description are added up, and what is none is an error', () => {
  assert.equal(storedBytes({ partitions: [{ size_bytes: 3 }, { size_bytes: 4 }] }), 7)
  assert.throws(() => storedBytes({ error: 'no' }), /has no partitions/)
  assert.throws(() => storedBytes({ partitions: [{}] }), /has no size_bytes/)
})

test('settling is seen by its first file, not by folders that are made early', t => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-settled-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  assert.equal(hasSettledFiles(folder), false)
  mkdirSync(join(folder, 'packs'))
  assert.equal(hasSettledFiles(folder), false)
  writeFileSync(join(folder, 'packs', 'one'), '')
  assert.equal(hasSettledFiles(folder), true)
})
