/** The binary protocol against a running broker, row by row as sections 11 and 12 of the specification have it. */
import { test } from 'node:test'
import { behaviourRows, bytesRows } from './es01-rows.ts'
import { startStage } from './es01-stage.ts'
import { runRows } from './row.ts'

test('section 11: the bytes of the binary protocol', async t => runRows(t, bytesRows, await startStage(t)))
test('section 12: the behaviour of the binary protocol', async t => runRows(t, behaviourRows, await startStage(t)))
