/** The scanner of produce bodies in MessagePack against a plain decoder, and what it promises beyond acceptance. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { pack } from 'msgpackr/pack'
import { copied } from '../../../../src/base/copy.ts'
import { limits } from '../../../../src/model/limits.ts'
import { MsgpackScanner } from '../../../../src/wire/produce/msgpack-scanner.ts'
import { scanOutcomes } from '../../../../src/wire/produce/record-rows.ts'
import { makeRandom } from '../json/random-bodies.ts'
import { PackMaker, referenceOfPack } from './random-packs.ts'
import { scanned } from './scanned.ts'

describe('a produce body in MessagePack', () => {
  test('is accepted exactly when a plain decoder and a type check accept it, with the same values', t => {
    const random = makeRandom()
    const replay = `MILLRACE_SEED=${random.seed} node --test test/unit/wire/produce/msgpack-scanner.test.ts`
    t.diagnostic(`seed ${random.seed}; replay: ${replay}`)
    const maker = new PackMaker(random)
    const scanner = new MsgpackScanner()
    const seen = { malformed: 0, 'ill-typed': 0, sound: 0, headers: 0 }
    for (let round = 0; round < 20_000; round++) {
      const body = maker.make()
      const expected = referenceOfPack(body)
      seen[expected.outcome]++
      if (expected.outcome === 'sound' && expected.records.some(({ headers }) => headers.length > 0)) seen.headers++
      const lead = round % 3
      const source = Buffer.concat([Buffer.alloc(lead, 0xc0), body, Buffer.alloc(lead, 0xc0)])
      const found = scanned(scanner, source, lead, lead + body.length)
      assert.deepEqual(found, expected, `${replay}\nround ${round}: ${body.toString('hex').slice(0, 2000)}`)
      scanner.release()
    }
    // The generator must reach every outcome often, or the claim is empty.
    assert.ok(Math.min(...Object.values(seen)) > 1000, JSON.stringify(seen))
  })

  test('of any bytes at all is taken or refused, never more', t => {
    const random = makeRandom()
    t.diagnostic(`seed ${random.seed}; replay: MILLRACE_SEED=${random.seed}`)
    const scanner = new MsgpackScanner()
    const start = Buffer.from([0x81, 0xa7, ...Buffer.from('records'), 0x91, 0x81, 0xa5, ...Buffer.from('value')])
    for (let round = 0; round < 20_000; round++) {
      const noise = Buffer.from(Array.from({ length: random.below(24) }, () => random.below(256)))
      const body = round % 2 === 0 ? noise : Buffer.concat([start, noise])
      assert.deepEqual(scanned(scanner, body), referenceOfPack(body), body.toString('hex'))
    }
  })

  test('that a client library packs comes out as it went in', () => {
    const scanner = new MsgpackScanner()
    const records = [
      { key: 'k', value: Buffer.from([0, 255]), partition: 3, sequence: 2n ** 40n },
      { key: Buffer.from('é'), value: 'v'.repeat(70_000), sequence: 5_000_000_000, headers: [['n', Buffer.from([1])], ['n', null]] },
      { value: '', headers: [], partition: null }
    ] // prettier-ignore
    const found = scanned(scanner, pack({ records, producer_id: 'p' }))
    assert(found.outcome === 'sound')
    assert.equal(found.producerId, 'p')
    assert.deepEqual(found.records, [
      { key: Buffer.from('k'), value: Buffer.from([0, 255]), partition: 3, sequence: 2n ** 40n, headers: [] },
      {
        key: Buffer.from('é'),
        value: Buffer.alloc(70_000, 'v'),
        partition: -1,
        sequence: 5_000_000_000n,
        headers: [['n', Buffer.from([1])], ['n', null]] // prettier-ignore
      },
      { key: null, value: Buffer.alloc(0), partition: -1, sequence: -(2n ** 63n), headers: [] }
    ])
  })

  test('names the first ill-typed field of the first bad record', () => {
    const scanner = new MsgpackScanner()
    const cases: [unknown, string, RegExp][] = [
      [7, 'body', /map/],
      [{}, 'records', /missing/],
      [{ records: {} }, 'records', /array/],
      [{ records: [7] }, 'records[0]', /map/],
      [{ records: [{ value: 'a' }, { key: 'k' }] }, 'records[1].value', /missing/],
      [{ records: [{ value: null }] }, 'records[0].value', /bin or str/],
      [{ records: [{ value: 'a', key: 7 }] }, 'records[0].key', /bin, str or nil/],
      [{ records: [{ value: 'a', partition: -1 }] }, 'records[0].partition', /4294967295/],
      [{ records: [{ value: 'a', partition: 1.5 }] }, 'records[0].partition', /integer/],
      [{ records: [{ value: 'a', sequence: 2n ** 63n }] }, 'records[0].sequence', /64 bits/],
      [{ records: [{ value: 'a', headers: [['n', 'v'], ['n']] }] }, 'records[0].headers[1]', /pair/],
      [{ records: [{ value: 'a', headers: { n: 'v' } }] }, 'records[0].headers', /array of pairs/],
      [{ records: [{ value: 'a', headers: [['', 'v']] }] }, 'records[0].headers[0][0]', /0 bytes/],
      [{ records: [], producer_id: 4 }, 'producer_id', /str/],
      [{ records: [], encoding: 'base64' }, 'encoding', /bin/]
    ]
    for (const [body, field, problem] of cases) {
      const bytes = pack(body)
      assert.equal(scanner.scan(bytes, 0, bytes.length), scanOutcomes.illTyped, JSON.stringify(body, (_, v: unknown) => typeof v === 'bigint' ? `${v}` : v)) // prettier-ignore
      assert.equal(scanner.field, field)
      assert.match(scanner.problem, problem)
    }
  })

  test('whose lengths lie is refused before anything is made of them', () => {
    const scanner = new MsgpackScanner()
    const start = Buffer.from([0x81, 0xa7, ...Buffer.from('records')])
    const { arrayBuffers } = process.memoryUsage()
    const lies: [number[], RegExp][] = [
      [[0xdd, 0xff, 0xff, 0xff, 0xff], /4294967295 values should be here, but only 0 bytes follow, at byte 14/],
      [[0xdf, 0xff, 0xff, 0xff, 0xff, 1], /8589934590 values should be here, but only 1 bytes follow/],
      [[0xc6, 0xff, 0xff, 0xff, 0xff], /4294967295 bytes should be here, but only 0 follow/],
      [[0xdb, 0xff, 0xff, 0xff, 0xff], /4294967295 bytes/],
      [[0xc9, 0xff, 0xff, 0xff, 0xff], /4294967296 bytes/],
      [[0xdc, 0xff], /ends inside a length/],
      [[0xcf, 0], /ends inside a number/],
      [[0xc1], /0xc1 is no MessagePack, at byte 9/],
      [[], /ends where a value should be/],
      [[0x90, 0x90], /nothing should follow the value, at byte 10/]
    ]
    for (const [bytes, problem] of lies) {
      const body = Buffer.concat([start, Buffer.from(bytes)])
      assert.equal(scanner.scan(body, 0, body.length), scanOutcomes.malformed, body.toString('hex'))
      assert.match(scanner.problem, problem)
    }
    assert.ok(process.memoryUsage().arrayBuffers - arrayBuffers < 1024 * 1024)
  })

  test('of ten million nested arrays costs neither stack nor time', () => {
    const scanner = new MsgpackScanner()
    const body = Buffer.alloc(10_000_000, 0x91)
    assert.equal(scanner.scan(body, 0, body.length), scanOutcomes.malformed)
    assert.match(scanner.problem, /deeper than the limit of 512 levels/)
  })

  test('over the limit of records is counted to its end, and its memory is bounded', () => {
    const scanner = new MsgpackScanner()
    const count = limits.requestRecordsMax * 3
    const body = pack({ records: Array.from({ length: count }, () => ({ value: 'a' })) })
    assert.equal(scanner.scan(body, 0, body.length), scanOutcomes.sound)
    assert.equal(scanner.count, count)
    assert.throws(() => scanner.partitionOf(limits.requestRecordsMax + 1), /did not keep/)
  })

  test('copies each record byte once on its way to the ring', () => {
    const scanner = new MsgpackScanner()
    const headers = [['name', Buffer.alloc(100)]]
    const body = pack({ records: [{ key: 'k'.repeat(10), value: Buffer.alloc(1000), headers }, { value: 'x' }] })
    scanner.scan(body, 0, body.length)
    const before = copied.bytes
    scanner.writeAll(new Uint32Array(2), Buffer.alloc(scanner.ringBytes), 0)
    assert.equal(copied.bytes - before, 10 + 1000 + 4 + 100 + 1)
  })
})
