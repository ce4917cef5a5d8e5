/**
 * The conformance tables have every line of the specification's page, and the page has every line that they name. Where
 * the page does not lie beside the repository there is nothing to compare.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readSection, type SpecifiedSection } from '../support/specification.ts'
import { cliRows } from './cli-rows.ts'
import { behaviourRows, bytesRows } from './es01-rows.ts'

type Words = { readonly line: string; readonly fact: string; readonly sent: string }

/** What the rows lack of the section, or have beside it, one line each. */
function problemsOf({ text, rows: lines }: SpecifiedSection, rows: readonly Words[]): string[] {
  const missing = lines
    .filter(([first]) => !rows.some(({ line }) => line === first))
    .map(([first]) => `no row: ${first}`)
  const unknown = rows.flatMap(({ line, fact }) => {
    const found = lines.find(([first]) => first === line)?.join(' | ') ?? sentenceOf(text, line)
    if (found === undefined) return [`not specified: ${line}`]
    return found.includes(fact) ? [] : [`'${line}' does not say '${fact}'`]
  })
  return [...missing, ...unknown]
}

/** The line outside of tables that has these words. */
function sentenceOf(text: string, words: string): string | undefined {
  return text.split('\n').find(line => !line.startsWith('|') && line.includes(words))
}

/** Flags of a command that no row of it uses. */
function flagsLeftOut({ rows: lines }: SpecifiedSection, rows: readonly Words[]): string[] {
  return lines.flatMap(([command = '', flags = '']) => {
    const used = rows.filter(({ line }) => line === command).flatMap(({ sent }) => sent.split(' '))
    const named = `${command} ${flags}`.match(/--[a-z-]+/g) ?? []
    return named.filter(flag => !used.includes(flag)).map(flag => `${command}: ${flag}`)
  })
}

const tables = [
  { number: 11, rows: bytesRows, lineCount: 11 },
  { number: 12, rows: behaviourRows, lineCount: 24 },
  { number: 14, rows: cliRows, lineCount: 11 }
] as const

for (const { number, rows, lineCount } of tables) {
  const section = readSection(number)
  const skip = section === null ? 'the specification is not here' : false
  test(
    `section ${number} of the specification has a row for each of its lines, and none that it does not say`,
    { skip },
    t => {
      assert.ok(section !== null)
      assert.equal(section.rows.length, lineCount, 'the page is read to its end')
      assert.deepEqual(problemsOf(section, rows), [])
      t.diagnostic(`${rows.length} rows on ${lineCount} lines`)
    }
  )
}

test('every flag that section 14 names is used by a row of its command', { skip: readSection(14) === null }, () => {
  const section = readSection(14)
  assert.ok(section !== null)
  assert.deepEqual(flagsLeftOut(section, cliRows), [])
})

test('a line without a row, a row without a line and one that says something else are found', () => {
  const section = {
    text: 'A sentence, true.\n| a | b |',
    rows: [
      ['a', 'says so'],
      ['gone', 'says more']
    ]
  }
  const word = { sent: '' }
  assert.deepEqual(
    problemsOf(section, [
      { line: 'a', fact: 'says so', ...word },
      { line: 'A sentence', fact: 'true', ...word },
      { line: 'a', fact: 'says no', ...word },
      { line: 'b', fact: 'anything', ...word }
    ]),
    ['no row: gone', "'a' does not say 'says no'", 'not specified: b']
  )
  assert.deepEqual(
    flagsLeftOut({ text: '', rows: [['cmd', '`--one` `--two`']] }, [{ line: 'cmd', fact: '', sent: 'cmd --two x' }]),
    ['cmd: --one']
  )
})
