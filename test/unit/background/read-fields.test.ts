/** The job `readFields`: a few fields of a large body, and nothing large beside them. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { readFields } from '../../../workers/background/read-fields.ts'
import { openPool } from './pool-tools.ts'

function read(text: string, names: readonly string[] = ['a', 'b']): unknown {
  const bytes = Uint8Array.from(Buffer.from(`${text}garbage`))
  return readFields({ body: bytes.buffer, length: Buffer.byteLength(text), names })
}

const found = (value: unknown): unknown => ({ value, problem: null })

describe('the fields that are wanted of a body', () => {
  test('come as they are where they are texts, null or of a wrong kind, and without what is in them', () => {
    assert.deepEqual(read('{"a":"é\\n","b":null,"c":"x"}'), found({ a: 'é\n', b: null }))
    assert.deepEqual(read('{"a":{"x":[1]},"b":[1,2]}'), found({ a: {}, b: [null] }))
    assert.deepEqual(read('{"a":[],"b":[[]]}'), found({ a: [], b: [null] }))
    assert.deepEqual(read('{"a":true,"b":2.5,"a":"last"}'), found({ a: 'last', b: 2.5 }))
    assert.deepEqual(read('{"c":1}'), found({}))
    assert.deepEqual(read('{"c":1}', ['toString', '__proto__']), found({}))
  })

  test('are none where the body is no object, of which the kind is told', () => {
    assert.deepEqual(
      ['[1,{}]', '"x"', 'null', '5'].map(text => read(text)),
      [found([null]), found('x'), found(null), found(5)]
    )
  })

  test('are none where the body is no JSON, and the reason is that of small bodies', () => {
    assert.deepEqual(Object.keys(read('{"a":') as object), ['problem'])
    assert.match(String((read('{"a":1,}') as { problem: string }).problem), /at byte/)
  })

  test('come from another thread, which frees the body', async t => {
    const { pool } = openPool(t)
    const body = Uint8Array.from(Buffer.from('{"a":"x"}'))
    const value = { body: body.buffer, length: body.length, names: ['a'] }
    assert.deepEqual(await pool.run('readFields', value, { moves: [body.buffer] }), found({ a: 'x' }))
    assert.equal(body.length, 0)
  })
})
