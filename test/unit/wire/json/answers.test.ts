/** JSON answers and small JSON bodies: numbers exact, text as JSON.stringify writes it. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { RESULT_BYTES } from '../../../../src/model/requests.ts'
import { writeDecimal } from '../../../../src/wire/json/decimal.ts'
import { parseExactJson } from '../../../../src/wire/json/exact-json.ts'
import { ProduceResultsWriter } from '../../../../src/wire/json/produce-results.ts'
import { writeTopicConfig, writeTopicDescription } from '../../../../src/wire/json/topic-json.ts'

function decimalOf(value: bigint): string {
  const target = Buffer.alloc(24, 0x2a)
  const end = writeDecimal(target, 2, Number(value >> 32n), Number(value & 0xffffffffn))
  assert.equal(target[1], 0x2a)
  assert.equal(target[end], 0x2a)
  return target.toString('latin1', 2, end)
}

describe('an offset in an answer', () => {
  test('is exact for every power of two and ten, and their neighbours, up to 64 bits', () => {
    const edges = [
      ...Array.from({ length: 64 }, (_, i) => 2n ** BigInt(i)),
      ...Array.from({ length: 20 }, (_, i) => 10n ** BigInt(i))
    ]
    const values = [...edges.flatMap(edge => [edge - 1n, edge, edge + 1n]), 2n ** 64n - 1n]
    for (const value of values) assert.equal(decimalOf(value), value.toString())
  })
})

describe('the answer of a produce', () => {
  test('has one result per record, in order, with duplicate only where it is one', () => {
    const source = Buffer.alloc(5 + 3 * RESULT_BYTES)
    const rows: [number, bigint, number][] = [
      [0, 142n, 0],
      [4294967295, 2n ** 64n - 1n, 1],
      [7, 2n ** 53n, 0]
    ]
    rows.forEach(([partition, offset, duplicate], i) => {
      source.writeUInt32BE(partition, 5 + i * RESULT_BYTES)
      source.writeBigUInt64BE(offset, 9 + i * RESULT_BYTES)
      source[17 + i * RESULT_BYTES] = duplicate
    })
    const writer = new ProduceResultsWriter()
    assert.equal(
      writer.write(source, 5, 3).toString(),
      '{"results":[{"partition":0,"offset":142},' +
        '{"partition":4294967295,"offset":18446744073709551615,"duplicate":true},' +
        '{"partition":7,"offset":9007199254740992}]}'
    )
    assert.equal(writer.write(source, 5, 0).toString(), '{"results":[]}')
  })

  test('counts on from one offset to the next, over carries, new digits, 32 and 64 bits, partitions and duplicates', () => {
    const first: readonly [number, bigint, number][] = [
      ...[7n, 8n, 9n, 10n, 11n].map((offset): [number, bigint, number] => [0, offset, 0]),
      ...[98n, 99n, 100n].map((offset): [number, bigint, number] => [0, offset, 0]),
      ...[1198n, 1199n, 1200n].map((offset): [number, bigint, number] => [12, offset, 0]),
      [13, 1201n, 0],
      [13, 1202n, 1],
      [13, 1203n, 1],
      [13, 1204n, 0],
      [13, 1204n, 0],
      [13, 1206n, 0],
      ...[2n ** 32n - 2n, 2n ** 32n - 1n, 2n ** 32n, 2n ** 32n + 1n].map((offset): [number, bigint, number] => [
        1,
        offset,
        0
      ]),
      ...[2n ** 53n - 1n, 2n ** 53n, 2n ** 53n + 1n].map((offset): [number, bigint, number] => [1, offset, 0])
    ]
    const source = Buffer.alloc(first.length * RESULT_BYTES)
    first.forEach(([partition, offset, duplicate], i) => {
      source.writeUInt32BE(partition, i * RESULT_BYTES)
      source.writeBigUInt64BE(offset, i * RESULT_BYTES + 4)
      source[i * RESULT_BYTES + 12] = duplicate
    })
    const texts = first.map(
      ([partition, offset, duplicate]) =>
        `{"partition":${partition},"offset":${offset}${duplicate === 0 ? '' : ',"duplicate":true'}}`
    )
    const answer = new ProduceResultsWriter().write(source, 0, first.length).toString()
    assert.equal(answer, `{"results":[${texts.join(',')}]}`)
  })

  test('of the largest request at its longest fits', () => {
    const count = 100_000
    const source = Buffer.alloc(count * RESULT_BYTES, 0xff)
    const results: unknown = JSON.parse(new ProduceResultsWriter().write(source, 0, count).toString())
    assert(typeof results === 'object' && results !== null && 'results' in results && Array.isArray(results.results))
    assert.equal(results.results.length, count)
  })
})

describe('a topic in an answer', () => {
  const config = {
    retention_ms: 2n ** 64n - 1n,
    retention_bytes: null,
    cleanup_policy: 'compact,delete',
    segment_bytes: 128,
    tombstone_retention_ms: 9007199254740993n,
    validate_schema: false,
    message_timestamp_type: 'CreateTime',
    max_message_bytes: null,
    segment_ms: null,
    partitioner: 'fnv1a'
  } as const

  test('has its numbers digit for digit', () => {
    const text =
      '{"retention_ms":18446744073709551615,"retention_bytes":null,"cleanup_policy":"compact,delete",' +
      '"segment_bytes":128,"tombstone_retention_ms":9007199254740993}'
    assert.equal(writeTopicConfig(config), text)
    const partition = { id: 0, start_offset: 1, end_offset: 2, segment_count: 3, size_bytes: 4 }
    assert.equal(
      writeTopicDescription({ name: 'a', partitions: [partition, { ...partition, id: 1 }], config }),
      `{"name":"a","partitions":[${JSON.stringify(partition)},${JSON.stringify({ ...partition, id: 1 })}],"config":${text}}`
    )
  })

  test('has what the seed does not have only where it says something', () => {
    const own = { message_timestamp_type: 'LogAppendTime', max_message_bytes: 1, segment_ms: 2n ** 64n - 1n } as const
    const shown = '"message_timestamp_type":"LogAppendTime","max_message_bytes":1,"segment_ms":18446744073709551615'
    assert.ok(writeTopicConfig({ ...config, ...own }).endsWith(`740993,${shown}}`))
  })

  test('says that records are validated where they are, and nothing of it elsewhere', () => {
    assert.match(writeTopicConfig({ ...config, validate_schema: true }), /740993,"validate_schema":true\}$/)
    assert.doesNotMatch(writeTopicConfig(config), /validate_schema/)
  })
})

describe('a small JSON body', () => {
  const valueOf = (text: string): unknown => {
    const parsed = parseExactJson(Buffer.from(text))
    assert(parsed.problem === null, text)
    return parsed.value
  }

  test('keeps integers exact and apart from other numbers', () => {
    assert.deepEqual(valueOf('{"a":[18446744073709551615,-9223372036854775808,2.0,2e0,-0,"1",null,true]}'), {
      a: [18446744073709551615n, -9223372036854775808n, 2, 2, 0n, '1', null, true]
    })
  })

  test('with an integer of a million digits is not worth a million digits of work', () => {
    assert.equal(valueOf('9'.repeat(1_000_000)), Infinity)
  })

  test('may have fields with the names of inherited ones', () => {
    assert.deepEqual(valueOf('{"constructor":1,"toString":"x"}'), { constructor: 1n, toString: 'x' })
  })

  test('that is not JSON is refused with the place, and so is one too deep', () => {
    const problemOf = (bytes: Buffer): string => parseExactJson(bytes).problem ?? 'none'
    assert.match(problemOf(Buffer.from('{"a":tru}')), /a value should be, at byte 5/)
    assert.match(problemOf(Buffer.from('\ufeff{}')), /at byte 0/)
    assert.match(problemOf(Buffer.from([0x22, 0x80, 0x22])), /UTF-8/)
    assert.match(problemOf(Buffer.alloc(2_000_000, '[')), /deeper than the limit/)
    assert.equal(problemOf(Buffer.from(`${'['.repeat(512)}${']'.repeat(512)}`)), 'none')
  })
})
