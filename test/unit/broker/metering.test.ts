/** What requests cost, when, and in which order they are judged; what of them is counted. The engine is played by the test. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { BrokerError, type ErrorCode } from '../../../src/model/errors.ts'
import { limits } from '../../../src/model/limits.ts'
import type { Principal } from '../../../src/model/principal.ts'
import {
  RESULT_BYTES,
  readFormats,
  submitOutcomes,
  type ReadCaller,
  type ReadCost
} from '../../../src/model/requests.ts'
import { payloadBytesOf } from '../../../src/broker/metering.ts'
import { ProduceScanner } from '../../../src/wire/json/produce-scanner.ts'
import { BrokerStage, keyWith, maxRecordBytes, recordOf } from './broker-stage.ts'

const key = keyWith({ produceBytesPerSec: 1000, consumeBytesPerSec: 1000 })
const chunk = Buffer.alloc(100)

function stageWith(...topics: string[]): BrokerStage {
  const stage = new BrokerStage()
  for (const topic of topics.length === 0 ? ['t'] : topics) stage.create(topic)
  return stage
}

/** Bytes that a produce of the key may still have: it takes them, and gives them back. */
function leftFor(stage: BrokerStage, who: Principal = key): number {
  let left = 0
  for (let step = 512; step >= 1; step /= 2) {
    if (left + step > 1000 || stage.quotas.takeProduce(who, left + step) !== null) continue
    stage.quotas.giveBackProduce(who, left + step)
    left += step
  }
  return left
}

describe('a produce of a key with a quota', () => {
  it('costs the bytes of its keys and values', async () => {
    const stage = stageWith()
    await stage.produce('first', key, [recordOf(300), recordOf(1), recordOf(299)])
    assert.equal(leftFor(stage), 400)
    await stage.produce('second', key, [recordOf(401)])
    assert.deepEqual([stage.told(), stage.appends.length], [['second RATE_LIMITED'], 1])
    await stage.produce('third', key, [recordOf(400)])
    assert.deepEqual([stage.told(), stage.appends.length, leftFor(stage)], [[], 2, 0])
  })

  it('costs the bytes of headers too, as they are stored, and nothing for records without any', () => {
    const scanner = new ProduceScanner()
    const costOf = (records: readonly object[]): number => {
      const body = Buffer.from(JSON.stringify({ records }))
      scanner.scan(body, 0, body.length)
      return payloadBytesOf(scanner)
    }
    const plain = { key: 'key', value: 'value' }
    assert.equal(costOf([plain, plain]), 16)
    assert.equal(costOf([{ ...plain, headers: [] }, plain]), 16)
    // A count, and two lengths, a name of one byte and a value of three.
    assert.equal(costOf([{ ...plain, headers: [['n', 'abc']] }, plain]), 16 + 1 + 2 + 4)
  })

  it('is judged after its size and before its sequences and partitions', async () => {
    const large = recordOf(maxRecordBytes + 1)
    const over = [recordOf(600), recordOf(600)]
    const cases: [string, ErrorCode, Parameters<BrokerStage['produce']>[2], { topic?: string; producerId?: string }][] =
      [
        ['unknown topic', 'TOPIC_NOT_FOUND', over, { topic: 'unknown' }],
        ['a large record', 'RECORD_TOO_LARGE', [large], {}],
        ['many records', 'RECORDS_TOO_MANY', new Array(limits.requestRecordsMax + 1).fill(recordOf(1)), {}],
        ['no sequence', 'RATE_LIMITED', over, { producerId: 'p' }],
        ['no such partition', 'RATE_LIMITED', [...over, recordOf(1, { partition: 9 })], {}],
        ['no valid producer id', 'RATE_LIMITED', [...over, recordOf(1, { sequence: 0n })], { producerId: '?' }]
      ]
    const stage = stageWith()
    for (const [name, code, records, rest] of cases) {
      await stage.produce(name, key, records, rest)
      assert.deepEqual(stage.told(), [`${name} ${code}`])
    }
    stage.isLow = true
    await stage.produce('no room', key, over)
    await stage.produce('empty', key, [])
    assert.deepEqual(stage.told(), ['no room DISK_FULL', 'empty produced 0'])
    await stage.produce('no grant', { ...key, mayWrite: () => false }, over)
    assert.deepEqual([stage.told(), leftFor(stage)], [['no grant FORBIDDEN'], 1000])
  })

  it('costs nothing if it is refused, whatever for', async () => {
    const stage = stageWith()
    const half = recordOf(500)
    await stage.produce('no sequence', key, [half], { producerId: 'p' })
    await stage.produce('no such partition', key, [{ ...half, partition: 9 }])
    await stage.produce('no valid producer id', key, [{ ...half, sequence: 0n }], { producerId: '?' })
    stage.storeFailure = new Error('the store is gone')
    await stage.produce('not stored', key, [{ ...half, sequence: 0n }], { producerId: 'p' })
    assert.deepEqual(stage.told(), [
      'no sequence SEQUENCE_INVALID',
      'no such partition PARTITION_RANGE',
      'no valid producer id NAME_INVALID',
      'not stored INTERNAL'
    ])
    assert.equal(leftFor(stage), 1000)
  })

  it('costs nothing while rings are full, and once when it is taken', async () => {
    const stage = stageWith()
    stage.isFull = true
    for (let i = 0; i < 5; i++) assert.equal(await stage.produce('waits', key, [recordOf(700)]), submitOutcomes.full)
    assert.equal(leftFor(stage), 1000)
    stage.isFull = false
    assert.equal(await stage.produce('goes', key, [recordOf(700)]), submitOutcomes.taken)
    assert.equal(leftFor(stage), 300)
  })

  it('is given back what it cost if it fails and nothing was written, not if that is unknown', async () => {
    const stage = stageWith()
    const failures: [BrokerError, number][] = [
      [new BrokerError('SEQUENCE_GAP', {}), 1000],
      [new BrokerError('SHARD_DOWN', { shard: 0 }), 1000],
      [new BrokerError('DISK_FULL', {}, { written: 'no' }), 1000],
      [new BrokerError('DISK_FULL', {}, { written: 'unknown' }), 300],
      [new BrokerError('SHARD_DIED', { shard: 0 }), 300]
    ]
    for (const [error, left] of failures) {
      await stage.produce('one', key, [recordOf(700)])
      assert.equal(leftFor(stage), 300, 'taken while it is in progress')
      stage.appends.shift()?.caller.onProduceFailed(error)
      assert.equal(leftFor(stage), left, `${error.code}, written ${error.written}`)
      assert.deepEqual(stage.told(), [`one ${error.code}`])
      stage.clock.wallMs += 1000
    }
  })

  it('costs as much when all of it is a duplicate', async () => {
    const stage = stageWith()
    const records = [recordOf(250, { sequence: 0n }), recordOf(250, { sequence: 1n })]
    for (let i = 0; i < 2; i++) {
      await stage.produce('one', key, records, { producerId: 'p' })
      const isAgain = i === 1
      stage.appends.shift()?.caller.onProduced(Buffer.alloc(2 * RESULT_BYTES), 0, 2, isAgain ? 2 : 0, isAgain ? 500 : 0)
    }
    assert.deepEqual(stage.told(), ['one produced 2', 'one produced 2'])
    assert.equal(leftFor(stage), 0)
  })
})

