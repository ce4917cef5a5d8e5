/** Bodies scanned by the job `scanProduce` against the same bodies scanned in place: same verdict, same words, same records. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { pack } from 'msgpackr/pack'
import { makeScanners, refusalOf, scannedBytesMax } from '../../../src/background/produce-scan.ts'
import type { BodyForm, ScanProduceResult, ScanProduceValue } from '../../../src/background/produce-scan.ts'
import { packRecords, ScannedRecords } from '../../../src/background/scanned-records.ts'
import { copied } from '../../../src/base/copy.ts'
import { fnv1a64Modulo, murmur2Modulo } from '../../../src/base/hash.ts'
import { BrokerError, errorCodeOf } from '../../../src/model/errors.ts'
import { limits } from '../../../src/model/limits.ts'
import type { RecordSource } from '../../../src/model/requests.ts'
import { ProduceScanner } from '../../../src/wire/json/produce-scanner.ts'
import type { RecordRows } from '../../../src/wire/produce/record-rows.ts'
import { scanProduce } from '../../../workers/background/scan-produce.ts'
import { BodyMaker, makeRandom } from '../wire/json/random-bodies.ts'
import { PackMaker } from '../wire/produce/random-packs.ts'
import { openPool } from './pool-tools.ts'

const LEAD = 8

/** A body in memory of its own, with bytes behind it that are not part of it. */
function own(body: Buffer, form: BodyForm = 'json'): ScanProduceValue {
  const memory = new ArrayBuffer(body.length + 5)
  const view = Buffer.from(memory)
  body.copy(view)
  view.fill('"}]', body.length)
  return { form, body: memory, length: body.length }
}

/** All that a broker can learn of records: what they say of themselves, and their bytes, written together and one by one. */
function learn(source: RecordSource): object {
  const { count, hasHeaders, ringBytes, largestPayloadBytes, largestPayloadIndex } = source
  const partitions = Uint32Array.from({ length: count }, (_, i) => Math.max(source.partitionOf(i), 3))
  const named = partitions.map((partition, i) => (source.partitionOf(i) >= 0 ? source.partitionOf(i) : partition))
  const whole = Buffer.from(new SharedArrayBuffer(LEAD + ringBytes))
  assert.equal(source.writeAll(named, whole, LEAD), whole.length)
  const single = Buffer.alloc(LEAD + ringBytes)
  let at = LEAD
  const records = Array.from(named, (partition, i) => {
    at = source.writeRecord(i, partition, single, at)
    const sequence = [source.sequenceHighOf(i), source.sequenceLowOf(i)]
    const hashes = [source.hashKeyOf(i, 7, fnv1a64Modulo), source.hashKeyOf(i, 7, murmur2Modulo)]
    return [source.partitionOf(i), hashes, source.ringBytesOf(i), source.payloadBytesOf(i), sequence]
  })
  assert.ok(single.equals(whole), 'one by one they are the same bytes as together')
  const { producerId } = source
  return {
    producerId,
    count,
    hasHeaders,
    ringBytes,
    largestPayloadBytes,
    largestPayloadIndex,
    records,
    bytes: single.toString('hex')
  }
}

function inPlace(scanner: RecordRows, body: Buffer): object {
  const refusal = refusalOf(scanner, scanner.scan(body, 0, body.length))
  return refusal === null ? learn(scanner) : { code: refusal.code, text: refusal.message }
}

function elsewhere(result: ScanProduceResult): object {
  if (result.kind === 'scanned') return learn(new ScannedRecords(result))
  const { code, message: text } = new BrokerError(errorCodeOf(result.wire), result.details)
  return { code, text }
}

