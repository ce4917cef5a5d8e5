/** Values of records match their schema or are refused with the reason, plain and in the frame of Confluent's serializers. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import avsc from 'avsc'
import protobuf from 'protobufjs'
import type { SchemaType } from '../../../src/model/schemas.ts'
import { compileValidator } from '../../../src/schemas/validator.ts'
import type { Validator } from '../../../src/schemas/validator.ts'

function validatorOf(type: SchemaType, schema: unknown): Validator {
  return compileValidator({ type, schema: type === 'protobuf' ? String(schema) : JSON.stringify(schema) })
}

/** A Confluent frame with schema id 7. */
function framed(value: Uint8Array, ...indexes: readonly number[]): Uint8Array {
  return Buffer.concat([Buffer.from([0, 0, 0, 0, 7, ...indexes]), value])
}

describe('JSON Schema', () => {
  const order = { type: 'object', properties: { day: { format: 'date' }, n: { type: 'integer' } }, required: ['n'] }
  const validate = validatorOf('json_schema', order)
  const cases: readonly (readonly [string | Uint8Array, string | null])[] = [
    ['{"n":1}', null],
    ['{"n":1,"day":"2026-01-31"}', null],
    ['{}', "at '/': must have required property 'n'"],
    ['{"n":"x"}', "at '/n': must be integer"],
    ['{"n":1,"day":"yesterday"}', `at '/day': must match format "date"`],
    ['[1]', "at '/': must be object"],
    [Buffer.from([0x22, 0xff, 0x22]), 'it is not UTF-8'],
    [framed(Buffer.from('{"n":1}')), null],
    [framed(Buffer.from('{}')), "at '/': must have required property 'n'"]
  ]
  for (const [value, problem] of cases) {
    test(`${typeof value === 'string' ? value : value.join(' ')}: ${problem ?? 'matches'}`, () => {
      assert.equal(validate(typeof value === 'string' ? Buffer.from(value) : value), problem)
    })
  }

  test('what is no JSON, or has a byte too much, is refused', () => {
    for (const text of ['', '{"n":', '{"n":1}x', '\ufeff{"n":1}']) {
      assert.match(String(validate(Buffer.from(text))), /^it is not JSON: /)
    }
  })

  test('a pattern is read with the flag u, and without where that flag forbids it', () => {
    const rows: readonly (readonly [string, string, boolean])[] = [
      ['^\\p{Lu}$', '"Ä"', true],
      ['^.$', '"𝒳"', true],
      ['^[\\w-.]+$', '"a-b.c"', true],
      ['^[\\w-.]+$', '"a b"', false],
      ['^a\\-b$', '"a-b"', true]
    ]
    for (const [pattern, value, isMatch] of rows) {
      const problem = validatorOf('json_schema', { pattern })(Buffer.from(value))
      assert.equal(problem === null, isMatch, `${pattern} of ${value}: ${problem}`)
    }
  })

  test('a property that every object of JavaScript has by itself is there only if the value has it', () => {
    const named = validatorOf('json_schema', {
      properties: { constructor: { type: 'number' } },
      required: ['toString']
    })
    assert.equal(named(Buffer.from('{"toString":1}')), null)
    assert.equal(named(Buffer.from('{"toString":1,"constructor":"x"}')), "at '/constructor': must be number")
    assert.equal(named(Buffer.from('{}')), "at '/': must have required property 'toString'")
  })

  test('what is to be equal is compared as JSON, whatever its fields are called', () => {
    const only = { toString: 5, list: [1, { a: null }] }
    const [constant, among] = [
      validatorOf('json_schema', { const: only }),
      validatorOf('json_schema', { enum: [0, 'a', null, only, [1]] })
    ]
    const equal = '{"list":[1,{"a":null}],"toString":5}'
    const others = ['{"toString":5}', '{"valueOf":1,"toString":5}', '[]', '[2]', '1', '"b"', 'true', '{"a":1,"b":2}']
    const unlike = [equal.replace('null', '0'), equal.replace('"a"', '"b"'), equal.replace('[1,', '[2,')]
    assert.equal(constant(Buffer.from(equal)), null)
    for (const value of [equal, '-0', '"a"', 'null', '[1]']) assert.equal(among(Buffer.from(value)), null, value)
    for (const value of [...others, ...unlike]) {
      assert.equal(constant(Buffer.from(value)), "at '/': must be equal to constant", value)
      assert.match(
        among(Buffer.from(value)) ?? '',
        /^at '\/': must be equal to one of the allowed values: 0, a, /,
        value
      )
    }
  })

  test('a decimal fraction is a multiple of what it is one of in decimal', () => {
    const price = validatorOf('json_schema', { multipleOf: 0.01 })
    for (const text of ['0', '0.07', '-4.35', '19.99', '1234567.89', '1e300']) {
      assert.equal(price(Buffer.from(text)), null, text)
    }
    for (const text of ['1.005', '0.001', '1e-300', '1e400']) {
      assert.equal(price(Buffer.from(text)), "at '/': must be multiple of 0.01", text)
    }
    assert.equal(price(Buffer.from('"no number"')), null)
  })

  test('a schema of draft-04 is checked in its own words', () => {
    const old = validatorOf('json_schema', {
      $schema: 'http://json-schema.org/draft-04/schema#',
      minimum: 5,
      exclusiveMinimum: true
    })
    assert.equal(old(Buffer.from('5')), "at '/': must be > 5")
    assert.equal(old(Buffer.from('6')), null)
  })

  test('a value that a recursive schema follows too deeply is refused', () => {
    const nested = validatorOf('json_schema', { items: { $ref: '#' } })
    assert.equal(nested(Buffer.from(`${'['.repeat(200)}${']'.repeat(200)}`)), null)
    const deep = 200_000
    assert.equal(nested(Buffer.from(`${'['.repeat(deep)}${']'.repeat(deep)}`)), 'it is nested too deeply')
  })
})

