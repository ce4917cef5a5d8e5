/** Batches that clients encoded, through a whole shard: what is stored, what is read back, what is refused. */
import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { FaultPlan } from '../../../../src/disk/fault-plan.ts'
import { SimulatedDisk } from '../../../../src/disk/simulated-disk.ts'
import { limits } from '../../../../src/model/limits.ts'
import { readFormats, type ReadFormat } from '../../../../src/model/requests.ts'
import { STORED_BATCHES_AT, storedBatchesHead } from '../../../../src/wire/batch/stored-batches.ts'
import {
  clientBatch,
  codecs,
  gzip,
  placed,
  splitBatches,
  withCrc,
  type ClientBatch
} from '../../../support/client-batches.ts'
import { goldenBatch, goldenCodecs } from '../../../support/golden-batches.ts'
import type { ReadAnswer } from '../../../support/http-api.ts'
import { partitionOf } from '../../../support/log-harness.ts'
import { ShardStage, type StageAnswer } from '../../../support/shard-stage.ts'

const TOPIC = 1

class BatchStage {
  readonly disk: SimulatedDisk
  readonly shard: ShardStage
  #id = 1

  constructor(t: TestContext, disk = new SimulatedDisk(), segmentBytes = 2 ** 31 - 1) {
    this.disk = disk
    this.shard = new ShardStage(t, disk, () => 0)
    this.shard.log.table.open({ firstHandle: TOPIC, partitionCount: 2, segmentBytes })
  }

