/** The answers of reads: every format has the same records, headers and all, and says what was skipped. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Unpackr } from 'msgpackr'
import { BugError } from '../../../../src/base/assert.ts'
import { readFormats, type ReadFormat } from '../../../../src/model/requests.ts'
import { BatchView, RecordCursor, batchStatus, timestampOf } from '../../../../src/wire/batch/view.ts'
import { RecordFrames } from '../../../../src/wire/json/record-frames.ts'
import { AnsweredRecord } from '../../../../workers/shard/answer-buffer.ts'
import { AnswerWriter } from '../../../../workers/shard/answers.ts'
import { chosenSeed, diceOf, replayLine, type Dice } from '../../../support/log-random.ts'
import { batchOf } from '../../../support/log-segments.ts'
import type { KafkaRecord } from '../../wire/batch/ring-records.ts'

const unpackr = new Unpackr({ useRecords: false, int64AsType: 'bigint' })
const PARTITION = 7
const BASE_OFFSET = 2 ** 33
const TIME_MS = 1_700_000_000_000

interface Ending {
  readonly nextOffset?: bigint
  readonly highWatermark?: number
  readonly skipped?: readonly [number, number]
}

/** @param records with offset deltas from 0 on, and bytes of headers names that may be no UTF-8. */
function answerOf(format: ReadFormat, records: readonly KafkaRecord[], ending: Ending = {}): Buffer {
  const writer = new AnswerWriter()
  writer.begin(format, 2 ** 30)
  if (ending.skipped !== undefined) writer.skip(...ending.skipped)
  for (const [bytes, view, cursor] of walk(records)) {
    const record = new AnsweredRecord()
    record.partition = PARTITION
    record.offset = view.baseOffset + cursor.offsetDelta
    record.timestampMs = timestampOf(view, cursor)
    record.place(bytes, cursor)
    assert.ok(writer.add(record))
  }
  writer.finish(ending.nextOffset ?? BigInt(BASE_OFFSET + records.length), ending.highWatermark ?? 2 ** 40)
  return Buffer.from(writer.buffer.subarray(0, writer.length))
}

function* walk(records: readonly KafkaRecord[]): Generator<[Buffer, BatchView, RecordCursor]> {
  const batch = batchOf({
    baseOffset: BASE_OFFSET,
    baseTimestampMs: TIME_MS,
    maxTimestampMs: TIME_MS,
    records: records.map(record => ({ ...record, timestampDelta: Number(record.timestampDelta ?? 0) }))
  })
  // Not at the beginning of its bytes: places are not to be confused with lengths.
  const bytes = Buffer.concat([Buffer.alloc(5), batch])
  const view = new BatchView()
  assert.equal(view.open(bytes, 5, bytes.length), batchStatus.ok)
  const cursor = new RecordCursor()
  cursor.open(bytes, view)
  while (cursor.next()) yield [bytes, view, cursor]
  assert.equal(cursor.status, batchStatus.ok)
}

/** What a record must look like, by its plain parts. */
function expectedJson(record: KafkaRecord, isBase64: boolean): unknown {
  const content = (bytes: Buffer): string => bytes.toString(isBase64 ? 'base64' : 'utf8')
  const headers = (record.headers ?? []).map(([name, value]) => [name, value === null ? null : content(value)])
  return {
    partition: PARTITION,
    offset: BASE_OFFSET + record.offsetDelta,
    timestamp_ms: TIME_MS + Number(record.timestampDelta ?? 0),
    key: record.key === null ? null : content(record.key),
    value: content(record.value ?? Buffer.alloc(0)),
    ...(headers.length === 0 ? {} : { headers })
  }
}

function expectedMsgpack(record: KafkaRecord): unknown {
  return {
    partition: PARTITION,
    offset: BigInt(BASE_OFFSET + record.offsetDelta),
    timestamp_ms: BigInt(TIME_MS + Number(record.timestampDelta ?? 0)),
    key: record.key,
    value: record.value ?? Buffer.alloc(0),
    ...(record.headers === undefined || record.headers.length === 0 ? {} : { headers: record.headers })
  }
}

const text = (value: string): Buffer => Buffer.from(value)