describe('Avro', () => {
  const schema: avsc.Schema = {
    type: 'record',
    name: 'R',
    fields: [
      { name: 'name', type: ['null', 'string'] },
      { name: 'counts', type: { type: 'map', values: { type: 'array', items: 'int' } } },
      { name: 'raw', type: { type: 'fixed', name: 'F', size: 2 } },
      { name: 'colour', type: { type: 'enum', name: 'E', symbols: ['red', 'blue'] } },
      { name: 'ratio', type: 'double' },
      { name: 'share', type: 'float' },
      { name: 'on', type: 'boolean' },
      { name: 'big', type: 'long' },
      { name: 'bytes', type: 'bytes' },
      { name: 'next', type: ['null', 'R'] }
    ]
  }
  const leaf = {
    ...{ name: null, counts: {}, raw: Buffer.from('ab'), colour: 'red', ratio: 1, share: 2, on: true },
    ...{ big: -(2 ** 40), bytes: Buffer.alloc(3), next: null }
  }
  const value = { ...leaf, name: { string: 'é' }, counts: { x: [1, -5, 2 ** 31 - 1] }, next: { R: leaf } }
  const datum = avsc.Type.forSchema(schema, { wrapUnions: 'always' }).toBuffer(value)
  const validate = validatorOf('avro', schema)

  test('a datum that another library wrote matches, plain and framed', () => {
    assert.equal(validate(datum), null)
    assert.equal(validate(framed(datum)), null)
  })

  test('no proper part of a datum matches, and none with more behind it', () => {
    for (let end = 0; end < datum.length; end += 1) {
      assert.match(String(validate(datum.subarray(0, end))), /^at byte \d+ the datum has its end/, `${end} bytes`)
      assert.notEqual(validate(framed(datum.subarray(0, end))), null)
    }
    assert.match(String(validate(Buffer.concat([datum, datum]))), /^the datum ends at byte \d+ of \d+$/)
  })

  const cases: readonly (readonly [unknown, readonly number[], string | null])[] = [
    ['null', [], null],
    ['boolean', [2], 'at byte 1 the datum has a boolean that is neither 0 nor 1'],
    ['int', [0xff, 0xff, 0xff, 0xff, 0x0f], null],
    ['int', [0x80, 0x80, 0x80, 0x80, 0x10], 'at byte 5 the datum has the int 2147483648, which has over 32 bits'],
    ['long', [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01], null],
    ['long', [...Array(10).fill(0x80), 0], 'at byte 10 the datum has a number of more than ten bytes'],
    ['string', [4, 0xc3, 0xa9], null],
    ['string', [2, 0xc3], 'at byte 2 the datum has a string that is not UTF-8'],
    ['bytes', [1], 'at byte 1 the datum has its end, within bytes of -1 bytes'],
    [['null', 'int'], [4], 'at byte 1 the datum has index 2 into the 2 of union of null, int'],
    [{ type: 'enum', name: 'E', symbols: ['a'] }, [2], 'at byte 1 the datum has index 1 into the 1 of E'],
    [{ type: 'array', items: 'int' }, [4, 2, 4, 0], null],
    [{ type: 'array', items: 'int' }, [3, 4, 2, 4, 0], null],
    [{ type: 'array', items: 'int' }, [4, 2, 4], 'at byte 3 the datum has its end, within a number']
  ]
  for (const [type, bytes, problem] of cases) {
    test(`${JSON.stringify(type)} [${bytes.join(' ')}]: ${problem ?? 'matches'}`, () => {
      assert.equal(validatorOf('avro', type)(Buffer.from(bytes)), problem)
    })
  }

  test('a plain datum that begins like a frame matches', () => {
    const five = validatorOf('avro', { type: 'fixed', name: 'F', size: 5 })
    assert.equal(five(Buffer.alloc(5)), null)
    assert.equal(five(Buffer.alloc(10)), null)
    assert.notEqual(five(Buffer.alloc(6)), null)
  })

  test('a block of 2^62 items without bytes costs nothing', () => {
    const nulls = validatorOf('avro', { type: 'array', items: 'null' })
    assert.equal(nulls(Buffer.from([...Array(9).fill(0x80), 0x01, 0])), null)
  })

  test('a datum that is nested too deeply is refused', () => {
    const list = { type: 'record', name: 'L', fields: [{ name: 'next', type: ['null', 'L'] }] }
    const validateList = validatorOf('avro', list)
    assert.equal(validateList(Buffer.from([...Array(100).fill(2), 0])), null)
    assert.equal(validateList(Buffer.alloc(100_000, 2)), 'values are nested deeper than 512')
  })
})

