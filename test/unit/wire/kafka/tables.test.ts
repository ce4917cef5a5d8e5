/** The language of the tables: what each kind of field, version and tag means in bytes. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { limits } from '../../../../src/model/limits.ts'
import { Message } from '../../../../src/wire/kafka/message.ts'
import {
  ZERO_UUID,
  arrayOf,
  bool,
  bytes,
  float64,
  int16,
  int32,
  int64,
  int64Clamped,
  int64Exact,
  int8,
  records,
  string,
  struct,
  structsOf,
  uint16,
  uint32,
  uuid
} from '../../../../src/wire/kafka/schema.ts'
import { WireWriter } from '../../../../src/wire/kafka/writer.ts'
import { chosenSeed, diceOf, replayLine } from '../../../support/log-random.ts'
import { randomStruct } from '../../../support/kafka-messages.ts'

const FILE = 'test/unit/wire/kafka/tables.test.ts'

/** Hex with spaces for the reader. */
function hex(text: string): Buffer {
  return Buffer.from(text.replace(/\s+/g, ''), 'hex')
}

/** Version 0 has the older forms, 1 the compact ones. */
const versions = { first: 0, last: 1, flexibleSince: 1 }

describe('a field', () => {
  it('of every scalar kind is read as it was written', () => {
    const message = new Message('Scalars', versions, {
      bool: bool(),
      int8: int8(),
      int16: int16(),
      uint16: uint16(),
      int32: int32(),
      uint32: uint32(),
      int64: int64(),
      int64Clamped: int64Clamped(),
      int64Exact: int64Exact(),
      float64: float64(),
      string: string({ nullableSince: 0 }),
      bytes: bytes({ nullableSince: 0 }),
      records: records({ nullableSince: 0 }),
      uuid: uuid(),
      list: arrayOf(uint16(), { nullableSince: 1 })
    })
    const seed = chosenSeed()
    const dice = diceOf(seed)
    for (let round = 0; round < 500; round++) {
      const version = round % 2
      const value = randomStruct(message.fields, version, dice)
      const body = message.encode(version, value as never)
      assert.deepStrictEqual(message.decode(version, body), value, replayLine(seed, FILE))
    }
  })

  it('that is empty, null or missing has its own bytes in both forms', () => {
    const message = new Message('Empty', versions, {
      text: string({ nullableSince: 0 }),
      bytes: bytes({ nullableSince: 0 }),
      list: arrayOf(int32(), { nullableSince: 0 })
    })
    const none = { text: null, bytes: null, list: null }
    const empty = { text: '', bytes: Buffer.alloc(0), list: [] }
    const cases: readonly [number, typeof none | typeof empty, string][] = [
      [0, none, 'ffff ffffffff ffffffff'],
      [0, empty, '0000 00000000 00000000'],
      [1, none, '00 00 00 00'],
      [1, empty, '01 01 01 00']
    ]
    for (const [version, value, wanted] of cases) {
      assert.deepEqual(message.encode(version, value), hex(wanted))
      assert.deepEqual(message.decode(version, hex(wanted)), value)
    }
  })

  it('that must not be null is refused by its path when it is', () => {
    const message = new Message('Names', versions, { topics: structsOf({ name: string() }) })
    assert.equal(message.decode(0, hex('00000002 0001 61 ffff')), 'topics[1].name is null')
    assert.equal(message.decode(1, hex('03 02 61 00 00 00 00')), 'topics[1].name is null')
    assert.equal(message.decode(0, hex('ffffffff')), 'topics is null')
    assert.equal(message.decode(1, hex('00 00')), 'topics is null')
  })

  it('of 64 bits is exact, refused or held to 2^53 − 1, as its table says', () => {
    const one = { first: 0, last: 0, flexibleSince: Infinity }
    const checked = new Message('Checked', one, { offset: int64() })
    const clamped = new Message('Clamped', one, { offset: int64Clamped() })
    const exact = new Message('Exact', one, { offset: int64Exact() })
    const cases: readonly [string, number | null, bigint][] = [
      ['001fffffffffffff', Number.MAX_SAFE_INTEGER, 2n ** 53n - 1n],
      ['0020000000000000', null, 2n ** 53n],
      ['7fffffffffffffff', null, 2n ** 63n - 1n],
      ['ffffffffffffffff', -1, -1n],
      ['ffe0000000000001', Number.MIN_SAFE_INTEGER, -(2n ** 53n) + 1n],
      ['8000000000000000', null, -(2n ** 63n)]
    ]
    for (const [text, safe, all] of cases) {
      const nearest = all > 0n ? Number.MAX_SAFE_INTEGER : Number.MIN_SAFE_INTEGER
      assert.deepEqual(
        checked.decode(0, hex(text)),
        safe === null ? `offset is ${all}: beyond 2^53 − 1` : { offset: safe }
      )
      assert.deepEqual(clamped.decode(0, hex(text)), { offset: safe ?? nearest })
      assert.deepEqual(exact.decode(0, hex(text)), { offset: all })
      assert.deepEqual(exact.encode(0, { offset: all }), hex(text))
    }
  })

  it('of text is UTF-8 or refused, and has up to 32767 bytes in both forms', () => {
    const message = new Message('Texts', versions, { text: string() })
    assert.equal(message.decode(0, hex('0002 c328')), 'text is not UTF-8')
    // The mark of what is not UTF-8 is a character like others.
    assert.deepEqual(message.decode(0, hex('0003 efbfbd')), { text: '\ufffd' })
    for (const version of [0, 1]) {
      const longest = 'x'.repeat(32_767)
      assert.deepEqual(message.decode(version, message.encode(version, { text: longest })), { text: longest })
      assert.throws(() => message.encode(version, { text: `${longest}x` }), /32767/)
    }
    const longer = Buffer.concat([hex('818002'), Buffer.alloc(32_768), hex('00')])
    assert.equal(message.decode(1, longer), 'text has the length 32768')
    assert.equal(message.decode(0, hex('8000')), 'text has the length -32768')
  })
})