describe('a read of a key with a quota', () => {
  /** Answers the oldest read. */
  function answer(stage: BrokerStage, payloadBytes: number): void {
    const { caller } = stage.reads.shift() ?? assert.fail('a read is in progress')
    caller.onReadCounted(3, payloadBytes)
    caller.onReadChunk(chunk, 0, 100, 100, true)
  }

  it('is charged when its answer is complete; while something is left, it is not refused', async () => {
    const stage = stageWith()
    await stage.read('first', key)
    await stage.read('second', key)
    answer(stage, 5000)
    await stage.read('third', key)
    answer(stage, 0)
    assert.deepEqual(stage.told(), ['first 100 bytes, last', 'third RATE_LIMITED', 'second 100 bytes, last'])
    stage.clock.wallMs += 4000
    await stage.read('at zero', key)
    assert.deepEqual(stage.told(), ['at zero RATE_LIMITED'])
    stage.clock.wallMs += 1
    await stage.read('paid', key)
    answer(stage, 0)
    assert.deepEqual(stage.told(), ['paid 100 bytes, last'])
  })

  it('costs nothing if it fails, or finds the rings full', async () => {
    const stage = stageWith()
    stage.isFull = true
    assert.equal(await stage.read('waits', key), submitOutcomes.full)
    stage.isFull = false
    await stage.read('breaks off', key)
    const { caller } = stage.reads.shift() ?? assert.fail('a read is in progress')
    caller.onReadChunk(chunk, 0, 50, 100, false)
    caller.onReadFailed(new BrokerError('SHARD_DOWN', { shard: 0 }))
    assert.deepEqual(stage.told(), ['breaks off 50 bytes', 'breaks off SHARD_DOWN'])
    assert.equal(stage.quotas.refusalOfConsume(key), null)
  })

  it('of several readers is charged to each, and counts as if each had read alone', async () => {
    const stage = stageWith()
    const { id } = stage.catalog.topicNamed('t') ?? assert.fail('it exists')
    const other = keyWith({ consumeBytesPerSec: 1000 }, 'key_other')
    const free = keyWith({}, 'key_free')
    await stage.read('shared', [key, key, other, free])
    assert.equal(stage.reads.length, 1)
    answer(stage, 2000)
    assert.deepEqual(stage.told(), ['shared 100 bytes, last'])
    assert.match(stage.quotas.refusalOfConsume(key)?.message ?? '', /and 3000 bytes beyond it/)
    assert.match(stage.quotas.refusalOfConsume(other)?.message ?? '', /and 1000 bytes beyond it/)
    assert.equal(stage.quotas.refusalOfConsume(free), null)
    const { consumedRecords, consumedBytes } = stage.traffic.of(id)
    assert.deepEqual([consumedRecords, consumedBytes], [12, 8000])
    await stage.read('gone', [key], { topic: 'gone' })
    await stage.read('no partition', [key], { partition: 9 })
    assert.deepEqual(stage.told(), ['gone TOPIC_NOT_FOUND', 'no partition PARTITION_RANGE'])
  })

  it('is judged last: after grant, topic and partition', async () => {
    const stage = stageWith()
    stage.quotas.chargeConsume(key, 5000)
    await stage.read('no grant', { ...key, mayRead: () => false }, { topic: 'unknown' })
    await stage.read('no topic', key, { topic: 'unknown', partition: 9 })
    await stage.read('no partition', key, { partition: 9 })
    await stage.read('in debt', key)
    assert.deepEqual(stage.told(), [
      'no grant FORBIDDEN',
      'no topic TOPIC_NOT_FOUND',
      'no partition PARTITION_RANGE',
      'in debt RATE_LIMITED'
    ])
  })
})

