/** Batches of a few KiB that hold records of many MiB, through a whole shard: what readers are answered, and who waits for it. */
import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { SimulatedDisk } from '../../../../src/disk/simulated-disk.ts'
import { readFormats, type ReadFormat } from '../../../../src/model/requests.ts'
import { counterIndex } from '../../../../src/wire/shard/counters.ts'
import { RecordFrames } from '../../../../src/wire/json/record-frames.ts'
import { AnswerBuffer, AnsweredRecord } from '../../../../workers/shard/answer-buffer.ts'
import { writeJsonRecord } from '../../../../workers/shard/json-record.ts'
import { clientBatch, gzip, splitBatches, zstd, type ClientRecord } from '../../../support/client-batches.ts'
import type { ReadAnswer } from '../../../support/http-api.ts'
import { STORED_BATCHES_AT } from '../../../../src/wire/batch/stored-batches.ts'
import { RECORD_BYTES_MAX, ShardStage, type StageAnswer } from '../../../support/shard-stage.ts'

const TOPIC = 1
const READ_BYTES = 1024 * 1024
const tooLarge: ClientRecord = { value: Buffer.alloc(RECORD_BYTES_MAX + 1) }
const twice: ClientRecord = { value: Buffer.alloc(2 * RECORD_BYTES_MAX) }
const largest: ClientRecord = { value: Buffer.alloc(RECORD_BYTES_MAX) }
const small: ClientRecord = { key: 'k', value: 'v' }

/** A shard with these batches in partition 0, and a clock that stands still. */
function stageOf(t: TestContext, batches: readonly Buffer[]): ShardStage {
  const shard = new ShardStage(t, new SimulatedDisk(), () => 0)
  shard.log.table.open({
    firstHandle: TOPIC,
    partitionCount: 2,
    segmentBytes: 2 ** 31 - 1
  })
  for (const batch of batches) {
    shard.batch(1, TOPIC, batch)
    while (shard.group.run());
    assert.deepEqual(
      shard.answers().map(({ kind }) => kind),
      ['batched']
    )
  }
  return shard
}

/** All that the shard answers to the reads that it was asked for, taken as it comes. */
function answersOf(shard: ShardStage): StageAnswer[] {
  const all: StageAnswer[] = []
  for (let isGoing = true, idle = 0; isGoing || idle < 2;) {
    isGoing = shard.reads.run(() => undefined)
    const some = shard.answers()
    all.push(...some)
    idle = some.length > 0 ? 0 : idle + 1
  }
  return all
}

/** Bytes of the answer from that offset on; a refusal is its code. */
function read(shard: ShardStage, offset: number, format: ReadFormat): Buffer | string {
  shard.contents.clear()
  shard.read(9, TOPIC, READ_BYTES, offset, format)
  const refused = answersOf(shard).find(({ kind }) => kind === 'failed')
  return refused?.kind === 'failed' ? refused.code : (shard.contents.get(9) as Buffer)
}

function readJson(shard: ShardStage, offset: number, format: ReadFormat = readFormats.jsonUtf8): ReadAnswer {
  return JSON.parse(String(read(shard, offset, format))) as ReadAnswer
}

describe('a record that is larger than a record may be, out of a compressed batch', () => {
  for (const [codec, compressed] of Object.entries({ gzip, zstd })) {
    it(`is passed over and said so, and those around it are answered: ${codec}`, t => {
      const shard = stageOf(t, [
        clientBatch({
          records: [small, tooLarge, tooLarge, small],
          ...compressed
        })
      ])
      for (const format of [readFormats.jsonUtf8, readFormats.jsonBase64]) {
        const before = readJson(shard, 0, format)
        assert.deepEqual([before.records.map(({ offset }) => offset), before.next_offset], [[0], 1])
        assert.equal(before.skipped, undefined)
        const behind = readJson(shard, 1, format)
        assert.deepEqual([behind.records.map(({ offset }) => offset), behind.next_offset], [[3], 4])
        assert.deepEqual(behind.skipped, {
          requested: 1,
          earliest: 3,
          latest: 4
        })
      }
    })
  }

  it('is passed over at the end of the log, so that a poller never sticks', t => {
    const shard = stageOf(t, [
      clientBatch({ records: [tooLarge], ...zstd }),
      clientBatch({ records: [tooLarge], ...gzip })
    ])
    const { records, next_offset: next, skipped } = readJson(shard, 0)
    assert.deepEqual([records, next, skipped], [[], 2, { requested: 0, earliest: 2, latest: 2 }])
  })

  it('is passed over in frames and MessagePack too, refused over ES01, and there in whole batches', t => {
    const batch = clientBatch({ records: [tooLarge, small], ...zstd })
    const shard = stageOf(t, [batch])
    const frames = new RecordFrames()
    for (const format of [readFormats.framesUtf8, readFormats.framesBase64]) {
      frames.open(read(shard, 0, format) as Buffer)
      assert.deepEqual([frames.count, frames.skipped], [1, { requested: 0, earliest: 1, latest: 2 }])
    }
    const msgpack = read(shard, 0, readFormats.msgpack) as Buffer
    assert.ok(msgpack.length < 1000 && msgpack.includes('skipped'))
    assert.equal(read(shard, 0, readFormats.es01), 'DATA_DAMAGED')
    assert.ok((read(shard, 1, readFormats.es01) as Buffer).length < 1000)
    const stored = read(shard, 0, readFormats.batches) as Buffer
    assert.deepEqual(
      splitBatches(stored.subarray(STORED_BATCHES_AT)).map(({ length }) => length),
      [batch.length]
    )
  })

  it('counts with its key and headers, and exactly', t => {
    const withKey: ClientRecord = { ...largest, key: 'k' }
    const withHeader: ClientRecord = { ...largest, headers: [['h', null]] }
    const shard = stageOf(t, [clientBatch({ records: [withKey, withHeader, largest], ...zstd })])
    const { records, skipped } = readJson(shard, 0, readFormats.jsonBase64)
    assert.deepEqual([records.map(({ offset }) => offset), skipped?.earliest], [[2], 2])
  })

  it('is answered where it is not compressed: it was stored while that was allowed', t => {
    const shard = stageOf(t, [clientBatch({ records: [tooLarge, small] })])
    for (const format of Object.values(readFormats)) {
      const answer = read(shard, 0, format)
      assert.ok(typeof answer !== 'string' && answer.length > RECORD_BYTES_MAX, `format ${format}`)
    }
  })
})