describe('a produce body that another thread scans', () => {
  test('has the same records, or is refused with the same words, as one that is scanned in place', t => {
    const random = makeRandom()
    const replay = `MILLRACE_SEED=${random.seed} node --test test/unit/background/produce-scan.test.ts`
    t.diagnostic(`seed ${random.seed}; replay: ${replay}`)
    const makers = { json: new BodyMaker(random), msgpack: new PackMaker(random) }
    const here = makeScanners()
    const there = makeScanners()
    const seen = new Map<string, number>()
    for (let round = 0; round < 8000; round++) {
      const form = random.pick(['json', 'msgpack'] as const)
      const body = makers[form].make()
      const expected = inPlace(here[form], body)
      const result = scanProduce(there[form], own(body, form))
      assert.deepEqual(elsewhere(result), expected, `${replay}\nround ${round}: ${body.toString('latin1')}`)
      if (result.kind === 'scanned') assert.ok((result.memory?.byteLength ?? 0) <= scannedBytesMax(form, body.length))
      if (result.kind === 'scanned' && result.hasHeaders)
        seen.set(`${form} headers`, (seen.get(`${form} headers`) ?? 0) + 1)
      const verdict = 'code' in expected ? String(expected.code) : 'sound'
      seen.set(verdict, (seen.get(verdict) ?? 0) + 1)
    }
    // The generator must reach every verdict often, or the claim is empty.
    for (const verdict of [
      'sound',
      'BODY_NOT_JSON',
      'BODY_NOT_MSGPACK',
      'FIELD_INVALID',
      'json headers',
      'msgpack headers'
    ]) {
      assert.ok((seen.get(verdict) ?? 0) > 40, `${verdict}: ${seen.get(verdict)}`)
    }
  })

  test('comes back whole from a real thread, many at once', async t => {
    const random = makeRandom()
    t.diagnostic(`seed ${random.seed}; replay: MILLRACE_SEED=${random.seed}`)
    const maker = new BodyMaker(random)
    const scanner = new ProduceScanner()
    const { pool } = openPool(t, { jobsMax: 300 })
    const run = (value: ScanProduceValue): Promise<ScanProduceResult> =>
      pool.run('scanProduce', value, { moves: [value.body] })
    const bodies = Array.from({ length: 300 }, () => maker.make())
    const results = await Promise.all(bodies.map(body => run(own(body))))
    for (const [i, body] of bodies.entries()) {
      assert.deepEqual(elsewhere(results[i] as ScanProduceResult), inPlace(scanner, body), body.toString('latin1'))
    }
  })

  test('keeps a partition of 32 bits apart from none', () => {
    const body = '{"records":[{"value":"a","partition":4294967295},{"value":"b"},{"value":"","partition":2147483648}]}'
    const result = scanProduce(new ProduceScanner(), own(Buffer.from(body)))
    assert(result.kind === 'scanned')
    const records = new ScannedRecords(result)
    assert.deepEqual(
      [0, 1, 2].map(i => records.partitionOf(i)),
      [4294967295, -1, 2147483648]
    )
  })

  test('with more records than a request may have is counted, and needs no memory', () => {
    const over = limits.requestRecordsMax + 7
    const body = Buffer.from(`{"records":[${'{"value":""},'.repeat(over - 1)}{"value":""}]}`)
    const result = scanProduce(new ProduceScanner(), own(body))
    assert(result.kind === 'scanned')
    assert.deepEqual([result.count, result.memory], [over, null])
    const records = new ScannedRecords(result)
    assert.equal(records.count, over)
    assert.throws(() => records.partitionOf(0), /no such record/)
  })

  test('with as many of the smallest records as fit needs no more memory than was set aside', () => {
    for (const count of [0, 1, 2, 1000, limits.requestRecordsMax]) {
      const body = Buffer.from(`{"records":[${Array.from({ length: count }, () => '{"value":""}').join(',')}]}`)
      const result = scanProduce(new ProduceScanner(), own(body))
      assert(result.kind === 'scanned' && result.memory !== null)
      assert.ok(result.memory.byteLength <= scannedBytesMax('json', body.length), `${count} records`)
    }
  })

  test('that has as many headers as fit needs no more memory than was set aside', () => {
    const pairs = { none: null, one: [['n', '']], many: Array.from({ length: 100 }, () => ['n', null]) }
    for (const headers of Object.values(pairs)) {
      for (const count of [1, 2, 500]) {
        const records = [
          { value: '', headers: [['n', null]] },
          ...Array.from({ length: count }, () => ({ value: '', headers }))
        ]
        const bodies = { json: Buffer.from(JSON.stringify({ records })), msgpack: pack({ records }) }
        for (const form of ['json', 'msgpack'] as const) {
          const result = scanProduce(makeScanners()[form], own(bodies[form], form))
          assert(result.kind === 'scanned' && result.memory !== null)
          assert.ok(result.memory.byteLength <= scannedBytesMax(form, bodies[form].length), `${form} ${count}`)
        }
      }
    }
  })

  test('is copied once where it is decoded, and once more to the ring', () => {
    const value = 'x'.repeat(1000)
    const body = Buffer.from(JSON.stringify({ records: [{ key: 'k'.repeat(10), value }, { value }] }))
    const scanner = new ProduceScanner()
    scanner.scan(body, 0, body.length)
    const before = copied.bytes
    const records = new ScannedRecords(packRecords(scanner))
    assert.equal(copied.bytes - before, 2010)
    records.writeAll(new Uint32Array(2), Buffer.alloc(records.ringBytes), 0)
    assert.equal(copied.bytes - before, 2010 + records.ringBytes, 'one bulk copy, record heads included')
  })
})