describe('what went through a topic', () => {
  const nobody = keyWith({})

  it('is what was acknowledged and answered, without duplicates', async () => {
    const stage = stageWith('t', 'other')
    const { id } = stage.catalog.topicNamed('t') ?? assert.fail('it exists')
    await stage.produce('acknowledged', nobody, [recordOf(10), recordOf(20), recordOf(30)])
    await stage.produce('failed', nobody, [recordOf(40)])
    await stage.produce('in progress', nobody, [recordOf(50)])
    await stage.read('answered', nobody)
    await stage.read('in progress', nobody)
    stage.appends[0]?.caller.onProduced(Buffer.alloc(3 * RESULT_BYTES), 0, 3, 1, 20)
    stage.appends[1]?.caller.onProduceFailed(new BrokerError('SHARD_DIED', { shard: 0 }))
    stage.reads[0]?.caller.onReadCounted(7, 70)
    stage.reads[0]?.caller.onReadChunk(chunk, 0, 100, 100, true)
    const counts = { producedRecords: 2, producedBytes: 40, consumedRecords: 7, consumedBytes: 70 }
    assert.deepEqual([stage.traffic.of(id), stage.gates.of(id).openCount], [counts, 1])
    const { id: otherId } = stage.catalog.topicNamed('other') ?? assert.fail('it exists')
    const zeros = { producedRecords: 0, producedBytes: 0, consumedRecords: 0, consumedBytes: 0 }
    assert.deepEqual([stage.traffic.of(otherId), stage.gates.of(otherId).openCount], [zeros, 0])
  })

  it('is of a read what its caller says that it sent, where it says so', async () => {
    const stage = stageWith('t')
    const { id } = stage.catalog.topicNamed('t') ?? assert.fail('it exists')
    const roomBytes = () => stage.quotas.readAllowance(key)?.roomBytes ?? NaN
    const before = roomBytes()
    const costs: [ReadCost, number, number][] = []
    const caller: ReadCaller = {
      onReadChunk() {},
      onReadFailed: error => assert.fail(error),
      onReadCost: (...cost) => void costs.push(cost)
    }
    const place = { topic: 't', partition: 0, offsetHigh: 0, offsetLow: 0 }
    const read = { ...place, maxRecords: 10, maxBytes: 1000, format: readFormats.batches }
    for (let i = 0; i < 2; i++) stage.broker.submitRead(key, read, caller)
    for (const { caller: metered } of stage.reads) metered.onReadCounted(7, 700)
    assert.equal(stage.traffic.of(id).consumedBytes, 0)
    assert.equal(roomBytes(), before)
    const [[dropped, ...told] = [], [sent] = []] = costs
    assert.ok(dropped !== undefined && sent !== undefined)
    assert.deepEqual(told, [7, 700])
    sent.charge(5, 500)
    const { consumedRecords, consumedBytes } = stage.traffic.of(id)
    assert.deepEqual([consumedRecords, consumedBytes], [5, 500])
    assert.equal(roomBytes(), before - 500)
  })

  it('begins anew in a topic that was deleted, also for what was in progress', async () => {
    const stage = stageWith('t')
    const { id } = stage.catalog.topicNamed('t') ?? assert.fail('it exists')
    await stage.produce('first', nobody, [recordOf(10)])
    await stage.produce('second', nobody, [recordOf(20)])
    stage.appends.shift()?.caller.onProduced(Buffer.alloc(RESULT_BYTES), 0, 1, 0, 0)
    assert.equal(stage.traffic.of(id).producedBytes, 10)
    await stage.broker.deleteTopic(nobody, 't')
    stage.appends.shift()?.caller.onProduced(Buffer.alloc(RESULT_BYTES), 0, 1, 0, 0)
    assert.equal(stage.traffic.of(id).producedBytes, 0)
    assert.deepEqual(stage.told(), ['first produced 1', 'second produced 1'])
  })
})
