/** docs/cli.md is what the program has: commands, flags, exit codes, environment. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { exitCodes } from '../../src/cli/io.ts'
import { commandReference, referenceIn } from '../support/command-rows.ts'
import { readText } from '../support/repository.ts'
import { run } from '../unit/cli/terminal.ts'

const document = readText('docs/cli.md')

test('docs/cli.md has every command and every flag, as --help says it', () => {
  assert.equal(referenceIn(document), commandReference(), 'run: node test/support/command-rows.ts')
})

test('docs/cli.md and --help list the exit codes that there are', async () => {
  const { stdout } = await run(['--help'])
  const codes = Object.values(exitCodes).map(String)
  assert.deepEqual(
    [...document.matchAll(/^\| (\d+) \| /gm)].map(([, code]) => code),
    codes
  )
  assert.deepEqual(
    [...stdout.matchAll(/^ {2}(\d+) {2}\S/gm)].map(([, code]) => code),
    codes
  )
})

test('docs/cli.md names the environment that --help names', async () => {
  const { stdout } = await run(['--help'])
  const named = new Set([...stdout.matchAll(/\b(?:MILLRACE|ES)_[A-Z]+\b/g)].map(([name]) => name))
  assert.deepEqual([...named].sort(), ['ES_AUTH', 'ES_BROKER', 'MILLRACE_BROKER', 'MILLRACE_KEY'])
  for (const name of named) assert.ok(document.includes(`\`${name}\``), name)
})
