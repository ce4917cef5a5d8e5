/** Reads that wait, apart from any server: what the end of the gateway means to them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ReadWaits } from '../../../../../src/gateway/http/reads/read-wait.ts'
import { anonymous } from '../../../../../src/model/principal.ts'
import { readFormats } from '../../../../../src/model/requests.ts'
import { FakeWatches } from '../../fake-watches.ts'

const read = {
  topic: 't',
  partition: 0,
  offsetHigh: 0,
  offsetLow: 0,
  maxRecords: 1,
  maxBytes: 1,
  format: readFormats.jsonUtf8
}
const reply = { watcher: null }

test('a read that comes to wait after the gateway began to stop is made at once', () => {
  const watches = new FakeWatches()
  const waits = new ReadWaits({
    submitWatch: (who, watch, caller) => watches.submit(who, watch, caller),
    refusalOfRead: () => null
  })
  const made: string[] = []
  const begin = (name: string): void =>
    waits.begin({
      who: anonymous,
      reply,
      read,
      wait: { maxWaitMs: 60_000, minBytes: 1 },
      go: () => void made.push(name),
      refuse: assert.fail
    })
  begin('before')
  assert.deepEqual([made, watches.standing.size], [[], 1])
  waits.endAll()
  assert.deepEqual([made, watches.standing.size], [['before'], 0])
  begin('behind')
  assert.deepEqual([made, watches.standing.size], [['before', 'behind'], 0])
})
