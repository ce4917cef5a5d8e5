/**
 * What the encoder puts into the slots, against a plain model of what was asked for and an independent decoder.
 */
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { describe, it } from 'node:test'
import { copied } from '../../../src/base/copy.ts'
import { SimulatedDisk } from '../../../src/disk/simulated-disk.ts'
import type { ShardLog } from '../../../src/log/shard-log.ts'
import { limits } from '../../../src/model/limits.ts'
import {
  append,
  gather,
  openLog,
  partitionOf,
  readBack,
  textRecord,
  type TestHeaders,
  type TestRecord,
  type TestRequest
} from '../../support/log-harness.ts'
import { takeImage } from '../../support/log-image.ts'
import { chosenSeed, diceOf, replayLine, type Dice } from '../../support/log-random.ts'
import { batchesOf, plainSlot, type PlainEntry, type PlainSlot } from '../../support/log-slot-bytes.ts'

const require = createRequire(import.meta.url)
const Decoder: new (bytes: Buffer) => object = require('kafkajs/src/protocol/decoder.js')
const decodeBatch: (decoder: object) => Promise<{
  firstOffset: string
  partitionLeaderEpoch: number
  producerId: string
  records: { key: Buffer | null; value: Buffer | null; offset: string; headers: object }[]
}> = require('kafkajs/src/protocol/recordBatch/v0/decoder.js')

const topics = [
  { firstHandle: 1, partitionCount: 4, segmentBytes: 3000 },
  { firstHandle: 100, partitionCount: 1, segmentBytes: 128 },
  { firstHandle: 200, partitionCount: 30, segmentBytes: 2 ** 31 - 1 }
]

interface Stored {
  readonly key: Buffer | null
  readonly value: Buffer
  readonly headers: TestHeaders
}

function start(disk: SimulatedDisk, options = {}): ShardLog {
  const log = openLog(disk, { slotBytes: 512 * 1024, ...options })
  for (const topic of topics) log.table.open(topic)
  return log
}

function drawRecord(dice: Dice, partition: number): TestRecord {
  const key = dice.chance(0.3) ? null : dice.bytes(dice.pick([0, 1, 10, 70]))
  return { partition, key, value: dice.bytes(dice.below(dice.pick([1, 50, 300, 4000]))) }
}

/** Some with none, an empty list, equal names, values that are null. */
function drawHeaders(dice: Dice): Pick<TestRecord, 'headers'> {
  if (dice.chance(0.4)) return {}
  const draw = (): readonly [string, Buffer | null] => [
    dice.pick(['trace', 'ü', 'n'.repeat(64)]),
    dice.chance(0.2) ? null : dice.bytes(dice.pick([0, 1, 63, 64, 500]))
  ]
  return { headers: Array.from({ length: dice.pick([0, 1, 2, 70]) }, draw) }
}

/** Headers as kafkajs has them: values by name, several of one name in an array. */
function byName(headers: TestHeaders): Map<string, unknown[]> {
  const values = new Map<string, unknown[]>()
  for (const [name, value] of headers) values.set(name, [...(values.get(name) ?? []), value])
  return values
}

/** Appends random groups. @returns by handle what each offset holds, as plain arrays know it. */
function appendRandom(log: ShardLog, dice: Dice, groups: number): Map<number, Stored[]> {
  const model = new Map<number, Stored[]>()
  for (let i = 0; i < groups; i++) {
    const requests: TestRequest[] = Array.from({ length: 1 + dice.below(4) }, () => {
      const { firstHandle, partitionCount } = dice.pick(topics)
      const hasHeaders = dice.chance(0.3)
      const records = Array.from({ length: 1 + dice.below(40) }, () => ({
        ...drawRecord(dice, dice.below(partitionCount)),
        ...(hasHeaders ? drawHeaders(dice) : {})
      }))
      return { firstHandle, records }
    })
    const expected = requests.flatMap(({ firstHandle, records }) =>
      records.map(({ partition, key, value, headers = [] }) => {
        const stored = model.get(firstHandle + partition) ?? []
        model.set(firstHandle + partition, stored)
        return stored.push({ key, value, headers }) - 1
      })
    )
    assert.deepEqual(append(log, ...requests), expected, 'each record gets the next offset of its partition')
  }
  return model
}

/** The slots in use, in order. */
function slotsOf(disk: SimulatedDisk): PlainSlot[] {
  const used = [...takeImage(disk).values()].filter(bytes => bytes[0] !== 0)
  return used.map(plainSlot).sort((a, b) => a.sequence - b.sequence)
}

/** All entries of all slots by handle, in order. */
function entriesOf(disk: SimulatedDisk): Map<number, PlainEntry[]> {
  const byHandle = new Map<number, PlainEntry[]>()
  for (const entry of slotsOf(disk).flatMap(slot => slot.groups.flatMap(group => group.entries))) {
    byHandle.set(entry.handle, [...(byHandle.get(entry.handle) ?? []), entry])
  }
  return byHandle
}

