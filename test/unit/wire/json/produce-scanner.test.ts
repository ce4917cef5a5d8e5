/** The scanner of produce bodies against JSON.parse, and what it promises beyond acceptance. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { copied } from '../../../../src/base/copy.ts'
import { fnv1a64Modulo } from '../../../../src/base/hash.ts'
import { limits } from '../../../../src/model/limits.ts'
import { ProduceScanner, scanOutcomes } from '../../../../src/wire/json/produce-scanner.ts'
import { BodyMaker, makeRandom, referenceOf } from './random-bodies.ts'
import type { Reference } from './random-bodies.ts'

const LEAD = 8

/** What the scanner makes of a body, read back from the ring layout that it writes. */
function scanWhole(scanner: ProduceScanner, body: Buffer, isOffset = false): Reference {
  const source = isOffset ? Buffer.concat([Buffer.from('"]'), body, Buffer.from('"}')]) : body
  const start = isOffset ? 2 : 0
  const outcome = scanner.scan(source, start, start + body.length)
  if (outcome === scanOutcomes.malformed) return { outcome: 'malformed' }
  if (outcome === scanOutcomes.illTyped) return { outcome: 'ill-typed', field: scanner.field }
  const partitions = Uint32Array.from({ length: scanner.count }, (_, i) => Math.max(scanner.partitionOf(i), 0))
  const ring = Buffer.from(new SharedArrayBuffer(LEAD + scanner.ringBytes))
  assert.equal(scanner.writeAll(partitions, ring, LEAD), ring.length, 'exactly ringBytes are written')
  let at = LEAD
  const records = Array.from({ length: scanner.count }, (_, i) => {
    const first = at
    const keyBytes = ring.readInt32BE(at)
    at += 4 + Math.max(keyBytes, 0)
    const key = keyBytes < 0 ? null : Buffer.from(ring.subarray(at - keyBytes, at))
    const valueBytes = ring.readUInt32BE(at)
    at += 4 + valueBytes
    const value = Buffer.from(ring.subarray(at - valueBytes, at))
    assert.equal(ring.readUInt32BE(at), partitions[i])
    const sequence = ring.readBigInt64BE(at + 4)
    assert.equal((BigInt(scanner.sequenceHighOf(i)) << 32n) + BigInt(scanner.sequenceLowOf(i)), sequence)
    at += 12
    assert.equal(scanner.ringBytesOf(i), at - first)
    assert.equal(scanner.payloadBytesOf(i), (key?.length ?? 0) + value.length)
    assert.equal(scanner.hashKeyOf(i, 7), key === null ? -1 : fnv1a64Modulo(key, 0, key.length, 7))
    return { key, value, partition: scanner.partitionOf(i), sequence }
  })
  const sizes = records.map(({ key, value }) => (key?.length ?? 0) + value.length)
  assert.equal(scanner.largestPayloadBytes, Math.max(0, ...sizes))
  if (sizes.length > 0) assert.equal(sizes[scanner.largestPayloadIndex], scanner.largestPayloadBytes)
  return { outcome: 'sound', records, producerId: scanner.producerId }
}

