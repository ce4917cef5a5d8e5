/**
 * Batches whose header and checksum are right and whose records are anything: they are stored, and no reader, look-up or
 * compaction comes to harm by them. MILLRACE_SEED replays one run.
 */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { SimulatedDisk } from '../../../../src/disk/simulated-disk.ts'
import { compactSegments } from '../../../../src/log/compaction/compact.ts'
import { TimeLookup } from '../../../../src/log/time-lookup.ts'
import { readFormats, type ReadFormat } from '../../../../src/model/requests.ts'
import { clientBatchFault } from '../../../../src/wire/batch/client-batch.ts'
import { STORED_BATCHES_AT } from '../../../../src/wire/batch/stored-batches.ts'
import { BatchView } from '../../../../src/wire/batch/view.ts'
import { placed, splitBatches } from '../../../support/client-batches.ts'
import { hostileBatch } from '../../../support/hostile-batches.ts'
import { partitionOf } from '../../../support/log-harness.ts'
import { chosenSeed, diceOf, replayLine } from '../../../support/log-random.ts'
import { ShardStage } from '../../../support/shard-stage.ts'

const FILE = 'test/unit/workers/shard/hostile-batches.test.ts'
const TOPIC = 1

describe('batches whose records are anything', () => {
  it('are stored as they came, and harm nobody who reads, looks up or compacts', t => {
    const seed = chosenSeed()
    t.diagnostic(replayLine(seed, FILE))
    const dice = diceOf(seed)
    const shard = new ShardStage(t, new SimulatedDisk(), () => 0, { slotBytes: 1 << 20, firstSlotBytes: 1 << 20 })
    shard.log.table.open({ firstHandle: TOPIC, partitionCount: 1, segmentBytes: 20_000 })
    const view = new BatchView()
    const sent: Buffer[] = []
    let end = 0
    for (let i = 0; i < 600; i++) {
      const batch = hostileBatch(dice)
      if (clientBatchFault(view, batch, 0, batch.length) !== null) continue
      shard.batch(i, TOPIC, batch)
      sent.push(placed(batch, end))
      end += view.recordCount
    }
    while (shard.group.run());
    assert.ok(shard.answers().every(({ kind }) => kind === 'batched'))
    assert.ok(sent.length > 400)

    let id = 10_000
    const answerOf = (format: ReadFormat, offset: number): Buffer | null => {
      shard.read(++id, TOPIC, 50_000, offset, format)
      while (shard.reads.run(() => undefined));
      const answers = shard.answers()
      const isRefused = answers.some(answer => answer.kind === 'failed' && answer.code === 'DATA_DAMAGED')
      assert.ok(isRefused || answers.every(({ kind }) => kind === 'read'))
      return isRefused ? null : (shard.contents.get(id) ?? null)
    }
    const stored: Buffer[] = []
    while (stored.length < sent.length) {
      const last = stored.at(-1)
      const offset = last === undefined ? 0 : Number(last.readBigInt64BE(0)) + last.readInt32BE(23) + 1
      const batches = splitBatches(
        (answerOf(readFormats.batches, offset) ?? Buffer.alloc(0)).subarray(STORED_BATCHES_AT)
      )
      assert.ok(batches.length > 0)
      stored.push(...batches)
    }
    assert.deepEqual(stored, sent)
    for (let offset = 0; offset < end;) {
      const answer = answerOf(readFormats.jsonUtf8, offset)
      const { next_offset: next, records } = JSON.parse(String(answer)) as {
        next_offset: number
        records: { offset: number }[]
      }
      assert.ok(next > offset && records.every(record => record.offset >= offset && record.offset < next))
      offset = next
    }
    for (const format of [readFormats.es01, readFormats.msgpack, readFormats.framesBase64])
      for (let offset = 0; offset < end; offset += 7) answerOf(format, offset)

    const log = partitionOf(shard.log, TOPIC, 0)
    for (const ms of [Number.MIN_SAFE_INTEGER, 0, 1_700_000_000_500, Number.MAX_SAFE_INTEGER]) {
      const lookup = new TimeLookup(shard.log.window, log, ms)
      while (!lookup.step());
      assert.ok(lookup.found === null || Number.isSafeInteger(lookup.found.timestampMs))
    }

    const kept: Buffer[] = []
    const source = {
      baseOffset: 0,
      nextOffset: end,
      bytes: sent.reduce((sum, { length }) => sum + length, 0),
      firstReceiveMs: 0,
      receiveMsMax: 1,
      batches: () => sent.map(bytes => ({ bytes, start: 0, end: bytes.length }))
    }
    const request = { segments: [source], tombstoneRetentionMs: 0, nowMs: 10, segmentBytes: 2 ** 31 - 1 }
    const pass = compactSegments(request, {
      beginSegment: () => undefined,
      batch: (bytes, start, stop) => void kept.push(Buffer.from(bytes.subarray(start, stop))),
      endSegment: () => undefined
    })
    let step = pass.next()
    while (step.done !== true) step = pass.next()
    const { opaqueBatches, recordsDropped } = step.value
    assert.ok(opaqueBatches > 50 && recordsDropped > 50, `${opaqueBatches} opaque, ${recordsDropped} dropped`)
    const whole = new Set(sent.map(bytes => bytes.toString('latin1')))
    assert.ok(kept.filter(bytes => whole.has(bytes.toString('latin1'))).length >= opaqueBatches)
  })
})
