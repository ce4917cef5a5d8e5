/** The reads of a shard: what each format hears of data that is damaged. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { SimulatedDisk } from '../../../../src/disk/simulated-disk.ts'
import { readFormats } from '../../../../src/model/requests.ts'
import { segmentOf } from '../../../support/log-segments.ts'
import { putSettled } from '../../../support/log-settled.ts'
import { ShardStage } from '../../../support/shard-stage.ts'

const HANDLE = 1

describe('a read that begins with damage', () => {
  it('is refused over ES01 and as whole batches, where nothing can be said of it, and answered in every other format', t => {
    const disk = new SimulatedDisk()
    const shard = new ShardStage(t, disk, () => 0)
    const batches = [0, 1, 2].map(baseOffset => {
      return { baseOffset, baseTimestampMs: 1, records: [{ offsetDelta: 0, key: null, value: Buffer.from('v') }] }
    })
    const partition = putSettled(disk, shard.log, { handle: HANDLE, segments: [segmentOf(0, batches)] })
    partition.damaged.push({ firstOffset: 0, nextOffset: 2 })
    shard.log.table.open({ firstHandle: HANDLE, partitionCount: 1, segmentBytes: 2 ** 31 - 1 })
    const formats = Object.values(readFormats)
    for (const format of formats) shard.read(format, HANDLE, 10_000, 0, format)
    while (shard.reads.run(() => undefined));
    const answers = shard.answers()
    assert.deepEqual(
      answers.map(({ id }) => id),
      formats
    )
    for (const answer of answers) {
      if (answer.id === readFormats.es01 || answer.id === readFormats.batches) {
        assert.deepEqual(answer, { kind: 'failed', id: answer.id, code: 'DATA_DAMAGED', written: 'no' })
      } else {
        assert.ok(answer.kind === 'read' && answer.bytes === answer.totalBytes, JSON.stringify(answer))
      }
    }
  })
})
