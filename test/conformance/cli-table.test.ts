/** The command line against a running broker, row by row as section 14 of the specification has it. Runs dist/. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startBroker } from '../support/broker.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import { cliRows } from './cli-rows.ts'
import { run, startCliStage } from './cli-stage.ts'
import { runRows } from './row.ts'

test('section 14: the command line', async t => runRows(t, cliRows, await startCliStage(t)))

test('section 14: a broker without topics says so', async t => {
  const { url } = await startBroker(t)
  const outcome = await run({ env: { ES_BROKER: url }, folder: temporaryDirectory(t) }, 'topic list')
  assert.deepEqual(outcome, { code: 0, stdout: '(no topics)\n', stderr: '' })
})