describe('an answer', () => {
  it('of any format has no more bytes than it was asked for and one record of the largest size', t => {
    const shard = stageOf(t, [
      clientBatch({
        records: [small, largest, twice, largest, small],
        ...zstd
      })
    ])
    const grown = {
      [readFormats.jsonUtf8]: 6,
      [readFormats.framesUtf8]: 6,
      [readFormats.jsonBase64]: 4 / 3
    }
    for (const format of Object.values(readFormats).filter(each => each !== readFormats.batches)) {
      const most = READ_BYTES + ((grown as Record<number, number>)[format] ?? 4 / 3) * RECORD_BYTES_MAX + 1000
      for (let offset = 0; offset < 5; offset++) {
        const answer = read(shard, offset, format)
        assert.ok(typeof answer === 'string' || answer.length <= most, `format ${format}, from ${offset}`)
      }
    }
  })

  it('is written in no more memory than it takes, whatever its text might have become', () => {
    const bytes = Buffer.alloc(RECORD_BYTES_MAX, 'x')
    const cases: [fill: number, isBase64: boolean][] = [
      [0x78, false],
      [0, false],
      [0xff, false],
      [0x22, false],
      [0, true]
    ]
    for (const [fill, isBase64] of cases) {
      const out = new AnswerBuffer()
      const record = Object.assign(new AnsweredRecord(), {
        bytes: bytes.fill(fill),
        valueLength: bytes.length
      })
      writeJsonRecord(out, record, isBase64)
      assert.ok(out.bytes.length - out.length < 1000, `${fill}: ${out.bytes.length} for ${out.length}`)
      const { value } = JSON.parse(String(out.bytes.subarray(0, out.length))) as { value: string }
      assert.ok(Buffer.from(value, isBase64 ? 'base64' : 'utf8').length >= bytes.length)
    }
  })
})

describe('twelve readers of such batches', () => {
  const askAll = (shard: ShardStage, format: ReadFormat = readFormats.jsonUtf8): void => {
    for (let id = 100; id < 112; id++) shard.read(id, TOPIC, READ_BYTES, 0, format)
  }

  it('keep a produce waiting for one inflation, and not for twelve', t => {
    const shard = stageOf(t, [
      clientBatch({
        records: [{ value: Buffer.alloc(2 * READ_BYTES) }, small],
        ...zstd
      })
    ])
    askAll(shard, readFormats.msgpack)
    for (let turn = 1; turn <= 12; turn++) {
      shard.batch(turn, TOPIC, clientBatch({ records: [small] }), {
        partition: 1
      })
      while (shard.group.run());
      shard.reads.run(() => undefined)
      assert.equal(shard.counters[counterIndex.reads], turn)
      assert.deepEqual(shard.answers().find(({ kind }) => kind === 'batched')?.id, turn)
    }
  })

  it('keep a produce waiting for one inflation too where all of it is passed over', t => {
    const bombs = Array.from({ length: 3 }, () => clientBatch({ records: [tooLarge], ...zstd }))
    const shard = stageOf(t, [...bombs, clientBatch({ records: [small] })])
    shard.read(100, TOPIC, READ_BYTES, 0, readFormats.jsonUtf8)
    for (let turn = 1; turn <= 3; turn++) {
      assert.ok(shard.reads.run(() => undefined))
      assert.equal(shard.counters[counterIndex.reads], 0)
    }
    shard.reads.run(() => undefined)
    assert.equal(shard.counters[counterIndex.reads], 1)
  })

  it('have their answers made one by one: no read goes on while answers wait for room', t => {
    const shard = stageOf(t, [clientBatch({ records: [largest], ...zstd })])
    askAll(shard)
    for (let turn = 0; turn < 20; turn++) assert.ok(shard.reads.run(() => undefined))
    // One is larger than the whole ring.
    assert.equal(shard.counters[counterIndex.reads], 1)
    const answers = answersOf(shard)
    assert.equal(shard.counters[counterIndex.reads], 12)
    assert.equal(new Set(answers.map(({ id }) => id)).size, 12)
  })
})