describe('a produce body', () => {
  test('is accepted exactly when JSON.parse and a type check accept it, with the same values', t => {
    const random = makeRandom()
    const replay = `MILLRACE_SEED=${random.seed} node --test test/unit/wire/json/produce-scanner.test.ts`
    t.diagnostic(`seed ${random.seed}; replay: ${replay}`)
    const maker = new BodyMaker(random)
    const scanner = new ProduceScanner()
    const seen = { malformed: 0, 'ill-typed': 0, sound: 0 }
    for (let round = 0; round < 20_000; round++) {
      const body = maker.make()
      const expected = referenceOf(body)
      seen[expected.outcome]++
      const shown = body.toString('latin1').slice(0, 2000)
      assert.deepEqual(scanWhole(scanner, body, round % 2 === 1), expected, `${replay}\nround ${round}: ${shown}`)
      scanner.release()
    }
    // The generator must reach every outcome often, or the claim is empty.
    assert.ok(Math.min(seen.malformed, seen['ill-typed'], seen.sound) > 1500, JSON.stringify(seen))
  })

  test('agrees with JSON.parse on every byte at every place of a long and a short string', () => {
    const scanner = new ProduceScanner()
    for (const length of [1, 3, 4, 5, 11]) {
      for (let place = 0; place < length; place++) {
        for (let byte = 0; byte < 256; byte++) {
          const value = Buffer.alloc(length, 'a')
          value[place] = byte
          const body = Buffer.concat([Buffer.from('{"records":[{"value":"'), value, Buffer.from('"}]}')])
          assert.deepEqual(scanWhole(scanner, body), referenceOf(body), `byte ${byte} at ${place} of ${length}`)
        }
      }
    }
  })

  test('counts the last of equal names, whatever the ones before were', () => {
    const scanner = new ProduceScanner()
    const good = { key: '"k"', value: '"v"', partition: '1', sequence: '2' }
    for (const [name, value] of Object.entries(good)) {
      for (const other of ['null', 'true', '5', '-1', '"text"', '[]', '{}', '9e99']) {
        for (const pair of [`"${name}":${other},"${name}":${value}`, `"${name}":${value},"${name}":${other}`]) {
          const body = Buffer.from(`{"records":[{"value":"a",${pair}}]}`)
          assert.deepEqual(scanWhole(scanner, body), referenceOf(body), body.toString())
        }
      }
    }
    for (const first of ['null', '[{}]', '[5]', '[{"value":"x"}]', '"a"']) {
      for (const last of ['null', '[]', '[{}]', '[{"value":"y","key":"z"}]']) {
        const body = Buffer.from(`{"records":${first},"producer_id":4,"records":${last},"producer_id":null}`)
        assert.deepEqual(scanWhole(scanner, body), referenceOf(body), body.toString())
      }
    }
  })

  test('names the first ill-typed field of the first bad record', () => {
    const scanner = new ProduceScanner()
    const cases: [string, string, RegExp][] = [
      ['7', 'body', /object/],
      ['{}', 'records', /missing/],
      ['{"records":{}}', 'records', /array/],
      ['{"records":[{"value":"a"},{"key":"k"}]}', 'records[1].value', /missing/],
      ['{"records":[{"value":null}]}', 'records[0].value', /string/],
      ['{"records":[{"value":"a","partition":1.0}]}', 'records[0].partition', /integer/],
      ['{"records":[{"value":"a","partition":4294967296}]}', 'records[0].partition', /4294967295/],
      ['{"records":[{"value":"a","sequence":9223372036854775808}]}', 'records[0].sequence', /64 bits/],
      ['{"records":[{"value":"a","sequence":"1","key":1}]}', 'records[0].key', /string/],
      ['{"records":[],"producer_id":1}', 'producer_id', /string/]
    ]
    for (const [body, field, problem] of cases) {
      assert.equal(scanner.scan(Buffer.from(body), 0, body.length), scanOutcomes.illTyped, body)
      assert.equal(scanner.field, field)
      assert.match(scanner.problem, problem)
    }
  })

  test('that is not JSON is told with the place of the fault', () => {
    const scanner = new ProduceScanner()
    const cases: [string, RegExp][] = [
      ['', /it ends where a value should be, at byte 0/],
      ['{"records":[}', /a value should be, at byte 12/],
      ['{"records":[]', /it ends where a comma or } should be, at byte 13/],
      ['{"records":[]} x', /nothing should follow the value, at byte 15/],
      ['{"a":"\\q"}', /a known escape should be, at byte 6/],
      [`{"a":${'['.repeat(512)}`, /deeper than the limit of 512 levels, at byte 516/]
    ]
    for (const [body, problem] of cases) {
      assert.equal(scanner.scan(Buffer.from(body), 0, body.length), scanOutcomes.malformed, body)
      assert.match(scanner.problem, problem)
    }
    assert.equal(scanner.scan(Buffer.from([0x22, 0xc3, 0x22]), 0, 3), scanOutcomes.malformed)
    assert.match(scanner.problem, /UTF-8/)
  })

  test('of ten million nested brackets costs neither stack nor time', () => {
    const scanner = new ProduceScanner()
    const body = Buffer.alloc(10_000_000, '[')
    assert.equal(scanner.scan(body, 0, body.length), scanOutcomes.malformed)
  })

  test('over the limit of records is counted to its end, and its memory is bounded', () => {
    const scanner = new ProduceScanner()
    const count = limits.requestRecordsMax * 3
    const body = Buffer.from(`{"records":[${'{"value":"a"},'.repeat(count - 1)}{"value":"b"}]}`)
    assert.equal(scanner.scan(body, 0, body.length), scanOutcomes.sound)
    assert.equal(scanner.count, count)
    assert.throws(() => scanner.partitionOf(limits.requestRecordsMax + 1), /did not keep/)
    const bad = Buffer.from(body.toString().replace('"b"', '5'))
    assert.equal(scanner.scan(bad, 0, bad.length), scanOutcomes.illTyped)
    assert.equal(scanner.field, `records[${count - 1}].value`)
  })

  test('at the limit of records keeps every one', () => {
    const scanner = new ProduceScanner()
    const count = limits.requestRecordsMax
    const rows = Array.from({ length: count }, (_, i) => `{"value":"${i}"}`)
    const body = Buffer.from(`{"records":[${rows.join(',')}]}`)
    const result = scanWhole(scanner, body)
    assert(result.outcome === 'sound')
    assert.ok(result.records.every(({ value }, i) => value.toString() === String(i)))
  })

  test('copies each record byte once on its way to the ring', () => {
    const scanner = new ProduceScanner()
    const value = 'x'.repeat(1000)
    const body = Buffer.from(JSON.stringify({ records: [{ key: 'k'.repeat(10), value }, { value: `${value}\n` }] }))
    scanner.scan(body, 0, body.length)
    const before = copied.bytes
    scanner.writeAll(new Uint32Array(2), Buffer.alloc(scanner.ringBytes), 0)
    // The line break is decoded, not copied.
    assert.equal(copied.bytes - before, 2010)
  })
})
