/** The scanner of produce bodies against JSON.parse, and what it promises beyond acceptance. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { copied } from '../../../../src/base/copy.ts'
import { limits } from '../../../../src/model/limits.ts'
import { ProduceScanner } from '../../../../src/wire/json/produce-scanner.ts'
import { scanOutcomes } from '../../../../src/wire/produce/record-rows.ts'
import { scanned } from '../produce/scanned.ts'
import { BodyMaker, makeRandom, referenceOf } from './random-bodies.ts'
import type { Reference } from './random-bodies.ts'

/** Scans a body that stands alone, or in the middle of other bytes. */
function scanWhole(scanner: ProduceScanner, body: Buffer, isOffset = false): Reference {
  if (!isOffset) return scanned(scanner, body)
  return scanned(scanner, Buffer.concat([Buffer.from('"]'), body, Buffer.from('"}')]), 2, 2 + body.length)
}

describe('a produce body', () => {
  test('is accepted exactly when JSON.parse and a type check accept it, with the same values', t => {
    const random = makeRandom()
    const replay = `MILLRACE_SEED=${random.seed} node --test test/unit/wire/json/produce-scanner.test.ts`
    t.diagnostic(`seed ${random.seed}; replay: ${replay}`)
    const maker = new BodyMaker(random)
    const scanner = new ProduceScanner()
    const seen = { malformed: 0, 'ill-typed': 0, sound: 0, headers: 0, base64: 0 }
    for (let round = 0; round < 20_000; round++) {
      const body = maker.make()
      const expected = referenceOf(body)
      seen[expected.outcome]++
      if (expected.outcome === 'sound' && expected.records.some(({ headers }) => headers.length > 0)) seen.headers++
      if (expected.outcome === 'sound' && body.includes('"base64"') && expected.records.length > 0) seen.base64++
      const shown = body.toString('latin1').slice(0, 2000)
      assert.deepEqual(scanWhole(scanner, body, round % 2 === 1), expected, `${replay}\nround ${round}: ${shown}`)
      scanner.release()
    }
    // The generator must reach every outcome often, or the claim is empty.
    assert.ok(Math.min(seen.malformed, seen['ill-typed'], seen.sound) > 1500, JSON.stringify(seen))
    assert.ok(Math.min(seen.headers, seen.base64) > 500, JSON.stringify(seen))
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
      ['{"records":[],"producer_id":1}', 'producer_id', /string/],
      ['{"records":[],"encoding":"hex"}', 'encoding', /utf8 or base64/],
      ['{"records":[],"encoding":7}', 'encoding', /utf8 or base64/],
      ['{"records":[{"value":"a","headers":{}}]}', 'records[0].headers', /array of pairs/],
      ['{"records":[{"value":"a"},{"value":"a","headers":[["a","b"],["c"]]}]}', 'records[1].headers[1]', /pair/],
      ['{"records":[{"value":"a","headers":[["a","b","c"]]}]}', 'records[0].headers[0]', /pair/],
      ['{"records":[{"value":"a","headers":["a","b"]}]}', 'records[0].headers[0]', /pair/],
      ['{"records":[{"value":"a","headers":[[7,"b"]]}]}', 'records[0].headers[0][0]', /string/],
      ['{"records":[{"value":"a","headers":[["","b"]]}]}', 'records[0].headers[0][0]', /0 bytes: allowed is 1 to 1024/],
      ['{"records":[{"value":"a","headers":[["a",7]]}]}', 'records[0].headers[0][1]', /string or null/],
      ['{"encoding":"base64","records":[{"value":"aGk="},{"value":"a"}]}', 'records[1].value', /base64/],
      ['{"records":[{"value":"aGk=","key":"-_"}],"encoding":"base64"}', 'records[0].key', /base64/],
      [
        '{"records":[{"value":"","headers":[["n","aGk"],["n","="]]}],"encoding":"base64"}',
        'records[0].headers[1][1]',
        /base64/
      ],
      ['{"encoding":"base64","records":[{"value":"a"},{"value":7}]}', 'records[0].value', /base64/],
      ['{"encoding":"base64","records":[{"value":7},{"value":"a"}]}', 'records[0].value', /string/],
      ['{"encoding":"base64","records":[{"value":"a"}],"producer_id":7}', 'records[0].value', /base64/]
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

  test('with a name or a list of headers at the limit is sound, and one more is refused with both numbers', () => {
    const scanner = new ProduceScanner()
    const scan = (headers: string): [string, string] => {
      const body = Buffer.from(`{"records":[{"value":"a","headers":${headers}}]}`)
      scanner.scan(body, 0, body.length)
      return [scanner.field, scanner.problem]
    }
    const list = (count: number): string => `[${Array.from({ length: count }, () => '["n",null]').join(',')}]`
    const name = (bytes: number): string => `[["${'é'.repeat(bytes / 2)}${'x'.repeat(bytes % 2)}","v"]]`
    assert.deepEqual(scan(list(limits.recordHeadersMax)), ['', ''])
    assert.deepEqual(scan(list(limits.recordHeadersMax + 1)), [
      'records[0].headers',
      'has 101 headers: allowed is up to 100'
    ])
    assert.deepEqual(scan(name(limits.headerNameBytesMax)), ['', ''])
    assert.deepEqual(scan(name(limits.headerNameBytesMax + 1)), [
      'records[0].headers[0][0]',
      'has 1025 bytes: allowed is 1 to 1024'
    ])
  })

  test('keeps of a million headers no more than of one', () => {
    const scanner = new ProduceScanner()
    const pair = '["",1],'
    const body = Buffer.from(`{"records":[{"value":"a","headers":[${pair.repeat(1_000_000)}["n","v"]]}]}`)
    const { arrayBuffers, external } = process.memoryUsage()
    assert.equal(scanner.scan(body, 0, body.length), scanOutcomes.illTyped)
    const after = process.memoryUsage()
    assert.ok(after.arrayBuffers - arrayBuffers < 1024 * 1024 && after.external - external < 1024 * 1024)
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