describe('a count or length', () => {
  const message = new Message('Lists', versions, {
    topics: structsOf({ name: string(), partitions: arrayOf(int32()) }),
    records: records()
  })

  it('is believed only as far as the bytes bear it out', () => {
    // A topic takes at least 6 bytes, 3 in the compact form.
    assert.equal(
      message.decode(0, hex('00000002 0000 00000000 0000 000000')),
      'topics has 2 elements, but 11 bytes are left'
    )
    assert.equal(message.decode(0, hex('7fffffff 0000')), 'topics has 2147483647 elements: more than are read')
    assert.equal(message.decode(0, hex('80000000 0000')), 'topics has the length -2147483648')
    assert.equal(message.decode(1, hex('04 01 01 00 01 01 00 01 01')), 'topics has 3 elements, but 8 bytes are left')
    assert.equal(message.decode(1, hex('ffffffff7f 01')), 'topics has a varint of more than 32 bits')
    assert.equal(message.decode(1, hex('ffffffff0f 01')), 'topics has 4294967294 elements: more than are read')
    assert.equal(message.decode(0, hex('00000000 00000003 0000')), 'records has 3 bytes, but 2 are left')
    assert.equal(message.decode(1, hex('01 ffffffff0f 00')), 'records has the length 4294967294')
    assert.equal(
      message.decode(1, hex('02 01 03 00000001')),
      'topics[0].partitions has 2 elements, but 4 bytes are left'
    )
  })

  it('of a list is taken up to its limit, and of all lists of a message up to theirs', () => {
    const one = { first: 0, last: 0, flexibleSince: Infinity }
    const flags = new Message('Flags', one, { flags: arrayOf(int8()) })
    const body = (count: number): Buffer => {
      const bytes = Buffer.alloc(4 + count)
      bytes.writeInt32BE(count)
      return bytes
    }
    const most = flags.decode(0, body(limits.kafkaListElementsMax))
    assert.ok(typeof most !== 'string' && most.flags.length === limits.kafkaListElementsMax)
    assert.match(String(flags.decode(0, body(limits.kafkaListElementsMax + 1))), /^flags has 100001 elements: more/)

    const lists = new Message('ManyLists', one, { lists: structsOf({ flags: arrayOf(int8()) }) })
    const many = (count: number): Buffer => {
      const head = Buffer.alloc(4)
      head.writeInt32BE(count)
      return Buffer.concat([head, ...Array.from({ length: count }, () => body(limits.kafkaListElementsMax))])
    }
    assert.notEqual(typeof lists.decode(0, many(2)), 'string')
    // Two full lists and themselves leave no room for a third.
    assert.match(String(lists.decode(0, many(3))), /^lists\[2\]\.flags has 100000 elements: more/)
  })
})