describe('random requests', () => {
  const seed = chosenSeed()
  const message = replayLine(seed, 'test/unit/log/group-encoder.test.ts')

  it('are stored as Kafka batches that an independent decoder reads, record for record', async () => {
    const disk = new SimulatedDisk()
    const model = appendRandom(start(disk), diceOf(seed), 40)
    const entries = entriesOf(disk)
    for (const [handle, expected] of model) {
      const decoded: (Omit<Stored, 'headers'> & { readonly headers: Map<string, unknown[]> })[] = []
      for (const batch of (entries.get(handle) ?? []).flatMap(entry => batchesOf(entry.run))) {
        // The decoder is handed what follows base offset and length, as in a fetch answer.
        const result = await decodeBatch(new Decoder(batch))
        assert.equal(Number(result.firstOffset), decoded.length, message)
        assert.equal(result.producerId, '-1')
        for (const { key, value, offset, headers } of result.records) {
          assert.equal(Number(offset), decoded.length, message)
          const values = Object.entries(headers).map(([name, found]) => [name, [found].flat()] as const)
          decoded.push({ key, value: value ?? Buffer.alloc(0), headers: new Map(values) })
        }
      }
      const plain = expected.map(({ key, value, headers }) => ({ key, value, headers: byName(headers) }))
      assert.deepEqual(decoded, plain, `handle ${handle}; ${message}`)
    }
  })

  it('keep their headers, in order, through a start that recovers them', () => {
    const disk = new SimulatedDisk()
    const model = appendRandom(start(disk), diceOf(seed), 40)
    const log = start(disk.killProcess())
    let withHeaders = 0
    for (const { firstHandle, partitionCount } of topics) {
      for (let partition = 0; partition < partitionCount; partition++) {
        const read = readBack(log, partitionOf(log, firstHandle, partition)).records
        const stored = read.map(({ key, value, headers = [] }) => ({ key, value, headers }))
        assert.deepEqual(stored, model.get(firstHandle + partition) ?? [], message)
        withHeaders += stored.filter(({ headers }) => headers.length > 0).length
      }
    }
    assert.ok(withHeaders > 50, `only ${withHeaders} records had headers; ${message}`)
  })

  it('lie in their group sorted by partition, with directory entries that tell the truth', () => {
    const disk = new SimulatedDisk()
    appendRandom(start(disk), diceOf(seed), 40)
    for (const slot of slotsOf(disk)) {
      for (const group of slot.groups) {
        const handles = group.entries.map(entry => entry.handle)
        const changes = handles.filter((handle, i) => handle !== handles[i - 1]).length
        assert.equal(changes, new Set(handles).size, `a partition's runs lie together; ${message}`)
        assert.equal(group.totalBytes % 4096, 0)
        assert.equal(group.lastSynced, group.number - 1)
      }
    }
    for (const entries of entriesOf(disk).values()) {
      let next = 0
      for (const entry of entries) {
        assert.deepEqual(
          [entry.kind, entry.baseOffset, entry.nextOffset - entry.baseOffset],
          [1, next, entry.recordCount],
          message
        )
        assert.equal(batchesOf(entry.run).length, entry.batchCount)
        next = entry.nextOffset
      }
    }
  })

  it('roll segments by stored bytes, one larger record standing alone', () => {
    const disk = new SimulatedDisk()
    const log = start(disk)
    appendRandom(log, diceOf(seed), 40)
    const entries = entriesOf(disk)
    for (const { firstHandle, partitionCount, segmentBytes } of topics) {
      for (let partition = 0; partition < partitionCount; partition++) {
        const segments: PlainEntry[][] = [[]]
        for (const entry of entries.get(firstHandle + partition) ?? []) {
          if (entry.rolls) segments.push([])
          segments.at(-1)?.push(entry)
        }
        const { segmentCount, sizeBytes } = partitionOf(log, firstHandle, partition)
        const sizes = segments.map(runs => runs.reduce((sum, entry) => sum + entry.run.length, 0))
        assert.equal(segmentCount, segments.length, message)
        assert.equal(
          sizeBytes,
          sizes.reduce((sum, bytes) => sum + bytes, 0),
          message
        )
        segments.forEach((runs, i) => {
          const records = runs.reduce((sum, entry) => sum + entry.recordCount, 0)
          assert.ok((sizes[i] ?? 0) <= segmentBytes || records === 1, `${sizes[i]} bytes; ${message}`)
        })
      }
    }
  })

  it('cost one copy of each key and value, and nothing else is copied record by record', () => {
    const log = start(new SimulatedDisk())
    const dice = diceOf(seed)
    for (let i = 0; i < 20; i++) {
      const records = Array.from({ length: 200 }, () => drawRecord(dice, dice.below(30)))
      gather(log, [{ firstHandle: 200, records }])
      const payload = records.reduce((sum, { key, value }) => sum + (key?.length ?? 0) + value.length, 0)
      assert.equal(log.encoder.payloadBytes, payload)
      log.prepare()
      const before = copied.bytes
      const index = log.encode()
      assert.ok(copied.bytes - before <= payload, `${copied.bytes - before} bytes copied for ${payload}; ${message}`)
      const position = log.write(index)
      log.sync()
      log.publish(index, position)
      log.encoder.reset()
      assert.ok(copied.bytes - before <= payload, message)
    }
  })
})

