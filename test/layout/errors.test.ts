/** The error table: numbers are for ever, every code is documented, and a test raises each. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { errorCodeOf, errorTable, type ErrorCode } from '../../src/model/errors.ts'
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
  const rows = readText('docs/protocols.md')
    .split('\n')
    .filter(line => /^\| `[A-Z_]+` \| \d/.test(line))
  const expected = codes.map(code => {
    const { wire, http, es01, retry, written, text } = errorTable[code]
    return `| \`${code}\` | ${wire} | ${http} | ${es01} | ${retry} | ${written} | ${text} |`
  })
  assert.deepEqual(rows, expected)
})

test('every error is raised by a test', () => {
  const tests = listFiles('test/**/*.test.ts')
    .concat(listFiles('test/**/*-cases.ts'))
    .filter(path => !path.startsWith('test/layout/'))
  const text = tests.map(readText).join('\n')
  const missing = codes.filter(code => !new RegExp(`['"]${code}['"]`).test(text))
  assert.deepEqual(missing, [])
})