describe('a tagged field', () => {
  const message = new Message('Tagged', versions, {
    first: int16(),
    hint: struct({ leader: int32({ default: -1 }), epoch: int32({ default: -1 }) }, { since: 1, tag: 2 }),
    name: string({ since: 1, tag: 0, default: 'none', ignorable: true }),
    id: uuid({ since: 1, tag: 1, ignorable: true })
  })
  const blank = { first: 1, hint: { leader: -1, epoch: -1 }, name: 'none', id: ZERO_UUID }

  it('is left out at its default, and read as that', () => {
    assert.deepEqual(message.encode(1, blank), hex('0001 00'))
    assert.deepEqual(message.encode(1, { first: 1, hint: {}, name: undefined }), hex('0001 00'))
    assert.deepEqual(message.decode(1, hex('0001 00')), blank)
    assert.deepEqual(message.decode(0, hex('0001')), blank)
  })

  it('is written in the order of tags, behind its size', () => {
    const bytes = hex('0001 02 00 02 02 61 02 09 00000003 00000004 00')
    assert.deepEqual(message.encode(1, { first: 1, name: 'a', hint: { leader: 3, epoch: 4 } }), bytes)
    assert.deepEqual(message.decode(1, bytes), { ...blank, name: 'a', hint: { leader: 3, epoch: 4 } })
  })

  it('of more than 127 bytes has a size of two', () => {
    const name = 'n'.repeat(300)
    const bytes = message.encode(1, { first: 1, name, hint: { leader: 3 } })
    assert.deepEqual(bytes.subarray(0, 8), hex('0001 02 00 ae02 ad02'))
    assert.deepEqual(message.decode(1, bytes), { ...blank, name, hint: { leader: 3, epoch: -1 } })
  })

  it('that nobody knows is passed over, in any struct', () => {
    assert.deepEqual(message.decode(1, hex('0001 03 00 02 02 61 07 03 ffffff ffffffff0f 00')), { ...blank, name: 'a' })
    // A tag of an inner struct, which has none of its own.
    assert.deepEqual(message.decode(1, hex('0001 01 02 0d 00000003 00000004 01 05 02 abcd')), {
      ...blank,
      hint: { leader: 3, epoch: 4 }
    })
  })

  it('is refused when its size is not that of its value', () => {
    assert.equal(message.decode(1, hex('0001 01 00 03 02 61 00')), '(tags).name leaves 1 of its 3 bytes')
    assert.equal(message.decode(1, hex('0001 01 00 02 03 61 62')), '(tags).name has 2 bytes, but 1 are left')
    assert.equal(message.decode(1, hex('0001 01 00 09 02 61')), '(tags).name has 9 bytes, but 2 are left')
    assert.equal(message.decode(1, hex('0001 01 07 09 02 61')), '(tags) has 9 bytes, but 2 are left')
    assert.equal(message.decode(1, hex('0001 05 07 00')), '(tags) is cut off by the end of the message')
    assert.equal(message.decode(1, hex('0001')), '(tags) is cut off by the end of the message')
  })

  it('that a version lacks is dropped if it may be, and else a bug of ours', () => {
    assert.deepEqual(
      message.encode(0, { first: 1, name: 'a', id: Buffer.alloc(16, 1).toString('base64url') }),
      hex('0001')
    )
    assert.deepEqual(message.encode(0, { first: 1, hint: { leader: -1 } }), hex('0001'))
    assert.throws(
      () => message.encode(0, { first: 1, hint: { leader: 3 } }),
      /Tagged\.hint cannot be said in version 0/
    )
  })
})

describe('a writer', () => {
  const message = new Message('Batches', versions, { batches: arrayOf(records()), end: string() })

  it('hands records on without a copy, between the bytes that it makes', () => {
    const [one, two, three] = ['one', 'two', 'three'].map(text => Buffer.from(text)) as [Buffer, Buffer, Buffer]
    const writer = new WireWriter()
    message.write(writer, 1, { batches: [one, [two, Buffer.alloc(0), three], []], end: 'x' })
    assert.equal(writer.length, 1 + 1 + 3 + 1 + 8 + 1 + 2 + 1)
    const pieces = writer.finish()
    assert.deepEqual(
      pieces.filter(piece => [one, two, three].includes(piece)),
      [one, two, three]
    )
    assert.deepEqual(Buffer.concat(pieces), hex('04 04 6f6e65 09 74776f 7468726565 01 02 78 00'))
  })

  it('keeps what it wrote when it grows, before and after records', () => {
    const long = 'x'.repeat(3_000)
    const value = { batches: [Buffer.alloc(9, 1), Buffer.alloc(2_000, 2)], end: long }
    for (const version of [0, 1]) assert.deepEqual(message.decode(version, message.encode(version, value)), value)
  })

  it('refuses what a number of that width cannot say, and null where none may be', () => {
    const one = { first: 0, last: 0, flexibleSince: Infinity }
    const numbers = new Message('Numbers', one, { byte: int8(), short: int16(), word: int32(), long: int64() })
    const fine = { byte: 0, short: 0, word: 0, long: 0 }
    assert.throws(() => numbers.encode(0, { ...fine, byte: 128 }), /int8/)
    assert.throws(() => numbers.encode(0, { ...fine, short: 32_768 }), /int16/)
    assert.throws(() => numbers.encode(0, { ...fine, word: 2 ** 31 }), /int32/)
    assert.throws(() => numbers.encode(0, { ...fine, word: 0.5 }), /int32/)
    assert.throws(() => numbers.encode(0, { ...fine, long: 2 ** 53 }), /safe integers/)
    const names = new Message('Names', one, { name: string() })
    assert.throws(() => names.encode(0, { name: null as unknown as string }), /Names\.name cannot be null in version 0/)
    assert.throws(() => names.encode(1, { name: '' }), /version was checked/)
  })
})