describe('one request', () => {
  it('counts its headers as payload, and a record without any as before', () => {
    const log = start(new SimulatedDisk())
    const [plain, other] = [textRecord(0, 'key', 'value'), textRecord(1, null, 'v')]
    gather(log, [{ firstHandle: 1, records: [plain, other] }])
    assert.equal(log.encoder.payloadBytes, 9)
    // A count, a length, "n", a length, "abc".
    gather(log, [{ firstHandle: 1, records: [{ ...plain, headers: [['n', Buffer.from('abc')]] }, other] }])
    assert.equal(log.encoder.payloadBytes, 9 + 9 + 7)
  })

  it('keeps null keys, empty keys and empty values apart', () => {
    const log = start(new SimulatedDisk())
    const records = [textRecord(0, null, 'v'), textRecord(0, '', 'v'), textRecord(0, 'k', ''), textRecord(0, null, '')]
    append(log, { firstHandle: 1, records })
    const read = readBack(log, partitionOf(log, 1, 0)).records
    assert.deepEqual(
      read.map(({ key, value }) => [key?.toString() ?? null, value.toString()]),
      [
        [null, 'v'],
        ['', 'v'],
        ['k', ''],
        [null, '']
      ]
    )
  })

  it('may have 100,000 records', () => {
    let disk = new SimulatedDisk()
    const log = start(disk)
    const records = Array.from({ length: limits.requestRecordsMax }, (_, i) => textRecord(i % 30, null, `${i}`))
    const offsets = append(log, { firstHandle: 200, records })
    assert.ok(offsets.every((offset, i) => offset === Math.floor(i / 30)))
    const check = (from: ShardLog): void => {
      for (let partition = 0; partition < 30; partition++) {
        const values = readBack(from, partitionOf(from, 200, partition)).records.map(record => record.value.toString())
        assert.deepEqual(
          values,
          Array.from({ length: values.length }, (_, i) => `${i * 30 + partition}`)
        )
        assert.equal(values.length, Math.ceil((limits.requestRecordsMax - partition) / 30))
      }
    }
    check(log)
    disk = disk.killProcess()
    check(start(disk))
  })

  it('may touch 10,000 partitions', () => {
    let disk = new SimulatedDisk()
    const wide = { firstHandle: 1000, partitionCount: limits.partitionsMax, segmentBytes: 2 ** 31 - 1 }
    let log = start(disk)
    log.table.open(wide)
    const records = Array.from({ length: wide.partitionCount }, (_, i) =>
      textRecord(wide.partitionCount - 1 - i, 'k', `${i}`)
    )
    append(log, { firstHandle: wide.firstHandle, records })
    append(log, { firstHandle: wide.firstHandle, records })
    disk = disk.killProcess()
    log = start(disk)
    log.table.open(wide)
    assert.deepEqual([log.report.groups, log.report.copiedGroups], [2, 1])
    for (let partition = 0; partition < wide.partitionCount; partition++) {
      const values = readBack(log, partitionOf(log, wide.firstHandle, partition)).records.map(record =>
        record.value.toString()
      )
      const value = `${wide.partitionCount - 1 - partition}`
      assert.deepEqual(values, [value, value])
    }
  })

  it('is cut into batches of at most 256 KiB, but for one larger record', () => {
    const disk = new SimulatedDisk()
    const log = start(disk)
    const sizes = [100_000, 100_000, 100_000, 600_000, 100, 100]
    append(log, {
      firstHandle: 200,
      records: sizes.map(bytes => ({ partition: 0, key: null, value: Buffer.alloc(bytes, 1) }))
    })
    const batches = (entriesOf(disk).get(200) ?? []).flatMap(entry => batchesOf(entry.run))
    assert.deepEqual(
      batches.map(batch => batch.readUInt32BE(57)),
      [2, 1, 1, 2]
    )
    assert.equal(batches.filter(batch => batch.length > limits.batchBytesTarget + 61).length, 1)
    assert.deepEqual(
      readBack(log, partitionOf(log, 200, 0)).records.map(record => record.value.length),
      sizes
    )
  })
})