const samples: readonly KafkaRecord[] = [
  { offsetDelta: 0, key: null, value: text('plain') },
  { offsetDelta: 1, key: text(''), value: null, headers: [] },
  {
    offsetDelta: 2,
    timestampDelta: -5,
    key: text('k"\\\n'),
    value: text('v\u0001'),
    headers: [
      ['trace', text('1"2')],
      ['trace', null],
      ['', text('')],
      ['nü\n', Buffer.from([0x66, 0xff, 0x6f])]
    ]
  },
  { offsetDelta: 3, key: Buffer.from([0xff]), value: Buffer.alloc(300, 0xc3), headers: [['h'.repeat(40), text('x')]] }
]

function randomRecords(dice: Dice): KafkaRecord[] {
  const bytes = (): Buffer => {
    const length = dice.below(dice.pick([1, 8, 40, 700]))
    return Buffer.from(Array.from({ length }, () => dice.below(256)))
  }
  return Array.from({ length: dice.below(8) }, (_, offsetDelta) => ({
    offsetDelta,
    timestampDelta: dice.below(1000) - 500,
    key: dice.chance(0.3) ? null : bytes(),
    value: dice.chance(0.2) ? null : bytes(),
    headers: Array.from({ length: dice.below(dice.pick([1, 3, 20])) }, () => {
      return [bytes().toString('base64'), dice.chance(0.3) ? null : bytes()] as const
    })
  }))
}

interface Checked {
  readonly records: readonly KafkaRecord[]
  readonly message: string
}

function checkAll({ records, message }: Checked): void {
  for (const [format, frames] of [
    [readFormats.jsonUtf8, readFormats.framesUtf8],
    [readFormats.jsonBase64, readFormats.framesBase64]
  ] as const) {
    const isBase64 = format === readFormats.jsonBase64
    const json: unknown = JSON.parse(answerOf(format, records).toString('utf8'))
    const expected = records.map(record => expectedJson(record, isBase64))
    const tail = { next_offset: BASE_OFFSET + records.length, high_watermark: 2 ** 40 }
    assert.deepEqual(json, { records: expected, ...tail, ...(isBase64 ? { encoding: 'base64' } : {}) }, message)
    const walked = new RecordFrames()
    walked.open(answerOf(frames, records))
    assert.deepEqual([walked.count, walked.skipped], [records.length, null])
    for (const [i, wanted] of expected.entries()) {
      assert.ok(walked.next())
      assert.equal(walked.offset, BASE_OFFSET + i)
      const line = walked.bytes.toString('utf8', walked.textStart, walked.textEnd)
      assert.ok(!line.includes('\n'))
      assert.deepEqual(JSON.parse(line), wanted, message)
    }
    assert.equal(walked.next(), false)
  }
  assert.deepEqual(
    unpackr.unpack(answerOf(readFormats.msgpack, records)),
    {
      records: records.map(expectedMsgpack),
      next_offset: BigInt(BASE_OFFSET + records.length),
      high_watermark: BigInt(2 ** 40)
    },
    message
  )
}

/** Offers a hundred records to an answer that has room for fewer. */
function filled(format: ReadFormat, maxBytes: number, skips: boolean): { count: number; length: number } {
  const writer = new AnswerWriter()
  writer.begin(format, maxBytes)
  if (skips) writer.skip(0, BASE_OFFSET)
  const one = { key: null, value: Buffer.alloc(100), headers: [['n', text('v')]] as const }
  let count = 0
  for (const [bytes, , cursor] of walk(Array.from({ length: 100 }, (_, offsetDelta) => ({ ...one, offsetDelta })))) {
    const record = new AnsweredRecord()
    record.place(bytes, cursor)
    if (!writer.add(record)) break
    count++
  }
  writer.finish(BigInt(count), count)
  return { count, length: writer.length }
}

