/** The table of claims is whole: every stated fact, decision and flag has a row, and what a row names is there. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { readText, repository } from '../support/repository.ts'

const DOCUMENT = 'docs/claims.md'

/** What the specification states, by its sections; a part of a section has a word behind it. */
const facts =
  '1.1 1.2 1.3 1.4 1.6 1.8 1.14 2.1 2.2 2.3 2.5 2.6 2.7 2.9-read 2.9-write 2.9-admin 2.9-prefix 2.11-bucket 2.11-produce ' +
  '2.11-accepted 2.11-consume 2.13-tls 2.13-cors 3 3-end 3-change 3-restart 3.1 4 4-checked 4-synced 4-empty 4.1-next ' +
  '4.1-duplicate 4.1-gap 4.1-low 4.1-mixed 4.1-whole 4.1-owner 4.1-limits 4.1-crash 4.1-twins 5 5.3 5.6 5.9 6-visible ' +
  '6-durable 6-owner 7-status 7-id 7-bound 7.1-cover 7.1-even 7.1-sticky 7.1-generation 8-health 8-metrics 9-retention ' +
  '9-compaction 9-producers 9-reset 9-tiered 9-delete 9.1 9.1-compact 9.1-cold 9.2 9.2-tombstone 9.2-nothing'
/** Numbers that were never given to a decision. */
const gaps = [17, 18, 20, 21, 23]
const decisions = Array.from({ length: 32 }, (_, i) => i + 1).filter(number => !gaps.includes(number))
const flags =
  '--data-dir --bind --bind-binary --auth --allow-remote-unauthenticated --allowed-host --tls-cert --tls-key --cors-origin ' +
  '--segment-bytes --flush-every-records --flush-interval --retention-check-interval --compaction-check-interval ' +
  '--segment-delete-grace --default-tombstone-retention-ms --cold-storage-dir --max-request-body-bytes --max-record-bytes ' +
  '--max-fetch-bytes --max-fetch-records --binary-max-connections-per-ip --binary-idle-timeout --shutdown-timeout ' +
  '--raft-node-id --raft-bind --raft-peer --raft-shared-secret'
const ids = [...facts.split(' '), ...decisions.map(number => `D${number}`), ...flags.split(' ')]

/** Of what is still to be built: nothing. */
const LATER: readonly string[] = []

interface Claim {
  readonly id: string
  readonly text: string
  readonly items: readonly string[]
}

function claimsOf(document: string): Claim[] {
  return [...document.matchAll(/^\| (?!id )`?([-.\w]+)`? \| (.+) \| (.+) \|$/gm)].map(
    ([, id = '', text = '', tests = '']) => ({ id, text, items: tests.split(' · ') })
  )
}

function problemOf(item: string): string | null {
  if (item === 'later') return null
  const [, path = '', title = ''] = /^`(test\/[^`]+\.ts)` “([^”]+)”$/.exec(item) ?? []
  if (title === '') return `${item} is no test`
  if (!existsSync(join(repository, path))) return `there is no ${path}`
  const text = readText(path)
  return ["'", '"', '`'].some(quote => text.includes(quote + title + quote)) ? null : `${path} has no test “${title}”`
}

/** What is wrong with a text of the document, one line each. */
function problemsOf(document: string): string[] {
  const claims = claimsOf(document)
  const found = claims.map(({ id }) => id)
  const problems = found.join() === ids.join() ? [] : [`the rows are ${found.join()}`]
  for (const { id, text, items } of claims) {
    if (text.length < 12) problems.push(`${id} says nothing`)
    problems.push(...items.flatMap(item => problemOf(item) ?? []).map(problem => `${id}: ${problem}`))
  }
  return problems
}

const withItem = (mark: string): string[] =>
  claimsOf(readText(DOCUMENT)).flatMap(({ id, items }) => (items.includes(mark) ? [id] : []))

test('every stated fact, decision and flag has a row with the tests that break without it', () => {
  assert.deepEqual(problemsOf(readText(DOCUMENT)), [])
})

test('only what is still to be built has no test', () => {
  assert.deepEqual(withItem('later'), LATER)
})

test('a row that is missing, a file or a test that is not there, and a title that changed are noticed', () => {
  const document = readText(DOCUMENT)
  const changes: readonly (readonly [RegExp, string, RegExp])[] = [
    [/^\| D12 .*\n/m, '', /^the rows are /],
    [/^\| `--bind` .*\n/m, '', /^the rows are /],
    [/test\/unit\/base\/hash\.test\.ts/, 'test/unit/base/mash.test.ts', /D24: there is no test\/unit\/base\/mash/],
    [/“is refused 201 as a gap”/, '“is refused 201”', /has no test “is refused 201”/],
    [/(\| 1\.1 \|.*\|)[^|]+\|$/m, '$1 none |', /1\.1: none is no test/]
  ]
  for (const [pattern, replacement, problem] of changes) {
    const changed = document.replace(pattern, replacement)
    assert.notEqual(changed, document)
    assert.match(problemsOf(changed).join('\n'), problem)
  }
})
