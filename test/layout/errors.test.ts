/** The error table: numbers are for ever, every code is documented, and a test raises each. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { errorCodeOf, errorTable, type ErrorCode } from '../../src/model/errors.ts'
import { errorRows, rowsOf } from '../support/error-rows.ts'
import { listFiles, readText } from '../support/repository.ts'

const codes = Object.keys(errorTable) as ErrorCode[]

test('no two errors share a number', () => {
  assert.equal(new Set(codes.map(code => errorTable[code].wire)).size, codes.length)
  for (const code of codes) assert.equal(errorCodeOf(errorTable[code].wire), code)
})

test('a number that was given once never means anything else', () => {
  // Golden: a new code is added to the file, a retired one stays in it.
  const assigned = JSON.parse(readText('test/layout/error-numbers.json')) as Record<string, string>
  for (const code of codes)
    assert.equal(assigned[errorTable[code].wire], code, `${code} is missing or took a used number`)
})

test('an unknown number is read as an internal error, of which nothing is known', () => {
  assert.deepEqual([errorCodeOf(1), errorTable[errorCodeOf(65_535)].written], ['INTERNAL', 'unknown'])
})

test('docs/protocols.md has every error as it is, and none that is not', () => {
  assert.deepEqual(rowsOf(readText('docs/protocols.md')), errorRows())
})

test('the word that opens an ES01 message says the same as the HTTP status', () => {
  const words: Readonly<Record<number, readonly string[]>> = {
    400: ['bad request', 'decode'],
    401: ['forbidden'],
    403: ['forbidden'],
    404: ['not found'],
    405: ['bad request'],
    408: ['bad request'],
    409: ['bad request'],
    410: ['unavailable'],
    413: ['bad request'],
    415: ['bad request'],
    429: ['rate limited'],
    500: ['internal error'],
    503: ['unavailable'],
    507: ['unavailable']
  }
  for (const code of codes) {
    const { http, es01 } = errorTable[code]
    assert.ok(words[http]?.includes(es01), `${code}: ${http} and ${es01}`)
  }
})

test('what may be tried again is so for Kafka clients too, and every Kafka code exists', () => {
  // Those that the protocol calls retriable; −1 says nothing.
  const retriable = [-1, 2, 3, 5, 6, 7, 8, 9, 13, 14, 15, 16, 19, 20, 51, 56, 74, 75, 78, 84, 89, 93]
  for (const code of codes) {
    const { kafka, retry, http } = errorTable[code]
    assert.ok(kafka >= -1 && kafka !== 0 && kafka < 134, `${code}: ${kafka}`)
    if (retry !== 'never') assert.ok(retriable.includes(kafka), `${code}: ${kafka} is final, ${retry} is not`)
    // 503 and 429 mean later; 400 and the like mean that the same request is refused again.
    if ([429, 503, 507].includes(http)) assert.equal(retry, 'same', code)
  }
})

test('every error is raised by a test', () => {
  const tests = listFiles('test/**/*.test.ts')
    .concat(listFiles('test/**/*-cases.ts'))
    .filter(path => !path.startsWith('test/layout/'))
  const text = tests.map(readText).join('\n')
  const missing = codes.filter(code => !new RegExp(`['"]${code}['"]`).test(text))
  assert.deepEqual(missing, [])
})
