/** The table of durability rules is whole, and what it names is there: files, tests, and every rule that a comment names. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { listFiles, readText, repository } from '../support/repository.ts'

const DOCUMENT = 'docs/durability-rules.md'
const counts = { W: 10, R: 3, V: 8, S: 8 }
const rules = Object.entries(counts).flatMap(([letter, count]) =>
  Array.from({ length: count }, (_, i) => `${letter}${i + 1}`)
)

const isFile = (path: string): boolean => existsSync(join(repository, path))

/** True if the file has that title as a whole string: of a test, whatever function it is handed to. */
function hasTitle(path: string, title: string): boolean {
  const text = readText(path)
  return ["'", '"', '`'].some(quote => text.includes(quote + title + quote))
}

/** What is wrong with a text of the document, one line each. */
function problemsOf(document: string): string[] {
  const rows = [...document.matchAll(/^\| ([A-Z]\d+) \| (.+) \| (.+) \| (.+) \|$/gm)]
  const problems: string[] = []
  const ids = rows.map(([, id = '']) => id)
  if (ids.join() !== rules.join()) problems.push(`the rows are ${ids.join()}`)
  for (const [, id = '', what = '', keepers = '', tests = ''] of rows) {
    if (what.trim().length < 20) problems.push(`${id} says nothing`)
    const files = [...keepers.matchAll(/`([^`]+)`/g)].map(([, path = '']) => path)
    if (files.length === 0) problems.push(`${id} is kept by nothing`)
    for (const path of files) if (!isFile(path)) problems.push(`${id}: there is no ${path}`)
    for (const item of tests.split(' · ')) {
      const [, path = '', title = ''] = /^`(test\/[^`]+\.test\.ts)` “([^”]+)”$/.exec(item) ?? []
      if (title === '') problems.push(`${id}: ${item} is no test`)
      else if (!isFile(path)) problems.push(`${id}: there is no ${path}`)
      else if (!hasTitle(path, title)) problems.push(`${id}: ${path} has no test “${title}”`)
    }
  }
  return problems
}

test('every durability rule has a row with the files that keep it and the tests that break without it', () => {
  assert.deepEqual(problemsOf(readText(DOCUMENT)), [])
})

test('a row that is missing, a file or a test that is not there, and a title that changed are noticed', () => {
  const document = readText(DOCUMENT)
  const changes: readonly (readonly [RegExp, string, RegExp])[] = [
    [/^\| V5 .*\n/m, '', /^the rows are /],
    [/`src\/log\/replay\.ts`/, '`src/log/play.ts`', /there is no src\/log\/play\.ts/],
    [/`test\/unit\/log\/entries\.test\.ts`/, '`test/unit/log/exits.test.ts`', /there is no test\/unit\/log\/exits/],
    [/“keeps what producers have sent”/, '“keeps what producers sent”', /has no test “keeps what producers sent”/],
    [/“keeps what producers have sent”/, '“keeps what producers have”', /has no test “keeps what producers have”/],
    [/(\| S5 .*\|)[^|]+\|$/m, '$1 none |', /S5: none is no test/]
  ]
  for (const [pattern, replacement, problem] of changes) {
    const changed = document.replace(pattern, replacement)
    assert.notEqual(changed, document)
    assert.match(problemsOf(changed).join('\n'), problem)
  }
})

test('every rule that a comment of the source names has a row', () => {
  const named = new Set<string>()
  for (const file of ['src', 'workers'].flatMap(folder => listFiles(`${folder}/**/*.ts`))) {
    for (const [, inside = ''] of readText(file).matchAll(/\(([^()\n]*)\)/g)) {
      for (const [rule] of inside.matchAll(/\b[WRVS][1-9]\d?\b/g)) named.add(rule)
    }
  }
  assert.ok(named.size > 20, [...named].join())
  assert.deepEqual(
    [...named].filter(rule => !rules.includes(rule)),
    []
  )
})