describe('the answer of a read', () => {
  it('has keys, values and headers in every format, whatever their bytes are', () => {
    for (const record of samples)
      checkAll({ records: [{ ...record, offsetDelta: 0 }], message: `${record.offsetDelta}` })
    checkAll({ records: samples, message: 'all' })
    checkAll({ records: [], message: 'none' })
    const seed = chosenSeed()
    const dice = diceOf(seed)
    for (let round = 0; round < 100; round++) {
      checkAll({ records: randomRecords(dice), message: replayLine(seed, 'test/unit/workers/shard/answers.test.ts') })
    }
  })

  it('has no field for headers where a record has none, and keeps the text it always had', () => {
    const records = samples.slice(0, 1)
    assert.equal(
      answerOf(readFormats.jsonUtf8, records).toString(),
      `{"records":[{"partition":7,"offset":${BASE_OFFSET},"timestamp_ms":${TIME_MS},"key":null,"value":"plain"}],` +
        `"next_offset":${BASE_OFFSET + 1},"high_watermark":${2 ** 40}}`
    )
  })

  it('in ES01 has keys and values, and of headers nothing', () => {
    const withHeaders = answerOf(readFormats.es01, samples)
    const without = answerOf(
      readFormats.es01,
      samples.map(({ headers: _, ...record }) => record)
    )
    assert.ok(withHeaders.equals(without))
    assert.equal(without.readUInt32BE(16), samples.length)
  })

  it('replaces the bytes of names that are no UTF-8, in JSON and MessagePack', () => {
    // The name of the header, which the encoder of the test takes as text, is made invalid afterwards.
    const name = 'x'.repeat(20)
    for (const format of [readFormats.jsonUtf8, readFormats.jsonBase64, readFormats.msgpack]) {
      const writer = new AnswerWriter()
      writer.begin(format, 1000)
      for (const [bytes, , cursor] of walk([{ offsetDelta: 0, key: null, value: null, headers: [[name, null]] }])) {
        bytes.fill(0xff, bytes.indexOf(name), bytes.indexOf(name) + name.length)
        const record = new AnsweredRecord()
        record.place(bytes, cursor)
        assert.ok(writer.add(record))
      }
      writer.finish(1n, 1)
      const answer = writer.buffer.subarray(0, writer.length)
      const parsed: unknown = format === readFormats.msgpack ? unpackr.unpack(answer) : JSON.parse(answer.toString())
      assert.ok(JSON.stringify(parsed).includes(`[["${'\ufffd'.repeat(20)}",null]]`))
    }
  })

  it('says what was skipped, in every format but ES01, with exact numbers', () => {
    const skipped = [2 ** 53 - 3, 2 ** 53 - 2] as const
    const highWatermark = 2 ** 53 - 1
    for (const records of [[], samples]) {
      const ending = { nextOffset: 2n ** 53n - 1n, highWatermark, skipped }
      const expected = `"skipped":{"requested":9007199254740989,"earliest":9007199254740990,"latest":9007199254740991}}`
      const base64 = answerOf(readFormats.jsonBase64, records, ending).toString('latin1')
      assert.ok(answerOf(readFormats.jsonUtf8, records, ending).toString('latin1').endsWith(`,${expected}`))
      assert.ok(base64.endsWith(`,"encoding":"base64",${expected}`))
      const frames = new RecordFrames()
      frames.open(answerOf(readFormats.framesUtf8, records, ending))
      const numbers = { requested: 2 ** 53 - 3, earliest: 2 ** 53 - 2, latest: 2 ** 53 - 1 }
      assert.deepEqual(frames.skipped, numbers)
      let count = 0
      while (frames.next()) count++
      assert.equal(count, records.length)
      const unpacked = unpackr.unpack(answerOf(readFormats.msgpack, records, ending)) as { skipped: object }
      assert.deepEqual(
        unpacked.skipped,
        Object.fromEntries(Object.entries(numbers).map(([name, value]) => [name, BigInt(value)]))
      )
    }
    assert.throws(() => answerOf(readFormats.es01, [], { skipped }), BugError)
  })

  it('keeps an offset beyond 2^53 that it was asked for', () => {
    const ending = { nextOffset: 2n ** 64n - 1n, highWatermark: 3 }
    for (const format of [readFormats.jsonUtf8, readFormats.jsonBase64]) {
      assert.match(answerOf(format, [], ending).toString(), /"next_offset":18446744073709551615,/)
    }
    const unpacked = unpackr.unpack(answerOf(readFormats.msgpack, [], ending)) as { next_offset: bigint }
    assert.equal(unpacked.next_offset, 2n ** 64n - 1n)
  })

  it('takes no record that would make it longer than asked, after the first', () => {
    for (const [name, format] of Object.entries(readFormats)) {
      // Of whole batches, which the reader counts.
      if (format === readFormats.batches) continue
      for (const skips of format === readFormats.es01 ? [false] : [false, true]) {
        for (const maxBytes of [1, 500, 2000, 9000]) {
          const { count, length } = filled(format, maxBytes, skips)
          const shown = `${name}, ${maxBytes}`
          assert.ok(count >= 1 && count < 100, shown)
          assert.ok(count === 1 || length <= maxBytes, shown)
        }
      }
    }
  })
})