describe('protobuf', () => {
  const text = `syntax = "proto3";
    message A { string s = 1; repeated int32 n = 2; message N { message M { string only = 1; } } }
    message B { A a = 1; }`
  const { root } = protobuf.parse(text)
  const bytesOf = (type: string, value: object): Uint8Array => root.lookupType(type).encode(value).finish()
  const validate = validatorOf('protobuf', text)
  const a = bytesOf('A', { s: 'é', n: [1, 2, 300] })

  test('a message of the first type matches, plain, empty and framed', () => {
    assert.equal(validate(a), null)
    assert.equal(validate(Buffer.alloc(0)), null)
    assert.equal(validate(framed(a, 0)), null)
    assert.equal(validate(framed(a, 2, 0)), null)
  })

  test('message indexes choose the type', () => {
    const b = bytesOf('B', { a: { s: 'x' } })
    assert.equal(validate(framed(b, 2, 2)), null)
    assert.equal(validate(framed(bytesOf('A.N.M', { only: 'x' }), 6, 0, 0, 0)), null)
    assert.match(String(validate(framed(a, 2, 2))), /^it is no message B: /)
    assert.equal(validate(framed(a, 2, 4)), 'its frame names message 2, which the schema does not have')
    assert.equal(validate(framed(a, 4, 0, 2)), 'its frame names message 0.1, which the schema does not have')
  })

  test('a frame that is cut off, or counts too many indexes, is refused', () => {
    assert.equal(validate(Buffer.from([0, 0, 0])), 'its frame is cut off')
    assert.equal(validate(framed(Buffer.alloc(0))), 'the message indexes of its frame are cut off')
    assert.equal(validate(framed(Buffer.alloc(0), 4, 0)), 'the message indexes of its frame are cut off')
    assert.equal(validate(framed(Buffer.alloc(10), 0xfe, 0xff, 0x7f)), 'the message indexes of its frame are cut off')
  })

  test('a field that runs over the end, or a string that is not UTF-8, is refused', () => {
    assert.match(String(validate(Buffer.from([0x0a, 9, 65]))), /^it is no message A: index out of range/)
    assert.match(String(validate(Buffer.from([0x0a, 1, 0xff]))), /^it is no message A: .*utf-8/i)
  })

  test('a required field must be there', () => {
    const strict = validatorOf('protobuf', 'message A { required string s = 1; }')
    assert.match(String(strict(Buffer.alloc(0))), /^it is no message A: missing required 's'/)
    assert.equal(strict(Buffer.from([0x0a, 0])), null)
  })
})
