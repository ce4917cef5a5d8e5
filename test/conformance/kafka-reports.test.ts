/** The list of reports of kafka-reports-rows.ts is whole, and the tests that it names are there. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { listFiles, readText } from '../support/repository.ts'
import { reportRows } from './kafka-reports-rows.ts'

const written = listFiles('test/conformance/kafka-*.test.ts').map(readText).join('\n')

test('each report has its row, and each row a test of that name or the reason why there is none', () => {
  assert.deepEqual(
    reportRows.map(({ number }) => number),
    Array.from({ length: 22 }, (_, i) => i + 1)
  )
  for (const { number, tests, cannot } of reportRows) {
    assert.ok(tests.length > 0 || cannot !== null, `report ${number}`)
    for (const name of tests) assert.ok(written.includes(`test('${name}'`), `report ${number}: no test '${name}'`)
  }
})

test('each test that is named after a report is in the list', () => {
  const named = [...written.matchAll(/^test\('((?:[\w-]+#\d+|[\w-]+ PR \d+): [^']*)'/gm)].map(([, name]) => name)
  const listed = new Set(reportRows.flatMap(({ tests }) => tests))
  assert.ok(named.length >= 20, `${named.length} tests are found`)
  for (const name of named) assert.ok(listed.has(name ?? ''), name)
})
