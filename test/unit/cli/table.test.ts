/** Columns, and the colours of a terminal. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { paintFor } from '../../../src/cli/colours.ts'
import { lagOf } from '../../../src/cli/group-lag.ts'
import { alignWords, formatTable } from '../../../src/cli/table.ts'
import { capture, run, startFakeBroker } from './terminal.ts'

test('words stand under each other, and one line stays as it is', () => {
  assert.deepEqual(alignWords([['a=1', 'b=2']]), ['a=1 b=2'])
  assert.deepEqual(alignWords([['a=100', 'b=2', 'c'], ['a=1', 'b=20'], []]), ['a=100 b=2  c', 'a=1   b=20', ''])
})

test('a table pads text at the right and numbers at the left, and colours do not count as width', () => {
  const columns = [{ head: 'NAME' }, { head: 'N', isNumber: true }, { head: 'NOTE' }]
  const loud = (text: string): string => `<<${text}>>`
  assert.deepEqual(
    formatTable(columns, [
      ['a', { text: '1', paint: loud }, ''],
      ['bcdef', '1000', 'x']
    ]),
    ['NAME      N  NOTE', 'a         <<1>>', 'bcdef  1000  x']
  )
})

test('colours are for a terminal, and for nobody who said NO_COLOR', () => {
  const painted = (isTTY: boolean, env: Record<string, string>): string => {
    return paintFor({ stdout: capture(isTTY), env })('green', 'ok')
  }
  assert.equal(painted(true, {}), '\u001b[32mok\u001b[39m')
  assert.equal(painted(true, { NO_COLOR: '' }), '\u001b[32mok\u001b[39m', 'empty counts as not set')
  assert.equal(painted(true, { NO_COLOR: '1' }), 'ok')
  assert.equal(painted(true, { TERM: 'dumb' }), 'ok')
  assert.equal(painted(false, {}), 'ok')
})

test('lag is exact, and never below none', () => {
  assert.deepEqual(
    [lagOf(1, 3), lagOf(3, 3), lagOf(18446744073709551615n, 3), lagOf(0, 9007199254740993n)],
    [2, 0, 0, 9007199254740993n]
  )
})

test('group lag colours the lag at a terminal, and leaves a pipe plain', async t => {
  const answers: Record<string, unknown> = {
    '/groups/g': {
      group: 'g',
      owner: 'o',
      kind: null,
      state: 'Empty',
      generation: 1,
      members: [],
      lag_records: 2,
      lag_seconds: 1
    },
    '/groups/g/offsets': { offsets: { t: { 0: 1, 1: 5 } } },
    '/topics/t/offsets': {
      partitions: [
        { partition: 0, earliest: 0, latest: 3 },
        { partition: 1, earliest: 0, latest: 5 },
        { partition: 2, earliest: 0, latest: 9 }
      ]
    }
  }
  const broker = await startFakeBroker(t, ({ url }) => ({ status: 200, body: JSON.stringify(answers[url]) }))
  const words = ['group', 'lag', '--name', 'g', '--broker', broker.url]
  const { stdout } = await run(words, { isTerminal: true })
  assert.match(stdout, /\u001b\[33m2\u001b\[39m\n.*\u001b\[32m0\u001b\[39m\n.*\u001b\[2m-\u001b\[22m\n$/)
  assert.equal((await run(words, { isTerminal: true, env: { NO_COLOR: '1' } })).stdout, (await run(words)).stdout)
})