  /** Appends batches in one group. @returns their answers. */
  append(batches: readonly Buffer[], options: { producer?: number; takesAppendTime?: boolean } = {}): StageAnswer[] {
    for (const batch of batches) this.shard.batch(this.#id++, TOPIC, batch, options)
    while (this.shard.group.run());
    return this.shard.answers()
  }

  /** Appends a producer's batch. @returns 'offset', 'offset again', or the code of the refusal. */
  send(batch: Omit<ClientBatch, 'records'> & { count?: number }, producer = 7): string {
    const { count = 1, ...rest } = batch
    const records = Array.from({ length: count }, (_, i) => ({ value: `v${i}` }))
    const [answer] = this.append([clientBatch({ records, producerId: producer, ...rest })], { producer })
    assert.ok(answer !== undefined)
    if (answer.kind === 'failed') return answer.code
    assert.ok(answer.kind === 'batched')
    return `${answer.baseOffset}${answer.isDuplicate ? ' again' : ''}`
  }

  read(offset: number, maxBytes = 1_000_000): { head: ReturnType<typeof storedBatchesHead>; batches: Buffer[] } {
    const bytes = this.answer(offset, maxBytes, readFormats.batches)
    return { head: storedBatchesHead(bytes, 0), batches: splitBatches(bytes.subarray(STORED_BATCHES_AT)) }
  }

  /** The whole answer of a read. */
  answer(offset: number, maxBytes: number, format: ReadFormat): Buffer {
    const id = this.#id++
    this.shard.read(id, TOPIC, maxBytes, offset, format)
    while (this.shard.reads.run(() => undefined));
    assert.ok(this.shard.answers().every(({ kind }) => kind === 'read'))
    return this.shard.contents.get(id) ?? Buffer.alloc(0)
  }

  produce(values: readonly string[]): void {
    const records = values.map(value => ({ partition: 0, key: null, value: Buffer.from(value) }))
    this.shard.produce(this.#id++, TOPIC, records)
    while (this.shard.group.run());
    this.shard.answers()
  }

  /** A process that begins anew on the same disk; this one is dead. */
  restart(t: TestContext): BatchStage {
    return new BatchStage(t, this.disk.killProcess())
  }
}

const three = clientBatch({
  records: [
    { key: 'a', value: 'one', headers: [['h', null]] },
    { key: null, value: null },
    { key: '', value: '' }
  ]
})
const one = clientBatch({ records: [{ value: 'x'.repeat(300) }] })

describe('a batch that a client encoded', () => {
  it('is read back byte for byte, but for its base offset and leader epoch, beside records of the broker', t => {
    const stage = new BatchStage(t)
    stage.produce(['before'])
    const answers = stage.append([three, one])
    const rest = { startOffset: 0, appendTimeMs: -1, isDuplicate: false }
    assert.deepEqual(answers, [
      { kind: 'batched', id: 2, baseOffset: 1, ...rest },
      { kind: 'batched', id: 3, baseOffset: 4, ...rest }
    ])
    stage.produce(['after'])
    const { head, batches } = stage.read(1)
    assert.deepEqual(head, { logStartOffset: 0, highWatermark: 6, nextOffset: 6 })
    assert.deepEqual(batches.slice(0, 2), [placed(three, 1), placed(one, 4)])
    assert.equal(Number(batches[2]?.readBigInt64BE(0)), 5)
  })

  it('is read whole from any offset inside, at least one of them, and no more than asked for', t => {
    const stage = new BatchStage(t)
    stage.append([three, one, three])
    assert.deepEqual(stage.read(2, 1).batches, [placed(three, 0)])
    assert.deepEqual(stage.read(2, three.length + one.length).batches, [placed(three, 0), placed(one, 3)])
    assert.deepEqual(stage.read(2, three.length + one.length - 1).batches, [placed(three, 0)])
    assert.deepEqual(stage.read(7), { head: { logStartOffset: 0, highWatermark: 7, nextOffset: 7 }, batches: [] })
    assert.deepEqual(stage.read(2 ** 40).batches, [])
  })

  it('is told where the partition begins if its offset is gone', t => {
    const stage = new BatchStage(t)
    stage.append([three, one])
    const log = partitionOf(stage.shard.log, TOPIC, 0)
    stage.shard.log.moveStarts([{ log, offset: 3 }])
    assert.deepEqual(stage.read(2), { head: { logStartOffset: 3, highWatermark: 4, nextOffset: 3 }, batches: [] })
    assert.deepEqual(stage.read(3).batches, [placed(one, 3)])
  })

  it('is refused if its checksum does not match, and leaves no trace', t => {
    const stage = new BatchStage(t)
    const bad = Buffer.from(one)
    bad.writeUInt8(1, bad.length - 1)
    const [first, second] = stage.append([bad, one])
    assert.ok(first?.kind === 'failed' && first.code === 'BATCH_CORRUPT' && first.written === 'no')
    assert.ok(second?.kind === 'batched' && second.baseOffset === 0)
  })

  it('takes the time of append where that counts, with a checksum that is right again', t => {
    const stage = new BatchStage(t)
    const [answer] = stage.append([three], { takesAppendTime: true })
    assert.ok(answer?.kind === 'batched' && answer.appendTimeMs > 0)
    const wanted = placed(three, 0)
    wanted.writeInt16BE(8, 21)
    wanted.writeBigInt64BE(BigInt(answer.appendTimeMs), 35)
    assert.deepEqual(stage.read(0).batches, [withCrc(wanted)])
    assert.equal(partitionOf(stage.shard.log, TOPIC, 0).hasOrderedTimes, true)
  })

  it('is there after a kill, with what is known of its times', t => {
    const stage = new BatchStage(t)
    stage.append([three, one])
    const again = stage.restart(t)
    const { batches } = again.read(0)
    assert.deepEqual(
      batches.map(batch => placed(batch, 0)),
      [placed(three, 0), placed(one, 0)]
    )
    assert.equal(partitionOf(again.shard.log, TOPIC, 0).hasOrderedTimes, false)
  })

  it('begins a segment where it does not fit, and is never split', t => {
    const stage = new BatchStage(t, new SimulatedDisk(), 500)
    stage.append([one, one, three])
    const log = partitionOf(stage.shard.log, TOPIC, 0)
    assert.deepEqual(
      log.sealedSegments().map(({ bytes }) => bytes),
      [one.length]
    )
    assert.equal(log.activeSegment().bytes, one.length + three.length)
    assert.deepEqual(stage.read(0).batches.length, 3)
  })
})

describe('the records of batches that clients encoded', () => {
  const consume = (stage: BatchStage, offset: number, maxBytes = 1_000_000): ReadAnswer =>
    JSON.parse(String(stage.answer(offset, maxBytes, readFormats.jsonUtf8))) as ReadAnswer

  it('are the same over HTTP whatever codec the client took, with keys, headers and times', t => {
    const stage = new BatchStage(t)
    const answers = stage.append(goldenCodecs.map(goldenBatch))
    assert.equal(answers.filter(({ kind }) => kind === 'batched').length, goldenCodecs.length)
    const { records, skipped } = consume(stage, 0)
    assert.equal(skipped, undefined)
    assert.equal(records.length, 60 * goldenCodecs.length)
    const plain = records.slice(0, 60)
    const { timestamp_ms: first, headers, key } = plain[0] ?? {}
    assert.deepEqual([first, key], [1_700_000_000_000, null])
    assert.deepEqual(headers, [
      ['trace', 't0'],
      ['none', null]
    ])
    assert.deepEqual(plain[13]?.value, '')
    goldenCodecs.forEach((codec, i) => {
      const same = records.slice(60 * i, 60 * (i + 1)).map(record => ({ ...record, offset: record.offset - 60 * i }))
      assert.deepEqual(same, plain, codec)
    })
    // From the middle of a batch, and as large as is asked for.
    const short = consume(stage, 130, 3000)
    assert.deepEqual(short.records, records.slice(130, 130 + short.records.length))
    assert.equal(short.next_offset, 130 + short.records.length)
  })

  it('are passed over where nobody can decode them, and stay for those who take whole batches', t => {
    const stage = new BatchStage(t)
    const garbage = clientBatch({ body: Buffer.from('no records, but a checksum that is right'), count: 3 })
    const noGzip = clientBatch({ body: Buffer.alloc(50, 7), codec: codecs.gzip, count: 4 })
    const elsewhere = clientBatch({ records: [{ value: 'v' }, { value: 'w', offsetDelta: 7 }] })
    const twice = clientBatch({ records: [{ value: 'v' }, { value: 'w', offsetDelta: 0 }] })
    const late = clientBatch({
      records: [{ value: 'v', timestampDelta: 5 }],
      baseTimestamp: Number.MAX_SAFE_INTEGER - 1,
      maxTimestamp: 0
    })
    stage.append([garbage, noGzip, elsewhere, twice, late, one])
    assert.deepEqual(consume(stage, 0).skipped, { requested: 0, earliest: 7, latest: 13 })
    const offsets: number[] = []
    for (let offset = 7; offset < 13;) {
      const { records, next_offset: next } = consume(stage, offset)
      offsets.push(...records.map(record => record.offset))
      assert.ok(next > offset)
      offset = next
    }
    assert.deepEqual(offsets, [7, 9, 12])
    assert.equal(stage.read(0).batches.length, 6)
  })

  it('beyond the limit of what is inflated are passed over too', t => {
    const stage = new BatchStage(t)
    const body = Buffer.alloc(limits.inflatedBatchBytesMax + 1)
    stage.append([clientBatch({ body, ...gzip, count: 1 }), one])
    const { records, skipped } = consume(stage, 0)
    assert.deepEqual([records.map(({ offset }) => offset), skipped?.earliest], [[1], 1])
  })
})

describe('a producer of batches', () => {
  it('has each batch once, whenever it sends it again', t => {
    const stage = new BatchStage(t)
    assert.equal(stage.send({ sequence: 0, count: 3 }), '0')
    assert.equal(stage.send({ sequence: 3, count: 2 }), '3')
    assert.equal(stage.send({ sequence: 0, count: 3 }), '0 again')
    assert.equal(stage.send({ sequence: 3, count: 2 }), '3 again')
    // Sent twice before the first is durable: both share its fate.
    const batch = clientBatch({ records: [{ value: 'v' }], producerId: 7, sequence: 5 })
    const [first, second] = stage.append([batch, batch], { producer: 7 })
    assert.ok(first?.kind === 'batched' && first.baseOffset === 5 && !first.isDuplicate)
    assert.ok(second?.kind === 'batched' && second.baseOffset === 5 && second.isDuplicate)
    assert.deepEqual(stage.read(0).head, { logStartOffset: 0, highWatermark: 6, nextOffset: 6 })
  })

  it('may begin anywhere, and then leaves nothing out', t => {
    const stage = new BatchStage(t)
    assert.equal(stage.send({ sequence: 1000 }), '0')
    assert.equal(stage.send({ sequence: 1002 }), 'BATCH_OUT_OF_ORDER')
    assert.equal(stage.send({ sequence: 999 }), 'BATCH_OUT_OF_ORDER')
    // Half known, half new.
    assert.equal(stage.send({ sequence: 1000, count: 2 }), 'BATCH_OUT_OF_ORDER')
    assert.equal(stage.send({ sequence: 1001 }), '1')
  })

  it('is known by its last 128 batches, also after a kill', t => {
    const stage = new BatchStage(t)
    for (let i = 0; i < 130; i++) {
      assert.equal(stage.send({ sequence: 2 * i, count: 2 }), String(3 * i))
      stage.send({ sequence: i }, 8)
    }
    const check = (each: BatchStage): void => {
      assert.equal(each.send({ sequence: 2, count: 2 }), 'BATCH_TOO_OLD')
      assert.equal(each.send({ sequence: 4, count: 2 }), '6 again')
      assert.equal(each.send({ sequence: 258, count: 2 }), '387 again')
      assert.equal(each.send({ sequence: 261 }), 'BATCH_OUT_OF_ORDER')
    }
    check(stage)
    check(stage.restart(t))
  })

  it('goes from 2^31 − 1 to 0', t => {
    const stage = new BatchStage(t)
    const end = 2 ** 31
    assert.equal(stage.send({ sequence: end - 3, count: 2 }), '0')
    assert.equal(stage.send({ sequence: end - 1, count: 4 }), '2')
    assert.equal(stage.send({ sequence: end - 1, count: 4 }), '2 again')
    const again = stage.restart(t)
    assert.equal(again.send({ sequence: end - 3, count: 2 }), '0 again')
    assert.equal(again.send({ sequence: 4 }), 'BATCH_OUT_OF_ORDER')
    assert.equal(again.send({ sequence: 3 }), '6')
  })

  it('begins at 0 with each new epoch, and then hears nothing of the ones before', t => {
    const stage = new BatchStage(t)
    assert.equal(stage.send({ sequence: 0, count: 3 }), '0')
    assert.equal(stage.send({ epoch: 1, sequence: 3 }), 'BATCH_OUT_OF_ORDER')
    assert.equal(stage.send({ epoch: 2, sequence: 0 }), '3')
    const check = (each: BatchStage): void => {
      assert.equal(each.send({ epoch: 1, sequence: 0 }), 'EPOCH_STALE')
      assert.equal(each.send({ epoch: 0, sequence: 3 }), 'EPOCH_STALE')
      assert.equal(each.send({ epoch: 2, sequence: 0 }), '3 again')
    }
    check(stage)
    const again = stage.restart(t)
    check(again)
    assert.equal(again.send({ epoch: 32_767, sequence: 0 }), '4')
    assert.equal(again.send({ epoch: 32_767, sequence: 1 }), '5')
    assert.equal(again.send({ epoch: 2, sequence: 1 }), 'EPOCH_STALE')
  })

  it('has the epoch that it had if the disk refuses the first batch of a new one', t => {
    const faults = new FaultPlan()
    const stage = new BatchStage(t, new SimulatedDisk({ faults }))
    assert.equal(stage.send({ sequence: 0, count: 3 }), '0')
    faults.arm({ point: 'group.write', firstCall: 2, lastCall: 2, fault: { kind: 'error', code: 'ENOSPC' } })
    assert.equal(stage.send({ epoch: 1, sequence: 0 }), 'DISK_FULL')
    assert.equal(stage.send({ sequence: 0, count: 3 }), '0 again')
    assert.equal(stage.send({ sequence: 3 }), '3')
    assert.equal(stage.send({ epoch: 1, sequence: 0 }), '4')
    assert.equal(stage.send({ sequence: 4 }), 'EPOCH_STALE')
  })

  it('is a stranger to the others, whatever they send', t => {
    const stage = new BatchStage(t)
    assert.equal(stage.send({ sequence: 0 }, 7), '0')
    assert.equal(stage.send({ sequence: 0 }, 8), '1')
    assert.equal(stage.send({ sequence: 1 }, 7), '2')
    assert.equal(stage.send({ sequence: 0 }, 8), '1 again')
  })
})
