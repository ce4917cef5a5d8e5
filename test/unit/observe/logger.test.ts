/** Log lines: one JSON object each, levels, no secrets, readable on a terminal. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { createLogger } from '../../../src/observe/logger.ts'
import { startFailure } from '../../../src/shards/shard-death.ts'

function sink() {
  const lines: string[] = []
  return { lines, destination: { write: (line: string) => void lines.push(line) } }
}

test('a line is one JSON object with level, time, message and fields', async () => {
  const { lines, destination } = sink()
  const logger = await createLogger({ level: 'info', isPretty: false, destination })
  logger.info({ topic: 'orders', partition: 3 }, 'two\nlines')
  assert.equal(lines.length, 1)
  assert.match(lines[0] ?? '', /^[^\n]*\n$/)
  const { level, time, msg, topic, partition } = JSON.parse(lines[0] ?? '')
  assert.deepEqual(
    { level, msg, topic, partition },
    { level: 'info', msg: 'two\nlines', topic: 'orders', partition: 3 }
  )
  assert.match(time, /^\d{4}-\d\d-\d\dT[\d:.]+Z$/)
})

test('lines below the level are not written', async () => {
  const { lines, destination } = sink()
  const logger = await createLogger({ level: 'warn', isPretty: false, destination })
  logger.debug({}, 'a')
  logger.info({}, 'b')
  logger.warn({}, 'c')
  logger.error({}, 'd')
  assert.deepEqual(
    lines.map(line => JSON.parse(line).msg),
    ['c', 'd']
  )
})

test('a secret is censored wherever it stands in the fields', async () => {
  const { lines, destination } = sink()
  const logger = await createLogger({ level: 'info', isPretty: false, destination })
  logger.info({ secret: 'hunter2', settings: { raftSharedSecret: 'hunter2', bind: 'x' } }, 'a')
  logger.info({ request: { headers: { authorization: 'hunter2', 'x-es-key': 'hunter2', host: 'y' } } }, 'b')
  logger.info({ 'x-es-key': 'hunter2', headers: { 'X-Es-Key': 'hunter2', Authorization: 'hunter2' } }, 'c')
  assert.doesNotMatch(lines.join(''), /hunter2/)
  assert.match(lines.join(''), /"bind":"x".*"host":"y"/s)
})

test('an error has its stack and its cause in the line', async () => {
  const { lines, destination } = sink()
  const logger = await createLogger({ level: 'info', isPretty: false, destination })
  logger.error({ error: new Error('outer', { cause: new Error('inner') }) }, 'failed')
  const { error } = JSON.parse(lines[0] ?? '')
  assert.match(error.message, /outer/)
  assert.match(error.stack, /logger\.test/)
  assert.match(error.stack, /inner/)
})

test('an error that quotes its cause says it once, and has the stacks of both', async () => {
  const { lines, destination } = sink()
  const logger = await createLogger({ level: 'info', isPretty: false, destination })
  const cause = new Error('slot 1 is missing')
  logger.error({ err: startFailure(3, cause) }, 'a shard did not start')
  const { err } = JSON.parse(lines[0] ?? '')
  assert.equal(err.message, 'shard 3 did not start: slot 1 is missing')
  assert.match(err.stack, /caused by: Error: slot 1 is missing/)
})

test('on a terminal a line is readable text', async () => {
  const { lines, destination } = sink()
  const logger = await createLogger({ level: 'info', isPretty: true, destination })
  logger.info({ topic: 'orders' }, 'ready')
  assert.match(lines.join(''), /INFO.*: ready\n +topic: "orders"/s)
})

test('lines go to stderr and are out before the process exits; stdout stays free for results', () => {
  const module = new URL('../../../src/observe/logger.ts', import.meta.url).href
  const script =
    `const { createLogger } = await import(${JSON.stringify(module)});` +
    "(await createLogger({ level: 'info', isPretty: false })).info({}, 'last words'); process.exit(0)"
  const { stdout, stderr, status } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    encoding: 'utf8'
  })
  assert.deepEqual([status, stdout], [0, ''])
  assert.equal(JSON.parse(stderr).msg, 'last words')
})
