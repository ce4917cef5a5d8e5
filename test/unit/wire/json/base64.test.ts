import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { base64Bytes, decodeBase64 } from '../../../../src/wire/json/base64.ts'
import { base64Of, makeRandom } from './random-bodies.ts'

/** What a text decodes to, out of the middle of other bytes; null: it is refused. */
function decoded(text: string): Buffer | null {
  const source = Buffer.from(`AAA${text}AAA`)
  const end = source.length - 3
  const bytes = base64Bytes(source, 3, end)
  if (bytes < 0) return null
  const target = Buffer.alloc(bytes + 2, 0xee)
  assert.equal(decodeBase64(source, 3, end, target, 1), bytes + 1)
  assert.deepEqual([target[0], target[bytes + 1]], [0xee, 0xee])
  return target.subarray(1, bytes + 1)
}

describe('base64 of a body', () => {
  test('means the same bytes as elsewhere, with padding and without', t => {
    const random = makeRandom()
    t.diagnostic(`seed ${random.seed}; replay: MILLRACE_SEED=${random.seed}`)
    for (let length = 0; length < 200; length++) {
      const bytes = Buffer.from(Array.from({ length }, () => random.below(256)))
      const text = bytes.toString('base64')
      assert.deepEqual(decoded(text), bytes)
      assert.deepEqual(decoded(text.replace(/=+$/, '')), bytes)
      const source = Buffer.from(text)
      assert.equal(decodeBase64(source, 0, source.length, source, 0), length)
      assert.deepEqual(source.subarray(0, length), bytes, 'over itself')
    }
  })

  test('takes its 64 digits at every place, and no other byte', () => {
    for (const length of [2, 3, 4, 6, 7, 8]) {
      for (let place = 0; place < length; place++) {
        for (let byte = 0; byte < 256; byte++) {
          const text = Buffer.alloc(length, 'A')
          text[place] = byte
          const source = Buffer.concat([text])
          const isDigit = /[A-Za-z0-9+/]/.test(String.fromCharCode(byte))
          const isPadding = byte === 0x3d && place === length - 1 && length % 4 === 0
          assert.equal(base64Bytes(source, 0, length) >= 0, isDigit || isPadding, `${byte} at ${place} of ${length}`)
        }
      }
    }
  })

  test('is refused with padding where none belongs, or with a digit too few', () => {
    const texts = ['=', '==', '===', '====', 'A', 'A=', 'A==', 'A===', 'AA=', 'AA===', 'AAA==', 'AAAA=', 'AAAA====', 'AA==AA', 'AAAAA', 'AA==\n', ' AA=', 'A-A_'] // prettier-ignore
    for (const text of texts) {
      assert.equal(decoded(text), null, JSON.stringify(text))
      assert.equal(base64Of(text), null, `the reference of the fuzz test: ${JSON.stringify(text)}`)
    }
  })
})
